package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Owner is the declared object that an object belongs to.
type Owner struct {
	label, name string
	// installed selects croft's own installation.
	installed bool
	// agreed selects only policies for connections between tenants.
	agreed bool
	// withoutCopies excludes the RoleBindings that own copies of Secrets.
	withoutCopies bool
}

// OfPlatform owns the objects that exist once in the cluster.
func OfPlatform() Owner { return Owner{} }

// OfPool owns the objects of one pool.
func OfPool(name string) Owner { return Owner{label: v1alpha1.PoolLabel, name: name} }

// OfTenant owns the objects of one tenant.
func OfTenant(name string) Owner { return Owner{label: v1alpha1.TenantLabel, name: name} }

// OfAccess owns the objects of one tenant except the RoleBindings that own copies of Secrets. In a
// retained namespace the access of people ends, but its pods may need the copies to start.
func OfAccess(tenant string) Owner {
	return Owner{label: v1alpha1.TenantLabel, name: tenant, withoutCopies: true}
}

// OfAgreements owns the policies of one tenant for connections with other tenants.
func OfAgreements(tenant string) Owner {
	return Owner{label: v1alpha1.TenantLabel, name: tenant, agreed: true}
}

// OfAnyTenant owns the objects of all tenants. In a namespace that has changed its tenant,
// this includes the previous tenant's objects.
func OfAnyTenant() Owner { return Owner{label: v1alpha1.TenantLabel} }

// OfInstallation owns croft's own installation: the operator, its rights and the CRDs.
func OfInstallation() Owner { return Owner{installed: true} }

// NameLabel is the label by which Kubernetes' tools identify an application. croft's own
// installation has it, and the walls' objects do not.
const NameLabel = "app.kubernetes.io/name"

// buildSelector selects the owner's objects. It excludes croft's own installation, which has no
// wall's label, unless the owner is OfInstallation.
func (o Owner) buildSelector() (labels.Selector, error) {
	type need struct {
		key    string
		op     selection.Operator
		values []string
	}
	needs := []need{{v1alpha1.ManagedByLabel, selection.Equals, []string{v1alpha1.ManagedBy}}}
	if o.installed {
		needs = append(needs, need{v1alpha1.WallLabel, selection.DoesNotExist, nil}, need{NameLabel, selection.Exists, nil})
	} else {
		needs = append(needs, need{v1alpha1.WallLabel, selection.Exists, nil})
	}
	if o.agreed {
		needs = append(needs, need{v1alpha1.ConsentLabel, selection.Exists, nil})
	}
	if o.withoutCopies {
		needs = append(needs, need{v1alpha1.SecretLabel, selection.DoesNotExist, nil})
	}
	switch {
	case o.installed:
	case o.name != "":
		needs = append(needs, need{o.label, selection.Equals, []string{o.name}})
	case o.label != "":
		needs = append(needs, need{o.label, selection.Exists, nil})
	default:
		needs = append(needs,
			need{v1alpha1.PoolLabel, selection.DoesNotExist, nil},
			need{v1alpha1.TenantLabel, selection.DoesNotExist, nil})
	}
	selector := labels.NewSelector()
	for _, n := range needs {
		requirement, err := labels.NewRequirement(n.key, n.op, n.values)
		if err != nil {
			return nil, err
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// Prune deletes croft's objects of the given kinds that belong to an owner and are not in
// keep, in one namespace or, if namespace is "", in the whole cluster. It never deletes an
// object that croft has not written, regardless of its labels, nor a Namespace. It skips
// kinds that the cluster does not serve.
func (a *Applier) Prune(ctx context.Context, owner Owner, namespace string, keep []client.Object, kinds ...schema.GroupVersionKind) ([]Change, error) {
	surplus, err := a.findSurplus(ctx, owner, namespace, keep, kinds)
	changes, deleteErr := a.deleteObjects(ctx, surplus)
	return changes, errors.Join(err, deleteErr)
}

// DiffPrune returns the deletions that Prune would make, in the format of Diff.
func (a *Applier) DiffPrune(ctx context.Context, owner Owner, namespace string, keep []client.Object, kinds ...schema.GroupVersionKind) (Differences, error) {
	surplus, err := a.findSurplus(ctx, owner, namespace, keep, kinds)
	deleted, diffErr := DiffDeleted(surplus...)
	return deleted, errors.Join(err, diffErr)
}

// DiffDeleted returns the deletions of live objects, in the format of Diff.
func DiffDeleted(objects ...client.Object) (Differences, error) {
	var all Differences
	var errs []error
	for _, o := range objects {
		before, err := makeTree(o)
		if err == nil {
			var deleted Differences
			deleted, err = diffTrees(RefOf(o), before, tree{})
			all = append(all, deleted...)
		}
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

func (a *Applier) findSurplus(ctx context.Context, owner Owner, namespace string, keep []client.Object, kinds []schema.GroupVersionKind) ([]client.Object, error) {
	selector, err := owner.buildSelector()
	if err != nil {
		return nil, fmt.Errorf("owner %s=%s: %w", owner.label, owner.name, err)
	}
	keep, err = a.convertToServed(keep)
	if err != nil {
		return nil, err
	}
	kept := map[Ref]bool{}
	for _, o := range keep {
		kept[RefOf(o)] = true
	}
	return a.listSurplus(ctx, kept, kinds, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
}

// listSurplus returns croft's objects that are not in kept. If a kind cannot be listed, it
// returns the objects of the other kinds, and the error.
func (a *Applier) listSurplus(ctx context.Context, kept map[Ref]bool, kinds []schema.GroupVersionKind, opts ...client.ListOption) ([]client.Object, error) {
	var all []client.Object
	var errs []error
	for _, kind := range kinds {
		kind, err := ServedKind(a.client.RESTMapper(), kind)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		made, err := a.listObjects(ctx, kind, opts...)
		switch {
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			// Not found means that the kind's CRD was deleted after the look-up.
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("list %s: %w", kind.Kind, err))
			continue
		}
		for _, o := range made {
			o.GetObjectKind().SetGroupVersionKind(kind)
			if !kept[RefOf(o)] && kind.Kind != "Namespace" && o.GetDeletionTimestamp() == nil && isMadeByCroft(o) {
				all = append(all, o)
			}
		}
	}
	return all, errors.Join(errs...)
}

func (a *Applier) deleteObjects(ctx context.Context, objects []client.Object) ([]Change, error) {
	var changes []Change
	var errs []error
	for _, o := range objects {
		change := Change{Ref: RefOf(o), Action: Deleted}
		if err := a.client.Delete(ctx, o, client.Preconditions{UID: ptr.To(o.GetUID())}); client.IgnoreNotFound(err) != nil {
			change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: fmt.Errorf("delete: %w", err)}
			errs = append(errs, change.Err)
		}
		changes = append(changes, change)
	}
	return changes, errors.Join(errs...)
}

// listObjects returns the objects of a kind, as Go types if the scheme has them, so that the
// operator's cache stores each object once.
func (a *Applier) listObjects(ctx context.Context, kind schema.GroupVersionKind, opts ...client.ListOption) ([]client.Object, error) {
	list := newList(a.client.Scheme(), kind)
	if err := a.client.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(items))
	for _, item := range items {
		if o, ok := item.(client.Object); ok {
			objects = append(objects, o)
		}
	}
	return objects, nil
}
