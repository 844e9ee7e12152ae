package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/chromedp/chromedp"
)

// awaitChange requests a change, and waits until the page shows it.
func (v *visit) awaitChange(ctx context.Context) error {
	// Another page would not have the mark.
	if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`croftCheck.marked = true`)); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, v.Notify, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("request the change: %w", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("request the change: %s", answer.Status)
	}
	for {
		shown, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.body.innerText.includes(`+strconv.Quote(v.Awaits)+`)`))
		if err != nil {
			return fmt.Errorf("wait for %q: %w", v.Awaits, err)
		}
		if shown {
			break
		}
		if err := chromedp.Do(ctx, chromedp.Sleep(50*time.Millisecond)); err != nil {
			return fmt.Errorf("the page does not show %q: %w", v.Awaits, err)
		}
	}
	marked, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`croftCheck.marked === true`))
	if err == nil && !marked {
		err = errors.New("the page was opened again instead of updated")
	}
	return err
}
