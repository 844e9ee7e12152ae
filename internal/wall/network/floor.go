package network

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
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
func floor(admins, metadata []string) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: FloorPolicy,
		Resources: []admissionpolicy.Resource{{
			Group: "networking.k8s.io", Version: "v1", Resources: []string{"networkpolicies"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Selection: admissionpolicy.Unmarked,
		Only:      admissionpolicy.NotByPlatform(admins),
		Bounds:    floorBounds(),
		Variables: []admissionpolicy.Variable{
			{Name: "ingress", Expression: `has(object.spec.ingress) ? object.spec.ingress : []`},
			{Name: "egress", Expression: `has(object.spec.egress) ? object.spec.egress : []`},
			{Name: "near", Expression: `params.spec.namespaces + params.spec.platformNamespaces`},
			{Name: "unchanged", Expression: unchanged},
			{Name: "metadata", Expression: addresses(metadata)},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name: IngressRule,
				Says: "a tenant's own NetworkPolicies let in its own namespaces and the platform's, and nobody else",
				Holds: `variables.unchanged ||
					variables.ingress.all(rule, has(rule.from) && rule.from.size() > 0 && rule.from.all(peer,
						!has(peer.ipBlock) &&
						(!has(peer.namespaceSelector) || ` + near("peer.namespaceSelector") + `)))`,
				Message: `"spec.ingress: tenant " + params.spec.tenant
					+ " may let in only its own namespaces and the platform's, ` +
					`and a rule without from lets in everybody. "
					+ "Write in each rule, or select pods: from: [" + ` + ownTenant + `
					+ (params.spec.platformNamespaces.size() == 0
						? ""
						: ", {namespaceSelector: {matchExpressions: "
							+ "[{key: ` + namespaceName + `, operator: In, values: ["
							+ params.spec.platformNamespaces.map(n, string(n)).join(", ") + "]}]}}")
					+ "]"`,
			},
			{
				Name: EgressNamespacesRule,
				Says: "they let out to named destinations; " +
					"with Restricted egress, to the tenant's namespaces and the platform's",
				Holds: `variables.unchanged ||
					variables.egress.all(rule, has(rule.to) && rule.to.size() > 0 && rule.to.all(peer,
						has(peer.ipBlock) || !has(peer.namespaceSelector) || params.spec.egress == "Open" ||
						` + near("peer.namespaceSelector") + `))`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: a rule without to reaches the instance metadata addresses too. ` +
					`Leave out a rule for port 53, since names are resolved without one, ` +
					`and write in each other: to: [{namespaceSelector: {}}, ` + everywhereElse(metadata) + `]"
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress. ` +
					`Write in each rule, or select pods: to: [" + ` + ownTenant + `
						+ params.spec.allowCIDRs.map(c, ", {ipBlock: {cidr: '" + string(c) + "'}}").join("")
						+ "]; names are resolved without a rule; namespaces may be of ["
						+ variables.near.map(n, string(n)).join(", ") + "], by ` + namespaceName + `"`,
			},
			{
				Name: EgressAddressesRule,
				Says: "they let out to no instance metadata address; " +
					"with Restricted egress, to the tenant's allowCIDRs only",
				Holds: `variables.unchanged ||
					variables.egress.all(rule, !has(rule.to) || rule.to.all(peer, !has(peer.ipBlock) ||
						isCIDR(peer.ipBlock.cidr) && (params.spec.egress == "Open"
							? ` + spares("peer.ipBlock.cidr", "peer.ipBlock.except") + `
							: params.spec.allowCIDRs.exists(a, cidr(a).containsCIDR(peer.ipBlock.cidr)))))`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: the instance metadata addresses are out of reach: ` +
					`an ipBlock that holds some of them names these in its except (` +
					strings.Join(metadata, ", ") + `)"
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress: ipBlocks may lie within ["
						+ params.spec.allowCIDRs.map(c, string(c)).join(", ") + "]; ask a platform admin for more"`,
			},
		},
	}
}

// ownTenant is a CEL expression of the YAML that selects the tenant's own
// namespaces. Messages are one line long: the API server drops others.
const ownTenant = `"{namespaceSelector: {matchLabels: {` + v1alpha1.TenantLabel + `: " + params.spec.tenant + "}}}"`

// everywhereElse is the YAML that selects all addresses but those of metadata.
func everywhereElse(metadata []string) string {
	blocks := make([]string, len(everyAddress))
	for i, all := range everyAddress {
		blocks[i] = "{ipBlock: {cidr: '" + all + "', except: ['" + strings.Join(within(all, metadata), "', '") + "']}}"
	}
	return strings.Join(blocks, ", ")
}

// near is a CEL expression that is true where a namespace selector selects no
// namespace beyond the tenant's own and the platform's. More labels beside those
// that it looks for only narrow the selection.
func near(selector string) string {
	return strings.NewReplacer("SELECTOR", selector, "NAME", namespaceName, "TENANT", v1alpha1.TenantLabel).Replace(
		`(has(SELECTOR.matchLabels) && (
			"NAME" in SELECTOR.matchLabels && SELECTOR.matchLabels["NAME"] in variables.near ||
			"TENANT" in SELECTOR.matchLabels && SELECTOR.matchLabels["TENANT"] == params.spec.tenant) ||
		has(SELECTOR.matchExpressions) && SELECTOR.matchExpressions.exists(e,
			e.key == "NAME" && e.operator == "In" && has(e.values) && e.values.all(v, v in variables.near)))`)
}

// unchanged is a CEL expression that is true where an update leaves alone what a
// policy lets through: one from before a rule can still be labelled.
const unchanged = `request.operation == "UPDATE" && object.spec == oldObject.spec`

// addresses is a CEL expression of the addresses that are networks of one.
func addresses(networks []string) string {
	quoted := make([]string, len(networks))
	for i, n := range networks {
		address, _, _ := strings.Cut(n, "/")
		quoted[i] = admissionpolicy.Quote(address)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// spares is a CEL expression that is true where a block, however large, holds none
// of the metadata addresses, or a list of exceptions, which may be missing, holds
// those that it does.
func spares(block, except string) string {
	return strings.NewReplacer("BLOCK", block, "EXCEPT", except).Replace(
		`[cidr(BLOCK)].all(c, variables.metadata.all(m, !c.containsIP(m) ||
			has(EXCEPT) && EXCEPT.exists(x, isCIDR(x) && cidr(x).containsIP(m))))`)
}
