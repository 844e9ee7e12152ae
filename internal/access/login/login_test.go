package login

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"croft.dev/croft/internal/test/openidtest"
)

// TestLogin logs in at a real OpenID provider. It runs in `make test` and takes some
// seconds: the device flow waits 5 s, its default polling interval.
func TestLogin(t *testing.T) {
	t.Parallel() // the test mostly waits
	p := openidtest.Start(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *openidtest.Provider)
	}{
		{"Browser", testBrowserLogin}, {"Device", testDeviceLogin}, {"Refused", testRefusedLogin}, {"DeviceRefused", testRefusedDeviceLogin}, {"Refresh", testRefresh},
		{"Revoked", testRevokedToken}, {"Concurrent", testConcurrentRefresh}, {"Clock", testClockSkew}, {"Unreachable", testUnreachableProvider}, {"Forged", testForgedCallback},
		{"Accounts", testAccounts},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, p)
		})
	}
}

// newSession returns a session whose user opens the printed URL as jane.
func newSession(t *testing.T, p *openidtest.Provider, change func(*Options)) *Session {
	t.Helper()
	o := Options{
		Issuer: p.Issuer, ClientID: "croft", CertificateAuthority: p.AuthorityFile, Storage: File, Out: io.Discard,
		Prompt: "consent", // this provider requires it for refresh tokens
		Scopes: []string{"profile", "groups", "offline_access"}, Dir: filepath.Join(t.TempDir(), "login"),
	}
	o.OpenBrowser = newBrowser(t, p, "jane")
	if change != nil {
		change(&o)
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// newBrowser returns a function that opens pages as an account, and follows the redirect to croft.
func newBrowser(t *testing.T, p *openidtest.Provider, account string) func(string) error {
	return func(page string) error {
		back := p.Visit(t, page, account)
		if back == nil {
			return nil
		}
		return followRedirect(t, back)
	}
}

func followRedirect(t *testing.T, page *url.URL) error {
	answer, err := http.Get(page.String())
	if err != nil {
		t.Errorf("the redirect to croft failed: %v", err)
		return err
	}
	return answer.Body.Close()
}

func forbidBrowser(t *testing.T) func(string) error {
	return func(page string) error {
		t.Errorf("unexpected browser login: %s", page)
		return nil
	}
}

func (s *Session) expectJane(t *testing.T, token *Token, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if token.User != "jane" || !slices.Equal(token.Groups, []string{"team.devs.platform-access"}) || !token.Renewable || token.Raw == "" {
		t.Errorf("the token has user %s, groups %v, renewable %v", token.User, token.Groups, token.Renewable)
	}
}

func testBrowserLogin(t *testing.T, p *openidtest.Provider) {
	var output strings.Builder
	s := newSession(t, p, func(o *Options) { o.Out = &output })
	token, err := s.Login(t.Context())
	s.expectJane(t, token, err)
	if !strings.Contains(output.String(), p.Issuer+"/auth?") || strings.Contains(output.String(), token.Raw) {
		t.Errorf("unexpected output: %s", output.String())
	}
	expectPrivate(t, s.options.Dir)

	// The stored token is returned without contacting the provider.
	s.options.OpenBrowser = forbidBrowser(t)
	s.client.Transport = noNetwork{}
	again, err := s.Token(t.Context(), false)
	s.expectJane(t, again, err)
	if again.Raw != token.Raw {
		t.Error("the returned token differs from the stored one")
	}
	if err := s.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Token(t.Context(), false); !errors.Is(err, ErrLoginNeeded) {
		t.Errorf("after Forget: %v", err)
	}
}

// expectPrivate fails if users other than the owner can read the stored login.
func expectPrivate(t *testing.T, dir string) {
	t.Helper()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s has mode %v, %v", dir, info.Mode(), err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, %v", file.Name(), info.Mode(), err)
		}
	}
}

