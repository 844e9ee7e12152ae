package benchnodes

import (
	"slices"
	"strings"

	"croft.dev/croft/sandbox/internal/cloud"
)

// Calls are what a side asked of EC2.
type Calls struct {
	// Made are all, Throttled those that were refused for their rate.
	Made      int `json:"made"`
	Throttled int `json:"throttled"`
	// Reads are those of Made that change nothing by their nature.
	Reads int `json:"reads"`
	// WastedTwice are the changes for which two calls or more came to nothing: they were
	// refused, or the change had been made before.
	WastedTwice int `json:"wastedTwice"`
	// Most is how many calls came to nothing for the change that had the most of them.
	Most int `json:"most"`
}

// countCalls counts calls.
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
		key := keyOf(call)
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

// keyOf is the same for calls that ask for the same change: of the same parameters.
func keyOf(call cloud.Call) string {
	var parts []string
	for name, value := range call.Params {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return call.Action + " " + strings.Join(parts, "&")
}
