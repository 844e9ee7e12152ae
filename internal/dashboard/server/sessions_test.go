package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/dashboard/provider/providertest"
)

// TestStolenCookies copies the cookies of a user who then logs out. No replica stores sessions, so that the
// copy stays valid for a limited time, as docs/how-to/dashboard.md describes: until the cluster no longer
// accepts the token. It cannot be renewed, and its open pages end with the logout.
func TestStolenCookies(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	first, second := serveHandler(t, New(o)), serveHandler(t, New(o))
	for name, logIn := range map[string]func(*browser) *browser{
		"after a login with a token":    func(b *browser) *browser { return b.logIn("ana-token") },
		"after a login at the provider": func(b *browser) *browser { return b.logInAt(p, "ana") },
	} {
		t.Run(name, func(t *testing.T) {
			b := logIn(first())
			thief, other := copyBrowser(b, first), copyBrowser(b, second)
			stream := thief.openStream("/")
			if stream.awaitVersion() == "" {
				t.Fatal("no stream")
			}
			b.sendRequest(http.MethodPost, "/logout", url.Values{"csrf": {b.findCSRF("/")}}, nil)
			if b.isLoggedIn() {
				t.Error("the user is still logged in")
			}
			if stream.awaitVersion() != "" {
				t.Error("the thief's open page is updated after the logout")
			}
			if !thief.isLoggedIn() || !other.isLoggedIn() {
				t.Error("the copy is invalid after the logout: the limit in docs/how-to/dashboard.md is out of date")
			}
			if len(p.ListRefreshTokens()) > 0 {
				t.Error("the copy can be renewed")
			}
			expired := copyBrowser(thief, first)
			expireToken(expired, o.Keys)
			if expired.isLoggedIn() {
				t.Error("the copy outlives its token")
			}
			a.mu.Lock()
			users := a.users
			a.users = map[string]string{} // the cluster no longer accepts the tokens
			a.mu.Unlock()
			for _, b := range []*browser{thief, other} {
				if got := b.getPage("/"); got.status != http.StatusSeeOther || len(b.listCookies()) > 0 {
					t.Errorf("the copy of an expired token: status %d, %d cookies", got.status, len(b.listCookies()))
				}
			}
			a.mu.Lock()
			a.users = users
			a.mu.Unlock()
		})
	}
}

// TestSwappedCookies combines the cookies of two users' sessions in each way. Each request has the whole
// session of one user, or none: never the token of one user and the name or the forms of the other.
func TestSwappedCookies(t *testing.T) {
	a := startAPIServer(t)
	long := strings.Repeat("x", 7000)
	a.users["ana"+long], a.users["bob"+long] = "ana", "bob"
	open := startDashboard(t, a)
	users := map[string]*browser{"ana": open().logIn("ana" + long), "bob": open().logIn("bob" + long)}
	csrf := map[string]string{"ana": users["ana"].findCSRF("/"), "bob": users["bob"].findCSRF("/")}
	hers, his := users["ana"].listCookies(), users["bob"].listCookies()
	if len(hers) != len(his) || len(hers) < 3 {
		t.Fatalf("%d and %d cookies", len(hers), len(his))
	}
	byName := func(a, b *http.Cookie) int {
		return strings.Compare(a.Name[:len(sessionCookie)]+a.Name[max(len(a.Name)-2, 0):], b.Name[:len(sessionCookie)]+b.Name[max(len(b.Name)-2, 0):])
	}
	slices.SortFunc(hers, byName)
	slices.SortFunc(his, byName)
	whole := map[string]int{}
	// The digits of a combination are the choices for the cookies: hers, his, both, his value with her
	// name, none.
	const choices = 5
	combinations := 1
	for range hers {
		combinations *= choices
	}
	for n := range combinations {
		var cookies []*http.Cookie
		for i, rest := 0, n; i < len(hers); i, rest = i+1, rest/choices {
			switch rest % choices {
			case 0:
				cookies = append(cookies, hers[i])
			case 1:
				cookies = append(cookies, his[i])
			case 2:
				cookies = append(cookies, hers[i], his[i])
			case 3:
				cookies = append(cookies, &http.Cookie{Name: hers[i].Name, Value: his[i].Value})
			}
		}
		b := open()
		b.setCookies(cookies...)
		a.takeRequests()
		got := b.getPage("/")
		if got.status != http.StatusOK {
			whole["none"]++
			if requests := a.takeRequests(); len(requests) > 0 {
				t.Errorf("combination %d: %d requests to the cluster without a session", n, len(requests))
			}
			continue
		}
		user := strings.TrimPrefix(a.takeRequests()[0].Header.Get("Authorization"), "Bearer ")[:3]
		whole[user]++
		other := map[string]string{"ana": "bob", "bob": "ana"}[user]
		if !strings.Contains(got.body, ">"+user+"<") || strings.Contains(got.body, ">"+other+"<") || !strings.Contains(got.body, csrf[user]) || strings.Contains(got.body, csrf[other]) {
			t.Errorf("combination %d: the token of %s with the page\n%s", n, user, got.body)
		}
	}
	if whole["ana"] == 0 || whole["bob"] == 0 || whole["none"] == 0 {
		t.Errorf("the combinations have the sessions %v", whole)
	}
}

