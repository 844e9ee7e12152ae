package server

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
)

// TestLanguage expects pages, errors and live updates in the language that the browser prefers, and the words of
// croft's commands in English.
func TestLanguage(t *testing.T) {
	b := startDashboard(t, startAPIServer(t))().logIn("ana-token")
	german := map[string]string{"Accept-Language": "de-AT,de;q=0.9,en;q=0.8"}
	for path, parts := range map[string][]string{
		"/namespaces/shop/workloads/pod/web-1": {`<html lang="de">`, "Dasselbe im Terminal", "waits for ", "croft why pod/web-1 -n shop"},
		"/nowhere":                             {`<html lang="de">`, "Nicht gefunden"},
	} {
		got := b.sendRequest(http.MethodGet, path, nil, german)
		for _, part := range parts {
			if !strings.Contains(got.body, part) {
				t.Errorf("%s: no %s:\n%s", path, part, got.body)
			}
		}
	}
	if got := b.getPage("/namespaces/shop"); !strings.Contains(got.body, `<html lang="en">`) || !strings.Contains(got.body, "The same in a terminal") {
		t.Errorf("without a preference:\n%s", got.body)
	}
	// Another version than the page's would make the script load the page again and again.
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/namespaces/shop?live=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Language", german["Accept-Language"])
	stream, err := b.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	version, found := "", false
	for scanner := bufio.NewScanner(stream.Body); !found && scanner.Scan(); {
		version, found = strings.CutPrefix(scanner.Text(), "data: ")
	}
	body := b.sendRequest(http.MethodGet, "/namespaces/shop", nil, german).body
	if shown := versionAttribute.FindStringSubmatch(body); shown == nil || shown[1] != version {
		t.Errorf("the stream has version %q:\n%s", version, body)
	}
}