// testAccounts fails if a login changes the user of a session that another kubeconfig uses.
func testAccounts(t *testing.T, p *openidtest.Provider) {
	first := newSession(t, p, nil)
	token, err := first.Login(t.Context())
	first.expectJane(t, token, err)
	session := func(account string) *Session {
		return newSession(t, p, func(o *Options) {
			o.Dir, o.Account, o.Prompt, o.OpenBrowser = first.options.Dir, account, "login consent", newBrowser(t, p, "bob")
		})
	}
	if _, err := session("").Login(t.Context()); err == nil || !strings.Contains(err.Error(), "you logged in as bob") || !strings.Contains(err.Error(), "is jane's: add --account bob") {
		t.Errorf("a login as another user: %v", err)
	}
	if _, err := session("jane").Login(t.Context()); err == nil || !strings.Contains(err.Error(), "you logged in as bob, and --account is jane") {
		t.Errorf("a login as another user than --account: %v", err)
	}
	second := session("bob")
	if token, err := second.Login(t.Context()); err != nil || token.User != "bob" {
		t.Errorf("the second session is %v's: %v", token, err)
	}
	token, err = first.Token(t.Context(), false)
	first.expectJane(t, token, err)
	if err := second.Forget(t.Context()); err != nil {
		t.Error(err)
	}
	token, err = first.Token(t.Context(), false)
	first.expectJane(t, token, err)
}

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no network")
}

func testDeviceLogin(t *testing.T, p *openidtest.Provider) {
	var output strings.Builder
	s := newSession(t, p, func(o *Options) { o.Device, o.Out = true, &output })
	token, err := s.Login(t.Context())
	s.expectJane(t, token, err)
	if !strings.Contains(output.String(), "check that the page shows the code ") {
		t.Errorf("unexpected output: %s", output.String())
	}
}

func testRefusedDeviceLogin(t *testing.T, p *openidtest.Provider) {
	s := newSession(t, p, func(o *Options) {
		o.Device, o.OpenBrowser = true, func(page string) error { p.Refuse(t, page); return nil }
	})
	if _, err := s.Login(t.Context()); err == nil || !strings.Contains(err.Error(), "refused the login: access_denied") {
		t.Errorf("got %v", err)
	}
}

func testRefusedLogin(t *testing.T, p *openidtest.Provider) {
	s := newSession(t, p, func(o *Options) {
		o.OpenBrowser = func(page string) error { return followRedirect(t, p.Refuse(t, page)) }
	})
	if _, err := s.Login(t.Context()); err == nil || !strings.Contains(err.Error(), "refused the login: access_denied") {
		t.Errorf("got %v", err)
	}
}

// newBriefSession returns a session whose tokens expire so soon that each use renews them.
func newBriefSession(t *testing.T, p *openidtest.Provider) *Session {
	t.Helper()
	s := newSession(t, p, func(o *Options) { o.ClientID = "brief" })
	token, err := s.Login(t.Context())
	s.expectJane(t, token, err)
	s.options.OpenBrowser = forbidBrowser(t)
	return s
}

func testRefresh(t *testing.T, p *openidtest.Provider) {
	s := newBriefSession(t, p)
	var requests atomic.Int32
	s.client.Transport = tokenCounter{s.client.Transport, &requests}
	for range 3 { // each time with the previous response's refresh token
		next, err := s.Token(t.Context(), false)
		s.expectJane(t, next, err)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("the provider received %d token requests, want 3", n)
	}
	expectPrivate(t, s.options.Dir)
}

func testRevokedToken(t *testing.T, p *openidtest.Provider) {
	s := newBriefSession(t, p)
	k, err := s.store.load()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.client.PostForm(p.Issuer+"/token/revocation", url.Values{
		"client_id": {"brief"}, "token": {k.RefreshToken}, "token_type_hint": {"refresh_token"},
	})
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", answer, err)
	}
	answer.Body.Close()
	if _, err := s.Token(t.Context(), false); err == nil || !strings.Contains(err.Error(), "the session has ended: invalid_grant") || !strings.Contains(err.Error(), "run croft login") {
		t.Errorf("got %v", err)
	}
	// An interactive session logs in again.
	s.options.OpenBrowser = newBrowser(t, p, "jane")
	token, err := s.Token(t.Context(), true)
	s.expectJane(t, token, err)
}

