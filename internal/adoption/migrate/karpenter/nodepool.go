package karpenter

import (
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/nodeclass"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// ReadNodePools converts NodePools of v1 and v1beta1 into pools.
func ReadNodePools(d *draft.Draft) {
	for _, o := range d.List(draft.KarpenterGroup, "NodePool") {
		if isOutside(d, o) {
			continue
		}
		name := readPoolName(o)
		if other := d.Pools[name]; other != nil {
			o.Root().MarkNotKept("%[2]s at %[3]s already becomes pool %[1]s: keep one of the two", name, other.From.ID(), other.From.Place())
			d.ReportProblem(o.Root(), "%[2]s at %[3]s already becomes pool %[1]s: keep one of the two", name, other.From.ID(), other.From.Place())
			continue
		}
		p := &draft.Pool{From: o}
		d.Pools[name] = p
		readNodePool(d, name, o, p)
	}
	for _, o := range append(d.List(draft.AWSGroup, "EC2NodeClass"), d.List(draft.KwokGroup, "KWOKNodeClass")...) {
		if !o.IsAccounted() {
			o.Root().MarkOther("no converted NodePool refers to it: it stays as it is")
		}
	}
}

func readNodePool(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	spec := o.At("spec")
	node := spec.At("template", "spec")
	readRequirements(d, name, node.At("requirements"), p)
	allowAnyInstance(name, node.At("requirements"), &p.Spec.Instances)
	accountTies(d, name, o, p)
	readStartupTaints(d, name, node.At("startupTaints"), &p.Spec)
	readLifetimes(d, name, o, p)
	readLimits(d, name, spec.At("limits"), &p.Spec)
	readWeight(name, spec.At("weight"), &p.Spec)
	reportStatic(d, name, o)
	readBudgets(name, spec.At("disruption", "budgets"), &p.Spec)
	readTagAnnotations(name, spec.At("template", "metadata", "annotations"), p)
	nodeclass.SetFromNodePool(d, name, o, p)
	if d.Options.HoldNodes && o.At("metadata", "labels", "app.kubernetes.io/managed-by").Text() != v1alpha1.ManagedBy {
		addBudget(&p.Spec, v1alpha1.Budget{Nodes: "0", Reasons: []string{"Drifted"}})
		spec.At("disruption", "budgets").MarkUnsetChanged(draft.PoolField(name, "budgets"), "added to keep running nodes: croft also taints them NoExecute, which causes drift, and Karpenter would replace them; "+
			"remove {nodes: \"0\", reasons: [Drifted]} when Karpenter may replace them")
	}
}

// reportStatic reports a NodePool with a fixed number of nodes. Its pool has another name,
// since Karpenter refuses to change a NodePool with replicas into one without.
func reportStatic(d *draft.Draft, name string, o *source.Object) {
	if !draft.IsStatic(o) {
		return
	}
	replicas := o.At("spec", "replicas")
	replicas.MarkNotKept("a Pool has as many nodes as its tenants' pods need")
	d.ReportProblem(replicas, "a Pool has no fixed number of nodes, and Karpenter does not allow you to remove replicas from a NodePool: croft.yaml has the new pool %s; "+
		"when its nodes run the tenants' pods, delete NodePool %s", name, o.Name)
}

// readTagAnnotations reads the annotations in which croft stores a pool's tags outside of clouds.
func readTagAnnotations(name string, f source.Field, p *draft.Pool) {
	for _, a := range f.Fields() {
		if key, ok := strings.CutPrefix(a.Key(), v1alpha1.TagAnnotationPrefix); ok && key != "" {
			if p.Spec.Tags == nil {
				p.Spec.Tags = map[string]string{}
			}
			p.Spec.Tags[key] = a.Text()
			a.MarkKept(draft.PoolField(name, "tags"))
		}
	}
	readNodeAnnotations(name, f, &p.Spec)
}

// readLifetimes sets Karpenter's defaults explicitly, since a Pool has other defaults.
func readLifetimes(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	node, disruption := o.At("spec", "template", "spec"), o.At("spec", "disruption")
	expire := node.At("expireAfter")
	if o.Version() == "v1beta1" {
		expire = disruption.At("expireAfter")
		expire.MarkKept(draft.PoolField(name, "ttl"))
	}
	p.Spec.TTL = readDuration(d, expire, draft.PoolField(name, "ttl"), "720h", "Karpenter's default, 720h")
	p.Spec.TerminationGracePeriod = readDuration(d, node.At("terminationGracePeriod"), draft.PoolField(name, "terminationGracePeriod"), v1alpha1.Never,
		"Karpenter's default, Never, by which a PodDisruptionBudget or do-not-disrupt can block the deletion of a node for ever")
	p.Spec.Consolidation = v1alpha1.ConsolidateWhenUnderutilized
	policy := disruption.At("consolidationPolicy")
	switch policy.Text() {
	case "WhenEmpty":
		p.Spec.Consolidation = v1alpha1.ConsolidateWhenEmpty
		policy.MarkKept(draft.PoolField(name, "consolidation"))
	case "":
		policy.MarkUnset(draft.PoolField(name, "consolidation"), "Karpenter's default, WhenEmptyOrUnderutilized, is written into croft.yaml, since a Pool's default is WhenEmpty")
	case "WhenUnderutilized", "WhenEmptyOrUnderutilized":
		policy.MarkKept(draft.PoolField(name, "consolidation"))
	default:
		policy.MarkChanged(draft.PoolField(name, "consolidation"), "a Pool supports only WhenEmpty and WhenEmptyOrUnderutilized: the second is closest")
	}
	after := disruption.At("consolidateAfter")
	p.Spec.EmptyTTL = readDuration(d, after, draft.PoolField(name, "emptyTTL"), "0s", "Karpenter's default, 0s")
	if p.Spec.EmptyTTL == v1alpha1.Never && p.Spec.Consolidation != v1alpha1.ConsolidateWhenEmpty {
		p.Spec.Consolidation = v1alpha1.ConsolidateWhenEmpty
		policy.MarkKeptAs(draft.PoolField(name, "consolidation"), "with consolidateAfter: Never the policy has no effect")
	}
}

func readDuration(d *draft.Draft, f source.Field, to string, otherwise v1alpha1.Duration, reported string) v1alpha1.Duration {
	if !f.Found() {
		f.MarkUnset(to, "%s, is written into croft.yaml, since a Pool's default differs", reported)
		return otherwise
	}
	span, ok := draft.ParseDuration(f.Text())
	if !ok {
		f.MarkNotKept("is not a duration")
		d.ReportProblem(f, "%q is not a duration; write one such as 30s or 168h", f.Text())
		return otherwise
	}
	f.MarkKept(to)
	return span
}

func readBudgets(name string, list source.Field, p *v1alpha1.PoolSpec) {
	to := draft.PoolField(name, "budgets")
	for _, b := range list.Items() {
		budget := v1alpha1.Budget{Nodes: b.At("nodes").Text(), Schedule: b.At("schedule").Text(), Reasons: b.At("reasons").Texts()}
		if length := b.At("duration"); length.Found() {
			budget.Duration = formatHours(length.Text())
		}
		p.Budgets = append(p.Budgets, budget)
		b.MarkKept(to)
	}
	list.MarkKept(to)
	if len(p.Budgets) == 1 && p.Budgets[0].Nodes == "10%" && p.Budgets[0].Schedule == "" && len(p.Budgets[0].Reasons) == 0 {
		p.Budgets = nil // the same as a Pool's default
	}
}

// formatHours returns the duration of a budget, whose format has no seconds.
func formatHours(text string) string {
	span, ok := draft.ParseDuration(text)
	if !ok {
		return text
	}
	return string(span)
}
