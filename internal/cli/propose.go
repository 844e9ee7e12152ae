package cli

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/quotaplan"
)

// proposal contains the declarations of the files and of the cluster, to be compared.
type proposal struct {
	client client.Client
	// file contains the files' declarations, and live the cluster's.
	file, live *manifest.Declaration
	// lists are the lists of the cluster's declared objects, with all their fields.
	lists []client.ObjectList
	// after is the estate after applying the files.
	after *estate.Estate
}

// propose reads files and checks them together with the cluster's objects.
func (a *app) propose(ctx context.Context, files *fileFlags) (*proposal, error) {
	file, err := files.parse(a.in)
	if err != nil {
		return nil, err
	}
	c, err := a.newClient()
	if err != nil {
		return nil, toFailure(err)
	}
	recorder := &listRecorder{Reader: c, scheme: c.Scheme()}
	live, err := readDeclaration(ctx, recorder)
	if err != nil {
		return nil, toFailure(err)
	}
	whole := overlayFile(live, file, files.whole)
	e, problems := estate.Build(whole)
	if e != nil {
		problems, e.Warnings = splitProblems(problems, e.Warnings, live)
		a.printWarnings(e.Warnings)
	}
	divideQuotas(e, whole.Tenants)
	return &proposal{client: c, file: file, live: live, lists: recorder.lists, after: e}, problems.Err()
}

// listRecorder lists objects with all their fields, and keeps the lists. Files may have fields that this croft does not
// know, so they are compared with the cluster's objects without Go types.
type listRecorder struct {
	client.Reader
	scheme *runtime.Scheme
	lists  []client.ObjectList
}

// List implements client.Reader for typed lists.
func (r *listRecorder) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(into, r.scheme)
	if err != nil {
		return err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind)
	if err := r.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	r.lists = append(r.lists, list)
	return runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), into)
}

// splitProblems separates problems that the file causes from problems of the cluster's other
// objects: an object outside of the file that was already invalid does not prevent the file
// from being applied. Warnings about such objects are dropped here.
func splitProblems(problems, warnings document.Problems, live *manifest.Declaration) (errs, pointedOut document.Problems) {
	type place struct{ kind, name, field string }
	before := map[place]bool{}
	if slices.ContainsFunc(problems, func(p document.Problem) bool { return p.Live }) {
		_, already := estate.Build(live)
		for _, p := range already {
			before[place{p.Kind, p.Name, p.Field}] = true
		}
	}
	for _, p := range problems {
		if p.Live && before[place{p.Kind, p.Name, p.Field}] {
			p.Severity = document.SeverityWarning
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

// printWarnings prints warnings, one a line, in addition to a command's output.
func (a *app) printWarnings(warnings document.Problems) {
	for _, w := range warnings {
		printSafely(a.err, "%v\n", w)
	}
}

// divideQuotas divides quotas as recorded in the tenants' status. New namespaces begin without a
// share.
func divideQuotas(e *estate.Estate, tenants []v1alpha1.Tenant) {
	for i := range tenants {
		ledger := tenants[i].Status.Shares
		if len(ledger) == 0 || e == nil {
			continue
		}
		t := e.FindTenant(tenants[i].Name)
		// A retained namespace that has left the tenant may still have a share.
		if t == nil || len(t.Quota) == 0 || len(t.Namespaces) == 1 && len(ledger) == 1 {
			continue
		}
		given := map[string]corev1.ResourceList{}
		for _, entry := range ledger {
			given[entry.Namespace] = entry.Hard
		}
		t.Shares = quotaplan.CurrentShares(t.Quota, t.Namespaces, given)
	}
}

// overlayFile returns the declared state of the cluster after applying the file. If the file
// contains every desired object, only the Platform and the requested namespaces remain of
// the cluster's other objects.
func overlayFile(cluster, file *manifest.Declaration, isWhole bool) *manifest.Declaration {
	// A new tenant is younger than all existing ones: it loses a conflict about a domain.
	live := map[string]v1alpha1.Tenant{}
	for _, t := range cluster.Tenants {
		live[t.Name] = t
	}
	for i := range file.Tenants {
		t := &file.Tenants[i]
		t.CreationTimestamp = metav1.Now()
		if l, ok := live[t.Name]; ok {
			t.CreationTimestamp = l.CreationTimestamp
			t.Status.Shares, t.Status.Budget = l.Status.Shares, l.Status.Budget
		}
	}
	whole := &manifest.Declaration{
		Platforms: excludeNamed(cluster.Platforms, file.Platforms, func(p v1alpha1.Platform) string { return p.Name }),
		Pools:     excludeNamed(cluster.Pools, file.Pools, func(p v1alpha1.Pool) string { return p.Name }),
		Tenants:   excludeNamed(cluster.Tenants, file.Tenants, func(t v1alpha1.Tenant) string { return t.Name }),
		Networks:  excludeNamed(cluster.Networks, file.Networks, func(n v1alpha1.SecondaryNetwork) string { return n.Name }),
	}
	whole.Requests, whole.Callers = cluster.Requests, cluster.Callers
	if isWhole {
		whole.Pools, whole.Tenants, whole.Networks = nil, nil, nil
	}
	whole.Add(file)
	return whole
}

// excludeNamed returns the elements of all whose names are not in others.
func excludeNamed[T any](all, others []T, name func(T) string) []T {
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
