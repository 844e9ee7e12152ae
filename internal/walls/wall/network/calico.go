package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// GuardPolicy denies connections that no other policy may allow. It is evaluated first. It
// also allows DNS at a metadata address, because the first rule that matches decides.
const GuardPolicy = "croft-guard"

const (
	// guardOrder comes before every order that a tenant may use.
	guardOrder = 20
	// lastOrder comes after the tenants' orders, and after Kubernetes NetworkPolicies, to
	// which Calico assigns the order 1000. So a tenant may deny more than croft does.
	lastOrder = 2000
	// tierPrefix begins the names under which Calico stores policies of the default tier. In
	// the API for users a name must not have it: Calico before 3.29 refuses the prefix, and
	// from 3.29.4 on it stores a policy under the user's name.
	tierPrefix = "default."
)

// formatCalicoName returns the name of a policy in one of Calico's API groups.
func formatCalicoName(kind schema.GroupVersionKind, policy string) string {
	if kind.Group == string(v1alpha1.CalicoStorageGroup) {
		return tierPrefix + policy
	}
	return policy
}

// findCalicoKind returns Calico's NetworkPolicy in the API group that the platform names.
func findCalicoKind(n *v1alpha1.PlatformNetwork) schema.GroupVersionKind {
	if n.Calico != nil && n.Calico.APIGroup == v1alpha1.CalicoStorageGroup {
		return schema.GroupVersionKind{Group: string(v1alpha1.CalicoStorageGroup), Version: "v1", Kind: "NetworkPolicy"}
	}
	return schema.GroupVersionKind{Group: string(v1alpha1.CalicoGroup), Version: "v3", Kind: "NetworkPolicy"}
}

// tree is an object as plain JSON values. Calico's Go module has more dependencies than
// croft.
type tree = map[string]any

// buildCalicoPolicies writes the terms as Calico NetworkPolicies. The guard is evaluated first, then the
// tenant's policies, and then the policies that allow traffic. Traffic that none of them
// decides is denied, as Calico denies all other traffic of pods that some policy selects.
func (t terms) buildCalicoPolicies(kind schema.GroupVersionKind, namespace string) []client.Object {
	guarded := buildCalicoResolvers(t.findDNSAtMetadata())
	for _, nets := range splitByFamily(t.never) {
		guarded = append(guarded, tree{"action": "Deny", "destination": tree{"nets": toAnyList(nets)}})
	}
	own := selectNamespaces(fmt.Sprintf("%s == '%s'", v1alpha1.TenantLabel, t.tenant))
	all := []client.Object{
		buildCalicoPolicy(kind, namespace, GuardPolicy, guardOrder,
			[]any{tree{
				"action": "Deny", "source": selectNamespaces(formatCalicoSelector(t.selectStrangers())),
			}}, guarded),
		buildCalicoPolicy(kind, namespace, IsolationPolicy, lastOrder,
			[]any{tree{"action": "Allow", "source": own}}, []any{tree{"action": "Allow", "destination": own}}),
		buildCalicoPolicy(kind, namespace, DNSPolicy, lastOrder, nil, t.buildCalicoDNS()),
	}
	if len(t.services) > 0 {
		all = append(all, buildCalicoPolicy(kind, namespace, PlatformPolicy, lastOrder, []any{tree{
			"action": "Allow",
			"source": selectNamespaces(fmt.Sprintf("%s in %s", namespaceName, formatCalicoSet(t.services))),
		}}, nil))
	}
	if rules := t.buildCalicoOutside(); len(rules) > 0 {
		all = append(all, buildCalicoPolicy(kind, namespace, EgressPolicy, lastOrder, nil, rules))
	}
	return append(all, t.buildCalicoAgreed(kind, namespace)...)
}

