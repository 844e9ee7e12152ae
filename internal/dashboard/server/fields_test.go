package server

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/page"
)

// fieldPages are the pages that show the fields of testdata/fields.yaml.
var fieldPages = []string{
	"/", "/tenants", "/walls", "/nodes", "/namespaces/shop", "/namespaces/shop/workloads", "/namespaces/shop/jobs", "/namespaces/shop/network",
	"/namespaces/shop/hosts", "/namespaces/shop/hosts/gateways", "/namespaces/shop/quota", "/namespaces/shop/access",
	"/namespaces/shop/workloads/pod/starting", "/namespaces/shop/workloads/pod/starting/log?container=main", "/namespaces/shop/workloads/pod/failed",
	"/namespaces/shop/workloads/pod/gated", "/namespaces/shop/workloads/pod/pending", "/namespaces/shop/workloads/pod/default",
	"/namespaces/shop/workloads/deployment/web", "/namespaces/shop/workloads/job/nightly", "/namespaces/shop/workloads/job/failed",
	"/namespaces/shop/workloads/persistentvolumeclaim/data", "/namespaces/shop/workloads/persistentvolumeclaim/classless",
	"/namespaces/shop/workloads/ingress/web", "/namespaces/shop/workloads/certificate/web", "/namespaces/shop/workloads/gitrepository/app",
}

// notShown are fields that the pages read and do not show.
var notShown = []string{
	"annotation of a pod", "command of a container", "default container of a pod", "image of a container", "label of a pod", "reason of a terminated container",
	"reason of a Certificate's condition", "type of an event", "URL of a GitRepository",
}

// visibleEscapes are parts of payloads on a page that shows them.
var visibleEscapes = map[string]string{"bidi": `shop\u202egnp\u2066`, "zero width": `sh\u200bo\u200c\u200dp`, "escapes": `\x1b[2J\x1b]8;;`}

// TestFields writes hostile texts into each field that a tenant or a pod can write, one at a time, and
// opens the pages that show it. Each page must have the same elements, attributes and kinds of links as
// with a harmless text, no invisible character, and a limited size.
func TestFields(t *testing.T) {
	h := startHostileServer(t)
	h.changeServer(func() { h.admins["ana"] = true }) // who sees each kind of object
	b := serveHandler(t, New(newOptions(t, h.apiServer)))().logIn("ana-token")
	f := readFields(t)
	original := maps.Clone(h.objects)
	fill := func(name, text string) {
		filled := maps.Clone(original)
		maps.Copy(filled, f.fillFields(t, name, text))
		h.changeServer(func() { h.objects, h.requests = filled, nil })
	}
	fill("", "")
	missing := parsePage(t, b.getPage("/namespaces/nowhere").body)
	harmless, shown, read := map[string]content{}, map[string][]string{}, map[string][]string{}
	for _, path := range fieldPages {
		got := b.getPage(path)
		if got.status != http.StatusOK {
			t.Fatalf("%s: status %d: %s", path, got.status, got.body)
		}
		harmless[path] = parsePage(t, got.body)
		for _, r := range h.takeRequests() {
			read[r.URL.Path] = append(read[r.URL.Path], path)
		}
		for _, name := range f.names {
			if strings.Contains(got.body, f.getHarmlessText(name)) {
				shown[name] = append(shown[name], path)
			}
		}
	}
	for _, name := range f.names {
		if isHidden := len(shown[name]) == 0; isHidden != slices.Contains(notShown, name) {
			t.Errorf("the field %q is on %d pages: correct notShown or testdata/fields.yaml", name, len(shown[name]))
		}
	}
	if n := len(f.names) - len(notShown); n < 40 {
		t.Errorf("only %d fields", n)
	}
	pages, errors := 0, 0
	for payload, text := range readPayloads(t) {
		t.Run(payload, func(t *testing.T) {
			for _, name := range f.names {
				fill(name, text)
				paths := shown[name]
				if len(paths) == 0 {
					paths = read[f.findObject(name)]
				}
				for _, path := range paths {
					got := b.getPage(path)
					pages++
					if got.status != http.StatusOK {
						errors++ // the API server does not accept such a name, and the client refuses it
					}
					checkHostile(t, name+" on "+path, got, harmless[path], missing)
					if part := visibleEscapes[payload]; got.status == http.StatusOK && len(shown[name]) > 0 && !strings.Contains(path, "/log?") && !strings.Contains(got.body, part) {
						t.Errorf("%s on %s: the page does not show %s", name, path, part)
					}
				}
			}
		})
	}
	t.Logf("%d fields, %d pages, of which %d have an error", len(f.names), pages, errors)
	if errors > pages/10 {
		t.Errorf("%d of %d pages have an error", errors, pages)
	}
}

