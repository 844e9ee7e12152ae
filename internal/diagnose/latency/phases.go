package latency

import (
	"fmt"
	"strings"
	"time"

	"croft.dev/croft/internal/network/boot"
)

// Phase is the time between two events of a timeline.
type Phase string

// These are the phases. The first seven follow one another, except for Initialization, which
// runs concurrently with Scheduling.
const (
	Decision       Phase = "decision"
	Launch         Phase = "launch"
	Boot           Phase = "boot"
	Ready          Phase = "ready"
	Initialization Phase = "initialization"
	Scheduling     Phase = "scheduling"
	Start          Phase = "start"

	// These are the parts of Boot, which the node's logs show. The user data of Amazon Linux 2
	// starts containerd and the kubelet.
	VMStart    Phase = "vm_start"
	System     Phase = "system"
	UserData   Phase = "user_data"
	Nodeadm    Phase = "nodeadm"
	Containerd Phase = "containerd"
	Kubelet    Phase = "kubelet"

	// These are the phases of secondary networks. The first runs concurrently with Boot, the
	// others with Ready and Initialization.
	Interfaces Phase = "interfaces"
	Links      Phase = "links"
	Networks   Phase = "networks"

	// These are the totals.
	ClaimToNodeReady Phase = "claim_to_node_ready"
	PodToNodeReady   Phase = "pod_to_node_ready"
	PodToPodReady    Phase = "pod_to_pod_ready"
)

// Title returns the phase in words.
func (p Phase) Title() string { return strings.ReplaceAll(string(p), "_", " ") }

// Lane groups phases.
type Lane int

// These are the lanes. Phases of different lanes run at the same time.
const (
	Main Lane = iota
	// Initializing contains only Initialization.
	Initializing
	// Booting contains the parts of Boot.
	Booting
	// Networking contains the phases of secondary networks.
	Networking
	// Totals contains the phases that contain others.
	Totals
)

// Definition defines a phase.
type Definition struct {
	Phase Phase
	Lane  Lane
	// From are names of events: the phase begins at the latest of the known ones.
	From []string
	// To are names of events: the phase ends at the first known one in the list.
	To []string
	// Description describes the phase for people.
	Description string
}

// IsWide reports whether a phase is only shown in detailed output, since its events are not
// always known.
func (d *Definition) IsWide() bool { return d.Lane == Booting || d.Lane == Networking }

// Definitions returns the definitions of all phases, in order.
func Definitions() []Definition {
	var all []Definition
	lane := Main
	define := func(p Phase, from, to []string, description string) {
		all = append(all, Definition{Phase: p, Lane: lane, From: from, To: to, Description: description})
	}
	define(Decision, toNames(PodCreated), toNames(ClaimCreated), "Karpenter decides")
	define(Launch, toNames(ClaimCreated), toNames(ClaimLaunched), "cloud accepts the instance")
	define(Boot, toNames(ClaimLaunched), toNames(NodeCreated), "instance boots, kubelet registers")
	define(Ready, toNames(NodeCreated), toNames(NodeReady), "network plugin starts, node turns Ready")
	lane = Initializing
	define(Initialization, toNames(NodeReady), toNames(ClaimInitialized), "startup taints, devices")
	lane = Main
	define(Scheduling, toNames(NodeReady), toNames(PodScheduled), "pod is scheduled")
	define(Start, toNames(PodScheduled), toNames(PodReady), "pod starts and turns Ready")

	lane = Booting
	define(VMStart, toNames(ClaimLaunched), toNames(boot.VMInitialized), "machine starts, kernel boots")
	define(System, toNames(boot.VMInitialized), toNames(boot.CloudInitFinalStart, boot.BootstrapStart, boot.ContainerdStart),
		"system starts, before user data")
	define(UserData, toNames(boot.CloudInitFinalStart, boot.BootstrapStart),
		toNames(boot.CloudInitFinalFinish, boot.BootstrapFinish), "user data runs")
	define(Nodeadm, toNames(boot.NodeadmRunStart), toNames(boot.NodeadmRunFinish), "nodeadm sets up the node")
	define(Containerd, toNames(boot.ContainerdStart), toNames(boot.ContainerdInitialized), "containerd starts")
	define(Kubelet, toNames(boot.KubeletStart), append(toNames(boot.KubeletRegistered), NodeCreated),
		"kubelet starts, and registers")

	lane = Networking
	define(Interfaces, toNames(ClaimLaunched), toNames(InterfacesAttached), "cloud attaches interfaces")
	define(Links, toNames(NodeCreated, InterfacesAttached), toNames(LinksUp), "agent sets up links")
	define(Networks, toNames(LinksUp), toNames(NetworksReady), "operator lets pods onto the node")

	lane = Totals
	define(ClaimToNodeReady, toNames(ClaimCreated), toNames(NodeReady), "NodeClaim to node Ready")
	define(PodToNodeReady, toNames(PodCreated), toNames(NodeReady), "pod to node Ready")
	define(PodToPodReady, toNames(PodCreated), toNames(PodReady), "pod to pod Ready")
	return all
}

