package migrate

import (
	"croft.dev/croft/api/v1alpha1"
)

// nodePools of v1 and v1beta1 become pools.
func (d *draft) nodePools() {
	for _, o := range d.of(karpenterGroup, "NodePool") {
		if d.isOpen(o) {
			continue
		}
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
			o.Root().Other("no NodePool that becomes a pool refers to it: it stays as it is")
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
