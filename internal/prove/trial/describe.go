package trial

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/wording"
)

// Name returns the object's name for people.
func (r Result) Name() string {
	if r.CreatedFrom == "" {
		return r.Object
	}
	return r.Object + " of " + r.CreatedFrom
}

// DescribeReasons names the rules that refuse an object, or the number of changes.
func (r Result) DescribeReasons() string {
	var names []string
	for _, refusal := range r.Refusals {
		name := refusal.Source
		if refusal.Rule != "" {
			name += ", rule " + refusal.Rule
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, "; ")
	case len(r.Warnings) > 0:
		return wording.FormatCount(len(r.Warnings), "warning")
	case len(r.Changes) > 0:
		return wording.FormatCount(len(r.Changes), "field")
	default:
		return ""
	}
}

// ListDetails returns a line for each refusal, warning and change.
func (r Result) ListDetails() []string {
	var lines []string
	for _, reason := range slices.Concat(r.Refusals, r.Warnings) {
		line := reason.Message
		if reason.Line != r.Line {
			line = fmt.Sprintf("line %d: %s", reason.Line, line)
		}
		lines = append(lines, line)
	}
	for _, c := range r.Changes {
		lines = append(lines, c.String())
	}
	return lines
}

// String returns the change on one line.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s → %s", c.Path, cmp.Or(c.Before, "-"), cmp.Or(c.After, "-"))
}

// Summarize returns the numbers of outcomes.
func (r *Report) Summarize() string {
	counts := map[Verdict]int{}
	for _, result := range r.Results {
		counts[result.Verdict]++
	}
	summary := fmt.Sprintf("%d of %s refused", counts[Refused], wording.FormatCount(len(r.Results), "object"))
	for _, v := range []Verdict{Warned, Changed, Admitted} {
		if counts[v] > 0 {
			summary += fmt.Sprintf(", %d %s", counts[v], v)
		}
	}
	return summary
}
