package network

import (
	"slices"

	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// Unread are the kinds of network policies that migrate does not evaluate, by group.
var Unread = map[string][]string{
	"cilium.io":                {"CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"},
	"crd.antrea.io":            {"NetworkPolicy", "ClusterNetworkPolicy"},
	"networking.gke.io":        {"FQDNNetworkPolicy"},
	draft.AWSPoliciesGroup:     {"ApplicationNetworkPolicy"},
	draft.ClusterPoliciesGroup: {"AdminNetworkPolicy", "BaselineAdminNetworkPolicy"},
}

// reportUnread reports policies of kinds that are not evaluated. Other readers handle policies
// outside of tenants' namespaces.
func reportUnread(d *draft.Draft) {
	for group, kinds := range Unread {
		for _, kind := range kinds {
			for _, o := range d.List(group, kind) {
				switch {
				case o.Namespace != "" && d.FindTenant(o.Namespace) == "":
				case group == draft.ClusterPoliciesGroup:
					reportTiered(d, o)
				case slices.ContainsFunc([]string{"ingress", "egress"}, func(field string) bool { return o.At("spec", field).Found() }) || o.At("specs").Found():
					d.ReportLost(o.Root(), "croft migrate does not read %s, and the network plugin combines it with croft's policies: each may allow connections that the other denied; "+
						"write the tenants' allowed destinations into network.egress and network.allowCIDRs, and delete it when croft's walls are in place", o.Kind)
				}
			}
		}
	}
}

// reportTiered reports a policy of a tier before or after NetworkPolicies that changes the effect of
// croft's policies, or loses its own.
func reportTiered(d *draft.Draft, o *source.Object) {
	baseline := o.Kind == "BaselineAdminNetworkPolicy" || o.At("spec", "tier").Text() == "Baseline"
	switch rules := append(o.At("spec", "ingress").Items(), o.At("spec", "egress").Items()...); {
	case baseline && hasAction(rules, "Deny"):
		d.ReportLost(o.Root(), "croft's policies precede it in tenants' namespaces, so that it denies no connections there: write the tenants' allowed destinations into network.egress and network.allowCIDRs")
	case !baseline && hasAction(rules, "Allow", "Accept"):
		d.ReportLost(o.Root(), "precedes croft's policies, and may allow connections that they deny: delete it, or exclude namespaces with the label croft.dev/tenant from its selector")
	default:
		o.Root().MarkOther("applies to the cluster and not to a tenant: it stays, and the network plugin evaluates it together with croft's policies")
	}
}

// hasAction reports whether one of the rules has one of the actions.
func hasAction(rules []source.Field, actions ...string) bool {
	return slices.ContainsFunc(rules, func(rule source.Field) bool { return slices.Contains(actions, rule.At("action").Text()) })
}
