package migrate

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"croft.dev/croft/api/v1alpha1"
)

// policy is a NetworkPolicy with the object that it was read from.
type policy struct {
	*networkingv1.NetworkPolicy
	object *Object
	// spec is where it was written; of a Capsule Tenant, one of its items.
	spec Field
}

const wall = "network wall"

// networks reads the network policies in tenants' namespaces: one by one for what
// is said of each, and together for what gets out.
func (d *draft) networks() {
	byTenant := map[string][]policy{}
	for _, o := range d.of("networking.k8s.io", "NetworkPolicy") {
		p := policy{&networkingv1.NetworkPolicy{}, o, o.At("spec")}
		frame(o, wall)
		if err := o.Root().Into(p.NetworkPolicy); err != nil {
			o.At("spec").NotKept("cannot be read: %v", err)
			d.problem(o.At("spec"), "cannot be read: %v", err)
			continue
		}
		defaulted(p.NetworkPolicy)
		name := d.tenantOf(o.Namespace)
		d.judged(name, p)
		if name != "" || o.Namespace == "" {
			byTenant[name] = append(byTenant[name], p)
		}
	}
	for name, policies := range d.capsulePolicies() {
		byTenant[name] = append(byTenant[name], policies...)
	}
	for _, name := range slices.Sorted(maps.Keys(byTenant)) {
		d.egress(name, byTenant[name])
	}
	d.calico()
	d.dialect()
}

// judged says of one policy what croft has in its place.
func (d *draft) judged(name string, p policy) {
	whole := p.spec
	where := ""
	switch {
	case name == "" && p.Namespace != "":
		where = "; it is in namespace " + p.Namespace + ", which is no tenant's, and stays there"
	case name == "":
		where = "; it names no namespace, and is taken for one that every tenant's has"
	}
	if managed(p.object) {
		whole.KeptAs(wall, "croft wrote it itself")
		d.readBack(p)
		return
	}
	m, err := newMeaning(p.NetworkPolicy, d.concerned(p))
	if err != nil {
		whole.account(NotKept, "", err.Error())
		d.problem(whole, "%v", err)
		return
	}
	if !m.everyPod {
		whole.account(Changed, wall, "is about some pods only, and stays beside croft's: as policies only add up, what croft's let through "+
			"(the tenant's own pods, DNS, platform services) it keeps out no longer"+where)
		return
	}
	for _, said := range []func(policy, meaning, string) (Outcome, string){d.ingressOf, d.egressOf} {
		if outcome, message := said(p, m, where); message != "" {
			whole.account(outcome, wall, message)
		}
	}
	if !m.ingress && !m.egress {
		whole.account(NotKept, "", "is about neither direction, and does nothing"+where)
	}
}

// ingressOf says what becomes of whom a policy lets in.
func (d *draft) ingressOf(p policy, m meaning, where string) (Outcome, string) {
	const replaced = "croft's own wall replaces it: take it away once croft stands"
	if !m.ingress {
		return Kept, ""
	}
	var services, others []string
	for _, namespace := range m.in {
		if d.tenantOf(namespace) == "" {
			services = append(services, namespace)
		} else if d.tenantOf(namespace) != d.tenantOf(p.Namespace) {
			others = append(others, namespace)
		}
	}
	switch {
	case m.inEverybody:
		return NotKept, "lets pods of every namespace in: croft lets in a tenant's own pods and platform.network.platformNamespaces, and no tenant may write such a policy; " +
			"take it away, or it goes on letting others in" + where
	case len(others) > 0:
		return NotKept, "lets in pods of " + strings.Join(others, ", ") + ", another tenant's, which no tenant may under croft: make the two namespaces one tenant's, or go through the ingress; " +
			"take it away, or it goes on letting them in" + where
	case len(services) > 0:
		d.platform.Network.PlatformNamespaces = distinct(append(d.platform.Network.PlatformNamespaces, services...))
		p.spec.account(Changed, "platform.network.platformNamespaces", strings.Join(services, ", ")+" is let in to every tenant, on every port")
		return Kept, replaced + where
	case m.inOutside:
		return Changed, "lets in addresses outside of the cluster: it stays beside croft's, which let none in" + where
	case m.inOwn:
		return Kept, replaced + where
	default:
		return Changed, "keeps out even the tenant's own pods: croft lets these reach one another; " + replaced + where
	}
}

// egressOf says what becomes of where a policy lets pods out to.
func (d *draft) egressOf(_ policy, m meaning, where string) (Outcome, string) {
	switch {
	case !m.egress:
		return Kept, ""
	case m.internet && m.metadata:
		return Changed, "lets pods out everywhere, the instance metadata address included, which croft's own policies deny; " +
			"but policies add up: take this one away once croft stands" + where
	case m.internet:
		return Kept, "croft's egress: Open replaces it: take it away once croft stands" + where
	case m.dns && m.outOwn:
		return Kept, "croft's egress: Restricted replaces it: take it away once croft stands" + where
	case m.dns:
		return Changed, "lets pods out to name servers alone: with egress: Restricted, croft lets them reach their own tenant's pods too; take it away once croft stands" + where
	default:
		return Changed, "lets pods not even resolve names: with egress: Restricted, croft lets them reach name servers and their own tenant's pods; " +
			"take it away once croft stands" + where
	}
}

// egress is where a tenant's pods get out to, by all its policies together.
func (d *draft) egress(name string, policies []policy) {
	var all []*networkingv1.NetworkPolicy
	restricts := false
	for _, p := range policies {
		if managed(p.object) {
			return // its TenantRules say so
		}
		all = append(all, p.NetworkPolicy)
		m, err := newMeaning(p.NetworkPolicy, nil)
		if err != nil {
			return // was said of the policy itself
		}
		restricts = restricts || m.egress && m.everyPod
	}
	if whole, err := together(all, nil); err != nil || !restricts || whole.internet {
		return
	}
	to := "platform.tenantDefaults.egress"
	if name == "" {
		d.platform.TenantDefaults.Egress = v1alpha1.EgressRestricted
	} else {
		to = tenantField(name, "network.egress")
		d.tenants[name].spec.Network.Egress = v1alpha1.EgressRestricted
	}
	for _, p := range policies {
		if !slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			continue
		}
		p.spec.At("policyTypes").Kept(to)
		for _, rule := range p.spec.At("egress").Items() {
			d.allowed(name, rule)
		}
	}
}

// allowed reads the networks that a rule of egress lets pods out to.
func (d *draft) allowed(name string, rule Field) {
	for _, peer := range rule.At("to").Items() {
		cidr := peer.At("ipBlock", "cidr")
		if !cidr.Found() {
			continue
		}
		if name == "" {
			cidr.NotKept("croft grants networks to each tenant: write it into network.allowCIDRs of those that need it")
			continue
		}
		if prefix, err := netip.ParsePrefix(cidr.Text()); err != nil || prefix.Bits() == 0 {
			continue
		}
		t := d.tenants[name]
		t.spec.Network.AllowCIDRs = distinct(append(t.spec.Network.AllowCIDRs, cidr.Text()))
		to := tenantField(name, "network.allowCIDRs")
		if rule.At("ports").Found() || peer.At("ipBlock", "except").Found() {
			cidr.Changed(to, "croft allows the whole network, on every port")
		} else {
			cidr.Kept(to)
		}
	}
}

// readBack finds in croft's own policies what only they tell: the addresses of
// name servers.
func (d *draft) readBack(p policy) {
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
	d.resolvers(blocks)
}
