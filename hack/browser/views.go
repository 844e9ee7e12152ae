package main

import (
	"context"
	"fmt"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// narrow is the width in pixels at which a page must not scroll horizontally (WCAG 1.4.10).
const narrow, wide, height = 320, 1280, 800

// auditViews audits the page in both themes, on a narrow and on a wide screen. The wide light view is
// the last one, for the screenshot.
func (c *checker) auditViews(ctx context.Context, r *result) error {
	for _, theme := range []string{"dark", "light"} {
		for _, width := range []int64{narrow, wide} {
			if err := emulateView(ctx, theme, width); err != nil {
				return err
			}
			found, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](`croftCheck.audit()`, chromedp.EvalAwaitPromise))
			if err != nil {
				return fmt.Errorf("run axe-core: %w", err)
			}
			for _, problem := range found {
				r.Problems = append(r.Problems, fmt.Sprintf("%s, %d px: %s", theme, width, problem))
			}
		}
	}
	return nil
}

// emulateView sets the user's theme and the width of the window.
func emulateView(ctx context.Context, theme string, width int64) error {
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
	})
	if err != nil {
		return fmt.Errorf("emulate a theme: %w", err)
	}
	return chromedp.Do(ctx, chromedp.EmulateViewport(width, height))
}
