package network

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admission"
)

// FloorPolicy is the name of the policy on tenants' own NetworkPolicies.
const FloorPolicy = "croft-network-floor"

// The rules of the floor.
const (
	IngressRule          = "ingress-from"
	EgressNamespacesRule = "egress-to"
	EgressAddressesRule  = "egress-addresses"
)

// floor keeps tenants' own NetworkPolicies from widening croft's: policies of
// this API only ever add up, so one that lets everybody in would undo the wall.
// Tenants may write whatever stays within their own namespaces, the platform's
// and the networks that they may reach anyway. What carries croft's mark is left
// to the protection of that mark.
func floor(admins []string) admission.Validating {
	return admission.Validating{
		Name: FloorPolicy,
		Resources: []admission.Resource{{
			Group: "networking.k8s.io", Version: "v1", Resources: []string{"networkpolicies"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Selection: admission.Unmarked,
		Only:      admission.NotByPlatform(admins),
		Variables: []admission.Variable{
			{Name: "ingress", Expression: `has(object.spec.ingress) ? object.spec.ingress : []`},
			{Name: "egress", Expression: `has(object.spec.egress) ? object.spec.egress : []`},
			{Name: "near", Expression: `params.spec.namespaces + params.spec.platformNamespaces`},
		},
		Rules: []admission.Rule{
			{
				Name: IngressRule, Says: "a tenant's own NetworkPolicies let in its own namespaces and the platform's, and nobody else",
				Holds: `variables.ingress.all(rule, has(rule.from) && rule.from.size() > 0 && rule.from.all(peer,
					!has(peer.ipBlock) && (!has(peer.namespaceSelector) || ` + near("peer.namespaceSelector") + `)))`,
				Message: `"spec.ingress: tenant " + params.spec.tenant + " may let in only its own namespaces and the platform's: give every rule a from of podSelectors, "
					+ "or of namespaceSelectors with kubernetes.io/metadata.name in [" + variables.near.map(n, string(n)).join(", ") + "]"`,
			},
			{
				Name: EgressNamespacesRule, Says: "they let out to named destinations; with Restricted egress, to the tenant's namespaces and the platform's",
				Holds: `variables.egress.all(rule, !has(rule.to) || rule.to.size() == 0 ? params.spec.egress == "Open" && ` + onlyDNS + ` : rule.to.all(peer,
					has(peer.ipBlock) || !has(peer.namespaceSelector) || params.spec.egress == "Open" || ` + near("peer.namespaceSelector") + `))`,
				Message: `"spec.egress: give every rule a to (it may be left out for port 53 alone, with Open egress), and select namespaces by kubernetes.io/metadata.name in ["
					+ variables.near.map(n, string(n)).join(", ") + "]: tenant " + params.spec.tenant + " has " + params.spec.egress + " egress"`,
			},
			{
				Name: EgressAddressesRule, Says: "they let out to no instance metadata address; with Restricted egress, to the tenant's allowCIDRs only",
				Holds: `variables.egress.all(rule, !has(rule.to) || rule.to.all(peer, !has(peer.ipBlock) ||
					isCIDR(peer.ipBlock.cidr) && (params.spec.egress == "Open" ? ` + sparesMetadata("peer.ipBlock") + `
					: params.spec.allowCIDRs.exists(a, cidr(a).containsCIDR(peer.ipBlock.cidr)))))`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: the instance metadata addresses are out of reach: add them to the ipBlock's except (` + strings.Join(metadata, ", ") + `)"
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress: ipBlocks may lie within ["
					+ params.spec.allowCIDRs.map(c, string(c)).join(", ") + "]; ask a platform admin for more"`,
			},
		},
	}
}

// onlyDNS is a CEL expression that is true where an egress rule is for port 53
// alone, to wherever that is: so charts let names be resolved, and no metadata is
// served there.
const onlyDNS = `has(rule.ports) && rule.ports.size() > 0 && rule.ports.all(p, has(p.port) && string(p.port) == "53" && !has(p.endPort))`

// near is a CEL expression that is true where a namespace selector selects no
// namespace beyond the tenant's own and the platform's. More labels beside those
// that it looks for only narrow the selection.
func near(selector string) string {
	return strings.ReplaceAll(`(has(SEL.matchLabels) && (
		"`+namespaceName+`" in SEL.matchLabels && SEL.matchLabels["`+namespaceName+`"] in variables.near ||
		"`+v1alpha1.TenantLabel+`" in SEL.matchLabels && SEL.matchLabels["`+v1alpha1.TenantLabel+`"] == params.spec.tenant) ||
		has(SEL.matchExpressions) && SEL.matchExpressions.exists(e,
		e.key == "`+namespaceName+`" && e.operator == "In" && has(e.values) && e.values.all(v, v in variables.near)))`,
		"SEL", selector)
}

// sparesMetadata is a CEL expression that is true where a block holds none of
// the metadata addresses, or excepts them.
func sparesMetadata(block string) string {
	var each []string
	for _, m := range metadata {
		address, _, _ := strings.Cut(m, "/")
		each = append(each, strings.NewReplacer("BLOCK", block, "ADDRESS", admission.Quote(address)).Replace(
			`(!cidr(BLOCK.cidr).containsIP(ADDRESS) || has(BLOCK.except) && BLOCK.except.exists(x, isCIDR(x) && cidr(x).containsIP(ADDRESS)))`))
	}
	return strings.Join(each, " && ")
}
