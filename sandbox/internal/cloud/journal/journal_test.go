package journal

import (
	"bytes"
	"maps"
	"slices"
	"testing"
	"time"

	"croft.dev/croft/internal/diagnose/latency"
	"croft.dev/croft/internal/network/boot"
	"croft.dev/croft/internal/network/journal"
	"croft.dev/croft/sandbox/internal/journalfile"
)

// kernel is the time at which the sample boots begin.
var kernel = time.Date(2026, 11, 25, 9, 0, 0, 123_456_000, time.UTC)

// newBoot returns a boot that takes 7 s until the node is registered, and 9 s more until it
// is ready.
func newBoot(s System) Boot {
	return Boot{System: s, Instance: "i-1", Node: "ip-10-0-0-4.us-west-2.compute.internal", Kernel: kernel,
		Registers: kernel.Add(7 * time.Second), Ready: kernel.Add(16 * time.Second)}
}

// readEvents finds the events of a boot's journal with the code of croft's agent.
func readEvents(t *testing.T, b Boot) boot.Times {
	t.Helper()
	file := journalfile.Encode(b.Machine(), b.ID(), b.BuildEntries())
	var log boot.Log
	if err := journal.Read(bytes.NewReader(file), b.Registers.Add(-boot.Before), b.Registers.Add(boot.After), func(e journal.Entry) {
		log.Add(boot.Line{Time: e.Time, Source: e.Identifier, Text: e.Message})
	}); err != nil {
		t.Fatal(err)
	}
	return log.Boot(b.Registers)
}

// elsewhere are the events that the journal of a system does not have: the other system's
// events, and events in containers' logs.
var elsewhere = map[System][]boot.Event{
	AmazonLinux2023: {boot.BootstrapStart, boot.BootstrapFinish, boot.VPCCNIInitialized},
	Bottlerocket: {
		boot.NodeadmConfigStart, boot.NodeadmConfigFinish, boot.NodeadmRunStart, boot.NodeadmRunFinish, boot.CloudInitInitialStart,
		boot.CloudInitConfigStart, boot.CloudInitFinalStart, boot.CloudInitFinalFinish, boot.KubeProxyStart, boot.VPCCNIInitStart,
		boot.AWSNodeStart, boot.VPCCNIInitialized,
	},
}

// TestEvents fails if the events that croft finds in a simulated journal differ from the events
// that its parser knows for the system.
func TestEvents(t *testing.T) {
	for system, others := range elsewhere {
		t.Run(string(system), func(t *testing.T) {
			b := newBoot(system)
			found := readEvents(t, b)
			for _, event := range boot.Events() {
				at, is := found[event]
				if want := !slices.Contains(others, event); is != want {
					t.Errorf("%s is found: %t, want %t", event, is, want)
				}
				if is && (at.Before(b.Kernel) || at.After(b.Ready)) {
					t.Errorf("%s is at %s, not within the boot", event, at)
				}
			}
			if !found[boot.VMInitialized].Equal(b.Kernel) || !found[boot.KubeletRegistered].Equal(b.Registers) {
				t.Errorf("the kernel is found at %s, the registration at %s", found[boot.VMInitialized], found[boot.KubeletRegistered])
			}
		})
	}
	if entries := newBoot(AmazonLinux2).BuildEntries(); len(entries) > 0 {
		t.Errorf("Amazon Linux 2 keeps no journal, and there are %v", entries)
	}
}

// TestPhases fails if a part of the boot that croft latency measures has no beginning or no
// end in the journal of Amazon Linux 2023. The launch is the only end that is not in it.
func TestPhases(t *testing.T) {
	found := readEvents(t, newBoot(AmazonLinux2023))
	known := map[string]bool{latency.ClaimLaunched: true}
	for event := range maps.Keys(found) {
		known[string(event)] = true
	}
	unknown := func(event string) bool { return !known[event] }
	parts := 0
	for _, d := range latency.Definitions() {
		if d.Lane != latency.Booting {
			continue
		}
		parts++
		if !slices.ContainsFunc(d.From, func(event string) bool { return known[event] }) || slices.IndexFunc(d.To, unknown) == 0 {
			t.Errorf("%s is from %v to %v, and there are %v", d.Phase, d.From, d.To, found)
		}
	}
	if parts < 6 {
		t.Errorf("the boot has %d parts", parts)
	}
}

// TestJournalWithoutNetworkPlugin fails if the journal of a node without a network plugin has
// lines of the plugin.
func TestJournalWithoutNetworkPlugin(t *testing.T) {
	b := newBoot(AmazonLinux2023)
	b.Ready = time.Time{}
	found := readEvents(t, b)
	if _, is := found[boot.AWSNodeStart]; is || found[boot.KubeletRegistered].IsZero() {
		t.Errorf("there are %v", found)
	}
}
