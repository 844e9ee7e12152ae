package karpenter

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/nodeclass"
	"croft.dev/croft/internal/adoption/migrate/source"
)

// ReadSettings reads the ConfigMap of a Karpenter with Provisioners, which contains the cluster's
// name and the instance profile.
func ReadSettings(d *draft.Draft) {
	for _, o := range d.List("", "ConfigMap") {
		if o.Name != "karpenter-global-settings" {
			continue
		}
		source.AccountMetadata(o, "platform")
		data := o.At("data")
		if name := data.At("aws.clusterName"); name.Found() {
			d.Platform.ClusterName = name.Text()
			name.MarkKept("platform.clusterName")
		}
		if profile := data.At("aws.defaultInstanceProfile"); profile.Found() {
			d.DefaultProfile = profile.Text()
			profile.MarkKept("platform.nodeClass.aws.instanceProfile")
		}
		data.MarkOther("a setting of Karpenter itself: current versions have it in their chart")
	}
}

// ReadProvisioners converts Provisioners into pools.
func ReadProvisioners(d *draft.Draft) {
	for _, o := range d.List(draft.KarpenterGroup, "Provisioner") {
		name := readPoolName(o)
		p := &draft.Pool{From: o}
		d.Pools[name] = p
		readProvisioner(d, name, o, p)
	}
	for _, o := range d.List(draft.AWSGroup, "AWSNodeTemplate") {
		if !o.IsAccounted() {
			o.Root().MarkOther("no converted Provisioner refers to it")
		}
	}
}

// readPoolName returns the name of the pool that an object becomes: the object's own if it is a
// valid name for a pool.
func readPoolName(o *source.Object) string {
	name := draft.PoolName(o)
	source.AccountMetadata(o, "pools."+name)
	switch {
	case draft.IsStatic(o):
		o.At("metadata", "name").MarkChanged("pools."+name, "Karpenter does not allow you to remove replicas from a NodePool")
	case name != o.Name:
		o.At("metadata", "name").MarkChanged("pools."+name, "a pool's name becomes a label and a taint, and may have no dots")
	}
	return name
}

func readProvisioner(d *draft.Draft, name string, o *source.Object, p *draft.Pool) {
	spec := o.At("spec")
	readRequirements(d, name, spec.At("requirements"), p)
	accountTies(d, name, o, p)
	writeWebhookDefaults(name, spec, &p.Spec.Instances)
	readProvisionerTTLs(name, spec, &p.Spec)
	readLimits(d, name, spec.At("limits", "resources"), &p.Spec)
	readWeight(name, spec.At("weight"), &p.Spec)
	readStartupTaints(d, name, spec.At("startupTaints"), &p.Spec)
	readNodeAnnotations(name, spec.At("annotations"), &p.Spec)
	nodeclass.SetFromProvisioner(d, name, spec, p)
}

// readProvisionerTTLs sets the defaults of a Provisioner explicitly, since a Pool has other
// defaults.
func readProvisionerTTLs(name string, spec source.Field, p *v1alpha1.PoolSpec) {
	empty, expired, merge := spec.At("ttlSecondsAfterEmpty"), spec.At("ttlSecondsUntilExpired"), spec.At("consolidation", "enabled")
	p.EmptyTTL, p.TTL, p.TerminationGracePeriod = v1alpha1.Never, v1alpha1.Never, v1alpha1.Never
	switch n, ok := empty.Number(); {
	case merge.IsTrue():
		p.EmptyTTL, p.Consolidation = "0s", v1alpha1.ConsolidateWhenUnderutilized
		merge.MarkKept(draft.PoolField(name, "consolidation"))
		empty.MarkNotKept("consolidation already removes empty nodes; Karpenter refused both together")
	case ok:
		p.EmptyTTL = draft.FormatSeconds(n)
		empty.MarkKept(draft.PoolField(name, "emptyTTL"))
		merge.MarkKept(draft.PoolField(name, "consolidation"))
	default:
		empty.MarkNotKept("is not a number of seconds")
		merge.MarkKept(draft.PoolField(name, "emptyTTL"))
		empty.MarkUnset(draft.PoolField(name, "emptyTTL"), "neither this nor consolidation: empty nodes stayed for ever, and croft.yaml sets Never, since a Pool's default is 1h")
	}
	spec.At("consolidation").MarkKept(draft.PoolField(name, "consolidation"))
	if n, ok := expired.Number(); ok {
		p.TTL = draft.FormatSeconds(n)
		expired.MarkChanged(draft.PoolField(name, "ttl"), "at this age Karpenter v1 drains a node regardless of budgets; only terminationGracePeriod limits the duration")
	} else {
		expired.MarkNotKept("is not a number of seconds")
		expired.MarkUnset(draft.PoolField(name, "ttl"), "nodes did not expire, and croft.yaml sets Never")
	}
	spec.At("terminationGracePeriod").MarkUnset(draft.PoolField(name, "terminationGracePeriod"),
		"Provisioners had none: a PodDisruptionBudget or do-not-evict blocked the deletion of a node for ever, and croft.yaml sets Never, since a Pool's default is 24h")
}

func readLimits(d *draft.Draft, name string, f source.Field, p *v1alpha1.PoolSpec) {
	for _, l := range f.Fields() {
		quantity, err := resource.ParseQuantity(l.Text())
		if err != nil {
			l.MarkNotKept("is not a quantity")
			d.ReportProblem(l, "%q is not a quantity; write one such as 100 or 400Gi", l.Text())
			continue
		}
		if p.Limits == nil {
			p.Limits = corev1.ResourceList{}
		}
		p.Limits[corev1.ResourceName(l.Key())] = quantity
		l.MarkKept(draft.PoolField(name, "limits"))
	}
	f.MarkKept(draft.PoolField(name, "limits"))
}

func readWeight(name string, f source.Field, p *v1alpha1.PoolSpec) {
	if n, ok := f.Number(); ok && n > 0 && n <= 100 {
		weight := int32(n)
		p.Weight = &weight
		f.MarkKept(draft.PoolField(name, "weight"))
	} else {
		f.MarkNotKept("a weight is a number from 1 to 100; 0 means no weight")
	}
}

// readNodeAnnotations accounts for annotations of nodes, which a Pool does not have.
func readNodeAnnotations(name string, f source.Field, p *v1alpha1.PoolSpec) {
	for _, a := range f.Fields() {
		switch {
		case a.HasOutcome():
		case a.Key() == "karpenter.sh/do-not-disrupt" && a.IsTrue():
			addBudget(p, v1alpha1.Budget{Nodes: "0"})
			a.MarkKeptAs(draft.PoolField(name, "budgets"), "a budget of 0 nodes prevents all disruptions by Karpenter")
		case a.Key() == "karpenter.sh/do-not-consolidate" && a.IsTrue():
			addBudget(p, v1alpha1.Budget{Nodes: "0", Reasons: []string{"Underutilized"}})
			a.MarkKeptAs(draft.PoolField(name, "budgets"), "a budget of 0 nodes for the reason Underutilized prevents consolidation")
		default:
			a.MarkNotKept("a Pool cannot annotate its nodes: use a label instead, which instances.requirements can set")
		}
	}
}

// addBudget adds a budget. The first budget of a pool replaces the default, which is then added
// explicitly for the other reasons.
func addBudget(p *v1alpha1.PoolSpec, b v1alpha1.Budget) {
	if len(p.Budgets) == 0 && len(b.Reasons) > 0 {
		p.Budgets = []v1alpha1.Budget{{Nodes: "10%"}}
	}
	p.Budgets = append(p.Budgets, b)
}