// buildCalicoOutside returns rules with addresses of one family each. The rules do not rely on the
// guard, because it may be deleted first while a wall changes its dialect.
func (t terms) buildCalicoOutside() []any {
	var rules []any
	if t.everywhere {
		for _, all := range everyAddress {
			destination := tree{"nets": []any{all}}
			if never := filterByFamily(all, t.never); len(never) > 0 {
				destination["notNets"] = toAnyList(never)
			}
			rules = append(rules, tree{"action": "Allow", "destination": destination})
		}
	}
	for _, nets := range splitByFamily(t.networks) {
		rules = append(rules, tree{"action": "Allow", "destination": tree{"nets": toAnyList(nets)}})
	}
	return rules
}

// buildCalicoDNS returns a rule for each protocol, since the ports of a rule belong to one
// protocol.
func (t terms) buildCalicoDNS() []any {
	rules := buildCalicoResolvers(t.resolvers)
	for _, pods := range t.dnsPods {
		for _, protocol := range dnsProtocols {
			to := selectNamespaces(fmt.Sprintf("%s == '%s'", namespaceName, pods.Namespace))
			to["selector"] = formatCalicoSelector(&metav1.LabelSelector{MatchLabels: pods.Labels})
			to["ports"] = []any{int64(pods.Port)}
			rules = append(rules, tree{"action": "Allow", "protocol": string(protocol), "destination": to})
		}
	}
	return rules
}

// buildCalicoResolvers returns rules that allow DNS at addresses.
func buildCalicoResolvers(networks []string) []any {
	rules := []any{}
	for _, nets := range splitByFamily(networks) {
		for _, protocol := range dnsProtocols {
			rules = append(rules, tree{"action": "Allow", "protocol": string(protocol), "destination": tree{
				"nets": toAnyList(nets), "ports": []any{int64(estate.DNSPort)},
			}})
		}
	}
	return rules
}

// splitByFamily separates IPv4 and IPv6 blocks: Calico refuses a rule with both.
func splitByFamily(cidrs []string) [][]string {
	var v4, v6 []string
	for _, c := range cidrs {
		if strings.Contains(c, ":") {
			v6 = append(v6, c)
		} else {
			v4 = append(v4, c)
		}
	}
	return slices.DeleteFunc([][]string{v4, v6}, func(list []string) bool { return len(list) == 0 })
}

// buildCalicoPolicy selects every pod of its namespace, for the directions that it has rules for.
func buildCalicoPolicy(
	kind schema.GroupVersionKind, namespace, name string, order int64, in, out []any,
) *unstructured.Unstructured {
	spec := tree{"order": order, "selector": "all()"}
	types := []any{}
	if in != nil {
		spec["ingress"] = in
		types = append(types, "Ingress")
	}
	if out != nil {
		spec["egress"] = out
		types = append(types, "Egress")
	}
	spec["types"] = types
	o := &unstructured.Unstructured{Object: tree{"spec": spec}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(formatCalicoName(kind, name))
	return o
}

func selectNamespaces(selector string) tree { return tree{"namespaceSelector": selector} }

// formatCalicoSelector returns a label selector in Calico's syntax.
func formatCalicoSelector(s *metav1.LabelSelector) string {
	var terms []string
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		terms = append(terms, fmt.Sprintf("%s == '%s'", key, s.MatchLabels[key]))
	}
	for _, e := range s.MatchExpressions {
		switch {
		case e.Operator == metav1.LabelSelectorOpIn:
			terms = append(terms, fmt.Sprintf("%s in %s", e.Key, formatCalicoSet(e.Values)))
		case len(e.Values) == 1:
			terms = append(terms, fmt.Sprintf("%s != '%s'", e.Key, e.Values[0]))
		default:
			terms = append(terms, fmt.Sprintf("%s not in %s", e.Key, formatCalicoSet(e.Values)))
		}
	}
	return strings.Join(terms, " && ")
}

func formatCalicoSet(values []string) string {
	return "{'" + strings.Join(values, "', '") + "'}"
}

func toAnyList(values []string) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
