package migrate

import (
	"net/netip"
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// croftsClass reads back an EC2NodeClass that croft wrote: in full, with every
// default. What of it needs no saying is left out once all pools are known.
func (d *draft) croftsClass(name string, o *Object, p *pool) {
	to := poolField(name, "nodeClass.aws")
	frame(o, to)
	spec := o.At("spec")
	spec.Kept(to)
	content := map[string]any{}
	for _, f := range spec.Fields() {
		if f.Key() == "tags" {
			continue
		}
		if _, ok := croftClass(map[string]any{f.Key(): f.value}); !ok {
			f.NotKept("croft does not write this: keep an EC2NodeClass of your own that has it, and name it by nodeClass.ref")
			continue
		}
		content[f.Key()] = f.value
	}
	class, ok := croftClass(content)
	if !ok {
		return
	}
	if dns := spec.At("kubelet", "clusterDNS"); dns.Found() {
		if len(d.platform.ClusterDNS) == 0 {
			d.platform.ClusterDNS = d.nameServers(dns.Texts())
		}
		if slices.Equal(d.platform.ClusterDNS, dns.Texts()) {
			dns.Kept("platform.clusterDNS")
		}
	}
	class.TagKeys = tagKeys(name, p.spec.CostCode, spec.At("tags"))
	d.tags(name, spec.At("tags"), p, class.TagKeys)
	p.readBack = true
	p.spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
}

// nameServers are those that croft's own network policies let through, which are
// the platform's; those of the class if there are none.
func (d *draft) nameServers(otherwise []string) []string {
	var all []string
	for _, o := range d.of("networking.k8s.io", "NetworkPolicy") {
		if o.Name != "croft-dns" || len(all) > 0 {
			continue
		}
		for _, rule := range o.At("spec", "egress").Items() {
			for _, peer := range rule.At("to").Items() {
				if prefix, err := netip.ParsePrefix(peer.At("ipBlock", "cidr").Text()); err == nil {
					all = append(all, prefix.Addr().String())
				}
			}
		}
	}
	if len(all) == 0 {
		return otherwise
	}
	return all
}

// tagKeys finds out under which keys croft wrote its own tags, where they are not
// the usual ones.
func tagKeys(pool, costCode string, tags Field) *v1alpha1.AWSTagKeys {
	var taken []string
	find := func(usual, value string) string {
		if value == "" || tags.At(usual).Found() {
			return ""
		}
		for _, tag := range tags.Fields() {
			if tag.Text() == value && !slices.Contains(taken, tag.Key()) {
				taken = append(taken, tag.Key())
				return tag.Key()
			}
		}
		return ""
	}
	keys := v1alpha1.AWSTagKeys{NodePool: find("NodePool", pool), Project: find("Project", pool), CostCode: find("CostCode", costCode)}
	if len(taken) == 0 {
		return nil
	}
	return &keys
}
