package network

import (
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// The names of the policies for the connections between two tenants begin with these, and end
// with the name of the other tenant. Their number does not depend on the number of pods, ports
// or labels.
const (
	// CallerPolicy allows ingress from another tenant.
	CallerPolicy = "croft-caller"
	// AcceptPolicy allows ingress from another tenant in one namespace, whose team accepted it. The
	// name of the TenantCaller follows instead of the other tenant's.
	AcceptPolicy = "croft-accept"
	// CallPolicy allows egress to another tenant. Only tenants with Restricted egress have it.
	CallPolicy = "croft-call"
)

// agreedBefore is the difference between the order of the guard and the order of the policies
// that come before it: only these can except agreed connections from the guard.
const agreedBefore = 1

// listCallers returns the connections to the tenant's pods.
func (t terms) listCallers() []estate.Connection {
	others := func(c estate.Connection) bool { return c.Callee != t.tenant }
	return slices.DeleteFunc(slices.Clone(t.connections), others)
}

// listCallersIn returns the connections to the tenant's pods in a namespace.
func (t terms) listCallersIn(namespace string) []estate.Connection {
	elsewhere := func(c estate.Connection) bool { return c.CalleeNamespace != "" && c.CalleeNamespace != namespace }
	return slices.DeleteFunc(t.listCallers(), elsewhere)
}

// nameCallerPolicy returns the name of the policy for a connection to the tenant's pods.
func nameCallerPolicy(c *estate.Connection) string {
	if c.CalleeNamespace != "" {
		return AcceptPolicy + "-" + c.TenantCaller
	}
	return CallerPolicy + "-" + c.Caller
}

// groupCalls returns the connections from the tenant's pods that its other terms do not allow, in
// one group for each callee. A group has a single policy: the tenant's part, such as its pods, is
// one entry of its `calls`, and the number of policies must not depend on the other team.
func (t terms) groupCalls() [][]estate.Connection {
	if t.everywhere {
		return nil
	}
	var groups [][]estate.Connection
	for _, c := range t.connections {
		if c.Caller != t.tenant {
			continue
		}
		i := slices.IndexFunc(groups, func(group []estate.Connection) bool { return group[0].Callee == c.Callee })
		if i < 0 {
			groups = append(groups, []estate.Connection{c})
			continue
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// markAgreed records the other tenant of connections, and their first end, on their policy.
func markAgreed[O client.Object](policy O, other string, connections ...estate.Connection) O {
	policy.SetLabels(map[string]string{v1alpha1.ConsentLabel: other})
	var first time.Time
	for i := range connections {
		if end := connections[i].Until.Time; first.IsZero() || !end.IsZero() && end.Before(first) {
			first = end
		}
	}
	if !first.IsZero() {
		policy.SetAnnotations(map[string]string{v1alpha1.UntilAnnotation: first.UTC().Format(time.RFC3339)})
	}
	return policy
}

// buildAgreedPolicies writes the tenant's connections in a namespace as NetworkPolicies.
func (t terms) buildAgreedPolicies(namespace string) []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, c := range t.listCallersIn(namespace) {
		np := buildNetworkPolicy(nameCallerPolicy(&c), []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{makeTenantPeer(c.Caller, c.CallerPods)}, Ports: makePorts(c.Ports),
		}}, nil)
		np.Spec.PodSelector.MatchLabels = c.CalleePods
		all = append(all, markAgreed(np, c.Caller, c))
	}
	for _, group := range t.groupCalls() {
		var rules []networkingv1.NetworkPolicyEgressRule
		for _, c := range group {
			to := makeTenantPeer(c.Callee, c.CalleePods)
			to.NamespaceSelector = selectCallee(&c)
			peers := []networkingv1.NetworkPolicyPeer{to}
			rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: peers, Ports: makePorts(c.Ports)})
		}
		np := buildNetworkPolicy(CallPolicy+"-"+group[0].Callee, nil, rules)
		np.Spec.PodSelector.MatchLabels = group[0].CallerPods
		all = append(all, markAgreed(np, group[0].Callee, group...))
	}
	return all
}

// makeTenantPeer selects pods of a tenant: all of them, if there are no labels.
func makeTenantPeer(tenant string, pods map[string]string) networkingv1.NetworkPolicyPeer {
	peer := networkingv1.NetworkPolicyPeer{NamespaceSelector: selectTenant(tenant)}
	if len(pods) > 0 {
		peer.PodSelector = &metav1.LabelSelector{MatchLabels: pods}
	}
	return peer
}

func selectTenant(tenant string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TenantLabel: tenant}}
}

// selectCallee selects the callee's namespaces to which a connection is limited. The tenant's label
// is always among the selector's: the namespace may leave the tenant before the operator observes it.
func selectCallee(c *estate.Connection) *metav1.LabelSelector {
	selector := selectTenant(c.Callee)
	if c.CalleeNamespace != "" {
		selector.MatchLabels[namespaceName] = c.CalleeNamespace
	}
	return selector
}

func makePorts(ranges []estate.PortRange) []networkingv1.NetworkPolicyPort {
	var all []networkingv1.NetworkPolicyPort
	for _, r := range ranges {
		port := networkingv1.NetworkPolicyPort{Protocol: ptr.To(r.Protocol), Port: ptr.To(intstr.FromInt32(r.First))}
		if r.Last != r.First {
			port.EndPort = ptr.To(r.Last)
		}
		all = append(all, port)
	}
	return all
}
