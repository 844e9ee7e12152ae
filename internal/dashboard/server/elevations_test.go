package server

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/walls/elevation"
)

const (
	elevationsPath = "/namespaces/shop/elevations"
	elevationsAPI  = "/apis/croft.dev/v1alpha1/namespaces/shop/elevations"
)

// makeElevation returns an Elevation in JSON.
func makeElevation(name, by, status string) string {
	return `{"kind":"Elevation","apiVersion":"croft.dev/v1alpha1","metadata":{"namespace":"shop","name":"` + name + `","uid":"uid-` + name + `","resourceVersion":"7"},` +
		`"spec":{"requestedBy":"` + by + `","role":"operator","duration":"1h","reason":"INC-42","publicKey":"a"},"status":` + status + `}`
}

// setElevations sets the list of elevations, and each one.
func (a *apiServer) setElevations(all map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var items []string
	for name, text := range all {
		items = append(items, text)
		a.objects[elevationsAPI+"/"+name] = text
	}
	slices.Sort(items)
	a.objects[elevationsAPI] = `{"kind":"ElevationList","apiVersion":"croft.dev/v1alpha1","items":[` + strings.Join(items, ",") + `]}`
}

// TestElevations requests, approves and ends elevations. Each change is a dry run before its confirmation,
// and has the user's own name.
func TestElevations(t *testing.T) {
	a := startAPIServer(t)
	a.rules = `{"apiGroups":["croft.dev"],"resources":["elevations"],"verbs":["*"]}`
	a.setElevations(map[string]string{
		"eve-1": makeElevation("eve-1", "eve", `{}`), "ana-1": makeElevation("ana-1", "ana", `{"phase":"Pending","message":"waits for an approver"}`),
		"eve-2": makeElevation("eve-2", "eve", `{"phase":"Refused","message":"no approver approved it within a day"}`),
	})
	a.objects["POST "+elevationsAPI] = makeElevation("ana-2", "ana", `{}`)
	a.objects["DELETE "+elevationsAPI+"/eve-1"] = `{"kind":"Status","apiVersion":"v1","status":"Success"}`
	b := startDashboard(t, a)().logIn("ana-token")
	shown := b.getPage(elevationsPath)
	for part, want := range map[string]bool{
		"eve requests the role operator in namespace shop for 1h: INC-42": true, "waits for an approver": true, "Refused": true,
		elevationsPath + "/eve-1/approve": true, elevationsPath + "/eve-1/end": true, elevationsPath + "/ana-1/end": true,
		elevationsPath + "/ana-1/approve": false, elevationsPath + "/eve-2/end": false, "/use": false,
	} {
		if strings.Contains(shown.body, part) != want {
			t.Errorf("the page has %s: %t:\n%s", part, !want, shown.body)
		}
	}
	csrf := b.findCSRF(elevationsPath)
	for name, c := range map[string]struct {
		path, method, api string
		form              url.Values
		// asks is on the page that asks, and sent in the request.
		asks, sent string
	}{
		"request": {elevationsPath, "POST", elevationsAPI, url.Values{"duration": {"30m"}, "reason": {"INC-43: <b>"}}, "INC-43: &lt;b&gt;", `"spec":{"requestedBy":"ana","role":"operator","duration":"30m0s","reason":"INC-43: \u003cb\u003e","publicKey":"`},
		"approve": {elevationsPath + "/eve-1/approve", "PATCH", elevationsAPI + "/eve-1", url.Values{}, "croft elevate approve eve-1 -n shop", `{"metadata":{"resourceVersion":"7"},"spec":{"approvedBy":"ana"}}`},
		"end":     {elevationsPath + "/eve-1/end", "DELETE", elevationsAPI + "/eve-1", url.Values{}, "its record is deleted", `"uid":"uid-eve-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, confirmed := range []string{"", "yes"} {
				c.form.Set("csrf", csrf)
				c.form.Set("confirmed", confirmed)
				a.takeRequests()
				got := b.sendRequest(http.MethodPost, c.path, c.form, nil)
				changes, dryRuns := listChangesOf(t, a, c.method, c.api)
				if len(changes) != 1 || !strings.Contains(changes[0], c.sent) || dryRuns != (confirmed == "") {
					t.Errorf("confirmed %q: dry run %t: %q", confirmed, dryRuns, changes)
				}
				if confirmed == "" && (got.status != http.StatusOK || !strings.Contains(got.body, c.asks) || !strings.Contains(got.body, `name="confirmed"`) || len(got.header.Values("Set-Cookie")) > 0) {
					t.Errorf("status %d, no %s:\n%s", got.status, c.asks, got.body)
				}
				if confirmed == "yes" && (got.status != http.StatusSeeOther || got.header.Get("Location") != elevationsPath) {
					t.Errorf("status %d:\n%s", got.status, got.body)
				}
			}
			a.setStatus(c.method+" "+c.api, http.StatusForbidden)
			defer a.setStatus(c.method+" "+c.api, 0)
			if got := b.sendRequest(http.MethodPost, c.path, c.form, nil); got.status != http.StatusOK || !strings.Contains(got.body, "The cluster refuses this: because") || len(got.header.Values("Set-Cookie")) > 0 {
				t.Errorf("a refusal: status %d:\n%s", got.status, got.body)
			}
		})
	}
	for name, form := range map[string]url.Values{
		"too short": {"duration": {"14m"}, "reason": {"a"}}, "too long": {"duration": {"25h"}, "reason": {"a"}}, "no duration": {"duration": {"1"}, "reason": {"a"}},
		"no reason": {"duration": {"1h"}, "reason": {" "}},
	} {
		form.Set("csrf", csrf)
		form.Set("confirmed", "yes")
		a.takeRequests()
		got := b.sendRequest(http.MethodPost, elevationsPath, form, nil)
		if changes, _ := listChangesOf(t, a, "POST", elevationsAPI); got.status != http.StatusOK || !strings.Contains(got.body, "✗") || len(changes) > 0 {
			t.Errorf("%s: status %d, %q:\n%s", name, got.status, changes, got.body)
		}
	}
	replaced := url.Values{"csrf": {csrf}, "confirmed": {"yes"}, "uid": {"another"}}
	a.takeRequests()
	got := b.sendRequest(http.MethodPost, elevationsPath+"/eve-1/approve", replaced, nil)
	if changes, _ := listChangesOf(t, a, "PATCH", elevationsAPI+"/eve-1"); len(changes) > 0 || !strings.Contains(got.body, "another one than before") {
		t.Errorf("another elevation with the same name: %q:\n%s", changes, got.body)
	}
	missing := b.getPage("/namespaces/nowhere")
	for _, path := range []string{elevationsPath + "/other/approve", elevationsPath + "/eve-1/delete", "/namespaces/bank/elevations/eve-1/end", "/namespaces/bank/elevations"} {
		got := b.sendRequest(http.MethodPost, path, url.Values{"csrf": {csrf}, "confirmed": {"yes"}, "duration": {"1h"}, "reason": {"a"}}, nil)
		if got.status != http.StatusNotFound || got.body != missing.body {
			t.Errorf("%s: status %d:\n%s", path, got.status, got.body)
		}
	}
}

// TestElevationsWithoutRights expects no forms without the rights, and the reason without elevations.
func TestElevationsWithoutRights(t *testing.T) {
	a := startAPIServer(t)
	a.setElevations(map[string]string{"eve-1": makeElevation("eve-1", "eve", `{}`)})
	b := startDashboard(t, a)().logIn("ana-token")
	if got := b.getPage(elevationsPath); strings.Contains(got.body, `action="`+elevationsPath) {
		t.Errorf("forms without rights:\n%s", got.body)
	}
	a.setStatus(elevationsAPI, http.StatusForbidden)
	if got := b.getPage(elevationsPath); got.status != http.StatusOK || !strings.Contains(got.body, "a platform admin enables them with platform.elevation") {
		t.Errorf("status %d:\n%s", got.status, got.body)
	}
}

// listChangesOf returns the bodies of the requests with a method to a path, and whether all are dry runs.
func listChangesOf(t *testing.T, a *apiServer, method, path string) (all []string, dryRuns bool) {
	t.Helper()
	dryRuns = true
	for _, r := range a.takeRequests() {
		if r.Method != method || r.URL.Path != path {
			continue
		}
		var body json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Fatal(err)
		}
		all = append(all, string(body))
		dryRuns = dryRuns && (r.URL.Query().Get("dryRun") == "All" || strings.Contains(string(body), `"dryRun":["All"]`))
	}
	return all, dryRuns
}

