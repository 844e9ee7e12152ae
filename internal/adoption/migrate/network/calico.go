package network

import (
	"slices"
	"strings"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// readCalico reads Calico's policies by their form: a policy that denies ingress from other
// namespaces is equivalent to croft's wall.
func readCalico(d *draft.Draft) {
	for _, group := range []string{"crd.projectcalico.org", "projectcalico.org"} {
		for _, o := range d.List(group, "GlobalNetworkPolicy") {
			o.Root().MarkOther("applies to the cluster and not to a tenant: it stays, and Calico evaluates it together with croft's policies")
			if !draft.IsManaged(o) && len(d.Tenants) > 0 {
				compareOrder(d, o.At("spec"))
			}
		}
		for _, o := range d.List(group, "NetworkPolicy") {
			if draft.IsManaged(o) {
				reportAgreement(d, o)
				continue // dialect reads the rest
			}
			if strings.HasPrefix(o.Name, "knp.default.") {
				o.Root().MarkOther("Calico's own copy of a Kubernetes policy")
				continue
			}
			readCalicoPolicy(d, o)
			d.AddNote("croft writes its network wall as Kubernetes NetworkPolicies, which Calico enforces too. With platform.network.dialect: Calico it writes Calico's policies, " +
				"the first of order 20: it precedes all policies of a higher order, and with calico.tenantPolicies tenants may write their own after it")
		}
	}
}

func readCalicoPolicy(d *draft.Draft, o *source.Object) {
	source.AccountMetadata(o, Wall)
	spec := o.At("spec")
	where := ""
	if d.FindTenant(o.Namespace) == "" {
		where = "; namespace " + o.Namespace + " belongs to no tenant of the input: no object assigns a pool to it"
	}
	if !deniesOthers(spec) {
		spec.MarkNotKept("croft writes Kubernetes NetworkPolicies: this one stays, and Calico evaluates both; a policy with an order below 1000 precedes croft's, "+
			"so check that it allows no connections that they deny%s", where)
		if where == "" {
			compareOrder(d, spec)
		}
		return
	}
	spec.Account(source.Changed, Wall, "croft's wall replaces it: it allows only connections from the tenant's own pods and from platform.network.platformNamespaces. "+
		"This policy denied namespaces by a label, including the tenant's if they have it; add the namespaces of your ingress controller and Prometheus to platformNamespaces. "+
		"Delete it when croft's walls are in place"+where)
	spec.At("order").MarkChanged(Wall, "tenants write Kubernetes policies, which have no order and cannot precede croft's, unlike Calico's policies with a lower order")
}

// kubernetesOrder is Calico's order for NetworkPolicies of Kubernetes.
const kubernetesOrder = 1000

// compareOrder reports a policy that is evaluated before croft's and allows traffic, or after
// croft's and denies egress.
func compareOrder(d *draft.Draft, spec source.Field) {
	order, ordered := spec.At("order").Number()
	tier := spec.At("tier").Text()
	ingress, egress := spec.At("ingress").Items(), spec.At("egress").Items()
	switch before := ordered && order < kubernetesOrder || tier != "" && tier != "default"; {
	case before && hasAction(append(ingress, egress...), "Allow"):
		at := spec.At("order")
		if !at.Found() {
			at = spec
		}
		d.ReportProblem(at, "precedes croft's policies, which Calico gives order %d, and allows connections that they deny: give it a higher order, or delete it", kubernetesOrder)
	case !before && limitsEgress(spec):
		d.ReportProblem(spec, "follows croft's policies, which Calico gives order %d, so that it denies tenants' pods no connections: write their allowed destinations into network.egress and network.allowCIDRs", kubernetesOrder)
	}
}

// limitsEgress reports whether a policy applies to egress and does not allow all of it.
func limitsEgress(spec source.Field) bool {
	rules := spec.At("egress").Items()
	if len(rules) == 0 {
		return slices.Contains(spec.At("types").Texts(), "Egress")
	}
	first := rules[0]
	return first.At("action").Text() != "Allow" || len(first.Fields()) > 1
}

// deniesOthers reports whether a policy only denies ingress from some namespaces.
func deniesOthers(spec source.Field) bool {
	switch strings.ReplaceAll(spec.At("selector").Text(), " ", "") {
	case "", "all()":
	default:
		return false
	}
	rules := spec.At("ingress").Items()
	for _, r := range rules {
		if r.At("action").Text() != "Deny" || r.At("source", "namespaceSelector").Text() == "" {
			return false
		}
	}
	for _, kind := range spec.At("types").Texts() {
		if kind != "Ingress" {
			return false
		}
	}
	return len(rules) > 0 && !spec.At("egress").Found()
}
