package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// This file writes objects that are not croft's: objects of other tools that croft
// replaces and restores, and temporary copies.

// Restorer is the field manager of the objects that Restore creates, which are not croft's.
const Restorer = "croft-adopt"

// MarkNamespace changes labels and annotations of a namespace. A nil value removes a key.
func (a *Applier) MarkNamespace(ctx context.Context, namespace string, labels, annotations map[string]any) error {
	metadata := map[string]any{}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if len(metadata) == 0 {
		return nil
	}
	if err := a.mergeMetadata(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metadata); err != nil {
		return fmt.Errorf("namespace %s: %w", namespace, err)
	}
	return nil
}

// Remove deletes objects, if they have not been replaced since they were read.
func (a *Applier) Remove(ctx context.Context, objects ...client.Object) error {
	_, err := a.deleteObjects(ctx, objects)
	return err
}

// Delete deletes objects in order, even if they have changed since they were read. It stops
// at the first failure.
func (a *Applier) Delete(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := client.IgnoreNotFound(a.client.Delete(ctx, o)); err != nil {
			return fmt.Errorf("delete %s: %w", RefOf(o), err)
		}
	}
	return nil
}

// Restore creates objects with their recorded content. Existing objects are left alone.
func (a *Applier) Restore(ctx context.Context, objects ...client.Object) error {
	var errs []error
	for _, o := range objects {
		fresh, ok := o.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		if fresh.GetLabels()[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy {
			errs = append(errs, a.restoreOwn(ctx, fresh))
			continue
		}
		if err := a.client.Create(ctx, fresh, client.FieldOwner(Restorer)); client.IgnoreAlreadyExists(err) != nil {
			errs = append(errs, &ObjectError{Ref: RefOf(o), Err: err})
		}
	}
	return errors.Join(errs...)
}

// restoreOwn applies a wall object that a deleted tenant has left, so that croft owns it
// again, and deletes it with the namespace's next tenant.
func (a *Applier) restoreOwn(ctx context.Context, o client.Object) error {
	live, err := a.readObject(ctx, a.client, o)
	if err == nil && live == nil {
		var want tree
		if want, err = makeTree(o); err == nil {
			_, err = a.patchObject(ctx, want)
		}
	}
	if err != nil {
		return &ObjectError{Ref: RefOf(o), Err: err}
	}
	return nil
}

// Save creates an object or, if it has a resourceVersion, updates it over that version.
func (a *Applier) Save(ctx context.Context, o client.Object) error {
	if o.GetResourceVersion() == "" {
		return a.client.Create(ctx, o, client.FieldOwner(v1alpha1.ManagedBy))
	}
	return a.client.Update(ctx, o, client.FieldOwner(v1alpha1.ManagedBy))
}

// DeleteTenant deletes a Tenant and returns its namespaces to their previous owner: see
// Withdraw.
func (a *Applier) DeleteTenant(ctx context.Context, tenant *v1alpha1.Tenant) error {
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"deletion":"`+string(v1alpha1.DeletionDelete)+`"}}`))
	if err := a.client.Patch(ctx, tenant.DeepCopy(), patch); client.IgnoreNotFound(err) != nil {
		return err
	}
	return client.IgnoreNotFound(a.client.Delete(ctx, tenant.DeepCopy(), client.Preconditions{UID: ptr.To(tenant.UID)}))
}

// Discard deletes a scratch tenant's objects in reverse order, and returns an error for each
// object that it could not delete. Objects in a deleted namespace are deleted with it.
func (a *Applier) Discard(ctx context.Context, objects ...client.Object) error {
	var errs []error
	for _, o := range slices.Backward(objects) {
		if o.GetNamespace() != "" {
			continue
		}
		if err := client.IgnoreNotFound(a.client.Delete(ctx, o)); err != nil && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("remove the scratch %s: %w: delete it by hand", RefOf(o), err))
		}
	}
	return errors.Join(errs...)
}
