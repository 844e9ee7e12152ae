package estate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
)

// PortRange is a port, or a range of ports, of a protocol.
type PortRange struct {
	Protocol    corev1.Protocol
	First, Last int32
}

// consentProtocols are the protocols of ports.
var consentProtocols = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}

// portForms ends the messages about ports.
const portForms = "write a port from 1 to 65535, such as 443, a range such as 8000-8010, or either with a protocol, such as 53/UDP"

// String returns the range in the notation of croft.yaml.
func (r PortRange) String() string {
	text := strconv.Itoa(int(r.First))
	if r.Last != r.First {
		text += "-" + strconv.Itoa(int(r.Last))
	}
	if r.Protocol != corev1.ProtocolTCP {
		text += "/" + string(r.Protocol)
	}
	return text
}

// ToPort returns the range as a value of ConsentPorts.
func (r PortRange) ToPort() intstr.IntOrString {
	if text := r.String(); text != strconv.Itoa(int(r.First)) {
		return intstr.FromString(text)
	}
	return intstr.FromInt32(r.First)
}

// parsePort reads one entry of ConsentPorts. The error is the message for the author.
func parsePort(port intstr.IntOrString) (PortRange, error) {
	text := port.String()
	numbers, protocol, named := strings.Cut(text, "/")
	r := PortRange{Protocol: corev1.ProtocolTCP}
	if named {
		r.Protocol = corev1.Protocol(protocol)
	}
	if !slices.Contains(consentProtocols, r.Protocol) {
		return r, fmt.Errorf("%s has no known protocol; write TCP, UDP or SCTP after the slash", text)
	}
	from, to, isRange := strings.Cut(numbers, "-")
	if !isRange {
		to = from
	}
	first, err := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	switch {
	case err != nil || err2 != nil || first == 0:
		return r, fmt.Errorf("%q is not a port; %s", text, portForms)
	case first > last:
		return r, fmt.Errorf("the range %s ends before it begins; write %d-%d", text, last, first)
	}
	r.First, r.Last = int32(first), int32(last)
	return r, nil
}

// parsePorts reads ports that are valid; it leaves out others, which a rule refuses.
func parsePorts(ports v1alpha1.ConsentPorts) []PortRange {
	var all []PortRange
	for _, port := range ports {
		if r, err := parsePort(port); err == nil {
			all = append(all, r)
		}
	}
	return mergePorts(all)
}

// mergePorts sorts ranges, and merges the ones that overlap or adjoin.
func mergePorts(ranges []PortRange) []PortRange {
	slices.SortFunc(ranges, func(a, b PortRange) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	var all []PortRange
	for _, r := range ranges {
		if i := len(all) - 1; i >= 0 && all[i].Protocol == r.Protocol && r.First <= all[i].Last+1 {
			all[i].Last = max(all[i].Last, r.Last)
			continue
		}
		all = append(all, r)
	}
	return all
}

// intersectPorts returns the ports that are in both lists.
func intersectPorts(a, b []PortRange) []PortRange {
	var all []PortRange
	for _, x := range a {
		for _, y := range b {
			both := PortRange{x.Protocol, max(x.First, y.First), min(x.Last, y.Last)}
			if x.Protocol == y.Protocol && both.First <= both.Last {
				all = append(all, both)
			}
		}
	}
	return mergePorts(all)
}
