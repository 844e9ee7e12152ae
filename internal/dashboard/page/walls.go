package page

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/walls"
	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/observe/denials"
	"croft.dev/croft/internal/observe/events"
)

// mostRefused is the maximum number of rows.
const mostRefused = 200

// NewWalls returns the page of the walls: the results of `croft verify`, repaired drift and refusals.
func NewWalls(s *walls.Snapshot, now time.Time) Page {
	verified := listVerified(s.Platform.Status.Verify, now)
	if len(s.Hidden) > 0 {
		verified.Note = append(verified.Note, describeHidden(s.Hidden)...)
	}
	return Page{
		Title: T("Walls"), Heading: T("Walls of %s", s.Platform.Spec.ClusterName),
		Commands: []string{"croft status", "croft verify --record", "kubectl get platform default -o yaml", "kubectl get events -n default --field-selector reason=" + walls.Repaired, "croft denials audit.log"},
		Body:     Sections{verified, listHistory(&s.Platform.Status), listRepairs(s), listRefused(s.Refused)},
	}
}

func listVerified(v *v1alpha1.VerifyStatus, now time.Time) Section {
	t := Section{
		Heading: T("Last verification"), Head: listHeads("Result", "Attacks"),
		Empty: T("No result is recorded: run croft verify --record, best on a schedule."),
	}
	if v == nil {
		return t
	}
	t.Note = T("%s, %s ago, by version %s.", formatTime(v.Time.Time), formatAge(v.Time.Time, now), v.Version)
	for _, r := range []struct {
		name    Text
		count   int32
		verdict why.Verdict
	}{
		{T("held"), v.Held, why.Good}, {T("BREACHED"), v.Breached, why.Bad}, {T("blocked elsewhere"), v.BlockedElsewhere, why.Bad}, {T("not tried"), v.NotTried, ""},
	} {
		if r.count == 0 && r.verdict == why.Bad {
			r.verdict = why.Good
		}
		t.Rows = append(t.Rows, []Cell{{PageText: r.name}, {Text: strconv.Itoa(int(r.count)), Verdict: r.verdict}})
	}
	return t
}

// listHistory lists all recorded results, the newest first.
func listHistory(status *v1alpha1.PlatformStatus) Section {
	t := Section{
		Heading: T("Verifications"), Head: listHeads("Time", "Result", "First breach", "held", "blocked elsewhere", "not tried", "Duration", "Version"),
		Empty: T("Each croft verify --record adds a line here."),
	}
	if status.Verify == nil {
		return t
	}
	for _, v := range append([]v1alpha1.VerifyStatus{*status.Verify}, status.VerifyHistory...) {
		result := Cell{PageText: T("held"), Verdict: why.Good}
		switch {
		case v.Breached > 0:
			result = Cell{PageText: T("%d BREACHED", v.Breached), Verdict: why.Bad}
		case v.BlockedElsewhere > 0:
			result = Cell{PageText: T("blocked elsewhere"), Verdict: why.Bad}
		}
		took := "-"
		if v.Duration != nil {
			took = v.Duration.Duration.String()
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: formatTime(v.Time.Time)}, result, {Text: cmp.Or(v.FirstBreach, "-")}, newCountCell(v.Held), newCountCell(v.BlockedElsewhere), newCountCell(v.NotTried),
			{Text: took}, {Text: cmp.Or(v.Version, "-")},
		})
	}
	return t
}

func newCountCell(count int32) Cell { return Cell{Text: strconv.Itoa(int(count))} }

func listRepairs(s *walls.Snapshot) Section {
	t := Section{
		Heading: T("Repaired drift"), Head: listHeads("Time", "Object", "Repair"),
		Empty: T("The operator has repaired nothing in the last hour: Kubernetes keeps events so long. The metric croft_repairs_total and the operator's log have earlier repairs."),
	}
	for i := range s.Repairs[:min(len(s.Repairs), mostEvents)] {
		e := &s.Repairs[i]
		t.Rows = append(t.Rows, []Cell{
			{Text: formatTime(events.LastObserved(e))}, {Text: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name}, {Text: e.Message, Verdict: why.Waiting},
		})
	}
	return t
}

func listRefused(all []v1alpha1.RefusedWorkload) Section {
	t := Section{
		Heading: T("Refused pods"), Head: listHeads("Object", "State", "Explanation", "Rule"),
		Empty: T("No pods of tenants are refused. Refusals of other objects are only in the API server's audit log: croft denials lists them."),
	}
	if more := len(all) - mostRefused; more > 0 {
		t.Note = T("%d more workloads are not shown.", more)
	}
	for _, w := range all[:min(len(all), mostRefused)] {
		rule, _ := denials.ParseRefusal(w.Message)
		t.Rows = append(t.Rows, append(newRefusedRow(w), Cell{Text: cmp.Or(rule, "-")}))
	}
	return t
}
