package network

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// FloorPolicy is the name of the policy on tenants' own NetworkPolicies.
const FloorPolicy = "croft-network-floor"

// The names of the rules of that policy.
const (
	IngressRule          = "ingress-from"
	EgressNamespacesRule = "egress-to"
	EgressAddressesRule  = "egress-addresses"
)

// checkNetworkPolicies prevents tenants' own NetworkPolicies from allowing more than croft's.
// NetworkPolicies are additive, so one that allows all ingress would undo the wall. Tenants
// may write policies for their own namespaces, the platform's, and the networks that they may
// reach anyway. The protection policy covers the NetworkPolicies with croft's label.
func checkNetworkPolicies(p *estate.Platform) admissionpolicy.Validating {
	metadata := listMetadata(p)
	return admissionpolicy.Validating{
		Name: FloorPolicy,
		Resources: []admissionpolicy.Resource{{
			Group: "networking.k8s.io", Version: "v1", Resources: []string{"networkpolicies"},
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		}},
		Selection:       admissionpolicy.Unmarked,
		MatchConditions: admissionpolicy.NotByPlatform(p.Admins),
		Bounds:          listFloorBounds(),
		Variables: []admissionpolicy.Variable{
			{Name: "ingress", Expression: `has(object.spec.ingress) ? object.spec.ingress : []`},
			{Name: "egress", Expression: `has(object.spec.egress) ? object.spec.egress : []`},
			{Name: "near", Expression: `params.spec.namespaces + params.spec.platformNamespaces`},
			{Name: "unchanged", Expression: unchanged},
			{Name: "metadata", Expression: formatAddresses(metadata)},
			{Name: "resolvers", Expression: formatQuoted(listResolvers(p))},
			// The first block of each rule that contains metadata addresses, for the message.
			{Name: "wide", Expression: `variables.egress.filter(rule, has(rule.to) && rule.to.exists(peer, ` +
				wide + `))
				.map(rule, rule.to.filter(peer, ` + wide + `)[0])`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name:    IngressRule,
				Summary: "a tenant's own NetworkPolicies let in only its own namespaces and the platform's",
				Expression: `variables.unchanged ||
					variables.ingress.all(rule, has(rule.from) && rule.from.size() > 0 && rule.from.all(peer,
						!has(peer.ipBlock) &&
						(!has(peer.namespaceSelector) || ` + matchNear("peer.namespaceSelector") + `)))`,
				Message: `"spec.ingress: tenant " + params.spec.tenant
					+ " may let in only its own namespaces and the platform's, ` +
					`and a rule without from lets in everybody. "
					+ "Write in each rule, or select pods: from: [" + ` + ownTenant + `
					+ (params.spec.platformNamespaces.size() == 0
						? ""
						: ", {namespaceSelector: {matchExpressions: "
							+ "[{key: ` + namespaceName + `, operator: In, values: ["
							+ params.spec.platformNamespaces.map(n, string(n)).join(", ") + "]}]}}")
					+ "]" + (` + byOperator + `
						? ". The operator " + request.userInfo.username.substring(22) + " wrote it: ` +
					`turn off its NetworkPolicies, ` +
					`such as Strimzi's by STRIMZI_NETWORK_POLICY_GENERATION=false; ` +
					`croft lets in the tenant's namespaces and the platform's without any"
						: "")`,
			},
			{
				Name: EgressNamespacesRule,
				Summary: "they allow egress only to named destinations; " +
					"with Restricted egress, only to the tenant's namespaces and the platform's, " +
					"and to DNS pods on the port of DNS",
				Expression: `variables.unchanged ||
					variables.egress.all(rule, has(rule.to) && rule.to.size() > 0 && (
						rule.to.all(peer, ` + nearPeer + `) ||
						` + matchDNSPods(estate.ListDNSPods(&p.Network)) + `))`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: a rule without to reaches the instance metadata addresses too. ` +
					`Leave out a rule for port 53, since names are resolved without one, ` +
					`and write in each other: to: [{namespaceSelector: {}}, ` + formatEverywhereElse(metadata) + `]"
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress. ` +
					`Write in each rule, or select pods: to: [" + ` + ownTenant + `
						+ params.spec.allowCIDRs.map(c, ", {ipBlock: {cidr: '" + string(c) + "'}}").join("")
						+ "]; namespaces may be of [" + variables.near.map(n, string(n)).join(", ") + "], by ` +
					namespaceName + `. ` +
					`Names are resolved without a rule: leave one for DNS out, ` +
					`or write port 53 by its number and to: [` + dnsPeer + `]"`,
			},
			{
				Name: EgressAddressesRule,
				Summary: "they allow no egress to instance metadata addresses; " +
					"with Restricted egress, only to the tenant's allowCIDRs; " +
					"and to the platform's name servers on port 53",
				Expression: `variables.unchanged ||
					variables.egress.all(rule, !has(rule.to) ||
						rule.to.all(peer, ` + allowedAddress + `) ||
						` + matchPort(estate.DNSPort) + ` && rule.to.all(peer, ` + allowedAddress + ` ||
							` + matchResolver("peer.ipBlock.cidr") + `))`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: the instance metadata addresses must be excluded" + (variables.wide.size() == 0
						? ": write every cidr as a network, such as 10.0.0.0/8"
						: ": add to the except of " + variables.wide[0].ipBlock.cidr + " [" + ` +
					`variables.metadata.filter(m, ` +
					matchOpensMetadata("cidr(variables.wide[0].ipBlock.cidr)", "variables.wide[0].ipBlock.except") + `)
							.map(m, "'" + m + (m.contains(":") ? "/128" : "/32") + "'").join(", ")
						+ "], as well; if these are too many, ` +
					`a platform admin lists only the addresses of the cluster's cloud ` +
					`in platform.network.metadataAddresses")
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress: ipBlocks may lie within ["
						+ params.spec.allowCIDRs.map(c, string(c)).join(", ") + "], and on port 53 alone be one of ["
						+ variables.resolvers.join(", ") + "]; ` +
					`ask a platform admin for more: allowCIDRs, or clusterDNS for a name server"`,
			},
		},
	}
}

// byOperator is the condition that the user is a service account outside of the tenant's
// namespaces.
const byOperator = `(request.userInfo.username.startsWith("system:serviceaccount:") &&
	!params.spec.namespaces.exists(n, request.userInfo.username.startsWith("system:serviceaccount:" + n + ":")))`

// ownTenant is an expression for the YAML that selects the tenant's own namespaces. A message
// is one line long: the API server discards others.
const ownTenant = `"{namespaceSelector: {matchLabels: {` + v1alpha1.TenantLabel + `: " + params.spec.tenant + "}}}"`

// formatEverywhereElse returns the YAML that selects all addresses except the metadata addresses.
func formatEverywhereElse(metadata []string) string {
	blocks := make([]string, len(everyAddress))
	for i, all := range everyAddress {
		except := strings.Join(filterByFamily(all, metadata), "', '")
		blocks[i] = "{ipBlock: {cidr: '" + all + "', except: ['" + except + "']}}"
	}
	return strings.Join(blocks, ", ")
}

// matchNear returns the condition that a namespace selector matches only namespaces of the tenant
// and the platform. Additional labels only narrow the selection.
func matchNear(selector string) string {
	return strings.NewReplacer("SELECTOR", selector, "NAME", namespaceName, "TENANT", v1alpha1.TenantLabel).Replace(
		`(has(SELECTOR.matchLabels) && (
			"NAME" in SELECTOR.matchLabels && SELECTOR.matchLabels["NAME"] in variables.near ||
			"TENANT" in SELECTOR.matchLabels && SELECTOR.matchLabels["TENANT"] == params.spec.tenant) ||
		has(SELECTOR.matchExpressions) && SELECTOR.matchExpressions.exists(e,
			e.key == "NAME" && e.operator == "In" && has(e.values) && e.values.all(v, v in variables.near)))`)
}

// unchanged is the condition that an update does not change the spec: a policy that is older
// than a rule can still be labelled.
const unchanged = `request.operation == "UPDATE" && object.spec == oldObject.spec`

// nearPeer is the condition that a peer is an address, which another rule checks, or pods in
// namespaces that the tenant may connect to.
var nearPeer = `has(peer.ipBlock) || !has(peer.namespaceSelector) || params.spec.egress == "Open" ||
	` + matchNear("peer.namespaceSelector")

// allowedAddress is the condition that a peer is not an address, or addresses that the tenant
// may connect to on any port.
var allowedAddress = `!has(peer.ipBlock) || isCIDR(peer.ipBlock.cidr) && (params.spec.egress == "Open"
	? ` + matchSparesMetadata("peer.ipBlock.cidr", "peer.ipBlock.except") + `
	: params.spec.allowCIDRs.exists(a, cidr(a).containsCIDR(peer.ipBlock.cidr)))`

// wide is the condition that a peer is a block that contains metadata addresses.
var wide = `has(peer.ipBlock) && isCIDR(peer.ipBlock.cidr) && !` +
	matchSparesMetadata("peer.ipBlock.cidr", "peer.ipBlock.except")

// dnsPeer is the YAML that selects the DNS pods of most clusters.
const dnsPeer = `{namespaceSelector: {matchLabels: {` + namespaceName + `: kube-system}}, ` +
	`podSelector: {matchLabels: {k8s-app: kube-dns}}}`

// matchDNSPods returns the condition that a rule allows no more to DNS pods than croft's own
// policy does. Selectors in other forms are not recognized.
func matchDNSPods(pods []v1alpha1.DNSPods) string {
	var rules []string
	for _, port := range listDNSPorts(pods) {
		peers := nearPeer
		for _, p := range filterByPort(port, pods) {
			peers += " || has(peer.podSelector) && " +
				matchLabel("peer.namespaceSelector", namespaceName, p.Namespace)
			for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
				peers += " && " + matchLabel("peer.podSelector", key, p.Labels[key])
			}
		}
		rules = append(rules, matchPort(port)+" && rule.to.all(peer, "+peers+")")
	}
	return strings.Join(rules, " || ")
}

