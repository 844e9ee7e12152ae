// Package agent configures a node's interfaces in secondary networks: it sets croft's names
// and settings, writes the files that whereabouts reads, and reports the result in a
// condition of its own Node. It only uses the kernel and the API server, and no cloud API.
package agent

import (
	"fmt"
	"slices"
	"strings"

	"croft.dev/croft/internal/declare/secondary"
)

// loose accepts packets whose source is reachable by any interface: packets of pods'
// networks arrive on one interface, and the host's route back may use another.
const loose = 2

// Link is a network interface, as the kernel describes it.
type Link struct {
	Index    int
	Name     string
	AltNames []string
	MAC      string
	MTU      int
	Up       bool
	// Kind is the kernel's kind of a virtual interface, such as bridge. It is empty for
	// hardware.
	Kind string
	// RPFilter is the setting rp_filter. It is negative if it cannot be read.
	RPFilter int
}

// State is the input of a plan.
type State struct {
	Networks []secondary.NodeNetwork
	Links    []Link
	// Files are the contents of the networks' files by path.
	Files map[string]string
	// WasReady reports whether the node's networks were ready before. Then an interface
	// that moves into pods may be in one.
	WasReady bool
}

// Action is the kind of a step.
type Action string

// The actions.
const (
	RemoveName Action = "remove the name"
	SetMTU     Action = "set the MTU"
	SetFilter  Action = "set rp_filter"
	SetUp      Action = "set up"
	WriteFile  Action = "write"
	AddName    Action = "add the name"
)

// Step is one change of the node.
type Step struct {
	Action
	// Index and Link identify the interface.
	Index int
	Link  string
	// Value is the name, the path or the number.
	Value string
	// Content is the content of a file.
	Content string
}

// String returns the step in one line.
func (s Step) String() string {
	words := []string{string(s.Action)}
	if s.Value != "" {
		words = append(words, s.Value)
	}
	if s.Link != "" {
		words = append(words, "of "+s.Link)
	}
	return strings.Join(words, " ")
}

// Plan has the steps that a node's networks need.
type Plan struct {
	Steps []Step
	// Missing are the networks whose interfaces do not exist, as "n4 (02:…)".
	Missing []string
}

// Make plans the missing configuration of a node's networks. For a configured node the plan
// is empty. The name is set last, so that a client that finds an interface by its name
// finds it ready.
func Make(s State) Plan {
	var p Plan
	for _, n := range s.Networks {
		if path := secondary.ZoneFilePath(n.Network); n.ZoneFile != "" && s.Files[path] != n.ZoneFile {
			p.Steps = append(p.Steps, Step{Action: WriteFile, Value: path, Content: n.ZoneFile})
		}
		name := secondary.LinkName(n.Network)
		link := findLink(s.Links, n.MAC)
		if link == nil {
			if !n.Moves || !s.WasReady {
				p.Missing = append(p.Missing, fmt.Sprintf("%s (%s)", n.Network, n.MAC))
			}
			continue
		}
		for i := range s.Links {
			if other := &s.Links[i]; other.Index != link.Index && slices.Contains(other.AltNames, name) {
				p.addStep(other, RemoveName, name)
			}
		}
		if n.MTU != 0 && link.MTU != int(n.MTU) {
			p.addStep(link, SetMTU, fmt.Sprint(n.MTU))
		}
		if link.RPFilter >= 0 && link.RPFilter != loose {
			p.addStep(link, SetFilter, fmt.Sprint(loose))
		}
		if !link.Up {
			p.addStep(link, SetUp, "")
		}
		if link.Name != name && !slices.Contains(link.AltNames, name) {
			p.addStep(link, AddName, name)
		}
	}
	return p
}

func (p *Plan) addStep(l *Link, action Action, value string) {
	p.Steps = append(p.Steps, Step{Action: action, Index: l.Index, Link: l.Name, Value: value})
}

// derived are the kinds of interfaces that take their hardware address from another one.
var derived = []string{"bond", "bridge", "ipvlan", "ipvtap", "macvlan", "macvtap", "team", "vlan"}

// findLink returns the interface with a hardware address, or the first one if there are
// several.
func findLink(links []Link, mac string) *Link {
	var first *Link
	for i := range links {
		l := &links[i]
		if l.MAC == mac && !slices.Contains(derived, l.Kind) && (first == nil || l.Index < first.Index) {
			first = l
		}
	}
	return first
}
