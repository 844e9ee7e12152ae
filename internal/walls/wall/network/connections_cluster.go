package network

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
)

// mostClusterPorts is the maximum number of ports of a rule of a ClusterNetworkPolicy.
const mostClusterPorts = 25

// buildClusterPasses excepts each connection to the tenant's pods from the tenant's guard, and
// leaves it to the NetworkPolicies.
func (t terms) buildClusterPasses(kind schema.GroupVersionKind) []client.Object {
	var all []client.Object
	for _, c := range t.listCallers() {
		callers := []any{selectClusterPods(selectTenant(c.Caller), c.CallerPods)}
		rules := []any{}
		for ports := range slices.Chunk(c.Ports, mostClusterPorts) {
			rule := tree{"name": "agreed", "action": "Pass", "from": callers}
			field, list := formatClusterPorts(kind, ports)
			rule[field] = list
			rules = append(rules, rule)
		}
		all = append(all, markAgreed(buildClusterPolicy(kind, nameClusterPass(&c), tree{
			"tier":     "Admin",
			"priority": int64(guardPriority - agreedBefore),
			"subject":  selectClusterPods(selectCallee(&c), c.CalleePods),
			"ingress":  rules,
		}), c.Caller, c))
	}
	return all
}

// ClusterCallerName returns the name of the cluster-wide policy for a caller of a tenant. A
// tenant's name has no dot, so the names of two pairs of tenants never are the same.
func ClusterCallerName(tenant, caller string) string {
	return CallerPolicy + "-" + tenant + "." + caller
}

// nameClusterPass returns the name of the cluster-wide policy for a connection.
func nameClusterPass(c *estate.Connection) string {
	if c.CalleeNamespace != "" {
		return AcceptPolicy + "-" + c.CalleeNamespace + "." + c.TenantCaller
	}
	return ClusterCallerName(c.Callee, c.Caller)
}

func selectClusterPods(namespaces *metav1.LabelSelector, pods map[string]string) tree {
	return tree{"pods": tree{
		"namespaceSelector": toLabelTree(namespaces.MatchLabels),
		"podSelector":       toLabelTree(pods),
	}}
}

// toLabelTree returns a label selector, which selects everything without labels.
func toLabelTree(pods map[string]string) tree {
	if len(pods) == 0 {
		return tree{}
	}
	labels := tree{}
	for key, value := range pods {
		labels[key] = value
	}
	return tree{"matchLabels": labels}
}

// formatClusterPorts returns the field for the ports of a rule, and its value. The two APIs differ
// in the notation of ports.
func formatClusterPorts(kind schema.GroupVersionKind, ranges []estate.PortRange) (field string, ports []any) {
	for _, r := range ranges {
		first, last, protocol := int64(r.First), int64(r.Last), string(r.Protocol)
		switch {
		case kind == awsKind && first == last:
			ports = append(ports, tree{"portNumber": tree{"port": first, "protocol": protocol}})
		case kind == awsKind:
			ports = append(ports, tree{"portRange": tree{"start": first, "end": last, "protocol": protocol}})
		case first == last:
			ports = append(ports, tree{strings.ToLower(protocol): tree{"destinationPort": tree{"number": first}}})
		default:
			ports = append(ports, tree{strings.ToLower(protocol): tree{
				"destinationPort": tree{"range": tree{"start": first, "end": last}},
			}})
		}
	}
	if kind == awsKind {
		return "ports", ports
	}
	return "protocols", ports
}
