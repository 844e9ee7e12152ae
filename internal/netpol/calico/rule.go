package calico

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/internal/netpol/tier"
)

// entity has the conditions of a rule on one end of a connection.
type entity struct {
	Nets              []string             `json:"nets"`
	NotNets           []string             `json:"notNets"`
	Selector          string               `json:"selector"`
	NotSelector       string               `json:"notSelector"`
	NamespaceSelector string               `json:"namespaceSelector"`
	Ports             []intstr.IntOrString `json:"ports"`
	NotPorts          []intstr.IntOrString `json:"notPorts"`
	ServiceAccounts   map[string]any       `json:"serviceAccounts"`
	Services          map[string]any       `json:"services"`
}

// compiled is a rule with parsed selectors.
type compiled struct {
	rule
	action              tier.Action
	source, destination *side
}

// side is an entity with parsed selectors.
type side struct {
	entity
	pods, not, namespaces Selector
	nets, notNets         []netip.Prefix
	// namespace is the policy's namespace, to which the selectors are limited.
	namespace string
	sets      *Sets
}

func (p *Policy) rule(r rule, sets *Sets) (c compiled, err error) {
	c = compiled{rule: r, action: tier.Action(r.Action)}
	if r.Action == "Log" { // evaluation continues with the next rule
		c.action = ""
	}
	if c.source, err = p.side(r.Source, sets); err != nil {
		return c, err
	}
	c.destination, err = p.side(r.Destination, sets)
	return c, err
}

func (p *Policy) side(e entity, sets *Sets) (*side, error) {
	s := &side{entity: e, namespace: p.Namespace, sets: sets}
	for _, read := range []struct {
		text string
		to   *Selector
	}{{e.Selector, &s.pods}, {e.NotSelector, &s.not}, {e.NamespaceSelector, &s.namespaces}} {
		var err error
		if *read.to, err = Parse(read.text); err != nil {
			return nil, err
		}
	}
	var err error
	if s.nets, err = prefixes(e.Nets); err != nil {
		return nil, err
	}
	s.notNets, err = prefixes(e.NotNets)
	return s, err
}

// prefixes reads blocks of addresses, or single addresses.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			address, addressErr := netip.ParseAddr(text)
			if addressErr != nil {
				return nil, fmt.Errorf("nets: %w", err)
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		all = append(all, prefix.Masked())
	}
	return all, nil
}

func within(list []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (r *compiled) matches(c *tier.Connection) tier.Match {
	family := 4
	if c.To.Address.Is6() {
		family = 6
	}
	switch {
	case r.IPVersion != 0 && r.IPVersion != family,
		r.Protocol != nil && protocol(r.Protocol) != strings.ToUpper(c.Protocol),
		r.NotProtocol != nil && protocol(r.NotProtocol) == strings.ToUpper(c.Protocol):
		return tier.No
	}
	known := tier.Yes
	// The source port and the HTTP request of a connection are unknown.
	if r.HTTP != nil || len(r.Source.Ports) > 0 || len(r.Source.NotPorts) > 0 {
		known = tier.Maybe
	}
	return tier.All(known, r.source.matches(c.From), r.destination.matches(c.To), r.destination.ports(c))
}

// matches evaluates all conditions except ports. Selectors match pods, and sets of networks.
func (s *side) matches(end tier.End) tier.Match {
	known := tier.Yes
	if len(s.ServiceAccounts) > 0 || len(s.Services) > 0 {
		known = tier.Maybe
	}
	if len(s.nets) > 0 && !within(s.nets, end.Address) || within(s.notNets, end.Address) {
		return tier.No
	}
	confined := s.Selector != "" || s.NotSelector != "" || s.NamespaceSelector != "" || len(s.ServiceAccounts) > 0
	if end.Pod == nil {
		if len(s.ServiceAccounts) > 0 || confined && !s.sets.match(s, end.Address) {
			return tier.No
		}
		return known
	}
	labels := endpointLabels(end.Pod)
	switch {
	case s.NamespaceSelector != "" && !s.namespaces.Matches(namespaceLabels(end.Pod)),
		s.NamespaceSelector == "" && confined && s.namespace != "" && end.Pod.Namespace != s.namespace,
		s.Selector != "" && !s.pods.Matches(labels),
		s.NotSelector != "" && s.not.Matches(labels):
		return tier.No
	}
	return known
}

// ports evaluates the conditions on the destination port.
func (s *side) ports(c *tier.Connection) tier.Match {
	match := tier.Yes
	if len(s.Ports) > 0 {
		match = tier.No
		for _, p := range s.Ports {
			match = tier.Any(match, onPort(p, c))
		}
	}
	for _, p := range s.NotPorts {
		match = tier.All(match, tier.Yes-onPort(p, c))
	}
	return match
}

func onPort(p intstr.IntOrString, c *tier.Connection) tier.Match {
	from, to, numeric := portRange(p)
	switch {
	case !numeric && c.PortName != "":
		return tier.Is(p.StrVal == c.PortName)
	case !numeric || c.PortName != "":
		return tier.Maybe
	default:
		return tier.Is(c.Port >= from && c.Port <= to)
	}
}

// portRange reads 80, "80" and "80:90". Any other value is a name.
func portRange(p intstr.IntOrString) (from, to int, numeric bool) {
	if p.Type == intstr.Int {
		return p.IntValue(), p.IntValue(), true
	}
	low, high, isRange := strings.Cut(p.StrVal, ":")
	if !isRange {
		high = low
	}
	from, err := strconv.Atoi(low)
	to, errTo := strconv.Atoi(high)
	return from, to, err == nil && errTo == nil
}

// protocol returns a protocol's name in capitals.
func protocol(p *intstr.IntOrString) string {
	text := strings.ToUpper(p.String())
	if name, ok := map[string]string{"6": "TCP", "17": "UDP", "132": "SCTP"}[text]; ok {
		return name
	}
	return text
}

func (s *side) samples() []map[string]string {
	return append(s.pods.Samples(), s.not.Samples()...)
}

func (r *compiled) namedPorts() []tier.Ports {
	named := "TCP"
	if r.Protocol != nil {
		named = protocol(r.Protocol)
	}
	var all []tier.Ports
	for _, p := range r.Destination.Ports {
		if from, to, numeric := portRange(p); numeric {
			all = append(all, tier.Ports{From: from, To: to, Protocol: named})
		} else {
			all = append(all, tier.Ports{Name: p.StrVal, Protocol: named})
		}
	}
	return all
}