// TestReplays sends a recorded request again at another replica: the end of a login, and forms of a session
// that has ended.
func TestReplays(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	first, second := serveHandler(t, New(o)), serveHandler(t, New(o))
	t.Run("the end of a login", func(t *testing.T) {
		b := first()
		back := p.Authorize(t, b.startLogin("/"), "ana")
		thief := copyBrowser(b, second) // with the cookie of the login
		b.finishLogin(back)
		if got := thief.finishLogin(back); got.status < http.StatusBadRequest || thief.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, thief.isLoggedIn())
		}
	})
	t.Run("the end of a login without its cookie", func(t *testing.T) {
		b, thief := first(), second()
		back := p.Authorize(t, b.startLogin("/"), "ana")
		if got := thief.finishLogin(back); got.status != http.StatusForbidden || thief.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, thief.isLoggedIn())
		}
		if b.finishLogin(back); !b.isLoggedIn() {
			t.Error("the refused replay has used up the login")
		}
	})
	t.Run("forms", func(t *testing.T) {
		b := first().logIn("ana-token")
		form := url.Values{"csrf": {b.findCSRF("/")}, "confirmed": {"yes"}, "replicas": {"1"}, "container": {"main"}, "command": {"id"}}
		b.sendRequest(http.MethodPost, "/logout", form, nil)
		later := copyBrowser(first().logIn("ana-token"), second)
		for name, replay := range map[string]*browser{"without a session": copyBrowser(b, second), "in a later session": later} {
			for _, path := range []string{"/logout", webPath + "/restart", webPath + "/scale", "/namespaces/shop/try", runPath} {
				a.takeRequests()
				if got := replay.sendRequest(http.MethodPost, path, form, nil); got.status != http.StatusForbidden || len(a.takeRequests()) > 0 {
					t.Errorf("%s %s: status %d", path, name, got.status)
				}
			}
		}
		if !later.isLoggedIn() {
			t.Error("a replay has ended the later session")
		}
	})
}

// forgery is a request that no page of the dashboard has sent. OWN in it is the text of the browser's forms.
type forgery struct {
	method, query string
	headers       map[string]string
	// csrf are the values of the field; nil for the right one.
	csrf []string
	// encode writes the body if it is no usual form.
	encode func(url.Values) (kind, body string)
}

// listForgeries returns requests as other sites, other users and former sessions could send them.
func listForgeries(theirs, visitors, former string) map[string]forgery {
	none := []string{}
	from := func(name, value string) forgery {
		return forgery{headers: map[string]string{"Sec-Fetch-Site": "", name: value}}
	}
	return map[string]forgery{
		"from another site":                 from("Sec-Fetch-Site", "cross-site"),
		"from another host of the domain":   from("Sec-Fetch-Site", "same-site"),
		"from another origin":               from("Origin", "https://evil.example"),
		"from an opaque origin":             from("Origin", "null"),
		"from another port":                 from("Origin", "https://127.0.0.1:1"),
		"from a host with the same prefix":  from("Origin", "https://127.0.0.1.evil.example"),
		"without the text":                  {csrf: none},
		"with an empty text":                {csrf: []string{""}},
		"with another text":                 {csrf: []string{"AAAAAAAAAAAAAAAAAAAAAAAAAA"}},
		"with a part of the text":           {csrf: []string{"OWN-"}},
		"with the text in lower case":       {csrf: []string{"own"}},
		"with another user's text":          {csrf: []string{theirs}},
		"with a visitor's text":             {csrf: []string{visitors}},
		"with the text of a former session": {csrf: []string{former}},
		"with the right text second":        {csrf: []string{"other", "OWN"}},
		"with the text in the address":      {csrf: none, query: "?csrf=OWN"},
		"with the text in a header":         {csrf: none, headers: map[string]string{"X-Csrf-Token": "OWN", "Csrf": "OWN"}},
		"with the text in a cookie":         {csrf: none, headers: map[string]string{"Cookie": "csrf=OWN"}},
		"as JSON": {encode: func(form url.Values) (string, string) {
			return "application/json", `{"csrf":"` + form.Get("csrf") + `","confirmed":"yes","container":"main","command":"id","token":"` + form.Get("token") + `"}`
		}},
		"as plain text":  {encode: func(form url.Values) (string, string) { return "text/plain", form.Encode() }},
		"without a type": {encode: func(form url.Values) (string, string) { return "", form.Encode() }},
		"as a form with files": {encode: func(form url.Values) (string, string) {
			body := ""
			for name := range form {
				body += "--x\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + form.Get(name) + "\r\n"
			}
			return "multipart/form-data; boundary=x", body + "--x--\r\n"
		}},
		"as a link":                    {method: http.MethodGet, query: "?csrf=OWN&confirmed=yes&token=bob-token&replicas=0&manifests=x&container=main&command=id"},
		"as a link for another method": {method: http.MethodGet, query: "?csrf=OWN&confirmed=yes&container=main&command=id&_method=POST", headers: map[string]string{"X-Http-Method-Override": "POST"}},
		"by another method":            {method: http.MethodPut},
	}
}

