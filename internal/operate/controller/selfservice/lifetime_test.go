package selfservice

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

var created = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// TestFindEnd expects the earlier one of the team's end and the platform's limit. No change of the limit
// ends a namespace within 24 hours.
func TestFindEnd(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		// Times are relative to the creation. 0 is no time.
		until, before time.Duration
		granted       bool
		longest       time.Duration
		now           time.Duration
		want          time.Duration
		limited       bool
	}{
		"without an end":                            {granted: true, now: day},
		"the team's end":                            {until: day, granted: true, now: time.Hour, want: day},
		"the team's end below the limit":            {until: day, granted: true, longest: 9 * day, now: time.Hour, want: day},
		"the limit, when the request is granted":    {longest: time.Hour, now: time.Second, want: time.Hour},
		"a later end, when the request is granted":  {until: day, longest: time.Hour, now: time.Second, want: time.Hour, limited: true},
		"the limit of a granted one":                {before: time.Hour, granted: true, longest: time.Hour, now: time.Minute, want: time.Hour},
		"the team moves the end":                    {until: 3 * day, before: 2 * day, granted: true, longest: 9 * day, now: day, want: 3 * day},
		"the team moves the end near it":            {until: 3 * day, before: 2 * day, granted: true, longest: 9 * day, now: 2*day - time.Second, want: 3 * day},
		"the team moves the end beyond the limit":   {until: 99 * day, before: 2 * day, granted: true, longest: 9 * day, now: day, want: 9 * day, limited: true},
		"the team removes the end":                  {before: 2 * day, granted: true, now: day},
		"an old namespace gets a limit":             {granted: true, longest: day, now: 300 * day, want: 301 * day},
		"the notice of the limit continues":         {before: 301 * day, granted: true, longest: day, now: 300*day + time.Hour, want: 301 * day},
		"the notice of the limit is over":           {before: 301 * day, granted: true, longest: day, now: 302 * day, want: 301 * day},
		"a lower limit":                             {before: 300 * day, granted: true, longest: 10 * day, now: 20 * day, want: 21 * day},
		"a lower limit, and the team's earlier end": {until: 20*day + time.Hour, before: 300 * day, granted: true, longest: 10 * day, now: 20 * day, want: 20*day + time.Hour},
		"a higher limit":                            {before: 10 * day, granted: true, longest: 20 * day, now: 9*day + time.Hour, want: 20 * day},
	} {
		t.Run(name, func(t *testing.T) {
			at := func(d time.Duration) *metav1.Time {
				if d == 0 {
					return nil
				}
				return &metav1.Time{Time: created.Add(d)}
			}
			request := &v1alpha1.TenantNamespace{Spec: v1alpha1.TenantNamespaceSpec{Until: at(c.until)}}
			request.CreationTimestamp = metav1.Time{Time: created}
			if request.Status.Until = at(c.before); c.granted {
				request.Status.Tenant = "shop"
			}
			end, limited := findEnd(request, c.longest, created.Add(c.now))
			if got, want := toTime(end), at(c.want); !got.Equal(want) || limited != c.limited {
				t.Errorf("the end is %v (limited: %t), want %v (limited: %t)", got, limited, want, c.limited)
			}
		})
	}
}

// TestSetEnding expects the condition Ending within 24 hours and within an hour of the end, and the
// next step at the time of the next change.
func TestSetEnding(t *testing.T) {
	end := created
	for name, c := range map[string]struct {
		left   time.Duration
		reason string
		next   time.Duration
	}{
		"two days":           {48 * time.Hour, "", 24 * time.Hour},
		"a day and a second": {24*time.Hour + time.Second, "", time.Second},
		"a day":              {24 * time.Hour, v1alpha1.ReasonEndsWithinDay, 23 * time.Hour},
		"an hour":            {time.Hour, v1alpha1.ReasonEndsWithinHour, time.Hour},
		"a second":           {time.Second, v1alpha1.ReasonEndsWithinHour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			request := &v1alpha1.TenantNamespace{}
			request.Namespace, request.Name = "shop", "shop-a"
			setEnding(request, end, end.Add(-c.left))
			reason := ""
			if ending := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionEnding); ending != nil {
				reason = ending.Reason
			}
			if reason != c.reason {
				t.Errorf("the reason is %q, want %q", reason, c.reason)
			}
			if next := findNextStep(end, end.Add(-c.left)); next != c.next {
				t.Errorf("the next step is in %s, want %s", next, c.next)
			}
			if setEnding(request, time.Time{}, end); len(request.Status.Conditions) > 0 {
				t.Errorf("a namespace without an end has conditions: %v", request.Status.Conditions)
			}
		})
	}
	if next := findNextStep(time.Time{}, end); next != 0 {
		t.Errorf("the next step without an end is in %s", next)
	}
}
