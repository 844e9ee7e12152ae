package attach

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/secondary"
)

// TestAttached expects a claim's interfaces only if all of them are attached.
func TestAttached(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*State)
		none   bool
	}{
		"all attached":             {func(*State) {}, false},
		"one is not there":         {func(s *State) { s.Interfaces = s.Interfaces[:1] }, true},
		"one is available":         {func(s *State) { s.Interfaces[1].Attachment = nil }, true},
		"one is being attached":    {func(s *State) { s.Interfaces[1].Attachment.Attached = false }, true},
		"one is elsewhere":         {func(s *State) { s.Interfaces[1].Attachment.Instance = "i-2" }, true},
		"one drops pods' packets":  {func(s *State) { s.Interfaces[1].SourceDestCheck = true }, true},
		"one has no address yet":   {func(s *State) { s.Interfaces[1].MAC = "" }, true},
		"a network is not known":   {func(s *State) { s.Networks = s.Networks[:1] }, true},
		"a network lacks the zone": {func(s *State) { s.Networks[1].Spec.Zones = s.Networks[1].Spec.Zones[1:] }, true},
		"the pool has no networks": {func(s *State) { s.Claims[0].Pool = "plain" }, true},
		"the claim has no node":    {func(s *State) { s.Claims[0].Instance = "" }, true},
	} {
		s := newState()
		s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
		s.Interfaces[0].MAC, s.Interfaces[1].MAC = "02:00:00:00:00:03", "02:00:00:00:00:06"
		test.change(s)
		if got := ListAttached(s)["u1"]; (len(got) == 0) != test.none {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNodeNetworks fails if the agent does not read the values that the operator wrote.
func TestNodeNetworks(t *testing.T) {
	s := newState()
	s.Networks[0].Spec.MTU, s.Networks[1].Spec.Type = 9001, v1alpha1.SecondaryNetworkHostDevice
	s.Networks[1].Spec.Zones = s.Networks[1].Spec.Zones[:1]
	s.Interfaces = []Interface{newAttached("eni-1", "u1", "n3", "i-1", 1), newAttached("eni-2", "u1", "n6", "i-1", 2)}
	s.Interfaces[0].MAC, s.Interfaces[1].MAC = "02:00:00:00:00:0A", "02:00:00:00:00:06"
	_, file := secondary.ZoneFile("n3", &s.Networks[0].Spec.Zones[0])
	want := []secondary.NodeNetwork{
		{Network: "n3", MAC: "02:00:00:00:00:0a", MTU: 9001, ZoneFile: file},
		{Network: "n6", MAC: "02:00:00:00:00:06", Moves: true},
	}
	got, err := secondary.ReadNodeNetworks(secondary.WriteNodeNetworks(ListAttached(s)["u1"]))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("- expected, + got (%v)\n%s", err, diff)
	}
	for _, wrong := range []string{"", "{}", `[{"network":"../n3","mac":"02:00:00:00:00:06"}]`, `[{"network":"n3","mac":"eth1"}]`} {
		if got, err := secondary.ReadNodeNetworks(wrong); err == nil {
			t.Errorf("%s is read as %v", wrong, got)
		}
	}
}
