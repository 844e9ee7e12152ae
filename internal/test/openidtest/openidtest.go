// Package openidtest runs an OpenID Connect provider for tests, and fills in its forms as a
// user does in a browser.
package openidtest

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	"k8s.io/client-go/util/cert"

	"croft.dev/croft/internal/test/sandbox"
)

const (
	// patience is the time limit for a provider to answer.
	patience = 2 * time.Minute
	// interval is the interval of a starting provider's readiness checks.
	interval = 100 * time.Millisecond
)

// Provider is internal/test/e2e/testdata/oidc/provider.mjs, which defines its users and clients.
type Provider struct {
	Issuer string
	// Authority is the CA of the provider's certificate, in PEM, and AuthorityFile its
	// path.
	Authority, AuthorityFile string
	// Transport trusts Authority.
	Transport http.RoundTripper
}

// Start starts a provider, which ends with the test. It skips the test if Node.js is not
// installed. env adds to the provider's environment, such as DASHBOARD_URL=https://127.0.0.1:9443.
func Start(t testing.TB, env ...string) *Provider {
	t.Helper()
	if testing.Short() {
		t.Skip("starts an identity provider")
	}
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = exec.LookPath("npm") // `make test` installs the provider with npm
	}
	if err != nil {
		t.Skipf("the identity provider to log in at needs Node.js: %v", err)
	}
	installed, err := sandbox.FindTool("openid-provider")
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(filepath.Dir(filepath.Dir(installed)), "internal", "test", "e2e", "testdata", "oidc", "provider.mjs")
	content, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key := WriteCertificate(t)
	authority, err := os.ReadFile(certificate)
	if err != nil {
		t.Fatal(err)
	}

	// Node.js resolves packages in the directories of the program and above.
	dir := t.TempDir()
	program := filepath.Join(dir, "provider.mjs")
	err = errors.Join(os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")),
		os.WriteFile(program, content, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, program, certificate, key)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), t.Output()
	// The provider ends when its standard input is closed, so that it does not outlive a
	// test that is killed.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	issuer, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the identity provider does not start: %v", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return &Provider{
		Issuer: strings.TrimSpace(issuer), Authority: string(authority), AuthorityFile: certificate,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
	}
}

// WriteCertificate writes a self-signed certificate for 127.0.0.1 and its key.
func WriteCertificate(t testing.TB) (certificate, key string) {
	t.Helper()
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certificate, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if err := errors.Join(os.WriteFile(certificate, certPEM, 0o600), os.WriteFile(key, keyPEM, 0o600)); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// Visit opens a page of the provider in a new browser, logs in as an account, and gives all
// consents. It returns the URL to which the provider redirects the browser, without opening
// it, or nil if there is no redirect, as after a device login.
func (p *Provider) Visit(t testing.TB, page, account string) *url.URL {
	t.Helper()
	return p.logIn(t, page, account, false)
}

// Refuse is Visit for a user who follows the link to cancel the login.
func (p *Provider) Refuse(t testing.TB, page string) *url.URL {
	t.Helper()
	return p.logIn(t, page, "", true)
}

func (p *Provider) logIn(t testing.TB, start, account string, cancel bool) *url.URL {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	var back *url.URL
	browser := &http.Client{Transport: p.Transport, Jar: jar, Timeout: patience, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(r.URL.String(), p.Issuer) {
			back = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	cancelled := false
	page, err := browser.Get(start)
	for range 8 {
		if err != nil {
			t.Fatal(err)
		}
		if back != nil {
			page.Body.Close()
			return back
		}
		f := parseForm(t, page)
		switch {
		case cancelled:
			return nil
		case cancel && f.cancel != "":
			cancelled = true
			page, err = browser.Get(f.cancel) //nolint:bodyclose // formIn closes it
		case f.action == "" && page.StatusCode < 300:
			return nil
		case f.action == "":
			t.Fatalf("%s shows no form to fill in: %s", page.Request.URL, page.Status)
		default:
			if f.fields.Has("login") {
				f.fields.Set("login", account)
				f.fields.Set("password", "any")
			}
			page, err = browser.PostForm(f.action, f.fields) //nolint:bodyclose // formIn closes it
		}
	}
	t.Fatalf("%s leads through too many forms", start)
	return nil
}

// form is a form of a page, with its prefilled values.
type form struct {
	action, cancel string
	fields         url.Values
}

func parseForm(t testing.TB, page *http.Response) form {
	t.Helper()
	defer page.Body.Close()
	document, err := html.Parse(page.Body)
	if err != nil {
		t.Fatal(err)
	}
	f := form{fields: url.Values{}}
	absolute := func(link string) string {
		target, err := page.Request.URL.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		return target.String()
	}
	// If there are several forms, the first counts: the others refuse the login.
	forms := 0
	for element := range document.Descendants() {
		given := map[string]string{}
		for _, a := range element.Attr {
			given[a.Key] = a.Val
		}
		switch element.Data {
		case "form":
			if forms++; forms == 1 {
				f.action = absolute(given["action"])
			}
		case "input":
			if forms == 1 {
				f.fields.Set(given["name"], given["value"])
			}
		case "a":
			if strings.HasSuffix(given["href"], "/abort") {
				f.cancel = absolute(given["href"])
			}
		}
	}
	return f
}
