package network

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// guardPriority comes before the priorities that a platform is likely to choose, and leaves
// room for policies that must come first.
const guardPriority = 20

// clusterNetworkPolicyKind is the kind of the API that network plugins share.
var clusterNetworkPolicyKind = schema.GroupVersionKind{
	Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy",
}

// ClusterGuardName returns the name of a tenant's cluster-wide policy.
func ClusterGuardName(tenant string) string { return GuardPolicy + "-" + tenant }

// buildClusterGuard denies, in the tier before NetworkPolicies, the traffic that no NetworkPolicy
// may allow: ingress from strangers, and egress to the metadata addresses, except for DNS
// where the platform uses it. All other traffic is left to the NetworkPolicies, since only
// they deny connections from outside of the cluster.
//
// There is one for each tenant, because the API cannot select namespaces with the same label.
func (t terms) buildClusterGuard(kind schema.GroupVersionKind) client.Object {
	egress := []any{}
	if at := t.findDNSAtMetadata(); len(at) > 0 {
		egress = append(egress, buildDNSRule(kind, at))
	}
	// A peer may have at most 25 networks. The addresses of one family are fewer.
	for _, networks := range splitByFamily(t.never) {
		egress = append(egress, tree{
			"name": "instance-metadata", "action": "Deny", "to": []any{tree{"networks": toAnyList(networks)}},
		})
	}
	return buildClusterPolicy(kind, ClusterGuardName(t.tenant), tree{
		"tier":     "Admin",
		"priority": int64(guardPriority),
		"subject":  tree{"namespaces": tree{"matchLabels": tree{v1alpha1.TenantLabel: t.tenant}}},
		"ingress": []any{tree{
			"name": "strangers", "action": "Deny",
			"from": []any{tree{"namespaces": convertSelector(t.selectStrangers())}},
		}},
		"egress": egress,
	})
}

func buildClusterPolicy(kind schema.GroupVersionKind, name string, spec tree) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: tree{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetName(name)
	return o
}

// buildDNSRule leaves DNS at the given addresses to the NetworkPolicies. The two APIs differ in
// the notation of ports.
func buildDNSRule(kind schema.GroupVersionKind, networks []string) tree {
	rule := tree{"name": "dns", "action": "Pass", "to": []any{tree{"networks": toAnyList(networks)}}}
	field, port := "protocols", func(protocol corev1.Protocol) tree {
		return tree{strings.ToLower(string(protocol)): tree{"destinationPort": tree{"number": int64(estate.DNSPort)}}}
	}
	if kind == awsKind {
		field, port = "ports", func(protocol corev1.Protocol) tree {
			return tree{"portNumber": tree{"port": int64(estate.DNSPort), "protocol": string(protocol)}}
		}
	}
	ports := []any{}
	for _, protocol := range dnsProtocols {
		ports = append(ports, port(protocol))
	}
	rule[field] = ports
	return rule
}

func convertSelector(s *metav1.LabelSelector) tree {
	expressions := []any{}
	for _, e := range s.MatchExpressions {
		expressions = append(expressions, tree{
			"key": e.Key, "operator": string(e.Operator), "values": toAnyList(e.Values),
		})
	}
	return tree{"matchExpressions": expressions}
}
