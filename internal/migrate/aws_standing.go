package migrate

import (
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// classOf gives a pool the node class that its NodePool names: as croft.yaml says
// it where croft wrote it, otherwise the very one that stands.
func (d *draft) classOf(name string, o *Object, p *pool) {
	ref := o.At("spec", "template", "spec", "nodeClassRef")
	group, kind, class := ref.At("group").Text(), ref.At("kind").Text(), ref.At("name").Text()
	if version := ref.At("apiVersion"); version.Found() {
		group = (&Object{APIVersion: version.Text()}).Group()
	}
	if kind == "" {
		kind = "EC2NodeClass" // v1beta1 did not have to say
	}
	if group == "" && kind == "EC2NodeClass" {
		group = awsGroup
	}
	ref.Kept(poolField(name, "nodeClass"))
	from := d.named(group, kind, class)
	kubelet := o.At("spec", "template", "spec", "kubelet")
	switch {
	case group == kwokGroup:
		p.spec.NodeClass = &v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}
		if from != nil {
			frame(from, poolField(name, "nodeClass.kwok"))
			if delay := from.At("spec", "nodeRegistrationDelay"); delay.Text() == "0s" {
				delay.Kept(poolField(name, "nodeClass.kwok"))
			} else {
				delay.NotKept("croft's simulated nodes register at once: keep the KWOKNodeClass, and name it by nodeClass.ref")
			}
		}
	case from != nil && from.At("metadata", "labels", v1alpha1.PoolLabel).Text() == name:
		d.croftsClass(name, from, p)
	case from != nil && (from.Version() == "v1beta1" || kubelet.Found()):
		d.betaClass(name, from, kubelet, p)
	default:
		p.spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: group, Kind: kind, Name: class}}
		kubelet.NotKept("goes to the node class, which was not read: give its file too")
		if from != nil {
			from.Root().Kept(poolField(name, "nodeClass.ref"))
			from.Root().account(Kept, poolField(name, "nodeClass.ref"), "stays as it is, and croft refers to it")
		}
	}
}

// croftsClass reads back an EC2NodeClass that croft wrote.
func (d *draft) croftsClass(name string, o *Object, p *pool) {
	to := poolField(name, "nodeClass.aws")
	frame(o, to)
	spec := o.At("spec")
	class := &v1alpha1.AWSNodeClass{Role: spec.At("role").Text(), InstanceProfile: spec.At("instanceProfile").Text()}
	spec.Kept(to)
	if terms := spec.At("amiSelectorTerms").Items(); len(terms) == 1 && terms[0].At("alias").Text() != "al2023@latest" {
		class.AMIAlias = terms[0].At("alias").Text()
	}
	if terms := spec.At("subnetSelectorTerms").Items(); len(terms) == 1 {
		class.Discovery = terms[0].At("tags").TextMap()
	}
	if dns := spec.At("kubelet", "clusterDNS"); dns.Found() && len(d.platform.ClusterDNS) == 0 {
		d.platform.ClusterDNS = dns.Texts()
	}
	spec.At("kubelet").Kept("platform.clusterDNS")
	spec.At("metadataOptions").KeptAs(to, "croft sets them itself")
	d.tags(name, spec.At("tags"), p)
	p.spec.NodeClass = &v1alpha1.NodeClass{AWS: class}
}

// betaClass says an EC2NodeClass of v1beta1 in v1, with the kubelet that its
// NodePool had.
func (d *draft) betaClass(name string, o *Object, kubelet Field, p *pool) {
	source := o.ID() + abridged(kubelet.value)
	class, known := d.classes[source]
	if !known {
		class = o.Name
		for _, taken := range d.classes {
			if taken == class {
				class = o.Name + "-" + name
			}
		}
		d.classes[source] = class
	}
	at := func(field string) string { return classField(class, field) }
	frame(o, at(""))
	p.spec.NodeClass = &v1alpha1.NodeClass{Ref: &v1alpha1.NodeClassRef{Group: awsGroup, Kind: "EC2NodeClass", Name: class}}
	from := o.At("spec")
	spec := map[string]any{}
	for _, f := range from.Fields() {
		spec[f.Key()] = plainly(f.value)
		f.Kept(at(f.Key()))
	}
	d.kubelet(name, template{name: class, spec: from, kubelet: kubelet}, spec, at)
	if o.Version() == "v1beta1" {
		betaDefaults(class, from, spec, at)
	}
	if !known {
		d.addClass(class, spec)
	}
}

// betaDefaults writes out what v1beta1 did for those that did not say.
func betaDefaults(class string, from Field, spec map[string]any, at func(string) string) {
	if metadata := from.At("metadataOptions"); !metadata.At("httpPutResponseHopLimit").Found() {
		options, _ := spec["metadataOptions"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["httpPutResponseHopLimit"] = float64(2)
		spec["metadataOptions"] = options
		metadata.At("httpPutResponseHopLimit").Unset(at("metadataOptions"), "none: 2 hops, as it was, are written out, since the default today is 1; "+
			"set it to 1 to keep pods from the node's rights")
	}
	if from.At("amiSelectorTerms").Found() {
		return
	}
	family := from.At("amiFamily")
	alias, ok := aliases[family.Text()]
	if !ok {
		family.NotKept("Karpenter v1 has no alias for these images that croft can use: write amiSelectorTerms into EC2NodeClass/%s", class)
		return
	}
	delete(spec, "amiFamily")
	spec["amiSelectorTerms"] = []any{map[string]any{"alias": alias}}
	if slices.Contains([]string{"", "AL2"}, family.Text()) {
		family.Changed(at("amiSelectorTerms"), "%s", al2Gone)
	} else {
		family.KeptAs(at("amiSelectorTerms"), "as the alias %s", alias)
	}
}

func cutPrefix(s, prefix string) (string, bool) {
	if len(s) > len(prefix) && s[:len(prefix)] == prefix {
		return s[len(prefix):], true
	}
	return "", false
}
