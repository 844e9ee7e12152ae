package network

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// Policy is a NetworkPolicy with the object that it was read from.
type Policy struct {
	*networkingv1.NetworkPolicy
	object *source.Object
	// spec is the field with the policy's spec; in a Capsule Tenant, an item of a list.
	spec source.Field
}

// NewPolicy returns an empty policy that is to be read from a field of an object.
func NewPolicy(o *source.Object, spec source.Field) Policy {
	return Policy{&networkingv1.NetworkPolicy{}, o, spec}
}

// Wall is the target of network policies in findings.
const Wall = "network wall"

// ReadPolicies reads the network policies in tenants' namespaces: each alone for its finding, and
// together for the tenant's egress. more are policies of tenants in other objects.
func ReadPolicies(d *draft.Draft, more map[string][]Policy) {
	byTenant := map[string][]Policy{}
	for _, o := range d.List("networking.k8s.io", "NetworkPolicy") {
		p := NewPolicy(o, o.At("spec"))
		source.AccountMetadata(o, Wall)
		if err := o.Root().Decode(p.NetworkPolicy); err != nil {
			o.At("spec").MarkNotKept("cannot be read: %v", err)
			d.ReportProblem(o.At("spec"), "cannot be read: %v", err)
			continue
		}
		SetDefaults(p.NetworkPolicy)
		name := d.FindTenant(o.Namespace)
		ReportPolicy(d, name, p)
		if name != "" || o.Namespace == "" {
			byTenant[name] = append(byTenant[name], p)
		}
	}
	for name, policies := range more {
		byTenant[name] = append(byTenant[name], policies...)
	}
	for _, name := range slices.Sorted(maps.Keys(byTenant)) {
		readEgress(d, name, byTenant[name])
	}
	readCalico(d)
	reportUnread(d)
	readDialect(d)
}

// ReportPolicy reports croft's equivalent of one policy.
func ReportPolicy(d *draft.Draft, name string, p Policy) {
	field := p.spec
	where := ""
	switch {
	case name == "" && p.Namespace != "":
		where = "; it is in namespace " + p.Namespace + ", which belongs to no tenant, and stays there"
	case name == "":
		where = "; it has no namespace, and croft migrate assumes that every tenant's namespaces have it"
	}
	if draft.IsManaged(p.object) {
		field.MarkKeptAs(Wall, "croft created it")
		readNameServers(d, p)
		readAgreement(d, name, p)
		return
	}
	m, err := newEffect(p.NetworkPolicy, listConcerned(d, p))
	if err != nil {
		field.Account(source.NotKept, "", err.Error())
		d.ReportProblem(field, "%v", err)
		return
	}
	if !m.everyPod {
		field.Account(source.Changed, Wall, "selects only some pods, and stays in addition to croft's: since policies only add permissions, connections that croft's policies allow "+
			"(the tenant's own pods, DNS, platform services) are no longer denied"+where)
		return
	}
	report := func(outcome source.Outcome, message string) {
		if message != "" {
			field.Account(outcome, Wall, message)
		}
		if outcome == source.NotKept && (name != "" || p.Namespace == "") {
			d.ReportProblem(field, "%s", message)
		}
	}
	report(classifyIngress(d, p, m, where))
	report(classifyEgress(m, where))
	if m.egress && len(m.withheld) > 0 {
		d.ReportLost(field, "denies pods connections to %s: croft's egress: Open allows them, and policies only add permissions; set network.egress: Restricted with allowCIDRs, "+
			"or deny them at the cluster's edge", strings.Join(m.withheld, ", "))
	}
	if !m.ingress && !m.egress {
		field.Account(source.NotKept, "", "has no direction, and no effect"+where)
	}
}

