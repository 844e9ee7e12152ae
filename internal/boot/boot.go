// Package boot finds the events of a node's boot in the node's logs: when the kernel
// started, when cloud-init ran user data, when containerd and the kubelet were up. It
// does no I/O of its own. The events are those of node-latency-for-k8s
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
	// BootstrapStart and BootstrapFinish are of Bottlerocket's bootstrap containers and
	// commands, which have the place of cloud-init's user data there.
	BootstrapStart  Event = "Bootstrap Start"
	BootstrapFinish Event = "Bootstrap Finish"
	// NodeadmConfig… and NodeadmRun… are of Amazon Linux 2023's nodeadm, which sets up
	// containerd and the kubelet before and after user data.
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

// Events are all events, in their usual order.
func Events() []Event {
	return []Event{
		VMInitialized, NetworkStart, NetworkReady, NodeadmConfigStart, NodeadmConfigFinish, CloudInitInitialStart,
		CloudInitConfigStart, CloudInitFinalStart, BootstrapStart, BootstrapFinish, CloudInitFinalFinish,
		NodeadmRunStart, ContainerdStart, ContainerdInitialized, KubeletStart, NodeadmRunFinish, KubeletInitialized,
		KubeletRegistered, KubeProxyStart, VPCCNIInitStart, AWSNodeStart, VPCCNIInitialized,
	}
}

// Times are when the events of one boot were; those that no log shows are absent.
type Times map[Event]time.Time

// Before and After are how long before and after a node's registration its logs are looked
// through: a boot takes less, and what comes later is no boot.
const (
	Before = time.Hour
	After  = 10 * time.Minute
)

// skew is the maximum lead of a node's clock over the API server's.
const skew = 5 * time.Second

// Log collects the events of a node's logs.
type Log struct {
	seen []moment
}

type moment struct {
	event Event
	time  time.Time
}

// Add takes note of a line, if it is an event. Lines may come in any order.
func (l *Log) Add(line Line) {
	if event := eventOf(line); event != "" {
		l.seen = append(l.seen, moment{event, line.Time.UTC()})
	}
}

// Boot returns the events of the boot in which a node registered, of which created is the
// time; of the last boot if created is zero. A boot begins with its kernel; logs without a
// kernel's line are one boot. Of an event that is there several times the first counts: a
// kubelet that restarts has started already.
func (l *Log) Boot(created time.Time) Times {
	seen := slices.Clone(l.seen)
	slices.SortStableFunc(seen, func(a, b moment) int {
		return cmp.Or(a.time.Compare(b.time), rank(a.event)-rank(b.event))
	})
	boot := Times{}
	for _, m := range seen {
		if m.event == VMInitialized {
			if !created.IsZero() && m.time.After(created.Add(skew)) {
				break
			}
			boot = Times{}
		}
		_, known := boot[m.event]
		_, running := boot[KubeletStart]
		if !known || m.event == BootstrapFinish && !running { // the last of the containers
			boot[m.event] = m.time
		}
	}
	return boot
}

func rank(e Event) int { return slices.Index(Events(), e) }

// MaxEncoded is the maximum length of an encoding, in bytes; the policy croft-agent admits
// no longer one.
const MaxEncoded = 2048

// Encode writes times as a JSON object, with milliseconds.
func Encode(t Times) string {
	text, err := json.Marshal(t.cut(time.Millisecond))
	if err != nil { // a year beyond 9999
		return "{}"
	}
	return string(text)
}

func (t Times) cut(to time.Duration) Times {
	all := maps.Clone(t)
	for event, at := range all {
		all[event] = at.UTC().Truncate(to)
	}
	return all
}

// Decode reads what Encode wrote. It leaves out events that it does not know, which a newer
// croft may have written.
func Decode(text string) (Times, error) {
	if len(text) > MaxEncoded {
		return nil, fmt.Errorf("boot times of %d bytes: want at most %d", len(text), MaxEncoded)
	}
	var t Times
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return nil, fmt.Errorf("boot times: %w", err)
	}
	maps.DeleteFunc(t, func(e Event, at time.Time) bool { return rank(e) < 0 || at.IsZero() })
	return t, nil
}