// testConcurrentRefresh fails if two processes use the same refresh token. The provider would then
// end the session, because the second use could be an attacker's.
func testConcurrentRefresh(t *testing.T, p *openidtest.Provider) {
	login := newBriefSession(t, p)
	var requests atomic.Int32
	var both sync.WaitGroup
	both.Add(2)
	var group errgroup.Group
	for range 2 {
		s := newSession(t, p, func(o *Options) {
			o.ClientID, o.Dir, o.OpenBrowser = "brief", login.options.Dir, forbidBrowser(t)
		})
		// With this clock the stored token has expired, and the next one has not.
		started := time.Now()
		s.now = func() time.Time { return started.Add(-time.Minute) }
		s.client.Transport = tokenCounter{s.client.Transport, &requests}
		k, err := s.store.load()
		if err != nil {
			t.Fatal(err)
		}
		k.Expiry = started.Add(-time.Hour)
		if err := s.store.save(k); err != nil {
			t.Fatal(err)
		}
		group.Go(func() error {
			both.Done()
			both.Wait()
			token, err := s.Token(t.Context(), false)
			if err == nil && token.User != "jane" {
				t.Errorf("the token has user %s", token.User)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("the provider received %d token requests, want 1", n)
	}
}

// tokenCounter counts token requests.
type tokenCounter struct {
	http.RoundTripper
	requests *atomic.Int32
}

func (c tokenCounter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/token" {
		c.requests.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

func testClockSkew(t *testing.T, p *openidtest.Provider) {
	for _, test := range []struct {
		off     time.Duration
		message string
	}{
		{2 * time.Hour, "set the clock"},
		{-2 * time.Hour, "set the clock"},
		{-time.Minute, ""},
	} {
		s := newSession(t, p, nil)
		s.now = func() time.Time { return time.Now().Add(test.off) }
		token, err := s.Login(t.Context())
		if test.message == "" {
			s.expectJane(t, token, err)
		} else if err == nil || !strings.Contains(err.Error(), test.message) || strings.Contains(err.Error(), "\n") {
			t.Errorf("with a clock skew of %s: %v", test.off, err)
		}
	}
}

func testUnreachableProvider(t *testing.T, p *openidtest.Provider) {
	for _, test := range []struct {
		change  func(*Options)
		message string
	}{
		{func(o *Options) { o.Issuer = "https://127.0.0.1:1" }, "cannot reach the identity provider https://127.0.0.1:1"},
		{func(o *Options) { o.CertificateAuthority = "" }, "--issuer-certificate-authority"},
		{func(o *Options) { o.Issuer += "/other" }, "404"},
	} {
		s := newSession(t, p, func(o *Options) { test.change(o); o.OpenBrowser = forbidBrowser(t) })
		_, err := s.Login(t.Context())
		if err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("want %q, got %v", test.message, err)
		}
	}
}

// testForgedCallback fails if another web page can complete a login through the callback.
func testForgedCallback(t *testing.T, p *openidtest.Provider) {
	s := newSession(t, p, nil)
	s.options.OpenBrowser = func(page string) error {
		back := p.Visit(t, page, "jane")
		other := *back
		other.RawQuery = url.Values{"code": {back.Query().Get("code")}, "state": {"guessed"}}.Encode()
		answer, err := http.Get(other.String())
		if err != nil || answer.StatusCode != http.StatusBadRequest {
			t.Errorf("a callback with a guessed state: %v, %v", answer, err)
			return err
		}
		answer.Body.Close()
		return followRedirect(t, back)
	}
	token, err := s.Login(t.Context())
	s.expectJane(t, token, err)
}

// TestInterrupted runs in `make test`. It expects a login without a response to end when
// its context is cancelled.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	p := openidtest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := newSession(t, p, func(o *Options) { o.OpenBrowser = func(string) error { cancel(); return nil } })
	if _, err := s.Login(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
