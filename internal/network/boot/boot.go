// Package boot finds the events of a node's boot in the node's logs: when the kernel
// started, when cloud-init ran user data, when containerd and the kubelet were up. It does
// no I/O of its own. The events are the ones of node-latency-for-k8s
// (https://github.com/awslabs/node-latency-for-k8s), and Bottlerocket's.
package boot

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Event is the name of a moment of a boot.
type Event string

// The events.
const (
	VMInitialized         Event = "VM Initialized"
	NetworkStart          Event = "Network Start"
	NetworkReady          Event = "Network Ready"
	CloudInitInitialStart Event = "Cloud-Init Initial Start"
	CloudInitConfigStart  Event = "Cloud-Init Config Start"
	CloudInitFinalStart   Event = "Cloud-Init Final Start"
	CloudInitFinalFinish  Event = "Cloud-Init Final Finish"
	// BootstrapStart and BootstrapFinish come from Bottlerocket's bootstrap containers and
	// commands, which replace cloud-init's user data there.
	BootstrapStart  Event = "Bootstrap Start"
	BootstrapFinish Event = "Bootstrap Finish"
	// NodeadmConfig… and NodeadmRun… come from Amazon Linux 2023's nodeadm, which
	// configures containerd and the kubelet before user data runs, and starts them
	// afterwards.
	NodeadmConfigStart    Event = "Nodeadm Config Start"
	NodeadmConfigFinish   Event = "Nodeadm Config Finish"
	NodeadmRunStart       Event = "Nodeadm Run Start"
	NodeadmRunFinish      Event = "Nodeadm Run Finish"
	ContainerdStart       Event = "Containerd Start"
	ContainerdInitialized Event = "Containerd Initialized"
	KubeletStart          Event = "Kubelet Start"
	KubeletInitialized    Event = "Kubelet Initialized"
	KubeletRegistered     Event = "Kubelet Registered"
	KubeProxyStart        Event = "Kube-Proxy Start"
	VPCCNIInitStart       Event = "VPC CNI Init Start"
	AWSNodeStart          Event = "AWS Node Start"
	VPCCNIInitialized     Event = "VPC CNI Plugin Initialized"
)

// Events returns all events in their usual order.
func Events() []Event {
	return []Event{
		VMInitialized, NetworkStart, NetworkReady, NodeadmConfigStart, NodeadmConfigFinish, CloudInitInitialStart,
		CloudInitConfigStart, CloudInitFinalStart, BootstrapStart, BootstrapFinish, CloudInitFinalFinish,
		NodeadmRunStart, ContainerdStart, ContainerdInitialized, KubeletStart, NodeadmRunFinish, KubeletInitialized,
		KubeletRegistered, KubeProxyStart, VPCCNIInitStart, AWSNodeStart, VPCCNIInitialized,
	}
}

// Times maps the events of one boot to their times. Events that are in no log are absent.
type Times map[Event]time.Time

// Before and After limit the part of the logs that is searched, around a node's
// registration. A boot takes less time, and later lines do not belong to it.
const (
	Before = time.Hour
	After  = 10 * time.Minute
)

// skew is the maximum lead of a node's clock over the API server's.
const skew = 5 * time.Second

// Log collects the events of a node's logs.
type Log struct {
	moments []moment
}

type moment struct {
	event Event
	time  time.Time
}

// Add records a line if it is an event. Lines may be added in any order.
func (l *Log) Add(line Line) {
	if event := matchEvent(line); event != "" {
		l.moments = append(l.moments, moment{event, line.Time.UTC()})
	}
}

// Boot returns the events of the boot in which a node registered. created is the creation
// time of the Node; if it is zero, Boot returns the last boot. A boot begins with its
// kernel's line; logs without one are one boot. The first occurrence of an event counts,
// because a kubelet that restarts has started already.
func (l *Log) Boot(created time.Time) Times {
	seen := slices.Clone(l.moments)
	slices.SortStableFunc(seen, func(a, b moment) int {
		return cmp.Or(a.time.Compare(b.time), rankEvent(a.event)-rankEvent(b.event))
	})
	boot := Times{}
	for _, m := range seen {
		if m.event == VMInitialized {
			if !created.IsZero() && m.time.After(created.Add(skew)) {
				break
			}
			boot = Times{}
		}
		_, ok := boot[m.event]
		_, running := boot[KubeletStart]
		if !ok || m.event == BootstrapFinish && !running { // the last of the containers counts
			boot[m.event] = m.time
		}
	}
	return boot
}

func rankEvent(e Event) int { return slices.Index(Events(), e) }

// MaxEncoded is the maximum length of an encoding, in bytes. The policy croft-agent refuses
// longer ones.
const MaxEncoded = 2048

// Encode returns times as a JSON object, with milliseconds.
func Encode(t Times) string {
	text, err := json.Marshal(t.truncate(time.Millisecond))
	if err != nil { // a year beyond 9999
		return "{}"
	}
	return string(text)
}

func (t Times) truncate(to time.Duration) Times {
	all := maps.Clone(t)
	for event, at := range all {
		all[event] = at.UTC().Truncate(to)
	}
	return all
}

// Decode parses Encode's result. It omits unknown events, which a newer croft may have
// written.
func Decode(text string) (Times, error) {
	if len(text) > MaxEncoded {
		return nil, fmt.Errorf("boot times of %d bytes: the limit is %d", len(text), MaxEncoded)
	}
	var t Times
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, fmt.Errorf("boot times: %w", err)
	}
	maps.DeleteFunc(t, func(e Event, at time.Time) bool { return rankEvent(e) < 0 || at.IsZero() })
	return t, nil
}
