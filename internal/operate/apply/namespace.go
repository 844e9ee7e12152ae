package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"croft.dev/croft/api/v1alpha1"
)

// applyNamespace applies a tenant's namespace, if it belongs to the tenant.
func (a *Applier) applyNamespace(ctx context.Context, o *corev1.Namespace, tenant string) (Action, []string, error) {
	live, err := a.readNamespace(ctx, a.client, o)
	if err != nil {
		return Failed, nil, err
	}
	if live == nil {
		err := a.createDesired(ctx, o)
		switch {
		case err == nil:
			return Created, nil, nil
		case !apierrors.IsAlreadyExists(err):
			return Failed, nil, err
		}
	}
	// The cache may be stale, and another owner may have the namespace by now.
	if live == nil || a.live != nil && live.GetLabels()[v1alpha1.TenantLabel] != tenant {
		if live, err = a.readNamespace(ctx, a.getLiveReader(), o); err != nil {
			return Failed, nil, err
		}
		if live == nil {
			return Failed, nil, apierrors.NewConflict(corev1.Resource("namespaces"), o.Name, errors.New("it was deleted at the same moment"))
		}
	}
	if err := CheckClaim(live, tenant); err != nil {
		return Failed, nil, err
	}
	if _, requested := o.Annotations[v1alpha1.RequestedAnnotation]; !requested {
		// The Tenant now declares the namespace, so it no longer counts as requested.
		if err := a.setAnnotation(ctx, live, v1alpha1.RequestedAnnotation, nil); err != nil {
			return Failed, nil, err
		}
	}
	adopted := live.Labels[v1alpha1.TenantLabel] != tenant && !hasLostLabel(live, tenant)
	if adopted {
		if err := a.setAnnotation(ctx, live, v1alpha1.CreatedAnnotation, nil); err != nil {
			return Failed, nil, err
		}
	}
	action, undid, err := a.applyObject(ctx, o, false)
	if adopted && err == nil {
		return Adopted, undid, nil
	}
	return action, undid, err
}

// createDesired creates a namespace with all desired fields. It returns AlreadyExists if another client has created it.
func (a *Applier) createDesired(ctx context.Context, o *corev1.Namespace) error {
	want, err := buildPatch(o)
	if err != nil {
		return err
	}
	key := a.makeWriteKey(o)
	end := a.writes.beginWrite(key)
	born, err := a.createNamespace(ctx, o)
	if err == nil {
		a.writes.record(key, born)
	}
	end()
	if err != nil {
		return err
	}
	_, err = a.writeOver(ctx, o, want, finding{live: born})
	return err
}

// readNamespace returns nil if the namespace does not exist.
func (a *Applier) readNamespace(ctx context.Context, reader client.Reader, o *corev1.Namespace) (*corev1.Namespace, error) {
	live, err := a.readObject(ctx, reader, o)
	if err != nil || live == nil {
		return nil, err
	}
	namespace, ok := live.(*corev1.Namespace)
	if !ok {
		return nil, fmt.Errorf("%T is not a namespace", live)
	}
	return namespace, nil
}

// CheckClaim returns an error if a namespace does not belong to the tenant, or is being deleted.
// The tenant's namespaces have its label, are offered to it by an admin's annotation, or
// have lost its label.
func CheckClaim(live *corev1.Namespace, tenant string) error {
	owner := live.Labels[v1alpha1.TenantLabel]
	if owner != tenant && live.Annotations[v1alpha1.AdoptAnnotation] != tenant && !hasLostLabel(live, tenant) {
		_, created := live.Annotations[v1alpha1.CreatedAnnotation]
		return &NamespaceNotOwnedError{Namespace: live.Name, Tenant: tenant, Owner: owner, Created: created}
	}
	if live.DeletionTimestamp != nil {
		return &NamespaceTerminatingError{Namespace: live.Name}
	}
	return nil
}

// hasLostLabel reports whether a namespace has no tenant's label, and croft last wrote its
// owner annotation for this tenant. The annotation alone proves nothing: if another client
// writes it, that client owns the field instead of croft. Therefore a namespace that was
// deleted and recreated has no owner.
func hasLostLabel(live *corev1.Namespace, tenant string) bool {
	if live.Labels[v1alpha1.TenantLabel] != "" || live.Annotations[v1alpha1.OwnerAnnotation] != tenant {
		return false
	}
	owned := fieldpath.MakePathOrDie("metadata", "annotations", v1alpha1.OwnerAnnotation)
	return slices.ContainsFunc(live.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		fields, err := parseFields(entry)
		return err == nil && isOurs(entry) && fields.Has(owned)
	})
}

// CreateNamespace creates a namespace of a tenant. Its walls are applied later. It returns
// an error and changes nothing if the namespace exists, regardless of its owner.
func (a *Applier) CreateNamespace(ctx context.Context, o *corev1.Namespace) error {
	_, err := a.createNamespace(ctx, o)
	return err
}

// createNamespace creates a namespace, or returns an error if it exists. Applying would create
// it, too, but would also take over a namespace that another client creates at the same moment.
// The creation includes the marks of the owner, so that an operator that crashes here finds the
// namespace again. The tenant's rules follow a moment later. Until then the policies allow no
// creation in the namespace.
func (a *Applier) createNamespace(ctx context.Context, o *corev1.Namespace) (*corev1.Namespace, error) {
	born := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: o.Name,
		Labels: map[string]string{
			v1alpha1.TenantLabel:    o.Labels[v1alpha1.TenantLabel],
			v1alpha1.ManagedByLabel: v1alpha1.ManagedBy,
		},
		Annotations: map[string]string{v1alpha1.CreatedAnnotation: "true"},
	}}
	if anchor, ok := o.Annotations[v1alpha1.RequestedAnnotation]; ok {
		born.Annotations[v1alpha1.RequestedAnnotation] = anchor
	}
	if err := a.client.Create(ctx, born, client.FieldOwner(v1alpha1.ManagedBy)); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return born, nil
}

// setAnnotation sets an annotation. A nil value removes it.
func (a *Applier) setAnnotation(ctx context.Context, namespace *corev1.Namespace, key string, value any) error {
	if _, ok := namespace.Annotations[key]; !ok && value == nil {
		return nil
	}
	return a.mergeMetadata(ctx, namespace, map[string]any{"annotations": map[string]any{key: value}})
}

func (a *Applier) mergeMetadata(ctx context.Context, namespace *corev1.Namespace, metadata map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return a.client.Patch(ctx, namespace.DeepCopy(), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(v1alpha1.ManagedBy))
}
