package apply

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// State is the result of comparing a desired object with the cluster.
type State string

const (
	// Matches means that Apply would not change the object.
	Matches State = "matches"
	// Missing means that the object does not exist.
	Missing State = "missing"
	// Differs means that the object exists, and differs from the desired one.
	Differs State = "differs"
	// Unreadable means that the caller may not read objects of this kind.
	Unreadable State = "unreadable"
)

// Surveyed is the result of Survey for one object.
type Surveyed struct {
	Ref
	State State
	// ChangedBy are the sorted names of the field managers, other than croft, that changed it.
	ChangedBy []string
}

// SurveyOptions configure Survey.
type SurveyOptions struct {
	// Rendered is for a cluster where another tool than croft applies the objects, such as
	// kubectl or a GitOps tool. Survey then treats the first manager of an object as croft,
	// and ignores that manager's additional labels and annotations.
	Rendered bool
}

// Survey compares objects with the cluster in the same way as Apply, and writes nothing,
// not even in a dry run. It lists each kind once, regardless of the number of objects, and
// only reads an object individually if the list does not contain it. Objects that the
// caller may not read are Unreadable.
func (a *Applier) Survey(ctx context.Context, o SurveyOptions, objects ...client.Object) ([]Surveyed, error) {
	objects, err := a.convertToServed(objects)
	if err != nil {
		return nil, err
	}
	lists := newSnapshot(a.client, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
	var reader client.Reader = lists
	if o.Rendered {
		reader = renderedReader{lists}
	}
	quotas := map[string]int{} // by tenant
	for _, object := range objects {
		if RefOf(object).Kind == "ResourceQuota" {
			quotas[getTenant(object)]++
		}
	}
	all, errs := make([]Surveyed, len(objects)), make([]error, len(objects))
	var group errgroup.Group
	group.SetLimit(concurrency)
	for i, object := range objects {
		group.Go(func() error {
			found, err := a.judgeObject(ctx, reader, o, object)
			tenant := getTenant(object)
			if found.State == Differs && found.inFlight && max(quotas[tenant], lists.countQuotas(tenant)) > 1 {
				found.State, found.ChangedBy = Matches, nil
			}
			if all[i] = found.Surveyed; err != nil {
				errs[i] = &ObjectError{Ref: found.Ref, Err: err}
			}
			return nil
		})
	}
	_ = group.Wait() // errs has the errors of all objects
	return all, errors.Join(errs...)
}

// judgement is the result for one object. inFlight reports that the difference may be a concurrent move of shares.
type judgement struct {
	Surveyed
	inFlight bool
}

func (a *Applier) judgeObject(ctx context.Context, reader client.Reader, o SurveyOptions, object client.Object) (judgement, error) {
	j := judgement{Surveyed: Surveyed{Ref: RefOf(object)}}
	want, err := buildPatch(object)
	if err != nil {
		return j, err
	}
	if o.Rendered {
		stripBookkeeping(want) // only Apply writes it
	}
	found, err := a.compareObject(ctx, reader, object, want)
	switch {
	case meta.IsNoMatchError(err):
		j.State = Missing
	case apierrors.IsForbidden(err):
		j.State = Unreadable
	case err != nil:
		return j, err
	case found.live == nil:
		j.State = Missing
	case found.upToDate:
		j.State = Matches
	default:
		j.State, j.ChangedBy = Differs, found.revertedManagers
		j.inFlight = !o.Rendered && isInFlight(j.Ref, found)
	}
	return j, nil
}

var quotaKind = corev1.SchemeGroupVersion.WithKind("ResourceQuota")

// isInFlight reports whether only croft has written a ResourceQuota. Such a difference may be
// a concurrent move of shares, which takes several steps.
func isInFlight(ref Ref, found finding) bool {
	return ref.Kind == "ResourceQuota" && found.live != nil && !found.hasIntruders && len(found.revertedManagers) == 0 && isMadeByCroft(found.live)
}

func getTenant(o client.Object) string { return o.GetLabels()[v1alpha1.TenantLabel] }

// countQuotas counts the listed ResourceQuotas of a tenant. A retained namespace that no longer
// belongs to the tenant still has a share.
func (s *snapshot) countQuotas(tenant string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	if quotas := s.kinds[quotaKind]; quotas != nil {
		for _, o := range quotas.all {
			if getTenant(o) == tenant {
				n++
			}
		}
	}
	return n
}

// renderedReader reads objects that another tool applies as if croft had applied them.
type renderedReader struct{ client.Client }

// Get implements client.Reader.
func (r renderedReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if err := r.Client.Get(ctx, key, into, opts...); err != nil {
		return err
	}
	kind, err := r.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	return assumeOwnership(kind.Kind, into)
}

// assumeOwnership makes the manager that maintains an object instead of croft look like croft: the
// first manager that applied it, or otherwise the first that wrote it.
func assumeOwnership(kind string, live client.Object) error {
	entries := slices.Clone(live.GetManagedFields())
	keeper, croft := -1, false
	for i, entry := range entries {
		switch {
		case isOurs(entry):
			croft = true
		case entry.Subresource != "":
		case keeper < 0, entries[keeper].Operation != metav1.ManagedFieldsOperationApply && entry.Operation == metav1.ManagedFieldsOperationApply:
			keeper = i
		}
	}
	if keeper < 0 || croft && entries[keeper].Operation != metav1.ManagedFieldsOperationApply {
		return nil // croft maintains it, or did so last
	}
	fields, err := parseFields(entries[keeper])
	if err != nil {
		return err
	}
	// Bookkeeping in metadata is not compared.
	ours, err := setFields(entries[keeper], fields.RecursiveDifference(getFreeFields(kind)))
	if err != nil {
		return err
	}
	ours.Manager, ours.Operation = v1alpha1.ManagedBy, metav1.ManagedFieldsOperationApply
	entries[keeper] = ours
	live.SetManagedFields(entries)
	return nil
}
