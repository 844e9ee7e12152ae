package latency

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Phase is the time between two events of a timeline.
type Phase string

// The phases. The first seven follow one another, except for Initialization, which runs
// beside Scheduling; the others are totals.
const (
	Decision         Phase = "decision"
	Launch           Phase = "launch"
	Boot             Phase = "boot"
	Ready            Phase = "ready"
	Initialization   Phase = "initialization"
	Scheduling       Phase = "scheduling"
	Start            Phase = "start"
	ClaimToNodeReady Phase = "claim_to_node_ready"
	PodToNodeReady   Phase = "pod_to_node_ready"
	PodToPodReady    Phase = "pod_to_pod_ready"
)

// Definition defines a phase.
type Definition struct {
	Phase Phase
	// From and To are names of events.
	From, To string
	// Says describes the phase, for people.
	Says string
	// Total is set for phases that contain others.
	Total bool
}

// Definitions are the definitions of all phases, in order.
func Definitions() []Definition {
	return []Definition{
		{Decision, PodCreated, ClaimCreated, "Karpenter decides", false},
		{Launch, ClaimCreated, ClaimLaunched, "cloud accepts the instance", false},
		{Boot, ClaimLaunched, NodeCreated, "instance boots, kubelet registers", false},
		{Ready, NodeCreated, NodeReady, "network plugin starts, node turns Ready", false},
		{Initialization, NodeReady, ClaimInitialized, "startup taints, devices", false},
		{Scheduling, NodeReady, PodScheduled, "pod is scheduled", false},
		{Start, PodScheduled, PodReady, "pod starts and turns Ready", false},
		{ClaimToNodeReady, ClaimCreated, NodeReady, "NodeClaim to node Ready", true},
		{PodToNodeReady, PodCreated, NodeReady, "pod to node Ready", true},
		{PodToPodReady, PodCreated, PodReady, "pod to pod Ready", true},
	}
}

// measure fills in the phases. Clocks of nodes differ: a phase that would end before
// it begins is not known.
func (t *Timeline) measure() {
	t.Phases = map[Phase]float64{}
	for _, d := range Definitions() {
		from, begun := t.at(d.From)
		to, ended := t.at(d.To)
		if begun && ended && !to.Before(from) {
			t.Phases[d.Phase] = to.Sub(from).Seconds()
		}
	}
}

// Sentence says in one line how long the node took until it was Ready, and which phase
// took longest; "" if that is unknown.
func (t *Timeline) Sentence() string {
	total, from := t.Phases[PodToNodeReady], "the pod that needed it"
	if _, known := t.Phases[PodToNodeReady]; !known {
		total, from = t.Phases[ClaimToNodeReady], "its NodeClaim"
		if _, known := t.Phases[ClaimToNodeReady]; !known {
			return ""
		}
	}
	sentence := fmt.Sprintf("it took %s from %s to Ready", Seconds(total), from)
	var longest Definition
	for _, d := range Definitions() {
		if slices.Contains([]Phase{Decision, Launch, Boot, Ready}, d.Phase) &&
			t.Phases[d.Phase] > t.Phases[longest.Phase] {
			longest = d
		}
	}
	if longest.Phase == "" {
		return sentence
	}
	return fmt.Sprintf("%s; %s of them in %s (%s)", sentence, Seconds(t.Phases[longest.Phase]), longest.Phase,
		longest.Says)
}

// Group is several nodes that have something in common.
type Group struct {
	// By is all, pool, instanceType, zone or image; Value is empty where it is not known.
	By    string `json:"by"`
	Value string `json:"value,omitempty"`
	// Nodes is the number of nodes. Not each has each phase.
	Nodes  int                   `json:"nodes"`
	Phases map[Phase]Percentiles `json:"phases"`
}

// Percentiles are of the nodes that have a phase, in seconds, by nearest rank: each is a
// time of a real node.
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
			groups = append(groups, group(dimension.by, value, byValue[value]))
		}
	}
	return groups
}

func group(by, value string, of []*Timeline) Group {
	g := Group{By: by, Value: value, Nodes: len(of), Phases: map[Phase]Percentiles{}}
	for _, d := range Definitions() {
		var seconds []float64
		for _, t := range of {
			if s, known := t.Phases[d.Phase]; known {
				seconds = append(seconds, s)
			}
		}
		if len(seconds) == 0 {
			continue
		}
		slices.Sort(seconds)
		g.Phases[d.Phase] = Percentiles{len(seconds), nearestRank(seconds, 50), nearestRank(seconds, 90),
			nearestRank(seconds, 99)}
	}
	return g
}

// nearestRank is the smallest of sorted values that at least percent of them do not
// exceed.
func nearestRank(sorted []float64, percent int) float64 {
	rank := int(math.Ceil(float64(percent*len(sorted)) / 100))
	return sorted[max(rank, 1)-1]
}
