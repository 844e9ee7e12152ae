package network

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// CalicoFloorPolicy is the name of the policy on tenants' own Calico NetworkPolicies.
const CalicoFloorPolicy = "croft-calico-floor"

// The names of the rules of that policy.
const (
	CalicoOrderRule   = "order"
	CalicoIngressRule = "ingress-from"
	CalicoEgressRule  = "egress-to"
)

// checkCalicoPolicies requires tenants' own Calico NetworkPolicies to come after croft's guard. It also
// prevents them from allowing ingress that the guard cannot name: a Calico NetworkPolicy selects
// namespaces and addresses, but cannot select everything outside of all namespaces.
//
// Tenants may use Deny, since it only affects their own traffic. Pass is checked like Allow,
// since traffic that passes the last tier is allowed.
func checkCalicoPolicies(p *estate.Platform) admissionpolicy.Validating {
	metadata := listMetadata(p)
	operations := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
	return admissionpolicy.Validating{
		Name: CalicoFloorPolicy,
		Resources: []admissionpolicy.Resource{
			{
				Group: string(v1alpha1.CalicoGroup), Version: "*",
				Resources: []string{"networkpolicies"}, Operations: operations,
			},
			{
				Group: string(v1alpha1.CalicoStorageGroup), Version: "*",
				Resources: []string{"networkpolicies"}, Operations: operations,
			},
		},
		Selection:       admissionpolicy.Unmarked,
		MatchConditions: admissionpolicy.NotByPlatform(p.Admins),
		Bounds:          listCalicoBounds(),
		Variables: []admissionpolicy.Variable{
			{Name: "ingress", Expression: readOpenRules("ingress")},
			{Name: "egress", Expression: readOpenRules("egress")},
			{Name: "near", Expression: `params.spec.namespaces + params.spec.platformNamespaces`},
			// Selectors are compared as text, apart from spaces and quotes.
			{Name: "selectors", Expression: `["` + v1alpha1.TenantLabel + `=='" + params.spec.tenant + "'"] +
				variables.near.map(n, "` + namespaceName + `=='" + n + "'") +
				variables.near.map(n, "projectcalico.org/name=='" + n + "'")`},
			{Name: "unchanged", Expression: unchanged},
			{Name: "metadata", Expression: formatAddresses(metadata)},
			{Name: "resolvers", Expression: formatQuoted(listResolvers(p))},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name:    CalicoOrderRule,
				Summary: "a tenant's own Calico NetworkPolicies come after croft's guard, in the default tier",
				Expression: fmt.Sprintf(`(!has(object.spec.order) || double(object.spec.order) > %d.0) &&
					(!has(object.spec.tier) || object.spec.tier in ["", "default"])`, guardOrder),
				Message: fmt.Sprintf(`"spec.order: policies of tenant " + params.spec.tenant
					+ " have an order above %d, the order of croft's own, in the tier default: `+
					`write a higher order, and leave out spec.tier"`, guardOrder),
			},
			{
				Name:    CalicoIngressRule,
				Summary: "they let in only its own namespaces and the platform's",
				Expression: `variables.unchanged ||
					variables.ingress.all(rule, has(rule.source) && ` + matchCalicoNear("rule.source") + `)`,
				Message: `"spec.ingress: tenant " + params.spec.tenant
					+ " may let in only its own namespaces and the platform's: ` +
					`give every rule that allows a source.selector for pods of its own namespace, "
					+ "or a source.namespaceSelector of the form ` + namespaceName + ` == 'NAME', with NAME one of ["
					+ variables.near.map(n, string(n)).join(", ") + "]"`,
			},
			{
				Name: CalicoEgressRule,
				Summary: "they allow egress to named destinations except the instance metadata addresses; " +
					"with Restricted egress, only to the tenant's namespaces and the platform's, " +
					"and to its allowCIDRs; " +
					"and to DNS pods and name servers on the port of DNS",
				Expression: `variables.unchanged ||
					variables.egress.all(rule, ` + calicoDestination + ` || ` +
					matchCalicoDNS(estate.ListDNSPods(&p.Network)) + `)`,
				Message: `params.spec.egress == "Open"
					? "spec.egress: give every rule that allows a destination, and leave out one for port 53, ` +
					`since names are resolved without it; the instance metadata addresses must be excluded: ` +
					`where destination.nets contain them, add them to its notNets (` +
					strings.Join(metadata, ", ") + `)"
					: "spec.egress: tenant " + params.spec.tenant + " has Restricted egress: ` +
					`rules that allow may name its namespaces and the platform's, or destination.nets within ["
						+ params.spec.allowCIDRs.map(c, string(c)).join(", ") + "]; ` +
					`names are resolved without a rule: ` +
					`leave one for DNS out, or write a protocol, destination.ports [53] ` +
					`and the namespaceSelector and selector of the DNS pods; ` +
					`ask a platform admin for more"`,
			},
		},
	}
}

