package agent

import (
	"strings"
	"testing"

	"croft.dev/croft/internal/declare/secondary"
)

const mac3, mac6 = "02:00:00:00:00:03", "02:00:00:00:00:06"

// makeConfiguredState returns a configured node: one network has a file, the interface of the other
// moves into pods.
func makeConfiguredState() State {
	return State{
		Networks: []secondary.NodeNetwork{
			{Network: "n3", MAC: mac3, MTU: 9001, ZoneFile: "a\n"},
			{Network: "n6", MAC: mac6, Moves: true},
		},
		Links: []Link{
			{Index: 1, Name: "lo", MTU: 65536, Up: true},
			{Index: 2, Name: "eth0", MAC: "02:00:00:00:00:00", MTU: 9001, Up: true, RPFilter: 1},
			{Index: 3, Name: "eth1", MAC: mac3, MTU: 9001, Up: true, RPFilter: loose, AltNames: []string{"enp3s0", "croft-n3"}},
			{Index: 4, Name: "eth2", MAC: mac6, MTU: 1500, Up: true, RPFilter: loose, AltNames: []string{"croft-n6"}},
		},
		Files: map[string]string{"/etc/cni/net.d/croft.d/n3.conf": "a\n"},
	}
}

func TestMake(t *testing.T) {
	for name, test := range map[string]struct {
		change         func(*State)
		steps, missing string
	}{
		"a node that is set up": {func(*State) {}, "", ""},
		"a new interface": {func(s *State) {
			s.Links[2] = Link{Index: 3, Name: "eth1", MAC: mac3, MTU: 1500, RPFilter: 1}
			s.Files = nil
		}, "write /etc/cni/net.d/croft.d/n3.conf; set the MTU 9001 of eth1; set rp_filter 2 of eth1; set up of eth1; add the name croft-n3 of eth1", ""},
		"no interface": {func(s *State) { s.Links = s.Links[:2] }, "", "n3 (" + mac3 + "), n6 (" + mac6 + ")"},
		"an interface that is in a pod": {func(s *State) {
			s.Links, s.WasReady = s.Links[:3], true
		}, "", ""},
		"a kept interface that is missing": {func(s *State) {
			s.Links, s.WasReady = append(s.Links[:2:2], s.Links[3]), true
		}, "", "n3 (" + mac3 + ")"},
		"a name that another has": {func(s *State) {
			s.Links[1].AltNames, s.Links[2].AltNames = []string{"croft-n3"}, nil
		}, "remove the name croft-n3 of eth0; add the name croft-n3 of eth1", ""},
		"its first name":                {func(s *State) { s.Links[2].Name, s.Links[2].AltNames = "croft-n3", nil }, "", ""},
		"a bridge that has its address": {func(s *State) { s.Links[0].MAC, s.Links[0].Kind = mac3, "bridge" }, "", ""},
		"rp_filter that cannot be read": {func(s *State) { s.Links[2].RPFilter = -1 }, "", ""},
		"a file that somebody changed": {func(s *State) {
			s.Files["/etc/cni/net.d/croft.d/n3.conf"] = "b\n"
		}, "write /etc/cni/net.d/croft.d/n3.conf", ""},
		"a network that is not the node's any more": {func(s *State) { s.Networks = s.Networks[:1] }, "", ""},
	} {
		s := makeConfiguredState()
		test.change(&s)
		p := Make(s)
		var steps []string
		for _, step := range p.Steps {
			steps = append(steps, step.String())
		}
		if got := strings.Join(steps, "; "); got != test.steps {
			t.Errorf("%s: the steps are %q, not %q", name, got, test.steps)
		}
		if got := strings.Join(p.Missing, ", "); got != test.missing {
			t.Errorf("%s: missing is %q, not %q", name, got, test.missing)
		}
	}
}
