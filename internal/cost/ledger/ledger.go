package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// seconds is a span in seconds since 1970.
type seconds struct{ from, until int64 }

// forever is the end of objects that still exist.
const forever = 1 << 40

func (s Span) toSeconds() seconds {
	until := int64(forever)
	if !s.Until.IsZero() {
		until = s.Until.Unix()
	}
	return seconds{s.From.Unix(), until}
}

func (s seconds) intersect(other seconds) seconds {
	return seconds{max(s.from, other.from), min(s.until, other.until)}
}

func (s seconds) length() int64 { return max(s.until-s.from, 0) }

// Ledger computes hours of one input.
type Ledger struct {
	input  Input
	nodes  map[string][]int
	pods   map[string][]int
	owners map[string][]int
}

// New returns a ledger. It returns an error if a node or a namespace has two entries for the same
// time: one of them would be counted twice.
func New(input Input) (*Ledger, error) {
	l := &Ledger{input: input, nodes: map[string][]int{}, pods: map[string][]int{}, owners: map[string][]int{}}
	for i := range input.Nodes {
		l.nodes[input.Nodes[i].Name] = append(l.nodes[input.Nodes[i].Name], i)
	}
	for i := range input.Pods {
		l.pods[input.Pods[i].Node] = append(l.pods[input.Pods[i].Node], i)
	}
	for i := range input.Owners {
		l.owners[input.Owners[i].Namespace] = append(l.owners[input.Owners[i].Namespace], i)
	}
	if err := sortEntries("node", l.nodes, func(i int) Span { return input.Nodes[i].Span }); err != nil {
		return nil, err
	}
	if err := sortEntries("namespace", l.owners, func(i int) Span { return input.Owners[i].Span }); err != nil {
		return nil, err
	}
	return l, nil
}

// sortEntries sorts the entries of each name by time, and refuses entries that overlap.
func sortEntries(noun string, entries map[string][]int, getSpan func(int) Span) error {
	for name, list := range entries {
		slices.SortFunc(list, func(a, b int) int {
			x, y := getSpan(a).toSeconds(), getSpan(b).toSeconds()
			return cmp.Or(cmp.Compare(x.from, y.from), cmp.Compare(x.until, y.until))
		})
		for i := 1; i < len(list); i++ {
			before, after := getSpan(list[i-1]).toSeconds(), getSpan(list[i]).toSeconds()
			if after.intersect(before).length() > 0 {
				return fmt.Errorf("%s %s has two entries for %s", noun, name,
					time.Unix(after.from, 0).UTC().Format(time.RFC3339))
			}
		}
	}
	return nil
}

// ownedSpan is a part of a span in which a namespace has one owner.
type ownedSpan struct {
	seconds
	kind             Kind
	tenant, costCode string
	estimated        bool
}

// splitByOwner divides a span where the namespace's owner changes.
func (l *Ledger) splitByOwner(namespace string, whole seconds) []ownedSpan {
	var parts []ownedSpan
	at := whole.from
	for _, i := range l.owners[namespace] {
		owner := &l.input.Owners[i]
		part := owner.toSeconds().intersect(whole)
		if part.length() == 0 {
			continue
		}
		if part.from > at {
			parts = append(parts, ownedSpan{seconds: seconds{at, part.from}, kind: Platform})
		}
		kind := Tenant
		if owner.Tenant == "" {
			kind = Platform
		}
		parts = append(parts, ownedSpan{part, kind, owner.Tenant, owner.CostCode, owner.Estimated})
		at = part.until
	}
	if at < whole.until {
		parts = append(parts, ownedSpan{seconds: seconds{at, whole.until}, kind: Platform})
	}
	return parts
}

// rowSet collects rows by their keys.
type rowSet map[Key]*Row

func (s rowSet) find(k Key) *Row {
	row := s[k]
	if row == nil {
		row = &Row{Key: k}
		s[k] = row
	}
	return row
}

// sort returns the rows in the order of their keys.
func (s rowSet) sort() []*Row {
	rows := make([]*Row, 0, len(s))
	for _, row := range s {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b *Row) int { return a.Compare(b.Key) })
	return rows
}

// formatTitle joins the parts of a division's title that are not empty.
func formatTitle(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ")
}
