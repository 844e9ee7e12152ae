package latency

import (
	"fmt"
	"strings"
	"time"

	"croft.dev/croft/internal/boot"
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
	// Says is a description of the phase.
	Says string
}

// Wide reports whether a phase is only shown in detailed output, since its events are not
// always known.
func (d *Definition) Wide() bool { return d.Lane == Booting || d.Lane == Networking }

// Definitions returns the definitions of all phases, in order.
func Definitions() []Definition {
	var all []Definition
	lane := Main
	define := func(p Phase, from, to []string, says string) {
		all = append(all, Definition{Phase: p, Lane: lane, From: from, To: to, Says: says})
	}
	define(Decision, just(PodCreated), just(ClaimCreated), "Karpenter decides")
	define(Launch, just(ClaimCreated), just(ClaimLaunched), "cloud accepts the instance")
	define(Boot, just(ClaimLaunched), just(NodeCreated), "instance boots, kubelet registers")
	define(Ready, just(NodeCreated), just(NodeReady), "network plugin starts, node turns Ready")
	lane = Initializing
	define(Initialization, just(NodeReady), just(ClaimInitialized), "startup taints, devices")
	lane = Main
	define(Scheduling, just(NodeReady), just(PodScheduled), "pod is scheduled")
	define(Start, just(PodScheduled), just(PodReady), "pod starts and turns Ready")

	lane = Booting
	define(VMStart, just(ClaimLaunched), just(boot.VMInitialized), "machine starts, kernel boots")
	define(System, just(boot.VMInitialized), just(boot.CloudInitFinalStart, boot.BootstrapStart, boot.ContainerdStart),
		"system starts, before user data")
	define(UserData, just(boot.CloudInitFinalStart, boot.BootstrapStart),
		just(boot.CloudInitFinalFinish, boot.BootstrapFinish), "user data runs")
	define(Nodeadm, just(boot.NodeadmRunStart), just(boot.NodeadmRunFinish), "nodeadm sets up the node")
	define(Containerd, just(boot.ContainerdStart), just(boot.ContainerdInitialized), "containerd starts")
	define(Kubelet, just(boot.KubeletStart), append(just(boot.KubeletRegistered), NodeCreated),
		"kubelet starts, and registers")

	lane = Networking
	define(Interfaces, just(ClaimLaunched), just(InterfacesAttached), "cloud attaches interfaces")
	define(Links, just(NodeCreated, InterfacesAttached), just(LinksUp), "agent sets up links")
	define(Networks, just(LinksUp), just(NetworksReady), "operator lets pods onto the node")

	lane = Totals
	define(ClaimToNodeReady, just(ClaimCreated), just(NodeReady), "NodeClaim to node Ready")
	define(PodToNodeReady, just(PodCreated), just(NodeReady), "pod to node Ready")
	define(PodToPodReady, just(PodCreated), just(PodReady), "pod to pod Ready")
	return all
}

// just converts names of events, of this package or of package boot, to strings.
func just[E ~string](events ...E) []string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = string(e)
	}
	return names
}

// measure computes the phases. Nodes' clocks differ: a phase that would end before it begins is
// unknown. If the difference is within a second, the phase took no time: the times of
// conditions are whole seconds, and those of events are not.
func (t *Timeline) measure() {
	t.Phases = map[Phase]float64{}
	for _, d := range Definitions() {
		from, begun := t.begin(d)
		to, ended := t.end(d)
		if begun && ended && !to.Before(from.Truncate(time.Second)) {
			t.Phases[d.Phase] = max(0, to.Sub(from).Seconds())
		}
	}
}

// begin returns the time at which a phase began.
func (t *Timeline) begin(d Definition) (begin time.Time, known bool) {
	for _, name := range d.From {
		if at, is := t.at(name); is && !at.Before(begin) {
			begin, known = at, true
		}
	}
	return begin, known
}

// end returns the time at which a phase ended.
func (t *Timeline) end(d Definition) (end time.Time, known bool) {
	for _, name := range d.To {
		if at, is := t.at(name); is {
			return at, true
		}
	}
	return time.Time{}, false
}

// Sentence describes in one line how long the node took until it was Ready, and which phase
// took longest. It returns "" if that is unknown.
func (t *Timeline) Sentence() string {
	total, from := t.Phases[PodToNodeReady], "the pod that needed it"
	if _, known := t.Phases[PodToNodeReady]; !known {
		total, from = t.Phases[ClaimToNodeReady], "its NodeClaim"
		if _, known := t.Phases[ClaimToNodeReady]; !known {
			return ""
		}
	}
	sentence := fmt.Sprintf("it took %s from %s to Ready", Seconds(total), from)
	longest := t.longest(Decision, Launch, Boot, Ready)
	if longest.Phase == "" {
		return sentence
	}
	sentence = fmt.Sprintf("%s; %s of them in %s (%s)", sentence, Seconds(t.Phases[longest.Phase]), longest.Phase,
		longest.Says)
	part := t.longest(VMStart, System, UserData, Nodeadm, Containerd, Kubelet)
	if longest.Phase != Boot || part.Phase == "" {
		return sentence
	}
	return fmt.Sprintf("%s, and %s of these in %s (%s)", sentence, Seconds(t.Phases[part.Phase]), part.Phase.Title(),
		part.Says)
}

// longest returns the longest of some phases, or the zero Definition if none is known.
func (t *Timeline) longest(of ...Phase) Definition {
	var longest Definition
	for _, d := range Definitions() {
		for _, p := range of {
			if d.Phase == p && t.Phases[p] > t.Phases[longest.Phase] {
				longest = d
			}
		}
	}
	return longest
}