// TestForgedPosts sends more than 20 forgeries to each form. None has an effect: no change, no trial and no
// command at the cluster, no login as another user, and no logout.
func TestForgedPosts(t *testing.T) {
	a := startAPIServer(t)
	open := startDashboard(t, a)
	former := open().logIn("ana-token").findCSRF("/")
	forgeries := listForgeries(open().logIn("bob-token").findCSRF("/"), open().findCSRF("/login"), former)
	if len(forgeries) < 20 {
		t.Errorf("only %d forgeries", len(forgeries))
	}
	for _, path := range []string{"/login", "/logout", webPath + "/restart", webPath + "/scale", "/namespaces/shop/try", runPath} {
		for name, f := range forgeries {
			t.Run(path+" "+name, func(t *testing.T) {
				b := open()
				b.t = t
				if path != "/login" {
					b.logIn("ana-token")
				}
				own := b.findCSRF(map[bool]string{true: "/login", false: "/"}[path == "/login"])
				a.takeRequests()
				got := b.sendForgery(f, path, own)
				for _, r := range a.takeRequests() {
					if r.Method != http.MethodGet || isExec(r) {
						t.Errorf("status %d, and a request %s %s", got.status, r.Method, r.URL)
					}
				}
				if f.method == "" && got.status != http.StatusForbidden {
					t.Errorf("status %d, want 403", got.status)
				}
				if b.isLoggedIn() != (path != "/login") {
					t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
				}
			})
		}
	}
}

// sendForgery sends a forgery. own is the text of the browser's forms.
func (b *browser) sendForgery(f forgery, path, own string) response {
	b.t.Helper()
	insert := strings.NewReplacer("OWN-", own[:len(own)-1], "OWN", own, "own", strings.ToLower(own))
	form := url.Values{"csrf": {own}, "token": {"bob-token"}, "confirmed": {"yes"}, "replicas": {"0"}, "container": {"main"}, "command": {"id"}, "manifests": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"}}
	if f.csrf != nil {
		form["csrf"] = nil
		for _, text := range f.csrf {
			form.Add("csrf", insert.Replace(text))
		}
	}
	kind, body := "application/x-www-form-urlencoded", form.Encode()
	if f.encode != nil {
		kind, body = f.encode(form)
	}
	method := f.method
	if method == "" {
		method = http.MethodPost
	}
	headers := map[string]string{"Sec-Fetch-Site": "same-origin", "Content-Type": kind}
	for name, value := range f.headers {
		headers[name] = insert.Replace(value)
	}
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path+insert.Replace(f.query), strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	got, err := b.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer got.Body.Close()
	return response{status: got.StatusCode, header: got.Header}
}

// TestIssuerMixUp leads a browser to a second provider, whose responses and documents claim to be the
// first one's. No code and no token of it is used.
func TestIssuerMixUp(t *testing.T) {
	a := startAPIServer(t)
	p, o := startProvider(t, a)
	evil := providertest.Start(t)
	open := serveHandler(t, New(o))
	t.Run("a code of another provider", func(t *testing.T) {
		b := open()
		location := strings.Replace(b.startLogin("/"), p.Issuer, evil.Issuer, 1)
		if got := b.finishLogin(evil.Authorize(t, location, "bob")); got.status != http.StatusForbidden || b.isLoggedIn() {
			t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
		}
		if p.CountRequests("/token")+evil.CountRequests("/token") > 0 {
			t.Error("the code was sent to a provider")
		}
	})
	for name, change := range map[string]func(map[string]any){
		"a document of another issuer": func(m map[string]any) { m["issuer"] = evil.Issuer },
		"keys of another provider":     func(m map[string]any) { m["jwks_uri"] = evil.Issuer + "/keys" },
		"tokens of another provider":   func(m map[string]any) { m["token_endpoint"] = evil.Issuer + "/token" },
	} {
		t.Run(name, func(t *testing.T) {
			p.Change(func() { p.ChangeMetadata = change })
			defer p.Change(func() { p.ChangeMetadata = nil })
			o := o
			o.Provider = newProvider(t, p)
			b := serveHandler(t, New(o))()
			got := b.getPage(startPath)
			if got.status == http.StatusSeeOther {
				got = b.finishLogin(p.Authorize(t, got.header.Get("Location"), "ana"))
			}
			if got.status != http.StatusBadGateway || b.isLoggedIn() {
				t.Errorf("status %d, logged in: %t", got.status, b.isLoggedIn())
			}
		})
	}
}
