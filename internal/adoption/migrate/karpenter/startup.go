package karpenter

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/estate"
)

// readStartupTaints keeps the taints that another program removes from new nodes. A taint that a
// Pool cannot have is a problem: without it pods start before that program is ready.
func readStartupTaints(d *draft.Draft, name string, list source.Field, p *v1alpha1.PoolSpec) {
	to := draft.PoolField(name, "startupTaints")
	for _, f := range list.Items() {
		t := v1alpha1.StartupTaint{Key: f.At("key").Text(), Value: f.At("value").Text(), Effect: corev1.TaintEffect(f.At("effect").Text())}
		if t.Key == v1alpha1.NetworksTaint {
			f.MarkNotKept("croft sets this taint: write secondaryNetworks and waitForNetworks into pool %s", name)
			continue
		}
		if slices.ContainsFunc(p.StartupTaints, func(other v1alpha1.StartupTaint) bool { return other.Key == t.Key && other.Effect == t.Effect }) {
			d.ReportLost(f, "pool %s already has a startup taint with this key and effect, and Karpenter refuses two: omit one of them", name)
			continue
		}
		if reason := estate.ExplainInvalidStartupTaint(d.Key, t.Key); reason != "" {
			d.ReportLost(f, "pool %s cannot have this startup taint: %s", name, reason)
			continue
		}
		f.At("timeAdded").MarkNotKept("Kubernetes sets this time")
		p.StartupTaints = append(p.StartupTaints, t)
		f.MarkKept(to)
	}
	list.MarkKept(to)
}
