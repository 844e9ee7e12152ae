package network

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
)

// buildCalicoAgreed writes the tenant's connections as Calico NetworkPolicies. The first rule that
// matches decides, so the policies for callers come before the guard: a tenant's own policies
// cannot deny an agreed connection.
func (t terms) buildCalicoAgreed(kind schema.GroupVersionKind, namespace string) []client.Object {
	var all []client.Object
	add := func(o *unstructured.Unstructured, near map[string]string, other string, connections ...estate.Connection) {
		if len(near) > 0 {
			o.Object["spec"].(tree)["selector"] = formatCalicoSelector(&metav1.LabelSelector{MatchLabels: near})
		}
		all = append(all, markAgreed(o, other, connections...))
	}
	for _, c := range t.listCallersIn(namespace) {
		rules := allowCalicoPorts(c.Ports, selectCalicoPods(selectTenant(c.Caller), c.CallerPods), tree{})
		policy := buildCalicoPolicy(kind, namespace, nameCallerPolicy(&c), guardOrder-agreedBefore, rules, nil)
		add(policy, c.CalleePods, c.Caller, c)
	}
	for _, group := range t.groupCalls() {
		var rules []any
		for _, c := range group {
			rules = append(rules, allowCalicoPorts(c.Ports, nil, selectCalicoPods(selectCallee(&c), c.CalleePods))...)
		}
		policy := buildCalicoPolicy(kind, namespace, CallPolicy+"-"+group[0].Callee, lastOrder, nil, rules)
		add(policy, group[0].CallerPods, group[0].Callee, group...)
	}
	return all
}

// allowCalicoPorts returns a rule for each protocol, since the ports of a rule belong to one
// protocol.
func allowCalicoPorts(ranges []estate.PortRange, source, destination tree) []any {
	var rules []any
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
		ports := []any{}
		for _, r := range ranges {
			switch {
			case r.Protocol != protocol:
			case r.First == r.Last:
				ports = append(ports, int64(r.First))
			default:
				ports = append(ports, fmt.Sprintf("%d:%d", r.First, r.Last))
			}
		}
		if len(ports) == 0 {
			continue
		}
		to := maps.Clone(destination)
		to["ports"] = ports
		rule := tree{"action": "Allow", "protocol": string(protocol), "destination": to}
		if source != nil {
			rule["source"] = source
		}
		rules = append(rules, rule)
	}
	return rules
}

// selectCalicoPods selects pods in namespaces: all of them, if there are no labels.
func selectCalicoPods(namespaces *metav1.LabelSelector, pods map[string]string) tree {
	side := selectNamespaces(formatCalicoSelector(namespaces))
	if len(pods) > 0 {
		side["selector"] = formatCalicoSelector(&metav1.LabelSelector{MatchLabels: pods})
	}
	return side
}
