package main

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// visitTimeout limits a visit with its audits.
const visitTimeout = 2 * time.Minute

// auditScript defines croftCheck, the functions that run in pages.
//
//go:embed check.js
var auditScript string

// visit is one page, and the keys that a user presses on it.
type visit struct {
	// Name names the visit in the report, and its screenshot.
	Name string `json:"name"`
	// Path is opened first. Without it, the visit continues on the last page.
	Path  string `json:"path"`
	Steps []step `json:"steps"`
	// Zone is the browser's time zone; UTC by default.
	Zone string `json:"zone"`
	// Notify is a URL that the browser's program requests after the steps. Then the page has to show Awaits
	// without being opened again.
	Notify string `json:"notify"`
	Awaits string `json:"awaits"`
	// Leaves means that the visit ends at the identity provider, whose pages are not audited.
	Leaves     bool `json:"leaves"`
	Screenshot bool `json:"screenshot"`
}

// result is the page on which a visit ends.
type result struct {
	Name string `json:"name"`
	Path string `json:"path"`
	// Status is the status of the last response.
	Status int64 `json:"status"`
	// Text is the visible text, HTML the whole page.
	Text     string   `json:"text"`
	HTML     string   `json:"html"`
	Problems []string `json:"problems"`
}

// checker opens pages, and audits them.
type checker struct {
	axeFile, screenshots string
	// base is the URL of the dashboard without a path.
	base url.URL

	mu       sync.Mutex
	messages []chromedp.ConsoleMessage
}

// run reads visits from the standard input, and prints their results. The first result is the login
// page.
func (c *checker) run(ctx context.Context, u *user, login *url.URL) error {
	var visits []visit
	if err := json.NewDecoder(os.Stdin).Decode(&visits); err != nil {
		return fmt.Errorf("read the visits: %w", err)
	}
	c.base = url.URL{Scheme: login.Scheme, Host: login.Host}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	first, err := c.visit(ctx, visit{Name: "login", Path: login.RequestURI(), Screenshot: true})
	if err != nil {
		return err
	}
	results := []result{first}
	if err := focusControl(ctx, "Log in at your identity provider"); err != nil {
		return err
	}
	if _, err := u.logIn(ctx, pressEnter()); err != nil {
		return err
	}
	c.takeMessages() // of the provider's pages
	for _, v := range visits {
		r, err := c.visit(ctx, v)
		if err != nil {
			return fmt.Errorf("%s: %w", v.Name, err)
		}
		results = append(results, r)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	return out.Encode(results)
}

// prepare adds the scripts of the audits to all pages, and collects the messages of the console. The
// scripts come from the protocol of DevTools, which a page's Content Security Policy does not
// restrict.
func (c *checker) prepare(ctx context.Context) error {
	axe, err := os.ReadFile(c.axeFile)
	if err != nil {
		return fmt.Errorf("read axe-core: %w", err)
	}
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: string(axe) + "\n" + auditScript,
	})
	if err != nil {
		return fmt.Errorf("add scripts: %w", err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}); err != nil {
		return fmt.Errorf("emulate focus: %w", err)
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			c.mu.Lock()
			c.messages = append(c.messages, m)
			c.mu.Unlock()
		}
	}()
	return nil
}

// visit does the steps of a visit, and audits the page on which it ends.
func (c *checker) visit(ctx context.Context, v visit) (result, error) {
	ctx, cancel := context.WithTimeout(ctx, visitTimeout)
	defer cancel()
	r := result{Name: v.Name, Problems: []string{}}
	if _, err := chromedp.Call(ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: cmp.Or(v.Zone, "UTC")}); err != nil {
		return r, fmt.Errorf("emulate a time zone: %w", err)
	}
	if v.Path != "" {
		response, err := chromedp.RunResponse(ctx, chromedp.Navigate(c.base.String()+v.Path))
		if err != nil {
			return r, err
		}
		r.Status = response.Status
	}
	for _, s := range v.Steps {
		response, err := s.run(ctx)
		if err != nil {
			return r, err
		}
		if response != nil {
			r.Status = response.Status
		}
	}
	if v.Leaves {
		return r, c.waitUntilLeft(ctx)
	}
	if v.Notify != "" {
		if err := v.awaitChange(ctx); err != nil {
			return r, err
		}
	}
	if err := c.read(ctx, &r); err != nil {
		return r, err
	}
	unreachable, err := auditKeyboard(ctx)
	if err != nil {
		return r, err
	}
	r.Problems = append(r.Problems, unreachable...)
	if err := c.auditViews(ctx, &r); err != nil {
		return r, err
	}
	for _, m := range c.takeMessages() {
		// The browser logs the status of an error page.
		if m.Source != "network" || m.URL != c.base.String()+r.Path {
			r.Problems = append(r.Problems, fmt.Sprintf("console: %s: %s", m, m.URL))
		}
	}
	if v.Screenshot && c.screenshots != "" {
		return r, c.saveScreenshot(ctx, v.Name)
	}
	return r, nil
}

// read reads the page as a wide screen shows it.
func (c *checker) read(ctx context.Context, r *result) error {
	if err := emulateView(ctx, "light", wide); err != nil {
		return err
	}
	p, err := chromedp.Run(ctx, chromedp.Evaluate[struct {
		Host string `json:"host"`
		Path string `json:"path"`
		Text string `json:"text"`
		HTML string `json:"html"`
	}](`({host: location.host, path: location.pathname + location.search, text: document.body.innerText, html: document.documentElement.outerHTML})`))
	if err != nil {
		return err
	}
	if p.Host != c.base.Host {
		return fmt.Errorf("the visit ends at %s", p.Host)
	}
	r.Path, r.Text, r.HTML = p.Path, p.Text, p.HTML
	return nil
}

// waitUntilLeft waits until the browser shows a page of another host.
func (c *checker) waitUntilLeft(ctx context.Context) error {
	for {
		// An evaluation fails if the browser opens the next page meanwhile.
		host, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.readyState === "complete" ? location.host : ""`))
		if err == nil && host != "" && host != c.base.Host {
			c.takeMessages()
			return nil
		}
		if err := chromedp.Do(ctx, chromedp.Sleep(100*time.Millisecond)); err != nil {
			return fmt.Errorf("the browser stays at %s: %w", host, err)
		}
	}
}

// takeMessages returns the messages of the console since the last call.
func (c *checker) takeMessages() []chromedp.ConsoleMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.messages
	c.messages = nil
	return taken
}
