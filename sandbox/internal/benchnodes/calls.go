package benchnodes

import (
	"slices"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud"
)

// Calls counts a side's calls to EC2.
type Calls struct {
	// Made counts all calls, Throttled the calls that EC2 refused for their rate.
	Made      int `json:"made"`
	Throttled int `json:"throttled"`
	// Reads counts the calls of Made that only read.
	Reads int `json:"reads"`
	// WastedTwice counts the changes for which two calls or more had no effect: EC2 refused
	// them, or an earlier call had made the change.
	WastedTwice int `json:"wastedTwice"`
	// Most is the maximum number of calls without effect for one change.
	Most int `json:"most"`
}

func countCalls(all []cloud.Call) Calls {
	c := Calls{Made: len(all)}
	wasted, made := map[string]int{}, map[string]bool{}
	for _, call := range all {
		if call.Error == "RequestLimitExceeded" {
			c.Throttled++
		}
		if strings.HasPrefix(call.Action, "Describe") {
			c.Reads++
			continue
		}
		key := formatCall(call)
		if call.Error != "" || made[key] {
			wasted[key]++
		} else {
			made[key] = true
		}
	}
	for _, n := range wasted {
		c.Most = max(c.Most, n)
		if n > 1 {
			c.WastedTwice++
		}
	}
	return c
}

// formatCall returns the action and the parameters of a call: the same for calls that request the
// same change.
func formatCall(call cloud.Call) string {
	var parts []string
	for name, value := range call.Params {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return call.Action + " " + strings.Join(parts, "&")
}
