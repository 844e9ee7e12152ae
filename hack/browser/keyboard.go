package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// step moves the focus to a control with the Tab key. Then it types a text into it, or without a text
// presses Enter, which opens the next page.
type step struct {
	// Label is the label of the control, as the user reads it.
	Label string  `json:"label"`
	Text  *string `json:"text"`
}

func (s step) run(ctx context.Context) (*network.Response, error) {
	if err := focusControl(ctx, s.Label); err != nil {
		return nil, err
	}
	if s.Text == nil {
		return chromedp.RunResponse(ctx, pressEnter())
	}
	if err := chromedp.Do(ctx, chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl))); err != nil {
		return nil, err
	}
	if _, err := chromedp.Call(ctx, input.InsertText, input.InsertTextParams{Text: *s.Text}); err != nil {
		return nil, fmt.Errorf("type into %s: %w", s.Label, err)
	}
	return nil, nil
}

func pressEnter() chromedp.Action[chromedp.Void] { return chromedp.KeyEvent("\r") }

// focused is the control with the focus.
type focused struct {
	// Index is its index among the controls of the page; -1 if no control has the focus.
	Index   int    `json:"index"`
	Label   string `json:"label"`
	Visible bool   `json:"visible"`
}

// pressTab moves the focus to the next control.
func pressTab(ctx context.Context) (focused, error) {
	if err := chromedp.Do(ctx, chromedp.KeyEvent("\t")); err != nil {
		return focused{}, err
	}
	return chromedp.Run(ctx, chromedp.Evaluate[focused](`croftCheck.describeFocus()`))
}

// focusControl presses the Tab key until a control has the focus.
func focusControl(ctx context.Context, label string) error {
	controls, err := listControls(ctx)
	if err != nil {
		return err
	}
	// From any control, the focus reaches all others, and the page without a control between the
	// last and the first.
	for range len(controls) + 1 {
		f, err := pressTab(ctx)
		if err != nil {
			return err
		}
		if f.Label == label {
			return nil
		}
	}
	return fmt.Errorf("the Tab key does not reach %q on a page with the controls %s", label, strings.Join(controls, ", "))
}

// auditKeyboard reports controls that the Tab key does not reach, and controls whose focus is not
// visible.
func auditKeyboard(ctx context.Context) ([]string, error) {
	// An update would replace controls meanwhile.
	if err := toggleUpdates(ctx); err != nil {
		return nil, err
	}
	problems, err := findUnreached(ctx)
	return problems, errors.Join(err, toggleUpdates(ctx))
}

// toggleUpdates presses the button that pauses and resumes the updates of the page, if it has one.
func toggleUpdates(ctx context.Context) error {
	_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`!document.querySelector('#live:not([hidden]) button')?.click()`))
	return err
}

func findUnreached(ctx context.Context) ([]string, error) {
	controls, err := listControls(ctx)
	if err != nil {
		return nil, err
	}
	var problems []string
	reached := map[int]bool{}
	for range len(controls) + 1 {
		f, err := pressTab(ctx)
		if err != nil {
			return nil, err
		}
		if f.Index < 0 || reached[f.Index] {
			continue
		}
		reached[f.Index] = true
		if !f.Visible {
			problems = append(problems, fmt.Sprintf("keyboard: the focus of %q is not visible", f.Label))
		}
	}
	for i, label := range controls {
		if !reached[i] {
			problems = append(problems, fmt.Sprintf("keyboard: the Tab key does not reach %q", label))
		}
	}
	return problems, nil
}

// listControls returns the labels of the page's links, buttons and fields.
func listControls(ctx context.Context) ([]string, error) {
	return chromedp.Run(ctx, chromedp.Evaluate[[]string](`croftCheck.listControls().map(croftCheck.findLabel)`))
}
