package migrate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
)

// settings reads Karpenter's ConfigMap of the time of Provisioners, which names
// the cluster and the instance profile.
func (d *draft) settings() {
	for _, o := range d.of("", "ConfigMap") {
		if o.Name != "karpenter-global-settings" {
			continue
		}
		frame(o, "platform")
		data := o.At("data")
		if name := data.At("aws.clusterName"); name.Found() {
			d.platform.ClusterName = name.Text()
			name.Kept("platform.clusterName")
		}
		if profile := data.At("aws.defaultInstanceProfile"); profile.Found() {
			d.defaultProfile = profile.Text()
			profile.Kept("platform.nodeClass.aws.instanceProfile")
		}
		data.Other("a setting of Karpenter's own: today they are arguments of its chart")
	}
}

// provisioners become pools.
func (d *draft) provisioners() {
	for _, o := range d.of(karpenterGroup, "Provisioner") {
		name := d.poolName(o)
		p := &pool{from: o}
		d.pools[name] = p
		d.provisioner(name, o, p)
	}
	for _, o := range d.of(awsGroup, "AWSNodeTemplate") {
		if len(o.entries) == 0 {
			o.Root().NotKept("no Provisioner that was read refers to it")
		}
	}
}

// poolName is the name of the pool that an object becomes: its own, where that
// can be one.
func (d *draft) poolName(o *Object) string {
	name := asName(o.Name)
	frame(o, "pools."+name)
	if name != o.Name {
		o.At("metadata", "name").Changed("pools."+name, "a pool's name becomes a label and a taint, and has no dots")
	}
	return name
}

func (d *draft) provisioner(name string, o *Object, p *pool) {
	spec := o.At("spec")
	d.requirements(name, spec.At("requirements"), p)
	d.tieTo(name, o, p)
	webhookDefaults(name, spec.At("requirements"), &p.spec.Instances)
	d.provisionerTTLs(name, spec, &p.spec)
	d.limits(name, spec.At("limits", "resources"), &p.spec)
	d.weight(name, spec.At("weight"), &p.spec)
	for _, key := range []string{"startupTaints", "annotations"} {
		unsupported(spec.At(key))
	}
	d.templateOf(name, spec, p)
}

// provisionerTTLs write out what unset meant: a Pool's defaults are others.
func (d *draft) provisionerTTLs(name string, spec Field, p *v1alpha1.PoolSpec) {
	empty, expired, merge := spec.At("ttlSecondsAfterEmpty"), spec.At("ttlSecondsUntilExpired"), spec.At("consolidation", "enabled")
	p.EmptyTTL, p.TTL, p.TerminationGracePeriod = v1alpha1.Never, v1alpha1.Never, v1alpha1.Never
	switch n, ok := empty.Number(); {
	case merge.True():
		p.EmptyTTL, p.Consolidation = "0s", v1alpha1.ConsolidateWhenUnderutilized
		merge.Kept(poolField(name, "consolidation"))
		empty.NotKept("consolidation removes empty nodes already; Karpenter never took both")
	case ok:
		p.EmptyTTL = seconds(n)
		empty.Kept(poolField(name, "emptyTTL"))
		merge.Kept(poolField(name, "consolidation"))
	default:
		empty.NotKept("is no number of seconds")
		merge.Kept(poolField(name, "emptyTTL"))
		empty.Unset(poolField(name, "emptyTTL"), "neither this nor consolidation: empty nodes stayed for ever, and croft.yaml says Never, since a Pool's default is 1h")
	}
	spec.At("consolidation").Kept(poolField(name, "consolidation"))
	if n, ok := expired.Number(); ok {
		p.TTL = seconds(n)
		expired.Changed(poolField(name, "ttl"), "from this age on Karpenter now drains a node whatever budgets say; only terminationGracePeriod bounds how long that takes")
	} else {
		expired.NotKept("is no number of seconds")
		expired.Unset(poolField(name, "ttl"), "nodes never grew too old, and croft.yaml says Never")
	}
	spec.At("terminationGracePeriod").Unset(poolField(name, "terminationGracePeriod"),
		"Provisioners had none: a PodDisruptionBudget or do-not-evict held a node for ever, and croft.yaml says Never, since a Pool's default is 24h")
}

func (d *draft) limits(name string, f Field, p *v1alpha1.PoolSpec) {
	for _, l := range f.Fields() {
		quantity, err := resource.ParseQuantity(l.Text())
		if err != nil {
			l.NotKept("is no quantity")
			d.problem(l, "%q is no quantity; write one such as 100 or 400Gi", l.Text())
			continue
		}
		if p.Limits == nil {
			p.Limits = corev1.ResourceList{}
		}
		p.Limits[corev1.ResourceName(l.Key())] = quantity
		l.Kept(poolField(name, "limits"))
	}
	f.Kept(poolField(name, "limits"))
}

func (d *draft) weight(name string, f Field, p *v1alpha1.PoolSpec) {
	if n, ok := f.Number(); ok && n > 0 && n <= 100 {
		weight := int32(n)
		p.Weight = &weight
		f.Kept(poolField(name, "weight"))
	} else {
		f.NotKept("a weight is a number from 1 to 100; 0 is none")
	}
}

// unsupported accounts for what a Pool cannot say of its nodes.
func unsupported(f Field) {
	for _, a := range f.Fields() {
		if a.said() {
			continue
		}
		switch a.Key() {
		case "karpenter.sh/do-not-consolidate", "karpenter.sh/do-not-disrupt":
			a.NotKept("a Pool has no annotations for its nodes: keep them with consolidation: WhenEmpty, or a budget of 0 nodes for the reason Underutilized")
		default:
			a.NotKept("a Pool has no annotations for its nodes: have whatever reads it read a label, which instances.requirements can give")
		}
	}
	if f.Key() == "startupTaints" {
		f.NotKept("a Pool has no startup taints: pods may start before whatever removes them is ready; keep a NodePool of your own outside of croft if they must not")
	}
}