// classifyIngress returns the outcome of a policy's ingress.
func classifyIngress(d *draft.Draft, p Policy, m effect, where string) (source.Outcome, string) {
	const replaced = "croft's wall replaces it: delete it when croft's walls are in place"
	if !m.ingress {
		return source.Kept, ""
	}
	var services, others []string
	for _, namespace := range m.in {
		if d.FindTenant(namespace) == "" {
			services = append(services, namespace)
		} else if d.FindTenant(namespace) != d.FindTenant(p.Namespace) {
			others = append(others, namespace)
		}
	}
	switch {
	case m.inEverybody:
		return source.NotKept, "allows connections from all namespaces: croft allows them only from a tenant's own pods and platform.network.platformNamespaces, and tenants may not write such a policy; " +
			"delete it, or it continues to allow them" + where
	case len(others) > 0:
		return source.NotKept, "allows connections from pods of " + strings.Join(others, ", ") + ", another tenant's namespace, which tenants may not allow under croft: name the two tenants in network.callers and network.calls, give both namespaces to one tenant, or connect through the ingress; " +
			"delete it, or it continues to allow them" + where
	case len(services) > 0:
		d.Platform.Network.PlatformNamespaces = draft.Distinct(append(d.Platform.Network.PlatformNamespaces, services...))
		p.spec.Account(source.Changed, "platform.network.platformNamespaces", strings.Join(services, ", ")+" may connect to every tenant, on every port")
		return source.Kept, replaced + where
	case m.inOutside:
		return source.Changed, "allows connections from addresses outside of the cluster: it stays in addition to croft's policies, which do not allow them" + where
	case m.inOwn:
		return source.Kept, replaced + where
	default:
		return source.Changed, "denies even connections between the tenant's own pods, which croft allows; " + replaced + where
	}
}

// classifyEgress returns the outcome of a policy's egress.
func classifyEgress(m effect, where string) (source.Outcome, string) {
	switch {
	case !m.egress:
		return source.Kept, ""
	case m.internet && m.metadata:
		return source.Changed, "allows connections to all addresses, including instance metadata, which croft's policies deny; " +
			"but policies only add permissions: delete this one when croft's walls are in place" + where
	case m.internet:
		return source.Kept, "croft's egress: Open replaces it: delete it when croft's walls are in place" + where
	case m.dns && m.outOwn:
		return source.Kept, "croft's egress: Restricted replaces it: delete it when croft's walls are in place" + where
	case m.dns:
		return source.Changed, "allows connections only to name servers: with egress: Restricted, croft also allows connections to the tenant's own pods; delete it when croft's walls are in place" + where
	default:
		return source.Changed, "allows no connections, not even to name servers: with egress: Restricted, croft allows connections to name servers and the tenant's own pods; " +
			"delete it when croft's walls are in place" + where
	}
}

// readEgress sets a tenant's egress by all of its policies together.
func readEgress(d *draft.Draft, name string, policies []Policy) {
	var all []*networkingv1.NetworkPolicy
	restricts := false
	for _, p := range policies {
		if draft.IsManaged(p.object) {
			return // its TenantRules contain the egress
		}
		all = append(all, p.NetworkPolicy)
		m, err := newEffect(p.NetworkPolicy, nil)
		if err != nil {
			return // reported for the policy itself
		}
		restricts = restricts || m.egress && m.everyPod
	}
	if together, err := evaluatePolicies(all, nil); err != nil || !restricts || together.internet {
		return
	}
	to := "platform.tenantDefaults.egress"
	if name == "" {
		d.Platform.TenantDefaults.Egress = v1alpha1.EgressRestricted
	} else {
		to = draft.TenantField(name, "network.egress")
		d.Tenants[name].Spec.Network.Egress = v1alpha1.EgressRestricted
	}
	for _, p := range policies {
		if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		p.spec.At("policyTypes").MarkKept(to)
		for _, rule := range p.spec.At("egress").Items() {
			readAllowed(d, name, rule)
		}
	}
}

// readAllowed reads the networks that an egress rule allows.
func readAllowed(d *draft.Draft, name string, rule source.Field) {
	for _, peer := range rule.At("to").Items() {
		cidr := peer.At("ipBlock", "cidr")
		if !cidr.Found() {
			continue
		}
		if name == "" {
			cidr.MarkNotKept("croft grants networks to each tenant: write it into network.allowCIDRs of the tenants that need it")
			continue
		}
		if prefix, err := netip.ParsePrefix(cidr.Text()); err != nil || prefix.Bits() == 0 {
			continue
		}
		t := d.Tenants[name]
		t.Spec.Network.AllowCIDRs = draft.Distinct(append(t.Spec.Network.AllowCIDRs, cidr.Text()))
		to := draft.TenantField(name, "network.allowCIDRs")
		if rule.At("ports").Found() || peer.At("ipBlock", "except").Found() {
			cidr.MarkChanged(to, "croft allows the whole network, on every port")
		} else {
			cidr.MarkKept(to)
		}
	}
}

// readNameServers reads the addresses of name servers from croft's own policies. No other object
// contains them.
func readNameServers(d *draft.Draft, p Policy) {
	if p.Name != dnsPolicy {
		return
	}
	var blocks []string
	for _, rule := range p.Spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock != nil {
				blocks = append(blocks, peer.IPBlock.CIDR)
			}
		}
	}
	setResolvers(d, blocks)
}