// TestUseElevation uses a granted elevation in the browser that requested it. Neither another browser
// nor another user can, and a logout deletes the key.
func TestUseElevation(t *testing.T) {
	a := startAPIServer(t)
	a.rules = `{"apiGroups":["croft.dev"],"resources":["elevations"],"verbs":["create"]}`
	a.objects["POST "+elevationsAPI] = makeElevation("ana-2", "ana", `{}`)
	open := startDashboard(t, a)
	b, another := open().logIn("ana-token"), open().logIn("ana-token")
	a.takeRequests()
	form := url.Values{"csrf": {b.findCSRF(elevationsPath)}, "confirmed": {"yes"}, "duration": {"1h"}, "reason": {"INC-42"}}
	if got := b.sendRequest(http.MethodPost, elevationsPath, form, nil); got.status != http.StatusSeeOther {
		t.Fatalf("status %d:\n%s", got.status, got.body)
	}
	var request struct{ Spec struct{ PublicKey string } }
	requests, _ := listChangesOf(t, a, "POST", elevationsAPI)
	if err := json.Unmarshal([]byte(requests[0]), &request); err != nil {
		t.Fatal(err)
	}
	sealed, err := elevation.Seal(request.Spec.PublicKey, "elevated-token")
	if err != nil {
		t.Fatal(err)
	}
	a.users["elevated-token"], a.theirs["elevated"] = "elevated", "shop"
	grant := func(phase string, sealed []byte) {
		a.setElevations(map[string]string{"ana-2": makeElevation("ana-2", "ana", fmt.Sprintf(`{"phase":%q,"message":"approved by eve","user":"elevated","until":%q,"token":%q}`,
			phase, time.Now().Add(time.Hour).UTC().Format(time.RFC3339), base64.StdEncoding.EncodeToString(sealed)))})
	}
	use := func(b *browser) response {
		return b.sendRequest(http.MethodPost, elevationsPath+"/ana-2/use", url.Values{"csrf": {b.findCSRF("/namespaces/shop/try")}}, nil)
	}
	grant("Ended", nil)
	if got := use(b); !strings.Contains(got.body, "the elevation is not active") {
		t.Errorf("an ended elevation: status %d:\n%s", got.status, got.body)
	}
	grant("Active", []byte("of another key"))
	if got := use(b); !strings.Contains(got.body, "not encrypted for this request") {
		t.Errorf("another key: status %d:\n%s", got.status, got.body)
	}
	grant("Active", sealed)
	if got := another.getPage(elevationsPath); strings.Contains(got.body, "/use") || !strings.Contains(got.body, "encrypted for the browser") {
		t.Errorf("another browser shows the form:\n%s", got.body)
	}
	if got := use(another); !strings.Contains(got.body, "encrypted for another browser") {
		t.Errorf("another browser: status %d:\n%s", got.status, got.body)
	}
	if got := b.getPage(elevationsPath); !strings.Contains(got.body, elevationsPath+"/ana-2/use") || !strings.Contains(got.body, "granted (approved by eve): ana is elevated until") {
		t.Errorf("no form:\n%s", got.body)
	}
	before := b.findCSRF(elevationsPath)
	if got := use(b); got.status != http.StatusSeeOther || got.header.Get("Location") != "/namespaces/shop" {
		t.Fatalf("status %d:\n%s", got.status, got.body)
	}
	a.takeRequests()
	if got := b.getPage("/namespaces/shop"); got.status != http.StatusOK || !strings.Contains(got.body, `<span class="user">elevated</span>`) {
		t.Errorf("status %d:\n%s", got.status, got.body)
	}
	for _, r := range a.takeRequests() {
		if r.Header.Get("Authorization") != "Bearer elevated-token" {
			t.Errorf("%s: %s", r.URL, r.Header.Get("Authorization"))
		}
	}
	if b.findCSRF("/namespaces/shop/try") == before {
		t.Error("the forms of the previous session are still valid")
	}
	b.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {b.findCSRF("/namespaces/shop/try")}}, nil)
	b.logIn("ana-token")
	if got := use(b); !strings.Contains(got.body, "encrypted for another browser") {
		t.Errorf("after the logout: status %d:\n%s", got.status, got.body)
	}
}
