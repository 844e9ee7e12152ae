// Command browser simulates a user with a browser, for tests and the demo: it opens a page of
// an identity provider in headless Chromium, fills in the forms, and prints the page on which
// it ends.
//
//	browser --account jane --certificate-authority ca.crt https://127.0.0.1:4444/auth?…
//
// Installed as xdg-open, it opens the login page for croft login.
package main

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/chromedp/chromedp"
)

// maxForms is the maximum number of forms of a login.
const maxForms = 8

// user is the user who logs in.
type user struct {
	account, password string
	// issuer is the identity provider's host. On any other host, the login is complete.
	issuer string
}

func main() {
	u := user{}
	flag.StringVar(&u.account, "account", "", "name that is entered into the login form")
	flag.StringVar(&u.password, "password", "any", "password that is entered into the login form")
	authority := flag.String("certificate-authority", "", "path of the certificate, in PEM, of pages that no known authority vouches for")
	flag.StringVar(&u.issuer, "issuer", "", "HOST:PORT of the identity provider, if the page redirects to it; by default the page's")
	timeout := flag.Duration("timeout", 2*time.Minute, "how long the login may take")
	flag.Parse()
	page, err := url.Parse(flag.Arg(0))
	if flag.NArg() != 1 || err != nil || page.Scheme != "https" || u.account == "" {
		fmt.Fprintln(os.Stderr, "usage: browser --account NAME [--certificate-authority FILE] https://PAGE")
		os.Exit(2)
	}
	if u.issuer == "" {
		u.issuer = page.Host
	}
	text, err := u.run(page.String(), *authority, *timeout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "browser: %v\n", err)
		os.Exit(1)
	}
	fmt.Println(text)
}

// run starts Chromium with an empty profile, and logs in.
func (u *user) run(page, authority string, timeout time.Duration) (text string, err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		// Chromium can only reach this machine.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	if authority != "" {
		key, err := publicKey(authority)
		if err != nil {
			return "", err
		}
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", key))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work as root
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	return u.logIn(ctx, page)
}

// publicKey returns the hash of a certificate's public key, by which Chromium trusts it.
func publicKey(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return "", fmt.Errorf("%s has no certificate in PEM", file)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	hash := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return base64.StdEncoding.EncodeToString(hash[:]), nil
}

// shown is the content of a page.
type shown struct {
	Host  string `json:"host"`
	Text  string `json:"text"`
	Login bool   `json:"login"`
	Form  bool   `json:"form"`
}

const (
	loginField    = chromedp.CSS(`form input[name="login"]`)
	passwordField = chromedp.CSS(`form input[type="password"]`)
	submit        = chromedp.CSS(`form [type="submit"]`)

	read = `({
		host: location.host, text: document.body.innerText.trim(),
		login: !!document.querySelector('form input[name="login"]'), form: !!document.querySelector('form [type="submit"]'),
	})`
)

// logIn fills in forms until the provider redirects the browser to another host, or shows a
// page without a form, as after a device login. It returns the text of the last page.
func (u *user) logIn(ctx context.Context, page string) (string, error) {
	next := []chromedp.Action[chromedp.Void]{chromedp.Navigate(page)}
	for range maxForms {
		response, err := chromedp.RunResponse(ctx, next...)
		if err != nil {
			return "", err
		}
		s, err := chromedp.Run(ctx, chromedp.Evaluate[shown](read))
		if err != nil {
			return "", err
		}
		if response != nil && response.Status >= 400 {
			return "", fmt.Errorf("%s answers %d: %s", s.Host, response.Status, s.Text)
		}
		switch {
		case s.Host != u.issuer || !s.Form:
			return s.Text, nil
		case s.Login:
			next = []chromedp.Action[chromedp.Void]{
				chromedp.SendKeys(loginField, u.account), chromedp.SendKeys(passwordField, u.password), chromedp.Click(submit),
			}
		default:
			next = []chromedp.Action[chromedp.Void]{chromedp.Click(submit)}
		}
	}
	return "", errors.New("the login leads through too many forms")
}
