// Package cluster converts cluster-wide policies into the form of package tier:
// ClusterNetworkPolicies of policy.networking.k8s.io, and the Amazon VPC CNI's, which
// differ in the notation of ports.
package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/internal/observe/netpol/tier"
)

// The orders of the tiers in relation to Calico's tiers. NetworkPolicies are between the two.
const (
	AdminOrder    = 1_000
	BaselineOrder = 10_000_000
)

// Policy is a ClusterNetworkPolicy.
type Policy struct {
	*tier.Policy
	// Baseline is set if the policy is evaluated after NetworkPolicies instead of before
	// them.
	Baseline bool
	// Namespaces are labels that all selected namespaces have.
	Namespaces map[string]string
	// Pods and Peers select pods that the policy distinguishes, at the near and at the far
	// end. Ports are the ports that it names.
	Pods, Peers []*metav1.LabelSelector
	Ports       []tier.Ports
}

type spec struct {
	Tier     string  `json:"tier"`
	Priority float64 `json:"priority"`
	Subject  peer    `json:"subject"`
	Ingress  []rule  `json:"ingress"`
	Egress   []rule  `json:"egress"`
}

type rule struct {
	Action    string              `json:"action"`
	From      []peer              `json:"from"`
	To        []peer              `json:"to"`
	Protocols []map[string]detail `json:"protocols"`
	Ports     []map[string]detail `json:"ports"`
	ports     []tier.Ports
}

// peer selects one end of a connection, or the subject of a policy.
type peer struct {
	Namespaces  *metav1.LabelSelector `json:"namespaces"`
	Pods        *pods                 `json:"pods"`
	Nodes       *metav1.LabelSelector `json:"nodes"`
	Networks    []string              `json:"networks"`
	DomainNames []string              `json:"domainNames"`
	// The parsed selectors.
	ofNamespaces, ofPods labels.Selector
	nets                 []netip.Prefix
}

type pods struct {
	NamespaceSelector metav1.LabelSelector `json:"namespaceSelector"`
	PodSelector       metav1.LabelSelector `json:"podSelector"`
}

// NewPolicy reads a policy.
func NewPolicy(o *unstructured.Unstructured) (*Policy, error) {
	name := o.GetKind() + " " + o.GetName()
	var s spec
	data, err := json.Marshal(o.Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.compile()
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", name, o.GroupVersionKind().Group, err)
	}
	p := &Policy{Policy: &tier.Policy{Name: name, Order: s.Priority}, Baseline: s.Tier == "Baseline"}
	p.Namespaces = s.Subject.requiredLabels()
	p.collectSamples(&s)
	p.Evaluate = func(c *tier.Connection, d tier.Direction) (tier.Match, tier.Action) {
		rules := s.Ingress
		if d == tier.Egress {
			rules = s.Egress
		}
		near := c.NearPod(d)
		if near == nil || len(rules) == 0 || s.Subject.matches(tier.End{Pod: near}, tier.Allow) != tier.Yes {
			return tier.No, ""
		}
		return tier.Yes, tier.FirstMatching(rules, rule.convertAction, func(r rule) tier.Match { return r.matches(c, d) })
	}
	return p, nil
}

func (s *spec) compile() error {
	if err := s.Subject.compile(); err != nil {
		return fmt.Errorf("subject: %w", err)
	}
	for _, rules := range [][]rule{s.Ingress, s.Egress} {
		for i := range rules {
			r := &rules[i]
			r.ports = listPorts(append(r.Protocols, r.Ports...))
			for _, peers := range [][]peer{r.From, r.To} {
				for j := range peers {
					if err := peers[j].compile(); err != nil {
						return fmt.Errorf("rule %d: %w", i+1, err)
					}
				}
			}
		}
	}
	return nil
}

func (p *peer) compile() (err error) {
	namespaces, of := p.Namespaces, &metav1.LabelSelector{}
	if p.Pods != nil {
		namespaces, of = &p.Pods.NamespaceSelector, &p.Pods.PodSelector
	}
	if p.ofNamespaces, err = metav1.LabelSelectorAsSelector(namespaces); err != nil {
		return err
	}
	if p.ofPods, err = metav1.LabelSelectorAsSelector(of); err != nil {
		return err
	}
	for _, text := range p.Networks {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return err
		}
		p.nets = append(p.nets, prefix.Masked())
	}
	return nil
}