// toNames converts names of events, of this package or of package boot, to strings.
func toNames[E ~string](events ...E) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e)
	}
	return names
}

// measurePhases computes the phases. Nodes' clocks differ: a phase that would end before it begins is
// unknown. If the difference is within a second, the phase took no time: conditions
// have times in whole seconds, and events have fractions.
func (t *Timeline) measurePhases() {
	t.Phases = map[Phase]float64{}
	for _, d := range Definitions() {
		from, begun := t.findBegin(d)
		to, ended := t.findEnd(d)
		if begun && ended && !to.Before(from.Truncate(time.Second)) {
			t.Phases[d.Phase] = max(0, to.Sub(from).Seconds())
		}
	}
}

// findBegin returns the time at which a phase began.
func (t *Timeline) findBegin(d Definition) (begin time.Time, ok bool) {
	for _, name := range d.From {
		if at, is := t.findTime(name); is && !at.Before(begin) {
			begin, ok = at, true
		}
	}
	return begin, ok
}

// findEnd returns the time at which a phase ended.
func (t *Timeline) findEnd(d Definition) (end time.Time, ok bool) {
	for _, name := range d.To {
		if at, ok := t.findTime(name); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// Bar is a phase of a timeline, as a picture shows it.
type Bar struct {
	Definition
	// Begin is the time from the first event, and Seconds the duration, in seconds.
	Begin, Seconds float64
}

// Bars returns the known phases, except for the totals, in the order of their definitions.
func (t *Timeline) Bars() []Bar {
	var bars []Bar
	for _, d := range Definitions() {
		seconds, ok := t.Phases[d.Phase]
		if begin, _ := t.findBegin(d); ok && d.Lane != Totals {
			bars = append(bars, Bar{d, begin.Sub(t.Events[0].Time).Seconds(), seconds})
		}
	}
	return bars
}

// TotalSeconds returns the time of the last event, in seconds since the first. It is 0 without events.
func (t *Timeline) TotalSeconds() float64 {
	if len(t.Events) == 0 {
		return 0
	}
	return t.Events[len(t.Events)-1].Seconds
}

// FormatTotal formats the total. An ellipsis follows if the node is not Ready, as far as is known.
func (t *Timeline) FormatTotal() string {
	total := FormatSeconds(t.TotalSeconds())
	if _, ready := t.findTime(NodeReady); !ready {
		total += " …"
	}
	return total
}

// Sentence describes in one line how long the node took until it was Ready, and which phase
// took longest. It returns "" if that is unknown.
func (t *Timeline) Sentence() string {
	total, from := t.Phases[PodToNodeReady], "the pod that needed it"
	if _, ok := t.Phases[PodToNodeReady]; !ok {
		total, from = t.Phases[ClaimToNodeReady], "its NodeClaim"
		if _, ok := t.Phases[ClaimToNodeReady]; !ok {
			return ""
		}
	}
	sentence := fmt.Sprintf("it took %s from %s to Ready", FormatSeconds(total), from)
	longest := t.findLongest(Decision, Launch, Boot, Ready)
	if longest.Phase == "" {
		return sentence
	}
	sentence = fmt.Sprintf("%s; %s of them in %s (%s)", sentence, FormatSeconds(t.Phases[longest.Phase]), longest.Phase,
		longest.Description)
	part := t.findLongest(VMStart, System, UserData, Nodeadm, Containerd, Kubelet)
	if longest.Phase != Boot || part.Phase == "" {
		return sentence
	}
	return fmt.Sprintf("%s, and %s of these in %s (%s)", sentence, FormatSeconds(t.Phases[part.Phase]), part.Phase.Title(),
		part.Description)
}

// findLongest returns the longest of some phases, or the zero Definition if none is known.
func (t *Timeline) findLongest(phases ...Phase) Definition {
	var longest Definition
	for _, d := range Definitions() {
		for _, p := range phases {
			if d.Phase == p && t.Phases[p] > t.Phases[longest.Phase] {
				longest = d
			}
		}
	}
	return longest
}
