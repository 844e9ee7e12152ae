package adopt

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/secondary"
)

// borders are the addresses and ports at which policies begin or stop to match. All addresses
// (or ports) between two borders are treated alike, so one of each part represents it, and the
// result does not depend on chance.
type borders struct {
	networks []netip.Prefix
	ports    []int
}

// collectBorders returns the borders in policies of any API. It collects every network and every
// number; numbers that are not ports are harmless.
func collectBorders(policies []client.Object) (borders, error) {
	var b borders
	for _, o := range policies {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return b, err
		}
		b.addValue(content["spec"])
	}
	return b, nil
}

func (b *borders) addValue(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, v := range value {
			b.addValue(v)
		}
	case []any:
		for _, v := range value {
			b.addValue(v)
		}
	case string:
		b.addText(value)
	case int64:
		b.addPort(value)
	case float64:
		b.addPort(int64(value))
	}
}

func (b *borders) addText(text string) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		b.networks = append(b.networks, prefix.Masked())
		return
	}
	if address, err := netip.ParseAddr(text); err == nil {
		b.networks = append(b.networks, netip.PrefixFrom(address, address.BitLen()))
		return
	}
	for part := range strings.SplitSeq(text, ":") { // Calico writes ranges as 1000:2000
		if number, err := strconv.ParseInt(part, 10, 32); err == nil {
			b.addPort(number)
		}
	}
}

// addPort adds a port and the following one as borders.
func (b *borders) addPort(number int64) {
	if number >= 1 && number <= math.MaxUint16 {
		b.ports = append(b.ports, int(number), int(number)+1)
	}
}

// sampleAddresses returns one address of each part of a block. It returns an error if the block
// cannot be parsed as in policies.
func (b *borders) sampleAddresses(block *networkingv1.IPBlock) ([]netip.Addr, error) {
	whole, err := parseNetwork(block.CIDR)
	if err != nil {
		return nil, err
	}
	var but []netip.Prefix
	for _, text := range block.Except {
		hole, err := parseNetwork(text)
		if err != nil {
			return nil, err
		}
		but = append(but, hole)
	}
	begins := []netip.Addr{whole.Addr()}
	for _, n := range slices.Concat(b.networks, but) {
		begins = append(begins, n.Addr())
		if behind := secondary.FindLastAddress(n).Next(); behind.IsValid() {
			begins = append(begins, behind)
		}
	}
	return slices.DeleteFunc(begins, func(a netip.Addr) bool {
		return !whole.Contains(a) || slices.ContainsFunc(but, func(hole netip.Prefix) bool { return hole.Contains(a) })
	}), nil
}

// parseNetwork parses a network. Parsers disagree about IPv4 addresses in IPv6 notation, so these
// are refused.
func parseNetwork(text string) (netip.Prefix, error) {
	prefix, err := netip.ParsePrefix(text)
	if err == nil && prefix.Addr().Is4In6() {
		err = fmt.Errorf("%s is IPv4 written as IPv6", text)
	}
	return prefix.Masked(), err
}

// port is a port of a protocol.
type port struct {
	number   int
	protocol string
}

// samplePorts returns one port of each part that a rule's ports allow. A named port may be any
// port.
func (b *borders) samplePorts(rule []networkingv1.NetworkPolicyPort) []port {
	var all []port
	span := func(protocol corev1.Protocol, from, to int) {
		for _, number := range append([]int{from}, b.ports...) {
			if p := (port{number, string(protocol)}); from <= number && number <= to && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	for _, p := range rule {
		protocol := corev1.ProtocolTCP
		if p.Protocol != nil {
			protocol = *p.Protocol
		}
		switch {
		case p.Port == nil || p.Port.Type == intstr.String:
			span(protocol, 1, math.MaxUint16)
		case p.EndPort != nil:
			span(protocol, p.Port.IntValue(), int(*p.EndPort))
		default:
			span(protocol, p.Port.IntValue(), p.Port.IntValue())
		}
	}
	if len(rule) == 0 {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
			span(protocol, 1, math.MaxUint16)
		}
	}
	return all
}

// mostChosen is the maximum number of label sets that a selector may match. Beyond it, the
// selector counts as undecidable.
const mostChosen = 256

// expandSelector returns the smallest label sets that a selector matches: one for each combination of
// the values that it names. Its other matches have more labels, and the walls allow no less for
// more labels. It returns an error if the sets cannot be determined.
func expandSelector(s *metav1.LabelSelector) ([]labels.Set, error) {
	sets := []labels.Set{{}}
	and := func(key string, values ...string) error {
		if len(sets)*len(values) > mostChosen {
			return fmt.Errorf("the selector matches more than %d sets of labels", mostChosen)
		}
		var more []labels.Set
		for _, set := range sets {
			for _, value := range values {
				more = append(more, labels.Merge(set, labels.Set{key: value}))
			}
		}
		sets = more
		return nil
	}
	for key, value := range s.MatchLabels {
		_ = and(key, value)
	}
	for _, e := range s.MatchExpressions {
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
			if err := and(e.Key, e.Values...); err != nil {
				return nil, err
			}
		case metav1.LabelSelectorOpExists:
			if slices.ContainsFunc(sets, func(set labels.Set) bool { return !set.Has(e.Key) }) {
				if err := and(e.Key, "croft-adopt-any"); err != nil {
					return nil, err
				}
			}
		case metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist:
		}
	}
	chosen, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return nil, err
	}
	sets = slices.DeleteFunc(sets, func(set labels.Set) bool { return !chosen.Matches(set) })
	if len(sets) == 0 {
		return nil, fmt.Errorf("the selector seems to match nothing")
	}
	return sets, nil
}