func (r rule) convertAction() tier.Action {
	if r.Action == "Accept" {
		return tier.Allow
	}
	return tier.Action(r.Action)
}

func (r rule) matches(c *tier.Connection, d tier.Direction) tier.Match {
	peers := r.From
	if d == tier.Egress {
		peers = r.To
	}
	far := tier.No
	for i := range peers {
		far = tier.MatchAny(far, peers[i].matches(c.FarEnd(d), r.convertAction()))
	}
	return tier.MatchAll(far, tier.MatchPorts(r.ports, c))
}

// matches evaluates one end. A peer of an unknown form matches nothing in a rule that allows,
// and everything in other rules, as the API requires.
func (p *peer) matches(end tier.End, action tier.Action) tier.Match {
	switch {
	case p.Namespaces != nil || p.Pods != nil:
		if end.Pod == nil {
			return tier.No
		}
		return tier.FromBool(p.ofNamespaces.Matches(labels.Set(end.Pod.NamespaceLabels)) && p.ofPods.Matches(labels.Set(end.Pod.Labels)))
	case len(p.nets) > 0:
		return tier.FromBool(slices.ContainsFunc(p.nets, func(n netip.Prefix) bool { return n.Contains(end.Address) }))
	case p.Nodes != nil, len(p.DomainNames) > 0:
		// It is unknown which node or domain has the address, but pods have neither.
		if end.Pod != nil {
			return tier.No
		}
		return tier.Maybe
	default:
		return tier.FromBool(action != tier.Allow)
	}
}

// requiredLabels returns the labels that a subject requires of namespaces, with their values.
func (p *peer) requiredLabels() map[string]string {
	switch {
	case p.Namespaces != nil:
		return p.Namespaces.MatchLabels
	case p.Pods != nil:
		return p.Pods.NamespaceSelector.MatchLabels
	default:
		return nil
	}
}

func (p *Policy) collectSamples(s *spec) {
	if s.Subject.Pods != nil {
		p.Pods = append(p.Pods, &s.Subject.Pods.PodSelector)
	}
	for _, r := range slices.Concat(s.Ingress, s.Egress) {
		for _, peer := range slices.Concat(r.From, r.To) {
			if peer.Pods != nil {
				p.Peers = append(p.Peers, &peer.Pods.PodSelector)
			}
		}
		p.Ports = append(p.Ports, r.ports...)
	}
}

// detail is an entry of protocols or of ports. Its key is the protocol or the form of the
// port.
type detail struct{ tier.Ports }

// UnmarshalJSON reads the notations of both APIs: {destinationPort: {number: 80}} and
// {destinationPort: {range: {start: 80, end: 90}}}; {port: 80, protocol: TCP} and {start: 80,
// end: 90, protocol: TCP}; and a port's name.
func (d *detail) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &d.Name); err == nil {
		return nil
	}
	var numbers struct {
		Protocol        string
		Port            int
		Start, End      int
		DestinationPort *struct {
			Number int
			Range  *struct{ Start, End int }
		}
	}
	if err := json.Unmarshal(data, &numbers); err != nil {
		return err
	}
	d.Protocol, d.From, d.To = numbers.Protocol, numbers.Start, numbers.End
	if numbers.Port != 0 {
		d.From, d.To = numbers.Port, numbers.Port
	}
	if at := numbers.DestinationPort; at != nil && at.Range != nil {
		d.From, d.To = at.Range.Start, at.Range.End
	} else if at != nil {
		d.From, d.To = at.Number, at.Number
	}
	return nil
}

func listPorts(entries []map[string]detail) []tier.Ports {
	var all []tier.Ports
	for _, entry := range entries {
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			of := entry[key].Ports
			switch key {
			case "tcp", "udp", "sctp":
				of.Protocol = strings.ToUpper(key)
			}
			all = append(all, of)
		}
	}
	return all
}
