package cli

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/quotaplan"
)

// proposal is the content of files and of the cluster, which are compared.
type proposal struct {
	client client.Client
	// file has the files' declarations, and live the cluster's.
	file, live *manifest.Declaration
	// after is the estate after applying the files.
	after *estate.Estate
}

// propose reads files and checks them together with the cluster's objects.
func (a *app) propose(ctx context.Context, files *fileFlags) (*proposal, error) {
	file, err := files.parse(a.in)
	if err != nil {
		return nil, err
	}
	c, err := a.client()
	if err != nil {
		return nil, failed(err)
	}
	live, err := declared(ctx, c)
	if err != nil {
		return nil, failed(err)
	}
	whole := overlay(live, file, files.whole)
	e, problems := estate.Build(whole)
	if e != nil {
		problems, e.Warnings = blame(problems, e.Warnings, live)
		a.warn(e.Warnings)
	}
	divide(e, whole.Tenants)
	return &proposal{client: c, file: file, live: live, after: e}, problems.Err()
}

// blame separates the file's own problems from others: an object outside of the file
// that was refused before does not keep the file from being applied. Warnings about such
// objects are dropped here.
func blame(problems, warnings manifest.Problems, live *manifest.Declaration) (errs, pointedOut manifest.Problems) {
	type place struct{ kind, name, field string }
	before := map[place]bool{}
	if slices.ContainsFunc(problems, func(p manifest.Problem) bool { return p.Live }) {
		_, already := estate.Build(live)
		for _, p := range already {
			before[place{p.Kind, p.Name, p.Field}] = true
		}
	}
	for _, p := range problems {
		if p.Live && before[place{p.Kind, p.Name, p.Field}] {
			p.Severity = manifest.SeverityWarning
			pointedOut = append(pointedOut, p)
			continue
		}
		errs = append(errs, p)
	}
	for _, w := range warnings {
		if !w.Live {
			pointedOut = append(pointedOut, w)
		}
	}
	return errs, pointedOut
}

// warn prints warnings, one a line, in addition to a command's output.
func (a *app) warn(warnings manifest.Problems) {
	for _, w := range warnings {
		say(a.err, "%v\n", w)
	}
}

// divide divides quotas as the cluster divides them. New namespaces begin without a
// share.
func divide(e *estate.Estate, tenants []v1alpha1.Tenant) {
	for i := range tenants {
		ledger := tenants[i].Status.Shares
		if len(ledger) == 0 || e == nil {
			continue
		}
		t := e.Tenant(tenants[i].Name)
		// A namespace that left and is retained may still have a share.
		if t == nil || len(t.Quota) == 0 || len(t.Namespaces) == 1 && len(ledger) == 1 {
			continue
		}
		given := map[string]corev1.ResourceList{}
		for _, entry := range ledger {
			given[entry.Namespace] = entry.Hard
		}
		t.Shares = quotaplan.Standing(t.Quota, t.Namespaces, given)
	}
}

// overlay is the declared state of the cluster after applying the file; if the file is
// the whole, only the Platform remains of the rest.
func overlay(cluster, file *manifest.Declaration, isWhole bool) *manifest.Declaration {
	// A new tenant is younger than all existing ones: of two that claim one domain it is
	// the later.
	live := map[string]v1alpha1.Tenant{}
	for _, t := range cluster.Tenants {
		live[t.Name] = t
	}
	for i := range file.Tenants {
		t := &file.Tenants[i]
		t.CreationTimestamp = metav1.Now()
		if l, ok := live[t.Name]; ok {
			t.CreationTimestamp = l.CreationTimestamp
			t.Status.Shares = l.Status.Shares
		}
	}
	whole := &manifest.Declaration{
		Platforms: without(cluster.Platforms, file.Platforms, func(p v1alpha1.Platform) string { return p.Name }),
		Pools:     without(cluster.Pools, file.Pools, func(p v1alpha1.Pool) string { return p.Name }),
		Tenants:   without(cluster.Tenants, file.Tenants, func(t v1alpha1.Tenant) string { return t.Name }),
		Networks:  without(cluster.Networks, file.Networks, func(n v1alpha1.SecondaryNetwork) string { return n.Name }),
	}
	whole.Requests = cluster.Requests
	if isWhole {
		whole.Pools, whole.Tenants, whole.Networks = nil, nil, nil
	}
	whole.Add(file)
	return whole
}

// without returns the elements of all whose names others does not have.
func without[T any](all, others []T, name func(T) string) []T {
	named := sets.New[string]()
	for _, o := range others {
		named.Insert(name(o))
	}
	var rest []T
	for _, o := range all {
		if !named.Has(name(o)) {
			rest = append(rest, o)
		}
	}
	return rest
}
