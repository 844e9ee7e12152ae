package estate

import (
	"strings"
	"testing"
	"time"

	"croft.dev/croft/internal/declare/manifest"
)

// TestAccessEnds expects access in the estate until its end, a warning afterwards, and one
// clear line for an invalid time.
func TestAccessEnds(t *testing.T) {
	const content = base + `pools: {apps: }
tenants:
  shop:
    pool: apps
    access:
    - {group: devs, role: operator, until: 2026-12-01T00:00:00Z}
    - {group: night, role: operator, until: 2026-12-01T00:30:00+01:00}
    - {group: all, role: viewer}
`
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name    string
		now     time.Time
		want    string
		warned  string
		nextEnd time.Time
	}{
		{"no time is known", time.Time{}, "devs night all", "", end.Add(-30 * time.Minute)},
		{"before", end.Add(-time.Hour), "devs night all", "", end.Add(-30 * time.Minute)},
		{"between", end.Add(-time.Second), "devs all", "croft.yaml:13: tenants.shop.access[1].until: warning: this access expired at 2026-11-30T23:30:00Z; remove the entry, or write a later time", end},
		{"at the end", end, "all", "croft.yaml:12: tenants.shop.access[0].until: warning: this access expired at 2026-12-01T00:00:00Z", time.Time{}},
		{"long after", end.AddDate(1, 0, 0), "all", "croft.yaml:12", time.Time{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(content))
			d.Now = test.now
			e, more := Build(d)
			if err := append(problems, more...).Err(); err != nil {
				t.Fatal(err)
			}
			var groups []string
			for _, a := range e.Tenants[0].Access {
				groups = append(groups, a.Group)
			}
			if got := strings.Join(groups, " "); got != test.want {
				t.Errorf("access of %s, want %s", got, test.want)
			}
			if got := e.Warnings.Error(); (got == "") != (test.warned == "") || !strings.Contains(got, test.warned) {
				t.Errorf("warnings %q, want %q", got, test.warned)
			}
			if got := e.FindNextChange(); !got.Equal(test.nextEnd) {
				t.Errorf("the next end is %s, want %s", got, test.nextEnd)
			}
			if len(d.Tenants[0].Spec.Access) != 3 {
				t.Error("the declaration was changed")
			}
		})
	}
	_, _, problems := parseAndBuild(base + "pools: {apps: }\ntenants: {shop: {pool: apps, access: [{group: a, role: viewer, until: 2026-12-01}, {group: b, role: viewer, until: 3}]}}\n")
	expectProblems(t, problems,
		`croft.yaml:8: tenants.shop.access[0].until: must be a time, such as 2026-12-01T00:00:00Z, not the text "2026-12-01"`,
		`croft.yaml:8: tenants.shop.access[1].until: must be a time, such as 2026-12-01T00:00:00Z, not the number 3`)
}

