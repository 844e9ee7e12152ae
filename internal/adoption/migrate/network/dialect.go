package network

import (
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// dialects are the kinds that show in which dialect croft wrote its network wall.
var dialects = []struct {
	group, kind string
	dialect     v1alpha1.NetworkDialect
}{
	{string(v1alpha1.CalicoGroup), "NetworkPolicy", v1alpha1.DialectCalico},
	{string(v1alpha1.CalicoStorageGroup), "NetworkPolicy", v1alpha1.DialectCalico},
	{draft.ClusterPoliciesGroup, "ClusterNetworkPolicy", v1alpha1.DialectClusterNetworkPolicy},
	{draft.AWSPoliciesGroup, "ClusterNetworkPolicy", v1alpha1.DialectAWS},
}

// readDialect reads the dialect from croft's own policies.
func readDialect(d *draft.Draft) {
	for _, dialect := range dialects {
		for _, o := range d.List(dialect.group, dialect.kind) {
			if !draft.IsManaged(o) {
				if dialect.dialect != v1alpha1.DialectCalico {
					reportTiered(d, o)
				}
				continue
			}
			source.AccountMetadata(o, Wall)
			o.At("spec").MarkKeptAs("platform.network.dialect", "croft created it")
			d.Platform.Network.Dialect = dialect.dialect
			if dialect.dialect == v1alpha1.DialectCalico {
				readCalicoSettings(d, o)
			}
		}
	}
}

// readCalicoSettings reads the settings in one of croft's Calico policies, apart from the dialect.
func readCalicoSettings(d *draft.Draft, o *source.Object) {
	how := v1alpha1.CalicoNetwork{TenantPolicies: canTenantsWrite(d, o.Group(), "networkpolicies")}
	if o.Group() != string(v1alpha1.CalicoGroup) {
		how.APIGroup = v1alpha1.CalicoAPIGroup(o.Group())
	}
	if how != (v1alpha1.CalicoNetwork{}) {
		d.Platform.Network.Calico = &how
	}
	if strings.TrimPrefix(o.Name, "default.") != dnsPolicy {
		return
	}
	var blocks []string
	for _, rule := range o.At("spec", "egress").Items() {
		blocks = append(blocks, rule.At("destination", "nets").Texts()...)
	}
	setResolvers(d, blocks)
}

// canTenantsWrite reports whether croft's role for operators may write a resource.
func canTenantsWrite(d *draft.Draft, group, resource string) bool {
	role := d.Find(draft.RBACGroup, "ClusterRole", "croft-operator")
	if role == nil || !draft.IsManaged(role) {
		return false
	}
	return slices.ContainsFunc(role.At("rules").Items(), func(rule source.Field) bool {
		return slices.Contains(rule.At("apiGroups").Texts(), group) && slices.Contains(rule.At("resources").Texts(), resource) &&
			slices.Contains(rule.At("verbs").Texts(), "create")
	})
}

// dnsPolicy is the name of croft's policy for DNS: only it contains the addresses of name
// servers that are not pods.
const dnsPolicy = "croft-dns"

// setResolvers takes the addresses of name servers from blocks of one address each, unless they
// are set already.
func setResolvers(d *draft.Draft, blocks []string) {
	if len(d.Platform.ClusterDNS) > 0 {
		return
	}
	d.Platform.ClusterDNS = draft.FilterNameServers(blocks)
}
