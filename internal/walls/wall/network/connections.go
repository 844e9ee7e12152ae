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

// listCalls returns the connections from the tenant's pods that its other terms do not allow.
func (t terms) listCalls() []estate.Connection {
	if t.everywhere {
		return nil
	}
	others := func(c estate.Connection) bool { return c.Caller != t.tenant }
	return slices.DeleteFunc(slices.Clone(t.connections), others)
}

// markAgreed records the other tenant and the end of a connection on its policy.
func markAgreed[O client.Object](policy O, other string, c *estate.Connection) O {
	policy.SetLabels(map[string]string{v1alpha1.ConsentLabel: other})
	if !c.Until.IsZero() {
		policy.SetAnnotations(map[string]string{v1alpha1.UntilAnnotation: c.Until.UTC().Format(time.RFC3339)})
	}
	return policy
}

// buildAgreedPolicies writes the tenant's connections as NetworkPolicies.
func (t terms) buildAgreedPolicies() []*networkingv1.NetworkPolicy {
	var all []*networkingv1.NetworkPolicy
	for _, c := range t.listCallers() {
		np := buildNetworkPolicy(CallerPolicy+"-"+c.Caller, []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{makeTenantPeer(c.Caller, c.CallerPods)}, Ports: makePorts(c.Ports),
		}}, nil)
		np.Spec.PodSelector.MatchLabels = c.CalleePods
		all = append(all, markAgreed(np, c.Caller, &c))
	}
	for _, c := range t.listCalls() {
		np := buildNetworkPolicy(CallPolicy+"-"+c.Callee, nil, []networkingv1.NetworkPolicyEgressRule{{
			To: []networkingv1.NetworkPolicyPeer{makeTenantPeer(c.Callee, c.CalleePods)}, Ports: makePorts(c.Ports),
		}})
		np.Spec.PodSelector.MatchLabels = c.CallerPods
		all = append(all, markAgreed(np, c.Callee, &c))
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
