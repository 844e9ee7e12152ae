package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestTry expects dry runs with the user's token and nothing else, and the words of `croft try`.
func TestTry(t *testing.T) {
	a := startAPIServer(t)
	open := startDashboard(t, a)
	b := open().logIn("ana-token")
	const path, pods, config = "/namespaces/shop/try", "/api/v1/namespaces/shop/pods", "/api/v1/namespaces/shop/configmaps"
	csrf := b.findCSRF(path)
	a.objects[config] = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"new","namespace":"shop"}}`
	object := func(kind, name string) string {
		return "---\r\napiVersion: v1\r\nkind: " + kind + "\r\nmetadata: {name: " + name + "}\r\n"
	}
	a.setStatus("POST "+pods, http.StatusForbidden)
	for name, c := range map[string]struct {
		text  string
		parts []string
		// requests is the number of dry runs.
		requests int
	}{
		"admitted":         {object("ConfigMap", "new"), []string{"0 of 1 object refused, 1 admitted", "ConfigMap/new"}, 1},
		"refused":          {object("ConfigMap", "new") + object("Pod", "new"), []string{"1 of 2 objects refused, 1 admitted", "Pod/new", "because", "the effects of an object on later ones"}, 2},
		"empty":            {"", []string{"there is no object"}, 0},
		"no YAML":          {"a: {", []string{"manifests:1: this is not YAML"}, 0},
		"an unknown kind":  {"apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: a}", []string{"manifests:1: the dashboard does not know the kind Widget of example.org/v1"}, 0},
		"too many objects": {strings.Repeat(object("ConfigMap", "a"), 51), []string{"there are 51 objects, and the dashboard tries at most 50"}, 0},
		"too long":         {"# " + strings.Repeat("a", 130<<10), []string{"more than 128 KiB"}, 0},
		"markup":           {"</textarea><script>alert(1)</script>", []string{"&lt;/textarea&gt;&lt;script&gt;"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a.takeRequests()
			got := b.sendRequest(http.MethodPost, path, url.Values{"csrf": {csrf}, "manifests": {c.text}}, nil)
			if got.status != http.StatusOK || !strings.Contains(got.body, "croft try --live -n shop") {
				t.Errorf("status %d:\n%s", got.status, got.body)
			}
			for _, part := range c.parts {
				if !strings.Contains(got.body, part) {
					t.Errorf("no %q:\n%s", part, got.body)
				}
			}
			runs := 0
			for _, r := range a.takeRequests() {
				if r.Method == http.MethodGet {
					continue
				}
				runs++
				if r.URL.Query().Get("dryRun") != "All" || r.Header.Get("Authorization") != "Bearer ana-token" {
					t.Errorf("%s %s is no dry run of ana", r.Method, r.URL)
				}
			}
			if runs != c.requests {
				t.Errorf("%d dry runs, want %d", runs, c.requests)
			}
		})
	}
	a.takeRequests()
	if got := b.sendRequest(http.MethodPost, path, url.Values{"csrf": {csrf}, "manifests": {strings.Repeat("a", 4*130<<10)}}, nil); got.status != http.StatusRequestEntityTooLarge || len(a.takeRequests()) > 0 {
		t.Errorf("a large form: status %d", got.status)
	}
	eve := open().logIn("bob-token")
	a.takeRequests()
	for name, form := range map[string]url.Values{"no text": {}, "another user's text": {"csrf": {eve.findCSRF("/")}}} {
		form.Set("manifests", object("ConfigMap", "new"))
		a.takeRequests()
		if got := b.sendRequest(http.MethodPost, path, form, nil); got.status != http.StatusForbidden || len(a.takeRequests()) > 0 {
			t.Errorf("%s: status %d", name, got.status)
		}
	}
	missing := b.getPage("/namespaces/nowhere")
	for _, path := range []string{"/namespaces/bank/try", "/namespaces/nowhere/try"} {
		got := b.sendRequest(http.MethodPost, path, url.Values{"csrf": {csrf}, "manifests": {object("ConfigMap", "new")}}, nil)
		if got.status != http.StatusNotFound || got.body != missing.body {
			t.Errorf("%s: status %d:\n%s", path, got.status, got.body)
		}
	}
}
