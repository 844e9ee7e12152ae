package network

import (
	"fmt"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// bounds are policies with lists that croft's own rules would take seconds to evaluate, on an
// API server that all tenants share.
func bounds(p *estate.Platform, by *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	byBounds := attack.ByPolicy(FloorPolicy, admissionpolicy.BoundsRule)
	peers := func(n int) []networkingv1.NetworkPolicyIngressRule {
		from := make([]networkingv1.NetworkPolicyPeer, n)
		for i := range from {
			from[i].PodSelector = labelled(fmt.Sprintf("web-%d", i))
		}
		return []networkingv1.NetworkPolicyIngressRule{{From: from}}
	}
	add := func(np *networkingv1.NetworkPolicy) {
		np.Spec.Ingress[0].From = append(np.Spec.Ingress[0].From, networkingv1.NetworkPolicyPeer{PodSelector: labelled("more")})
	}
	open := func(np *networkingv1.NetworkPolicy) {
		np.Spec.Ingress = np.Spec.Ingress[:1]
		np.Spec.Ingress[0].From = nil
	}
	all := attack.Because("the API server is everybody's, and what CEL takes grows with the square of a list", nil,
		attack.Creating("list-more-peers", "write a NetworkPolicy with more peers than croft goes through", byBounds, written(own, "list-more-peers", peers(mostPeers+1), nil)),
		attack.Changing("list-more-peers-later", "add peers to a NetworkPolicy, to more than croft goes through", byBounds, written(own, "list-more-peers-later", peers(mostPeers), nil), add),
		// Such a policy was written by the platform, or before croft was installed.
		attack.Changing("open-a-long-policy", "let everybody in by a NetworkPolicy that has more peers than croft goes through already", attack.ByPolicy(FloorPolicy, IngressRule),
			written(own, "open-a-long-policy", peers(mostPeers+1), nil), open),
		attack.Changing("change-a-long-policy", "change peers of a NetworkPolicy that has more than croft goes through already", byBounds,
			written(own, "change-a-long-policy", peers(mostPeers+2), nil), func(np *networkingv1.NetworkPolicy) {
				np.Spec.Ingress[0].From = np.Spec.Ingress[0].From[1:]
				np.Spec.Ingress[0].From[0] = block("0.0.0.0/0")
			}),
		attack.Creating("list-many-peers", "write a NetworkPolicy with as many peers as croft goes through", attack.Nobody, written(own, "list-many-peers", peers(mostPeers), nil)),
		attack.Changing("label-a-long-policy", "label a NetworkPolicy that has more peers than croft goes through already", attack.Nobody,
			written(own, "label-a-long-policy", peers(mostPeers+1), nil), func(np *networkingv1.NetworkPolicy) { np.Labels = map[string]string{"team": "web"} }),
		attack.Changing("shorten-a-long-policy", "shorten a NetworkPolicy that has more peers than croft goes through", attack.Nobody,
			written(own, "shorten-a-long-policy", peers(mostPeers+1), nil), func(np *networkingv1.NetworkPolicy) { np.Spec.Ingress = peers(1) }),
	)
	if mayWriteCalico(p) {
		kind := calicoKind(&p.Network)
		rules := func(n int) []any {
			list := make([]any, n)
			for i := range list {
				list[i] = tree{"action": "Deny"}
			}
			return list
		}
		all = append(all, attack.Because("the API server is everybody's, and what CEL takes grows with the square of a list", nil,
			attack.Creating("calico-list-more-rules", "write a Calico NetworkPolicy with more rules than croft goes through", attack.ByPolicy(CalicoFloorPolicy, admissionpolicy.BoundsRule),
				ownCalico(kind, own, "calico-list-more-rules", 500, rules(mostRules+1), nil)),
			attack.Creating("calico-list-many-rules", "write a Calico NetworkPolicy with as many rules as croft goes through", attack.Nobody,
				ownCalico(kind, own, "calico-list-many-rules", 500, rules(mostRules), nil)))...)
	}
	return all
}

func labelled(app string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
}
