package estate

import (
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/thresholds"
)

// checkThresholds warns of more namespaces than Kubernetes is tested with, and of more pools than Karpenter was measured
// with.
func checkThresholds(w *checker) {
	if declared := len(w.Pools); thresholds.Pools.IsAbove(declared, 100) {
		w.warnPlatform("there are %d pools, and Karpenter was measured with up to %d: it considers every pool for every pod, so all teams wait longer "+
			"for nodes; let tenants share pools, or declare some of the tenants in another cluster (docs/reference/sizing.md)", declared, thresholds.Pools.Count)
	}
	declared := 0
	for i := range w.Tenants {
		declared += len(w.listAllNamespaces(&w.Tenants[i]))
	}
	if thresholds.Namespaces.IsAbove(declared, 100) {
		w.warnPlatform("the tenants have %d namespaces, and Kubernetes is tested with up to %d in one cluster: the control plane becomes slow for everybody; "+
			"declare some of the tenants in another cluster (docs/reference/sizing.md)", declared, thresholds.Namespaces.Count)
	}
}

func (w *checker) warnPlatform(format string, args ...any) {
	for _, platform := range w.objects[manifest.KindPlatform] {
		w.recordFindings(platform, makeWarning(nil, format, args...))
	}
}

// CountNamespaces returns the number of namespaces of all tenants.
func (e *Estate) CountNamespaces() int {
	declared := 0
	for _, t := range e.Tenants {
		declared += len(t.Namespaces)
	}
	return declared
}
