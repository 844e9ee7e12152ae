package nodeclass

import (
	"slices"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// readCroftClass reads back an EC2NodeClass that croft wrote with every default. Redundant fields
// are removed once all pools are known.
func readCroftClass(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	to := draft.PoolField(name, "nodeClass.aws")
	source.AccountMetadata(o, to)
	spec := o.At("spec")
	spec.MarkKept(to)
	content := map[string]any{}
	for _, f := range spec.Fields() {
		if f.Key() == "tags" {
			continue
		}
		if _, ok := parseCroftClass(map[string]any{f.Key(): f.Value()}); !ok {
			f.MarkNotKept("croft does not support this field: keep an EC2NodeClass of your own that has it, and name it by nodeClass.ref")
			continue
		}
		content[f.Key()] = f.Value()
	}
	class, ok := parseCroftClass(content)
	if !ok {
		return
	}
	if dns := spec.At("kubelet", "clusterDNS"); dns.Found() {
		if len(d.Platform.ClusterDNS) == 0 {
			d.Platform.ClusterDNS = findNameServers(d, dns.Texts())
		}
		if slices.Equal(d.Platform.ClusterDNS, dns.Texts()) {
			dns.MarkKept("platform.clusterDNS")
		}
	}
	class.TagKeys = findTagKeys(name, p.Spec.CostCode, spec.At("tags"))
	readTags(name, spec.At("tags"), p, class.TagKeys)
	p.ReadBack = true
	p.Spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
}

// findNameServers returns the DNS addresses that croft's own network policies allow, which are the
// platform's. If there are none, it returns the addresses of the class.
func findNameServers(d *draft.Draft, otherwise []string) []string {
	var blocks []string
	for _, o := range d.List("networking.k8s.io", "NetworkPolicy") {
		if o.Name != "croft-dns" || len(blocks) > 0 {
			continue
		}
		for _, rule := range o.At("spec", "egress").Items() {
			for _, peer := range rule.At("to").Items() {
				blocks = append(blocks, peer.At("ipBlock", "cidr").Text())
			}
		}
	}
	if all := draft.FilterNameServers(blocks); len(all) > 0 {
		return all
	}
	return otherwise
}

// findTagKeys returns the keys of croft's own tags that differ from the defaults.
func findTagKeys(pool, costCode string, tags source.Field) *v1alpha1.AWSTagKeys {
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
