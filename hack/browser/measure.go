package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// measureScript defines croftMeasure, the functions that run in measured pages.
//
//go:embed measure.js
var measureScript string

// pageRequest is the request to observe a page: how long it takes until the page shows a text.
type pageRequest struct {
	// URL is opened first. Without it, the last page is observed further.
	URL string `json:"url"`
	// Cookies and Storage replace the cookies of the URL, and are added to its local storage.
	Cookies map[string]string `json:"cookies"`
	Storage map[string]string `json:"storage"`
	// Cold means that nothing is in the browser's cache.
	Cold bool `json:"cold"`
	// Awaits is the text. If Gone is set, the page has to show it no longer.
	Awaits string `json:"awaits"`
	Gone   bool   `json:"gone"`
	// Timeout is the time limit in seconds. A page that does not show the text is not an error.
	Timeout float64 `json:"timeout"`
}

// pageResult is the result of an observation.
type pageResult struct {
	// Seconds is the time from the navigation until the browser has painted the text; -1 if it did not within
	// the time limit.
	Seconds float64 `json:"seconds"`
	// At is the time of that picture, in milliseconds since 1970.
	At float64 `json:"at"`
	// Bytes and Scripts are the sizes of all responses and of scripts, as transferred.
	Bytes   float64 `json:"bytes"`
	Scripts float64 `json:"scripts"`
	// Requests is the number of responses.
	Requests int `json:"requests"`
	// Memory is the anonymous memory of the largest page in bytes.
	Memory float64 `json:"memory"`
	// Text is the beginning of the page's text.
	Text string `json:"text"`
}

// observeAll reads observations, one a line, and prints the result of each, until the input ends.
func observeAll(ctx context.Context, in io.Reader, out io.Writer) error {
	requests, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var l pageRequest
		if err := requests.Decode(&l); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read an observation: %w", err)
		}
		s, err := observe(ctx, l)
		if err != nil {
			return fmt.Errorf("%s: %w", l.URL, err)
		}
		if err := results.Encode(s); err != nil {
			return err
		}
	}
}

// observe observes one page.
func observe(ctx context.Context, l pageRequest) (s pageResult, err error) {
	script := measureScript + fmt.Sprintf("\ncroftMeasure.await(%s, %t);", strconv.Quote(l.Awaits), l.Gone)
	if l.URL == "" {
		_, err = chromedp.Run(ctx, chromedp.Evaluate[bool](script+"true"))
	} else {
		err = openMeasured(ctx, l, script)
	}
	if err != nil {
		return s, err
	}
	s, err = chromedp.Run(ctx, chromedp.Evaluate[pageResult](fmt.Sprintf("croftMeasure.read(%f)", l.Timeout), chromedp.EvalAwaitPromise))
	if err != nil {
		return s, err
	}
	s.Memory, err = readMemory(ctx)
	return s, err
}

// openMeasured opens the page with a script that runs before the page's own.
func openMeasured(ctx context.Context, l pageRequest, script string) error {
	if err := prepareBrowser(ctx, l); err != nil {
		return err
	}
	for name, value := range l.Storage {
		script = fmt.Sprintf("localStorage.setItem(%s, %s);\n", strconv.Quote(name), strconv.Quote(value)) + script
	}
	added, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err != nil {
		return fmt.Errorf("add a script: %w", err)
	}
	response, err := chromedp.RunResponse(ctx, chromedp.Navigate(l.URL))
	if err != nil {
		return err
	}
	if response.Status >= 400 {
		return fmt.Errorf("status %d", response.Status)
	}
	_, err = chromedp.Call(ctx, page.RemoveScriptToEvaluateOnNewDocument, page.RemoveScriptToEvaluateOnNewDocumentParams(added))
	return err
}

// prepareBrowser sets the cookies, and empties the cache for a cold observation.
func prepareBrowser(ctx context.Context, l pageRequest) error {
	if _, err := chromedp.Call(ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		return fmt.Errorf("delete cookies: %w", err)
	}
	secure := strings.HasPrefix(l.URL, "https:")
	for name, value := range l.Cookies {
		cookie := network.SetCookieParams{Name: name, Value: value, URL: l.URL, Path: "/", Secure: &secure, SameSite: network.CookieSameSiteLax}
		if _, err := chromedp.Call(ctx, network.SetCookie, cookie); err != nil {
			return fmt.Errorf("set the cookie %s: %w", name, err)
		}
	}
	if !l.Cold {
		return nil
	}
	if _, err := chromedp.Call(ctx, network.ClearBrowserCache, cdp.Empty{}); err != nil {
		return fmt.Errorf("empty the cache: %w", err)
	}
	return nil
}

// readMemory returns the anonymous memory of the largest page's process. It is not shared with other processes,
// unlike Chromium's program and libraries.
func readMemory(ctx context.Context) (most float64, err error) {
	processes, err := chromedp.CallBrowser(ctx, systeminfo.GetProcessInfo, cdp.Empty{})
	if err != nil {
		return 0, fmt.Errorf("list the browser's processes: %w", err)
	}
	for _, p := range processes.ProcessInfo {
		if p.Type != "renderer" {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(status)) {
			if value, ok := strings.CutPrefix(line, "RssAnon:"); ok {
				kilobytes, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
				if err != nil {
					return 0, fmt.Errorf("read a process's memory: %w", err)
				}
				most = max(most, kilobytes*1024)
			}
		}
	}
	return most, nil
}

// measureTimeout is the time limit for all observations of one browser.
const measureTimeout = 2 * time.Hour