// TestRequestFields writes hostile texts into links, forms, tokens, and answers of the API server and of the
// identity provider.
func TestRequestFields(t *testing.T) {
	h := startHostileServer(t)
	h.changeServer(func() { h.admins["ana"] = true })
	p, o := startProvider(t, h.apiServer)
	open := serveHandler(t, New(o))
	b := open().logIn("ana-token")
	csrf := b.findCSRF(webPath)
	post := func(path string, form url.Values) response {
		form.Set("csrf", csrf)
		return b.sendRequest(http.MethodPost, path, form, nil)
	}
	escaped := url.QueryEscape
	visits := map[string]func(t *testing.T, text string) []response{
		"namespace in the path": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/namespaces/" + url.PathEscape(text))}
		},
		"kind in the path": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/namespaces/shop/workloads/" + url.PathEscape(text) + "/web")}
		},
		"name in the path": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/namespaces/shop/workloads/pod/" + url.PathEscape(text))}
		},
		"container in the address": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/namespaces/shop/workloads/pod/web-1?container=" + escaped(text)), b.getPage("/namespaces/shop/workloads/pod/web-1/log?container=" + escaped(text))}
		},
		"search": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/tenants?q=" + escaped(text))}
		},
		"name of an option": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/tenants?" + escaped(text) + "=1&not-ready=" + escaped(text))}
		},
		"namespace to open": func(_ *testing.T, text string) []response {
			return []response{b.getPage("/open?namespace=" + escaped(text))}
		},
		"page after the login": func(t *testing.T, text string) []response {
			all := []response{open().getPage("/login?next=" + escaped(text)), b.getPage("/login?next=" + escaped(text))}
			if someone := open(); all[0].status == http.StatusOK {
				all = append(all, someone.finishLogin(p.Authorize(t, someone.startLogin("/"+text), "ana")))
			}
			return all
		},
		"page before the login": func(_ *testing.T, text string) []response {
			return []response{open().getPage("/namespaces/" + url.PathEscape(text))}
		},
		"token": func(_ *testing.T, text string) []response {
			stranger := open()
			return []response{stranger.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {stranger.findCSRF("/login")}, "token": {text}, "next": {text}}, nil)}
		},
		"user and group of a token": func(_ *testing.T, text string) []response {
			h.changeServer(func() { h.user = text })
			defer h.changeServer(func() { h.user = "" })
			someone := open()
			all := []response{someone.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {someone.findCSRF("/login")}, "token": {"ana-token"}}, nil)}
			if all[0].status == http.StatusSeeOther {
				all = append(all, someone.getPage("/"), someone.getPage("/namespaces/shop/access"))
			}
			return all
		},
		"replicas": func(_ *testing.T, text string) []response {
			return []response{post(webPath+"/scale", url.Values{"replicas": {text}})}
		},
		"change in the path": func(_ *testing.T, text string) []response {
			return []response{post(webPath+"/"+url.PathEscape(text), url.Values{})}
		},
		"refusal and warning of the API server": func(_ *testing.T, text string) []response {
			h.changeServer(func() { h.refusal = text })
			defer h.changeServer(func() { h.refusal = "harmless" })
			const manifest = `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}`
			return []response{post(webPath+"/restart", url.Values{}), post("/namespaces/shop/try", url.Values{"manifests": {manifest}})}
		},
		"command": func(_ *testing.T, text string) []response {
			h.setProgram(func(string, io.Writer, io.Writer) string { return success }, "")
			return []response{post(runPath, url.Values{"container": {"main"}, "command": {text}}), post(runPath, url.Values{"container": {text}, "command": {"id"}})}
		},
		"output of a command": func(_ *testing.T, text string) []response {
			h.setProgram(func(_ string, stdout, stderr io.Writer) string {
				_, _ = io.WriteString(stdout, text)
				_, _ = io.WriteString(stderr, "x"+text)
				return success
			}, "")
			return []response{post(runPath, url.Values{"container": {"main"}, "command": {"id"}})}
		},
		"error of a command": func(_ *testing.T, text string) []response {
			h.setProgram(func(string, io.Writer, io.Writer) string { return failWith(text) }, "")
			return []response{post(runPath, url.Values{"container": {"main"}, "command": {"id"}})}
		},
		"manifests": func(_ *testing.T, text string) []response {
			return []response{post("/namespaces/shop/try", url.Values{"manifests": {"# a comment\n{" + text}})}
		},
		"name in a manifest": func(t *testing.T, text string) []response {
			t.Helper()
			return []response{post("/namespaces/shop/try", url.Values{"manifests": {newManifest(t, "ConfigMap", text)}})}
		},
		"kind in a manifest": func(t *testing.T, text string) []response {
			t.Helper()
			return []response{post("/namespaces/shop/try", url.Values{"manifests": {newManifest(t, text, "a")}})}
		},
		"error of the identity provider": func(t *testing.T, text string) []response {
			t.Helper()
			back := p.Authorize(t, b.startLogin("/"), "ana")
			query := url.Values{"error": {text}, "error_description": {text}, "state": {back.Query().Get("state")}, "iss": {p.Issuer}}
			return []response{b.getPage("/login/callback?" + query.Encode()), b.getPage("/login/callback?" + url.Values{"state": {text}, "code": {text}, "iss": {text}}.Encode())}
		},
	}
	// errors are the pages of errors, which a text may cause.
	var errors []content
	someone := open()
	refusedLogin := someone.sendRequest(http.MethodPost, "/login", url.Values{"csrf": {someone.findCSRF("/login")}, "token": {"no token"}}, nil)
	longOutput := func() response {
		h.setProgram(func(_ string, stdout, _ io.Writer) string {
			_, _ = io.WriteString(stdout, strings.Repeat("x", 2*page.LongestOutput))
			return success
		}, "")
		return post(runPath, url.Values{"container": {"main"}, "command": {"id"}})
	}
	for _, got := range []response{
		longOutput(), post(runPath, url.Values{"container": {"main"}}), b.getPage("/namespaces/nowhere"), open().getPage("/no-such-page"), refusedLogin, post("/namespaces/shop/try", url.Values{"manifests": {"{"}}),
	} {
		errors = append(errors, parsePage(t, got.body))
	}
	for name, visit := range visits {
		t.Run(name, func(t *testing.T) {
			var harmless []content
			for _, got := range visit(t, "harmless") {
				harmless = append(harmless, parsePage(t, got.body))
			}
			harmless = append(harmless, errors...)
			for payload, text := range readPayloads(t) {
				for _, got := range visit(t, text) {
					if got.status == http.StatusRequestHeaderFieldsTooLarge {
						continue // the HTTP server's own limit
					}
					checkHostile(t, payload, got, harmless...)
				}
			}
		})
	}
}

func newManifest(t *testing.T, kind, name string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
