// Package catalog is the catalogue of failures between a pod and its node: the symptoms of
// each cause, and its fix. It is data, and does no I/O.
//
// Every symptom is matched as text in one form: an event's message, a line of a log, or a
// condition in the form of Condition.
package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Who is the team that can fix a cause.
type Who string

const (
	// Team is the author of the workload.
	Team Who = "team"
	// Platform is the team that maintains the pools, Karpenter and the cloud account.
	Platform Who = "platform"
)

// Row is a cause of failures.
type Row struct {
	// ID identifies the row, in lower-case words and hyphens.
	ID string
	// Symptom describes the event, condition or field that shows the cause.
	Symptom string
	// Signature matches the symptom. A row without one is detected from several objects, by
	// `croft why` or `croft doctor`.
	Signature *regexp.Regexp
	// Exclude excludes texts from Signature that another row explains better.
	Exclude *regexp.Regexp
	// Texts are examples of the symptom, verbatim.
	Texts []string
	// Cause explains the symptom, and Fix describes the remedy.
	Cause, Fix string
	// Run is a command that shows more. Most rows have none.
	Run string
	// Who can fix the cause.
	Who Who
	// Link is the address of further documentation.
	Link string
}

// NeedsSeveralObjects reports whether the row is detected only from several objects.
func (r *Row) NeedsSeveralObjects() bool { return r.Signature == nil }

func (r *Row) findSymptom(text string) []int {
	if r.NeedsSeveralObjects() || r.Exclude != nil && r.Exclude.MatchString(text) {
		return nil
	}
	return r.Signature.FindStringIndex(text)
}

// Finding is a row that was detected.
type Finding struct {
	ID string `json:"id"`
	// Symptom is the text that matched.
	Symptom string `json:"symptom"`
	Cause   string `json:"cause"`
	Fix     string `json:"fix"`
	// Run is a command that shows more, to be copied.
	Run  string `json:"run,omitempty"`
	Who  Who    `json:"who"`
	Link string `json:"link,omitempty"`
}

// Chapter is a part of the catalogue.
type Chapter struct {
	Title string
	Rows  []Row
}

// Chapters returns the catalogue in the order of a pod's life.
func Chapters() []Chapter {
	return []Chapter{
		{"A pod is refused, or not placed", admissionRows},
		{"Flux does not apply the content of Git", fluxRows},
		{"A certificate is not issued", certificateRows},
		{"A pod gets no node", schedulingRows},
		{"A pool is not ready", poolRows},
		{"A node is not launched", launchRows},
		{"A node accepts no pods, or pods do not start on it", nodeRows},
		{"A pod does not run, or has ended", containerRows},
		{"A node or an object is not deleted, and other problems of the platform", disruptionRows},
	}
}

// Rows returns the whole catalogue.
func Rows() []Row {
	var all []Row
	for _, c := range Chapters() {
		all = append(all, c.Rows...)
	}
	return all
}

// FindRow returns the row with an ID, or nil.
func FindRow(id string) *Row {
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == id }); i >= 0 {
		return &rows[i]
	}
	return nil
}

// longestSearched is the number of bytes of a text in which symptoms are searched. Messages of Kubernetes and
// Karpenter are shorter. A tenant can write a message of a megabyte, which would take seconds.
const longestSearched = 16 << 10

// FindMatches returns the rows that match a text, in the order of their symptoms in the text.
func FindMatches(text string) []Finding {
	searched := text[:min(len(text), longestSearched)]
	type hit struct {
		at  int
		row *Row
	}
	var hits []hit
	for i := range rows {
		if at := rows[i].findSymptom(searched); at != nil {
			hits = append(hits, hit{at[0], &rows[i]})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.at - b.at })
	all := make([]Finding, len(hits))
	for i, h := range hits {
		all[i] = h.row.ToFinding(text)
	}
	return all
}

// ToFinding returns the row as a finding with the text in which it was detected.
func (r *Row) ToFinding(seen string) Finding {
	return Finding{ID: r.ID, Symptom: strings.TrimSpace(seen), Cause: r.Cause, Fix: r.Fix, Run: r.Run, Who: r.Who, Link: r.Link}
}

// FormatCondition returns a condition in the form that rows match.
func FormatCondition(kind, status, reason, message string) string {
	return strings.TrimSuffix(kind+"="+status+" "+reason+": "+message, ": ")
}

var rows = Rows()

// compileAny returns a signature that matches any of several expressions. They are constants: an
// invalid one panics at the start of every test.
func compileAny(texts ...string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + strings.Join(texts, "|"))
}
