// Command browser simulates a user with a browser, for tests and the demo: it opens a page of
// an identity provider in headless Chromium, fills in the forms, and prints the page on which
// it ends.
//
//	browser --account jane --certificate-authority ca.crt https://127.0.0.1:4444/auth?…
//
// Installed as xdg-open, it opens the login page for croft login.
//
//	browser measure --certificate-authority ca.crt <observations.json
//
// opens pages, and prints how long they take until they show a text: measure.go.
//
//	browser check --account ann --issuer 127.0.0.1:4444 --axe axe.min.js https://127.0.0.1:9443/login <visits.json
//
// logs in at croft dashboard, opens its pages as a user with a keyboard alone, and reports the
// problems of each page as JSON: check.go.
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
	"strings"
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
	arguments := os.Args[1:]
	command := ""
	if len(arguments) > 0 && (arguments[0] == "check" || arguments[0] == "measure") {
		command, arguments = arguments[0], arguments[1:]
	}
	checking := command == "check"
	var c checker
	if checking {
		flag.StringVar(&c.axeFile, "axe", "", "path of axe-core's script")
		flag.StringVar(&c.screenshots, "screenshots", "", "directory for the screenshots; without it, none are taken")
	}
	flag.StringVar(&u.account, "account", "", "name that is entered into the login form")
	flag.StringVar(&u.password, "password", "any", "password that is entered into the login form")
	authority := flag.String("certificate-authority", "", "path of the certificates, in PEM, of pages that no known authority vouches for")
	flag.StringVar(&u.issuer, "issuer", "", "HOST:PORT of the identity provider, if the page redirects to it; by default the page's")
	timeout := flag.Duration("timeout", 2*time.Minute, "how long the login may take")
	_ = flag.CommandLine.Parse(arguments) // exits after an error
	if command == "measure" {
		exitAfter(measurePages(*authority))
	}
	page, err := url.Parse(flag.Arg(0))
	if flag.NArg() != 1 || err != nil || page.Scheme != "https" || u.account == "" || checking && (c.axeFile == "" || u.issuer == "") {
		fmt.Fprintln(os.Stderr, "usage: browser [check --axe FILE --issuer HOST:PORT] --account NAME [--certificate-authority FILE] https://PAGE")
		os.Exit(2)
	}
	if u.issuer == "" {
		u.issuer = page.Host
	}
	ctx, end, err := openBrowser(*authority, *timeout)
	if err == nil {
		if checking {
			err = c.run(ctx, &u, page)
		} else {
			err = u.showLastPage(ctx, page.String())
		}
		end()
	}
	exitAfter(err)
}

// exitAfter ends the program, with a message if it failed.
func exitAfter(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "browser: %v\n", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// measurePages opens the pages that the standard input names, and prints their times.
func measurePages(authority string) error {
	ctx, end, err := openBrowser(authority, measureTimeout)
	if err != nil {
		return err
	}
	defer end()
	return observeAll(ctx, os.Stdin, os.Stdout)
}

// showLastPage logs in, and prints the text of the last page.
func (u *user) showLastPage(ctx context.Context, page string) error {
	text, err := u.logIn(ctx, chromedp.Navigate(page))
	if err != nil {
		return err
	}
	fmt.Println(text)
	return nil
}

// openBrowser starts Chromium with an empty profile. The function ends it.
func openBrowser(authority string, timeout time.Duration) (context.Context, func(), error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		// Chromium can only reach this machine.
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"))
	if authority != "" {
		keys, err := listPublicKeys(authority)
		if err != nil {
			return nil, nil, err
		}
		options = append(options, chromedp.Flag("ignore-certificate-errors-spki-list", keys))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work as root
	}
	ctx, endTimeout := context.WithTimeout(context.Background(), timeout)
	ctx, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	ctx, endTab := chromedp.NewContext(ctx)
	return ctx, func() {
		endTab()
		endBrowser()
		endTimeout()
	}, nil
}

// listPublicKeys returns the hashes of the certificates' public keys, by which Chromium trusts them.
func listPublicKeys(file string) (string, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var keys []string
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("%s: %w", file, err)
		}
		hash := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
		keys = append(keys, base64.StdEncoding.EncodeToString(hash[:]))
	}
	if len(keys) == 0 {
		return "", fmt.Errorf("%s has no certificate in PEM", file)
	}
	return strings.Join(keys, ","), nil
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

// logIn opens a page of the provider, and fills in forms until the provider redirects the browser to
// another host, or shows a page without a form, as after a device login. It returns the text of the
// last page.
func (u *user) logIn(ctx context.Context, open chromedp.Action[chromedp.Void]) (string, error) {
	next := []chromedp.Action[chromedp.Void]{open}
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
