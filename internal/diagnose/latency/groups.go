package latency

import (
	"math"
	"slices"
	"strings"
)

// Group is a group of nodes with a common property.
type Group struct {
	// By is all, pool, instanceType, zone or image. Value is empty if it is unknown.
	By    string `json:"by"`
	Value string `json:"value,omitempty"`
	// Nodes is the number of nodes. Not every node has every phase.
	Nodes  int                   `json:"nodes"`
	Phases map[Phase]Percentiles `json:"phases"`
}

// Percentiles are the percentiles over the nodes that have a phase, in seconds, by nearest
// rank: each is the duration of a real node.
type Percentiles struct {
	Count int     `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
}

// Summarize groups timelines: all, then by pool, instance type, zone and image.
func Summarize(all []Timeline) []Group {
	groups := []Group{}
	for _, dimension := range []struct {
		by string
		of func(*Timeline) string
	}{
		{"all", func(*Timeline) string { return "" }},
		{"pool", func(t *Timeline) string { return t.Pool }},
		{"instanceType", func(t *Timeline) string { return t.InstanceType }},
		{"zone", func(t *Timeline) string { return t.Zone }},
		{"image", func(t *Timeline) string { return t.Image }},
	} {
		byValue := map[string][]*Timeline{}
		var values []string
		for i := range all {
			value := dimension.of(&all[i])
			if byValue[value] == nil {
				values = append(values, value)
			}
			byValue[value] = append(byValue[value], &all[i])
		}
		slices.SortFunc(values, strings.Compare)
		for _, value := range values {
			groups = append(groups, newGroup(dimension.by, value, byValue[value]))
		}
	}
	return groups
}

func newGroup(by, value string, timelines []*Timeline) Group {
	g := Group{By: by, Value: value, Nodes: len(timelines), Phases: map[Phase]Percentiles{}}
	for _, d := range Definitions() {
		var seconds []float64
		for _, t := range timelines {
			if s, ok := t.Phases[d.Phase]; ok {
				seconds = append(seconds, s)
			}
		}
		if len(seconds) == 0 {
			continue
		}
		slices.Sort(seconds)
		g.Phases[d.Phase] = Percentiles{len(seconds), findNearestRank(seconds, 50), findNearestRank(seconds, 90),
			findNearestRank(seconds, 99)}
	}
	return g
}

// findNearestRank returns the smallest of sorted values that at least percent of them do not
// exceed.
func findNearestRank(sorted []float64, percent int) float64 {
	rank := int(math.Ceil(float64(percent*len(sorted)) / 100))
	return sorted[max(rank, 1)-1]
}
