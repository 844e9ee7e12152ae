// Package catalog is the catalogue of failures between a pod and its node: the
// symptoms of each cause, and its cure. It is data, and does no I/O.
//
// Every symptom is matched as text in one form: an event's message, a line of a
// log, or a condition as Condition writes it.
package catalog

import (
	"regexp"
	"slices"
	"strings"
)

// Who can mend a cause.
type Who string

const (
	// Team is the author of the workload.
	Team Who = "team"
	// Platform is the team that keeps the pools, Karpenter and the cloud's account.
	Platform Who = "platform"
)

// Row is one cause.
type Row struct {
	// ID names the row, in lower-case words and hyphens.
	ID string
	// Sees says where the signature is seen, for people.
	Sees string
	// Signature matches the symptom. A row without one is judged from several objects
	// together, by `croft why` or `croft doctor`.
	Signature *regexp.Regexp
	// Unless takes texts away from Signature that another row says more about.
	Unless *regexp.Regexp
	// Texts are the symptoms, verbatim.
	Texts []string
	// Cause is the explanation, Cure the remedy.
	Cause, Cure string
	// Run is a command that tells more; mostly there is none.
	Run string
	// Who can mend it.
	Who Who
	// Link is where more is written.
	Link string
	// Produced says how tests bring it about.
	Produced Produced
}

// Means is how a row is produced in tests.
type Means string

const (
	// BySandbox is a row that the real Karpenter, scheduler and API server of a sandbox
	// bring about.
	BySandbox Means = "sandbox"
	// ByRecord is a row with a text from its writer's source code; the writer does not
	// run in tests.
	ByRecord Means = "recorded"
	// ByNobody is a row that cannot be brought about in a test.
	ByNobody Means = "not producible"
)

// Produced says by which means a row is produced, and where; or why it is not.
type Produced struct {
	Means Means
	How   string
}

// Judged reports whether the row is seen only by looking at several objects.
func (r *Row) Judged() bool { return r.Signature == nil }

func (r *Row) matches(text string) []int {
	if r.Judged() || r.Unless != nil && r.Unless.MatchString(text) {
		return nil
	}
	return r.Signature.FindStringIndex(text)
}

// Finding is a row that was seen.
type Finding struct {
	ID string `json:"id"`
	// Seen is the text that shows it.
	Seen  string `json:"seen"`
	Cause string `json:"cause"`
	Cure  string `json:"cure"`
	// Run is a command that tells more, to be copied.
	Run  string `json:"run,omitempty"`
	Who  Who    `json:"who"`
	Link string `json:"link,omitempty"`
}

// Chapter is a part of the catalogue.
type Chapter struct {
	Title string
	Rows  []Row
}

// Chapters are the catalogue, in the order in which things happen to a pod.
func Chapters() []Chapter {
	return []Chapter{
		{"A pod is not let in, or not placed", admissionRows},
		{"What is in Git is not applied", fluxRows},
		{"A certificate is not issued", certificateRows},
		{"No node takes a pod, and none is made for it", schedulingRows},
		{"A pool is not ready", poolRows},
		{"A node is not launched", launchRows},
		{"A node takes no pods, or pods do not start on it", nodeRows},
		{"A pod does not run, or has ended", containerRows},
		{"A node does not go, and what else is wrong around nodes", disruptionRows},
	}
}

// Rows are the whole catalogue.
func Rows() []Row {
	var all []Row
	for _, c := range Chapters() {
		all = append(all, c.Rows...)
	}
	return all
}

// Lookup returns the row of a name, nil if there is none.
func Lookup(id string) *Row {
	if i := slices.IndexFunc(rows, func(r Row) bool { return r.ID == id }); i >= 0 {
		return &rows[i]
	}
	return nil
}

// Match returns the rows that match a text, in the order of their symptoms in it.
func Match(text string) []Finding {
	type hit struct {
		at  int
		row *Row
	}
	var hits []hit
	for i := range rows {
		if at := rows[i].matches(text); at != nil {
			hits = append(hits, hit{at[0], &rows[i]})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.at - b.at })
	all := make([]Finding, len(hits))
	for i, h := range hits {
		all[i] = h.row.Finding(text)
	}
	return all
}

// Finding is the row, seen in a text.
func (r *Row) Finding(seen string) Finding {
	return Finding{ID: r.ID, Seen: strings.TrimSpace(seen), Cause: r.Cause, Cure: r.Cure, Run: r.Run, Who: r.Who, Link: r.Link}
}

// Condition writes a condition as rows match it.
func Condition(kind, status, reason, message string) string {
	return strings.TrimSuffix(kind+"="+status+" "+reason+": "+message, ": ")
}

var rows = Rows()

// anyOf makes a signature of several texts. They are constants: an invalid one panics at
// the start of every test.
func anyOf(texts ...string) *regexp.Regexp {
	return regexp.MustCompile("(?s)" + strings.Join(texts, "|"))
}