// matchLabel returns the condition that a selector requires a label.
func matchLabel(selector, key, value string) string {
	key, value = admissionpolicy.Quote(key), admissionpolicy.Quote(value)
	return strings.NewReplacer("SELECTOR", selector, "KEY", key, "VALUE", value).Replace(
		`has(SELECTOR.matchLabels) && KEY in SELECTOR.matchLabels && SELECTOR.matchLabels[KEY] == VALUE`)
}

// matchPort returns the condition that a rule is for a single port, by protocols of DNS. Named
// ports are excluded, since each pod decides which port a name means.
func matchPort(port int32) string {
	const expression = `has(rule.ports) && rule.ports.size() > 0 && rule.ports.all(p, has(p.port) && p.port == PORT &&
		(!has(p.endPort) || p.endPort == PORT) && (!has(p.protocol) || p.protocol in ["UDP", "TCP"]))`
	return strings.ReplaceAll(expression, "PORT", strconv.Itoa(int(port)))
}

// matchResolver returns the condition that a block is the address of one of the platform's name
// servers.
func matchResolver(block string) string {
	const expression = `isCIDR(BLOCK) && variables.resolvers.exists(r, cidr(r).containsCIDR(BLOCK))`
	return strings.ReplaceAll(expression, "BLOCK", block)
}

// formatQuoted returns a CEL list of strings.
func formatQuoted(texts []string) string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = admissionpolicy.Quote(text)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// formatAddresses returns a CEL list of the addresses in networks of one address each.
func formatAddresses(networks []string) string {
	all := make([]string, len(networks))
	for i, n := range networks {
		all[i], _, _ = strings.Cut(n, "/")
	}
	return formatQuoted(all)
}

// matchSparesMetadata returns the condition that a block, of any size, contains none of the metadata
// addresses, or that a list of exceptions, which may be missing, contains those in the block.
func matchSparesMetadata(block, except string) string {
	return `[cidr(` + block + `)].all(c, variables.metadata.all(m, !` + matchOpensMetadata("c", except) + `))`
}

// matchOpensMetadata returns the condition that a network contains the metadata address m, and a
// list of exceptions, which may be missing, does not.
func matchOpensMetadata(network, except string) string {
	return strings.NewReplacer("NETWORK", network, "EXCEPT", except).Replace(
		`(NETWORK.containsIP(m) && !(has(EXCEPT) && EXCEPT.exists(x, isCIDR(x) && cidr(x).containsIP(m))))`)
}