// calicoDestination is the condition that an egress rule names a destination that the tenant
// may connect to: namespaces of the tenant or the platform; with Open egress, any namespaces,
// and networks without the metadata addresses; with Restricted egress, networks within its
// allowCIDRs.
var calicoDestination = `has(rule.destination) && (` + matchCalicoNear("rule.destination") + ` ||
	params.spec.egress == "Open" &&
		has(rule.destination.namespaceSelector) && rule.destination.namespaceSelector != "" ||
	has(rule.destination.nets) && rule.destination.nets.size() > 0 &&
		rule.destination.nets.all(n, isCIDR(n) && (params.spec.egress == "Open"
			? ` + matchSparesMetadata("n", "rule.destination.notNets") + `
			: params.spec.allowCIDRs.exists(a, cidr(a).containsCIDR(n)))))`

// matchCalicoDNS returns the condition that a rule allows no more to DNS pods and name servers
// than croft's own policy does. Selectors in other forms are not recognized.
func matchCalicoDNS(pods []v1alpha1.DNSPods) string {
	rules := []string{matchCalicoPort(estate.DNSPort) +
		` && has(rule.destination.nets) && rule.destination.nets.size() > 0 &&
		rule.destination.nets.all(n, ` + matchResolver("n") + `)`}
	for _, port := range listDNSPorts(pods) {
		var selected []string
		for _, p := range filterByPort(port, pods) {
			selector := removeSpaces(formatCalicoSelector(&metav1.LabelSelector{MatchLabels: p.Labels}))
			for _, name := range []string{namespaceName, "projectcalico.org/name"} {
				selected = append(selected, removeSpaces(name+"=='"+p.Namespace+"'")+" "+selector)
			}
		}
		both := compactExpression("rule.destination.namespaceSelector") + ` + " " + ` +
			compactExpression("rule.destination.selector")
		rules = append(rules, matchCalicoPort(port)+
			` && has(rule.destination.namespaceSelector) && has(rule.destination.selector) &&
			`+both+` in `+formatQuoted(selected))
	}
	return strings.Join(rules, " || ")
}

// matchCalicoPort returns the condition that a rule is for a single port, by a protocol of DNS.
func matchCalicoPort(port int32) string {
	return fmt.Sprintf(`has(rule.protocol) && rule.protocol in ["UDP", "TCP"] && `+
		`has(rule.destination) && has(rule.destination.ports) &&
		rule.destination.ports.size() > 0 && rule.destination.ports.all(p, p == %d)`, port)
}

// compactExpression returns an expression for a selector without spaces and with one kind of quotes.
func compactExpression(selector string) string {
	return selector + `.replace(" ", "").replace("\"", "'")`
}

// removeSpaces does the same as compactExpression for a selector of croft.
func removeSpaces(selector string) string { return strings.ReplaceAll(selector, " ", "") }

// readOpenRules returns an expression for the rules of a direction that may allow traffic.
func readOpenRules(direction string) string {
	return `has(object.spec.` + direction + `)
		? object.spec.` + direction + `.filter(r, !has(r.action) || !(r.action in ["Deny", "Log"]))
		: []`
}

// matchCalicoNear returns the condition that one side of a rule selects pods in the policy's own
// namespace, as a selector alone does, or in a namespace of the tenant or the platform.
func matchCalicoNear(side string) string {
	return fmt.Sprintf(`(has(%[1]s.namespaceSelector) && %[1]s.namespaceSelector != ""
		? %[2]s in variables.selectors
		: has(%[1]s.selector) && %[1]s.selector != "")`, side, compactExpression(side+".namespaceSelector"))
}
