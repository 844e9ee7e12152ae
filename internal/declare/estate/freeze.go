package estate

import (
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// checkedStarts is the number of starts of a schedule that checkFreeze compares with the duration: two months
// of a daily schedule.
const checkedStarts = 60

// resolveFreeze returns the freeze of a tenant with a line that describes it, or nil if the tenant is not
// frozen at a time, and the time at which this changes, or the zero time. At the zero time, each freeze
// holds.
func resolveFreeze(t *v1alpha1.Tenant, now time.Time) (freeze *v1alpha1.Freeze, notice string, change time.Time) {
	freeze = t.Spec.Frozen
	if freeze == nil || freeze.Ended(now) {
		return nil, "", time.Time{}
	}
	if freeze.Until != nil {
		change = freeze.Until.UTC()
	}
	if freeze.Schedule != "" && !now.IsZero() {
		start, end := findPeriod(freeze, now)
		if start.IsZero() || start.After(now) {
			return nil, "", findEarlier(change, start)
		}
		change = findEarlier(change, end)
	}
	end := "until a platform admin ends the freeze"
	if !change.IsZero() {
		end = "until " + change.Format(time.RFC3339)
	}
	notice = "tenant " + t.Name + " is frozen " + end + ": " + freeze.Reason
	if t.Spec.Contact != "" {
		notice += " (contact: " + t.Spec.Contact + ")"
	}
	return freeze, notice, change
}

// findPeriod returns the current period of a scheduled freeze, or the next one, in UTC. It returns zero
// times if there is none: checkFreeze refuses such a schedule.
func findPeriod(f *v1alpha1.Freeze, now time.Time) (start, end time.Time) {
	schedule, err := cron.ParseStandard("TZ=UTC " + f.Schedule)
	if err != nil || f.Duration == nil {
		return time.Time{}, time.Time{}
	}
	if start = schedule.Next(now.UTC().Add(-f.Duration.Duration)); start.IsZero() {
		return time.Time{}, time.Time{}
	}
	return start, start.Add(f.Duration.Duration)
}

// checkFreeze warns of a freeze that has ended. It refuses schedules that are invalid or have no start, and
// a freeze that has not ended when the next one begins: it would have no end.
func checkFreeze(w *checker, t *v1alpha1.Tenant) []finding {
	freeze, at := t.Spec.Frozen, field.NewPath("spec", "frozen")
	switch {
	case freeze == nil:
		return nil
	case freeze.Ended(w.Now):
		return makeWarning(at.Child("until"), "this freeze ended at %s; remove frozen, or write a later time", freeze.Until.UTC().Format(time.RFC3339))
	case freeze.Schedule == "" || freeze.Duration == nil: // the definition requires both or none
		return nil
	}
	schedule, finding := parseSchedule(at.Child("schedule"), freeze.Schedule)
	if schedule == nil {
		return finding
	}
	start := schedule.Next(someDay)
	if start.IsZero() {
		return makeFinding(at.Child("schedule"), "the time %q never occurs; write a day that exists", freeze.Schedule)
	}
	for range checkedStarts {
		next := schedule.Next(start)
		if !next.IsZero() && !next.After(start.Add(freeze.Duration.Duration)) {
			return makeFinding(at.Child("duration"), "the freeze that begins at %s would still last when the next one begins at %s; write a shorter duration, or leave out schedule and duration",
				start.Format(time.RFC3339), next.Format(time.RFC3339))
		}
		start = next
	}
	return nil
}
