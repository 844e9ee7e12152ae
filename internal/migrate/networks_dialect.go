package migrate

import (
	"net/netip"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// dialects are the kinds that tell in which API croft wrote its network wall.
var dialects = []struct {
	group, kind string
	dialect     v1alpha1.NetworkDialect
}{
	{string(v1alpha1.CalicoGroup), "NetworkPolicy", v1alpha1.DialectCalico},
	{string(v1alpha1.CalicoStorageGroup), "NetworkPolicy", v1alpha1.DialectCalico},
	{clusterPoliciesGroup, "ClusterNetworkPolicy", v1alpha1.DialectClusterNetworkPolicy},
	{awsPoliciesGroup, "ClusterNetworkPolicy", v1alpha1.DialectAWS},
}

const (
	clusterPoliciesGroup = "policy.networking.k8s.io"
	awsPoliciesGroup     = "networking.k8s.aws"
)

// dialect reads back from croft's own policies in which API they are.
func (d *draft) dialect() {
	for _, known := range dialects {
		for _, o := range d.of(known.group, known.kind) {
			if !managed(o) {
				if known.dialect != v1alpha1.DialectCalico {
					o.Root().Other("is the cluster's and not a tenant's: it stays, and the network plugin goes by it beside croft's")
				}
				continue
			}
			frame(o, wall)
			o.At("spec").KeptAs("platform.network.dialect", "croft wrote it itself")
			d.platform.Network.Dialect = known.dialect
			if known.dialect == v1alpha1.DialectCalico {
				d.ofCalico(o)
			}
		}
	}
}

// ofCalico reads back what one of croft's Calico policies tells beside the dialect.
func (d *draft) ofCalico(o *Object) {
	how := v1alpha1.CalicoNetwork{TenantPolicies: d.tenantsWrite(o.Group(), "networkpolicies")}
	if o.Group() != string(v1alpha1.CalicoGroup) {
		how.APIGroup = v1alpha1.CalicoAPIGroup(o.Group())
	}
	if how != (v1alpha1.CalicoNetwork{}) {
		d.platform.Network.Calico = &how
	}
	if strings.TrimPrefix(o.Name, "default.") != dnsPolicy {
		return
	}
	var blocks []string
	for _, rule := range o.At("spec", "egress").Items() {
		blocks = append(blocks, rule.At("destination", "nets").Texts()...)
	}
	d.resolvers(blocks)
}

// tenantsWrite says whether croft's role for operators writes a resource.
func (d *draft) tenantsWrite(group, resource string) bool {
	role := d.named(rbacGroup, "ClusterRole", "croft-operator")
	if role == nil || !managed(role) {
		return false
	}
	return slices.ContainsFunc(role.At("rules").Items(), func(rule Field) bool {
		return slices.Contains(rule.At("apiGroups").Texts(), group) && slices.Contains(rule.At("resources").Texts(), resource) &&
			slices.Contains(rule.At("verbs").Texts(), "create")
	})
}

// dnsPolicy is the name of croft's policy that lets pods resolve names: nothing else
// tells the addresses of name servers that are no pods.
const dnsPolicy = "croft-dns"

// resolvers takes the addresses of name servers from blocks of one address each, if
// nothing has told them yet.
func (d *draft) resolvers(blocks []string) {
	if len(d.platform.ClusterDNS) > 0 {
		return
	}
	for _, block := range distinct(blocks) {
		if prefix, err := netip.ParsePrefix(block); err == nil {
			d.platform.ClusterDNS = append(d.platform.ClusterDNS, prefix.Addr().String())
		}
	}
}
