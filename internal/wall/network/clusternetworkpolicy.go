package network

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// guardPriority is before the policies that a platform writes without thinking of
// it, and leaves room for those that are to come first.
const guardPriority = 20

// clusterNetworkPolicyKind is that of the API that network plugins share.
var clusterNetworkPolicyKind = schema.GroupVersionKind{
	Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy",
}

// ClusterGuard is the name of a tenant's cluster-wide policy.
func ClusterGuard(tenant string) string { return GuardPolicy + "-" + tenant }

// clusterGuard denies, in the tier that comes before NetworkPolicies, what no
// NetworkPolicy may undo: that strangers come in, and that pods connect to the
// metadata addresses, but to resolve names where the platform does. Everything else is
// left to the NetworkPolicies, since these alone deny connections from outside of
// the cluster.
//
// There is one for each tenant: the API has no way to say "of the same label".
func (t terms) clusterGuard(kind schema.GroupVersionKind) client.Object {
	egress := []any{}
	if at := t.dnsAtMetadata(); len(at) > 0 {
		egress = append(egress, dnsRule(kind, at))
	}
	// A peer names 25 networks at most, which those of one family never are.
	for _, networks := range byFamily(t.never) {
		egress = append(egress, tree{
			"name": "instance-metadata", "action": "Deny", "to": []any{tree{"networks": list(networks)}},
		})
	}
	o := &unstructured.Unstructured{Object: tree{"spec": tree{
		"tier":     "Admin",
		"priority": int64(guardPriority),
		"subject":  tree{"namespaces": tree{"matchLabels": tree{v1alpha1.TenantLabel: t.tenant}}},
		"ingress": []any{tree{
			"name": "strangers", "action": "Deny", "from": []any{tree{"namespaces": selectorTree(t.strangers())}},
		}},
		"egress": egress,
	}}}
	o.SetGroupVersionKind(kind)
	o.SetName(ClusterGuard(t.tenant))
	return o
}

// dnsRule leaves the port of DNS at some addresses to the NetworkPolicies. The two APIs
// differ in how ports are written.
func dnsRule(kind schema.GroupVersionKind, networks []string) tree {
	rule := tree{"name": "dns", "action": "Pass", "to": []any{tree{"networks": list(networks)}}}
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

func selectorTree(s *metav1.LabelSelector) tree {
	expressions := []any{}
	for _, e := range s.MatchExpressions {
		expressions = append(expressions, tree{"key": e.Key, "operator": string(e.Operator), "values": list(e.Values)})
	}
	return tree{"matchExpressions": expressions}
}
