package page

import (
	"time"

	"croft.dev/croft/internal/diagnose/why"
	"croft.dev/croft/internal/operate/heartbeat"
)

// AddOperator adds the state of the operator to the page of tenants, in the words of `croft status`. The
// page shows no age while the operator runs: it would change with every heartbeat.
func AddOperator(p Page, beat heartbeat.Beat, now time.Time) Page {
	body, ok := p.Body.(Sections)
	if !ok || beat.Hidden {
		return p // members of a tenant may not read it
	}
	state := Cell{PageText: T("alive, on %s, version %s", beat.Holder, beat.Version), Verdict: why.Good}
	if !beat.IsAlive(now) {
		state = Cell{PageText: T("%s. The status of pools and tenants is from its last run; only the walls are current", beat.Describe(now)), Verdict: why.Bad}
	}
	p.Body = append(Sections{{Heading: T("Operator"), Head: listHeads("State"), Rows: [][]Cell{{state}}}}, body...)
	return p
}
