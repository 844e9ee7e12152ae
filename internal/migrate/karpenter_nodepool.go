package migrate

import (
	"slices"

	"croft.dev/croft/api/v1alpha1"
)

// nodePools of v1 and v1beta1 become pools.
func (d *draft) nodePools() {
	for _, o := range d.of(karpenterGroup, "NodePool") {
		name := d.poolName(o)
		if other := d.pools[name]; other != nil {
			o.Root().NotKept("pool %s is made of %s at %s already: keep one of the two", name, other.from.ID(), other.from.Place())
			d.problem(o.Root(), "pool %s is made of %s at %s already: keep one of the two", name, other.from.ID(), other.from.Place())
			continue
		}
		p := &pool{from: o}
		d.pools[name] = p
		d.nodePool(name, o, p)
	}
	for _, o := range append(d.of(awsGroup, "EC2NodeClass"), d.of(kwokGroup, "KWOKNodeClass")...) {
		if len(o.entries) == 0 {
			o.Root().Other("no NodePool that was read refers to it: it stays as it is")
		}
	}
}

func (d *draft) nodePool(name string, o *Object, p *pool) {
	spec := o.At("spec")
	node := spec.At("template", "spec")
	d.requirements(name, node.At("requirements"), p)
	anything(name, node.At("requirements"), &p.spec.Instances)
	d.tieTo(name, o, p)
	d.tagAnnotations(name, spec.At("template", "metadata", "annotations"), p)
	unsupported(node.At("startupTaints"))
	d.lifetimes(name, o, p)
	d.limits(name, spec.At("limits"), &p.spec)
	d.weight(name, spec.At("weight"), &p.spec)
	spec.At("replicas").NotKept("a Pool has as many nodes as its tenants' pods need: keep a NodePool of a fixed size outside of croft")
	d.budgets(name, spec.At("disruption", "budgets"), &p.spec)
	d.classOf(name, o, p)
	if d.options.HoldNodes && o.At("metadata", "labels", "app.kubernetes.io/managed-by").Text() != v1alpha1.ManagedBy {
		p.spec.Budgets = append(p.spec.Budgets, v1alpha1.Budget{Nodes: "0", Reasons: []string{"Drifted"}})
		spec.At("disruption", "budgets").UnsetChanged(poolField(name, "budgets"), "added: nodes that run are not replaced because croft taints them NoExecute too, which Karpenter calls drift; "+
			"take {nodes: \"0\", reasons: [Drifted]} out once replacing them is welcome")
		if len(p.spec.Budgets) == 1 {
			// A budget of one's own takes the place of the default.
			p.spec.Budgets = append([]v1alpha1.Budget{{Nodes: "10%"}}, p.spec.Budgets...)
		}
	}
}

// tagAnnotations are how croft keeps a pool's tags where there is no cloud.
func (d *draft) tagAnnotations(name string, f Field, p *pool) {
	for _, a := range f.Fields() {
		if key, ok := cutPrefix(a.Key(), v1alpha1.TagAnnotationPrefix); ok {
			if p.spec.Tags == nil {
				p.spec.Tags = map[string]string{}
			}
			p.spec.Tags[key] = a.Text()
			a.Kept(poolField(name, "tags"))
		}
	}
	unsupported(f)
}

// lifetimes writes out Karpenter's defaults, since a Pool's are others.
func (d *draft) lifetimes(name string, o *Object, p *pool) {
	node, disruption := o.At("spec", "template", "spec"), o.At("spec", "disruption")
	expire := node.At("expireAfter")
	if o.Version() == "v1beta1" {
		expire = disruption.At("expireAfter")
		expire.Kept(poolField(name, "ttl"))
	}
	p.spec.TTL = d.span(expire, poolField(name, "ttl"), "720h", "Karpenter's default, 720h")
	p.spec.TerminationGracePeriod = d.span(node.At("terminationGracePeriod"), poolField(name, "terminationGracePeriod"), v1alpha1.Never,
		"Never, until which a PodDisruptionBudget or do-not-disrupt holds a node")
	p.spec.Consolidation = v1alpha1.ConsolidateWhenUnderutilized
	policy := disruption.At("consolidationPolicy")
	switch policy.Text() {
	case "WhenEmpty":
		p.spec.Consolidation = v1alpha1.ConsolidateWhenEmpty
		policy.Kept(poolField(name, "consolidation"))
	case "":
		policy.Unset(poolField(name, "consolidation"), "Karpenter's default, WhenEmptyOrUnderutilized, is written out, since a Pool's is WhenEmpty")
	case "WhenUnderutilized", "WhenEmptyOrUnderutilized":
		policy.Kept(poolField(name, "consolidation"))
	default:
		policy.Changed(poolField(name, "consolidation"), "a Pool knows WhenEmpty and WhenEmptyOrUnderutilized: the second is nearest")
	}
	after := disruption.At("consolidateAfter")
	p.spec.EmptyTTL = d.span(after, poolField(name, "emptyTTL"), "0s", "Karpenter's default, 0s")
	if p.spec.EmptyTTL == v1alpha1.Never && p.spec.Consolidation != v1alpha1.ConsolidateWhenEmpty {
		p.spec.Consolidation = v1alpha1.ConsolidateWhenEmpty
		policy.KeptAs(poolField(name, "consolidation"), "with consolidateAfter: Never no policy ever holds")
	}
}

func (d *draft) span(f Field, to string, otherwise v1alpha1.Duration, said string) v1alpha1.Duration {
	if !f.Found() {
		f.Unset(to, "%s, is written out, since a Pool's default is another", said)
		return otherwise
	}
	span, ok := duration(f.Text())
	if !ok {
		f.NotKept("is no duration")
		d.problem(f, "%q is no duration; write one such as 30s or 168h", f.Text())
		return otherwise
	}
	f.Kept(to)
	return span
}

func (d *draft) budgets(name string, list Field, p *v1alpha1.PoolSpec) {
	to := poolField(name, "budgets")
	for _, b := range list.Items() {
		budget := v1alpha1.Budget{Nodes: b.At("nodes").Text(), Schedule: b.At("schedule").Text(), Reasons: b.At("reasons").Texts()}
		if length := b.At("duration"); length.Found() {
			budget.Duration = hours(length.Text())
		}
		p.Budgets = append(p.Budgets, budget)
		b.Kept(to)
	}
	list.Kept(to)
	if len(p.Budgets) == 1 && p.Budgets[0].Nodes == "10%" && p.Budgets[0].Schedule == "" && len(p.Budgets[0].Reasons) == 0 {
		p.Budgets = nil // a Pool's default too
	}
}

// hours is the length of a budget, which has no seconds.
func hours(text string) string {
	span, ok := duration(text)
	if !ok {
		return text
	}
	return string(span)
}

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
