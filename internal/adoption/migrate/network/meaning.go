package network

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

// effect is the effect of a policy. It is determined by evaluating connections, not from the
// policy's notation.
type effect struct {
	// everyPod reports whether it selects all pods of its namespace.
	everyPod bool
	// ingress and egress are the directions to which it applies.
	ingress, egress bool
	// These are the allowed sources: the namespace itself, an unknown namespace (and so every
	// namespace), and addresses outside of the cluster.
	inOwn, inEverybody, inOutside bool
	// in are the other known namespaces that are allowed.
	in []string
	// These are the allowed destinations.
	outOwn, dns, internet, metadata bool
	// withheld are networks and ports outside of the cluster that pods cannot reach although
	// they can reach others.
	withheld []string
}

// stranger is a namespace that no policy can name.
const stranger = "croft-migrate-stranger"

func newEffect(p *networkingv1.NetworkPolicy, namespaces []corev1.Namespace) (effect, error) {
	m, err := evaluatePolicies([]*networkingv1.NetworkPolicy{p}, namespaces)
	m.everyPod = len(p.Spec.PodSelector.MatchLabels)+len(p.Spec.PodSelector.MatchExpressions) == 0
	m.ingress = slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
	m.egress = slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	return m, err
}

// SetDefaults sets the API server's defaults: without types, a policy applies to ingress, and
// also to egress if it has rules for it.
func SetDefaults(p *networkingv1.NetworkPolicy) {
	if len(p.Spec.PolicyTypes) > 0 {
		return
	}
	p.Spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if len(p.Spec.Egress) > 0 {
		p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	}
}

// evaluatePolicies evaluates several policies of one namespace at once. Policies in a file may be
// invalid for an API server.
func evaluatePolicies(policies []*networkingv1.NetworkPolicy, known []corev1.Namespace) (effect, error) {
	ownNamespace := "croft-migrate-own"
	all := map[string]corev1.Namespace{}
	for _, n := range append(slices.Clone(known),
		corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stranger}}, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}) {
		n.Labels = addNameLabel(n.Labels, n.Name)
		all[n.Name] = n
	}
	placed := make([]networkingv1.NetworkPolicy, len(policies))
	for i, p := range policies {
		if p.Namespace != "" {
			ownNamespace = p.Namespace
		}
		placed[i] = *p.DeepCopy()
	}
	for i := range placed {
		placed[i].Namespace = ownNamespace
	}
	if _, ok := all[ownNamespace]; !ok {
		all[ownNamespace] = corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ownNamespace, Labels: addNameLabel(nil, ownNamespace)}}
	}
	namespaces := slices.Collect(maps.Values(all))
	judge, err := netpol.New(namespaces, placed)
	if err != nil {
		return effect{}, fmt.Errorf("is not a valid NetworkPolicy: %w", err)
	}
	allows := func(f attack.Flow) bool {
		if f.Port == 0 {
			f.Port = 8080
		}
		if f.Protocol == "" {
			f.Protocol = "TCP"
		}
		ok, err := judge.Allows(f)
		return ok && err == nil
	}
	connects := func(from, to string) bool {
		v, err := judge.Connects(from, to, 0, "TCP")
		return err == nil && v.Ingress.Allowed && v.Allowed
	}
	m := effect{
		inOwn:     allowsIngress(judge, ownNamespace, ownNamespace),
		inOutside: allows(attack.Flow{FromIP: "203.0.113.10", ToNamespace: ownNamespace}),
		outOwn:    allowsEgress(judge, ownNamespace, ownNamespace),
		dns: allows(attack.Flow{FromNamespace: ownNamespace, ToNamespace: metav1.NamespaceSystem,
			ToLabels: map[string]string{"k8s-app": "kube-dns"}, Port: 53, Protocol: "UDP"}),
		internet: allows(attack.Flow{FromNamespace: ownNamespace, ToIP: "203.0.113.10", Port: 443}),
		metadata: allows(attack.Flow{FromNamespace: ownNamespace, ToIP: "169.254.169.254", Port: 80}),
	}
	if m.internet {
		m.withheld = listWithheld(policies, func(ip string, port int) bool {
			return allows(attack.Flow{FromNamespace: ownNamespace, ToIP: ip, Port: port})
		})
	}
	m.inEverybody = connects(stranger, ownNamespace)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != ownNamespace && name != stranger && !m.inEverybody && connects(name, ownNamespace) {
			m.in = append(m.in, name)
		}
	}
	return m, nil
}

// listWithheld returns the networks and ports that pods do not reach, although they reach others.
func listWithheld(policies []*networkingv1.NetworkPolicy, reaches func(ip string, port int) bool) []string {
	var all []string
	for _, except := range listExceptions(policies) {
		if !reaches(except.Addr().String(), 443) {
			all = append(all, except.String())
		}
	}
	if !reaches("203.0.113.10", 22) {
		all = append(all, "ports that it does not name")
	}
	return all
}

// listExceptions returns the networks that policies exclude from the addresses that they allow. It
// omits link-local networks, which contain the instance metadata and which croft denies itself.
func listExceptions(policies []*networkingv1.NetworkPolicy) []netip.Prefix {
	var all []netip.Prefix
	for _, p := range policies {
		for _, rule := range p.Spec.Egress {
			for _, peer := range rule.To {
				if peer.IPBlock == nil {
					continue
				}
				for _, text := range peer.IPBlock.Except {
					if prefix, err := netip.ParsePrefix(text); err == nil && !prefix.Addr().IsLinkLocalUnicast() && !slices.Contains(all, prefix) {
						all = append(all, prefix.Masked())
					}
				}
			}
		}
	}
	return all
}

// allowsIngress evaluates only the policies of the destination, and allowsEgress only the policies
// of the source.
func allowsIngress(judge *netpol.Map, from, to string) bool {
	v, err := judge.Evaluate(attack.Flow{FromNamespace: from, ToNamespace: to, Port: 8080, Protocol: "TCP"})
	return err == nil && v.Ingress.Allowed
}

func allowsEgress(judge *netpol.Map, from, to string) bool {
	v, err := judge.Evaluate(attack.Flow{FromNamespace: from, ToNamespace: to, Port: 8080, Protocol: "TCP"})
	return err == nil && v.Egress.Allowed
}

func addNameLabel(labels map[string]string, name string) map[string]string {
	all := maps.Clone(labels)
	if all == nil {
		all = map[string]string{}
	}
	all[corev1.LabelMetadataName] = name
	return all
}
