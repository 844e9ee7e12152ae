package network

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildBoundsAttacks are policies with lists that croft's own rules would take seconds to evaluate, on an
// API server that all tenants share.
func buildBoundsAttacks(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	byBounds := attack.ByPolicy(FloorPolicy, admissionpolicy.BoundsRule)
	peers := func(n int) []networkingv1.NetworkPolicyIngressRule {
		from := make([]networkingv1.NetworkPolicyPeer, n)
		for i := range from {
			from[i].PodSelector = selectApp(fmt.Sprintf("web-%d", i))
		}
		return []networkingv1.NetworkPolicyIngressRule{{From: from}}
	}
	add := func(np *networkingv1.NetworkPolicy) {
		np.Spec.Ingress[0].From = append(np.Spec.Ingress[0].From, networkingv1.NetworkPolicyPeer{PodSelector: selectApp("more")})
	}
	open := func(np *networkingv1.NetworkPolicy) {
		np.Spec.Ingress = np.Spec.Ingress[:1]
		np.Spec.Ingress[0].From = nil
	}
	all := attack.WithReason("all tenants share the API server, and the time of CEL grows with the square of a list's length", nil,
		attack.NewCreate("list-more-peers", "write a NetworkPolicy with more peers than croft evaluates", byBounds, makeOwnPolicy(own, "list-more-peers", peers(mostPeers+1), nil)),
		attack.NewUpdate("list-more-peers-later", "add peers to a NetworkPolicy, to more than croft evaluates", byBounds, makeOwnPolicy(own, "list-more-peers-later", peers(mostPeers), nil), add),
		// Such a policy was written by the platform, or before croft was installed.
		attack.NewUpdate("open-a-long-policy", "let everybody in by a NetworkPolicy that already has more peers than croft evaluates", attack.ByPolicy(FloorPolicy, IngressRule),
			makeOwnPolicy(own, "open-a-long-policy", peers(mostPeers+1), nil), open),
		attack.NewUpdate("change-a-long-policy", "change peers of a NetworkPolicy that already has more than croft evaluates", byBounds,
			makeOwnPolicy(own, "change-a-long-policy", peers(mostPeers+2), nil), func(np *networkingv1.NetworkPolicy) {
				np.Spec.Ingress[0].From = np.Spec.Ingress[0].From[1:]
				np.Spec.Ingress[0].From[0] = makeBlock("0.0.0.0/0")
			}),
		attack.NewCreate("list-many-peers", "write a NetworkPolicy with as many peers as croft evaluates", attack.Nobody, makeOwnPolicy(own, "list-many-peers", peers(mostPeers), nil)),
		attack.NewUpdate("label-a-long-policy", "label a NetworkPolicy that already has more peers than croft evaluates", attack.Nobody,
			makeOwnPolicy(own, "label-a-long-policy", peers(mostPeers+1), nil), func(np *networkingv1.NetworkPolicy) { np.Labels = map[string]string{"team": "web"} }),
		attack.NewUpdate("shorten-a-long-policy", "shorten a NetworkPolicy that has more peers than croft evaluates", attack.Nobody,
			makeOwnPolicy(own, "shorten-a-long-policy", peers(mostPeers+1), nil), func(np *networkingv1.NetworkPolicy) { np.Spec.Ingress = peers(1) }),
	)
	if canWriteCalico(p) {
		kind := findCalicoKind(&p.Network)
		rules := func(n int) []any {
			list := make([]any, n)
			for i := range list {
				list[i] = tree{"action": "Deny"}
			}
			return list
		}
		all = append(all, attack.WithReason("all tenants share the API server, and the time of CEL grows with the square of a list's length", nil,
			attack.NewCreate("calico-list-more-rules", "write a Calico NetworkPolicy with more rules than croft evaluates", attack.ByPolicy(CalicoFloorPolicy, admissionpolicy.BoundsRule),
				makeOwnCalico(kind, own, "calico-list-more-rules", 500, rules(mostRules+1), nil)),
			attack.NewCreate("calico-list-many-rules", "write a Calico NetworkPolicy with as many rules as croft evaluates", attack.Nobody,
				makeOwnCalico(kind, own, "calico-list-many-rules", 500, rules(mostRules), nil)))...)
	}
	return all
}

func selectApp(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}