// TestFreezeEnds expects a freeze until its end, with one line for the tenant's people, and a warning
// afterwards.
func TestFreezeEnds(t *testing.T) {
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	friday := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	monday := friday.Add(60 * time.Hour)
	const weekends = `{reason: Weekend, schedule: "0 18 * * fri", duration: 60h, until: 2026-12-01T00:00:00Z}`
	const whole = `{reason: Black Friday, except: [scale], until: 2026-12-01T01:00:00+01:00}`
	for name, c := range map[string]struct {
		frozen  string
		contact string
		now     time.Time
		// notice is empty if the tenant is not frozen.
		notice, warned string
		nextEnd        time.Time
	}{
		"without a time":                    {whole, "", time.Time{}, "tenant shop is frozen until 2026-12-01T00:00:00Z: Black Friday", "", end},
		"before the end":                    {whole, "#shop", end.Add(-time.Second), "tenant shop is frozen until 2026-12-01T00:00:00Z: Black Friday (contact: #shop)", "", end},
		"at the end":                        {whole, "", end, "", "croft.yaml:10: tenants.shop.frozen.until: warning: this freeze ended at 2026-12-01T00:00:00Z; remove frozen, or write a later time", time.Time{}},
		"without an end":                    {"{reason: Migration}", "", end, "tenant shop is frozen until a platform admin ends the freeze: Migration", "", time.Time{}},
		"a scheduled freeze without a time": {weekends, "", time.Time{}, "tenant shop is frozen until 2026-12-01T00:00:00Z: Weekend", "", end},
		"before the schedule begins":        {weekends, "", friday.Add(-time.Minute), "", "", friday},
		"when the schedule begins":          {weekends, "", friday, "tenant shop is frozen until 2026-11-23T06:00:00Z: Weekend", "", monday},
		"before the scheduled end":          {weekends, "", monday.Add(-time.Second), "tenant shop is frozen until 2026-11-23T06:00:00Z: Weekend", "", monday},
		"at the scheduled end":              {weekends, "", monday, "", "", friday.AddDate(0, 0, 7)},
		"in the last scheduled freeze":      {weekends, "", end.Add(-48 * time.Hour), "tenant shop is frozen until 2026-11-30T06:00:00Z: Weekend", "", monday.AddDate(0, 0, 7)},
		"a schedule after until":            {weekends, "", end, "", "croft.yaml:10: tenants.shop.frozen.until: warning: this freeze ended", time.Time{}},
		"the last start is after until":     {weekends, "", monday.AddDate(0, 0, 7), "", "", end},
		"without a freeze":                  {"null", "#shop", end, "", "", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := manifest.Parse("croft.yaml", []byte(base+"pools: {apps: }\ntenants:\n  shop:\n    frozen: "+c.frozen+"\n    pool: apps\n    contact: '"+c.contact+"'\n"))
			d.Now = c.now
			e, more := Build(d)
			if err := append(problems, more...).Err(); err != nil {
				t.Fatal(err)
			}
			shop := e.Tenants[0]
			if shop.FreezeNotice != c.notice || (shop.Freeze != nil) != (c.notice != "") {
				t.Errorf("the freeze is %v with the notice %q, want %q", shop.Freeze, shop.FreezeNotice, c.notice)
			}
			if got := e.Warnings.Error(); (got == "") != (c.warned == "") || !strings.Contains(got, c.warned) {
				t.Errorf("warnings %q, want %q", got, c.warned)
			}
			if got := e.FindNextChange(); !got.Equal(c.nextEnd) {
				t.Errorf("the next end is %s, want %s", got, c.nextEnd)
			}
		})
	}
	_, _, problems := parseAndBuild(base + "pools: {apps: }\ntenants: {shop: {pool: apps, frozen: {except: [delete]}}}\n")
	expectProblems(t, problems,
		`croft.yaml:8: tenants.shop.frozen.except[0]: "delete" is not allowed; write scale`,
		`croft.yaml:8: tenants.shop.frozen.reason: is required, but missing`)
	for freeze, want := range map[string]string{
		`schedule: "0 18 * * fri"`:                 `croft.yaml:8: tenants.shop.frozen: schedule and duration need each other: write both or none`,
		`duration: 60h`:                            `croft.yaml:8: tenants.shop.frozen: schedule and duration need each other: write both or none`,
		`schedule: friday, duration: 60h`:          `croft.yaml:8: tenants.shop.frozen.schedule: "friday" is not a cron schedule`,
		`schedule: "0 0 30 feb *", duration: 60h`:  `croft.yaml:8: tenants.shop.frozen.schedule: the time "0 0 30 feb *" never occurs; write a day that exists`,
		`schedule: "@daily", duration: 30s`:        `croft.yaml:8: tenants.shop.frozen.duration: "30s" must be at least 1m`,
		`schedule: "0 9 * * 1-5", duration: 24h`:   `croft.yaml:8: tenants.shop.frozen.duration: the freeze that begins at 2026-01-01T09:00:00Z would still last when the next one begins at 2026-01-02T09:00:00Z; write a shorter duration`,
		`schedule: "0 0 1 */2 *", duration: 1440h`: `croft.yaml:8: tenants.shop.frozen.duration: the freeze that begins at 2027-01-01T00:00:00Z would still last when`,
	} {
		if _, _, problems := parseAndBuild(base + "pools: {apps: }\ntenants: {shop: {pool: apps, frozen: {reason: r, " + freeze + "}}}\n"); !strings.Contains(problems.Error(), want) {
			t.Errorf("%s: %q, want %q", freeze, problems.Error(), want)
		}
	}
}
