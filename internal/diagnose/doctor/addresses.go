package doctor

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/declare/secondary"
)

// gatherAddresses reads whereabouts' IPPools, if secondary networks are declared.
func (g *gatherer) gatherAddresses(ctx context.Context) {
	if g.Declared == nil || len(g.Declared.Networks) == 0 {
		return
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(secondary.IPPool)
	g.ReadList(ctx, readIPPools, list)
	g.IPPools = list.Items
}

// checkAddresses reports networks whose addresses run out. It counts the addresses instead of
// reading conditions, since the operator may not run.
func checkAddresses(s *Snapshot) []Finding {
	if s.Declared == nil {
		return nil
	}
	var all []Finding
	for i := range s.Declared.Networks {
		n := &s.Declared.Networks[i]
		for _, u := range secondary.CountUse(n.Name, &n.Spec, s.IPPools) {
			if !u.IsNearlyFull() {
				continue
			}
			f := newFinding("network-range-full", Warning, "SecondaryNetwork/"+n.Name, u.String())
			if u.IsFull() {
				f.Severity = Problem
			} else {
				f.Cause = "pods still get addresses; a rolling update needs addresses for old and new pods at once"
			}
			all = append(all, f)
		}
	}
	return all
}
