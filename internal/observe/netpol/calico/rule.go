package calico

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/internal/observe/netpol/tier"
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

// compiledRule is a rule with parsed selectors.
type compiledRule struct {
	rule
	action              tier.Action
	source, destination *side
}

// side is an entity with parsed selectors.
type side struct {
	entity
	pods, excludedPods, namespaces Selector
	nets, notNets                  []netip.Prefix
	// namespace is the policy's namespace, to which the selectors are limited.
	namespace string
	sets      *Sets
}

func (p *Policy) compileRule(r rule, sets *Sets) (c compiledRule, err error) {
	c = compiledRule{rule: r, action: tier.Action(r.Action)}
	if r.Action == "Log" { // evaluation continues with the next rule
		c.action = ""
	}
	if c.source, err = p.compileSide(r.Source, sets); err != nil {
		return c, err
	}
	c.destination, err = p.compileSide(r.Destination, sets)
	return c, err
}

func (p *Policy) compileSide(e entity, sets *Sets) (*side, error) {
	s := &side{entity: e, namespace: p.Namespace, sets: sets}
	for _, read := range []struct {
		text string
		to   *Selector
	}{{e.Selector, &s.pods}, {e.NotSelector, &s.excludedPods}, {e.NamespaceSelector, &s.namespaces}} {
		var err error
		if *read.to, err = Parse(read.text); err != nil {
			return nil, err
		}
	}
	var err error
	if s.nets, err = parsePrefixes(e.Nets); err != nil {
		return nil, err
	}
	s.notNets, err = parsePrefixes(e.NotNets)
	return s, err
}

// parsePrefixes reads blocks of addresses, or single addresses.
func parsePrefixes(texts []string) ([]netip.Prefix, error) {
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

func containsAddress(list []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(address) })
}

func (r *compiledRule) matches(c *tier.Connection) tier.Match {
	family := 4
	if c.To.Address.Is6() {
		family = 6
	}
	switch {
	case r.IPVersion != 0 && r.IPVersion != family,
		r.Protocol != nil && formatProtocol(r.Protocol) != strings.ToUpper(c.Protocol),
		r.NotProtocol != nil && formatProtocol(r.NotProtocol) == strings.ToUpper(c.Protocol):
		return tier.No
	}
	match := tier.Yes
	// The source port and the HTTP request of a connection are unknown.
	if r.HTTP != nil || len(r.Source.Ports) > 0 || len(r.Source.NotPorts) > 0 {
		match = tier.Maybe
	}
	return tier.MatchAll(match, r.source.matches(c.From), r.destination.matches(c.To), r.destination.matchPorts(c))
}

// matches evaluates all conditions except ports. Selectors match pods, and sets of networks.
func (s *side) matches(end tier.End) tier.Match {
	match := tier.Yes
	if len(s.ServiceAccounts) > 0 || len(s.Services) > 0 {
		match = tier.Maybe
	}
	if len(s.nets) > 0 && !containsAddress(s.nets, end.Address) || containsAddress(s.notNets, end.Address) {
		return tier.No
	}
	confined := s.Selector != "" || s.NotSelector != "" || s.NamespaceSelector != "" || len(s.ServiceAccounts) > 0
	if end.Pod == nil {
		if len(s.ServiceAccounts) > 0 || confined && !s.sets.matchesAddress(s, end.Address) {
			return tier.No
		}
		return match
	}
	labels := buildEndpointLabels(end.Pod)
	switch {
	case s.NamespaceSelector != "" && !s.namespaces.Matches(buildNamespaceLabels(end.Pod)),
		s.NamespaceSelector == "" && confined && s.namespace != "" && end.Pod.Namespace != s.namespace,
		s.Selector != "" && !s.pods.Matches(labels),
		s.NotSelector != "" && s.excludedPods.Matches(labels):
		return tier.No
	}
	return match
}

// matchPorts evaluates the conditions on the destination port.
func (s *side) matchPorts(c *tier.Connection) tier.Match {
	match := tier.Yes
	if len(s.Ports) > 0 {
		match = tier.No
		for _, p := range s.Ports {
			match = tier.MatchAny(match, matchPort(p, c))
		}
	}
	for _, p := range s.NotPorts {
		match = tier.MatchAll(match, tier.Yes-matchPort(p, c))
	}
	return match
}

func matchPort(p intstr.IntOrString, c *tier.Connection) tier.Match {
	from, to, numeric := parsePortRange(p)
	switch {
	case !numeric && c.PortName != "":
		return tier.FromBool(p.StrVal == c.PortName)
	case !numeric || c.PortName != "":
		return tier.Maybe
	default:
		return tier.FromBool(c.Port >= from && c.Port <= to)
	}
}

// parsePortRange reads 80, "80" and "80:90". Any other value is a name.
func parsePortRange(p intstr.IntOrString) (from, to int, numeric bool) {
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

// formatProtocol returns a protocol's name in capitals.
func formatProtocol(p *intstr.IntOrString) string {
	text := strings.ToUpper(p.String())
	if name, ok := map[string]string{"6": "TCP", "17": "UDP", "132": "SCTP"}[text]; ok {
		return name
	}
	return text
}

func (s *side) sampleLabels() []map[string]string {
	return append(s.pods.Samples(), s.excludedPods.Samples()...)
}

func (r *compiledRule) listPorts() []tier.Ports {
	named := "TCP"
	if r.Protocol != nil {
		named = formatProtocol(r.Protocol)
	}
	var all []tier.Ports
	for _, p := range r.Destination.Ports {
		if from, to, numeric := parsePortRange(p); numeric {
			all = append(all, tier.Ports{From: from, To: to, Protocol: named})
		} else {
			all = append(all, tier.Ports{Name: p.StrVal, Protocol: named})
		}
	}
	return all
}
