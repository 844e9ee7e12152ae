package apply

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Withdraw takes a namespace from a tenant, as its deletion policy has it. People's
// access goes in any case. With Retain that is all: the workloads keep running
// behind their walls. With Delete a namespace that croft created is deleted with
// everything in it, and one that it adopted is released.
func (a *Applier) Withdraw(ctx context.Context, namespace *corev1.Namespace, tenant string, policy v1alpha1.DeletionPolicy) ([]Change, error) {
	changes, err := a.Prune(ctx, OfTenant(tenant), namespace.Name, nil, AccessKinds...)
	if err != nil || policy != v1alpha1.DeletionDelete {
		return changes, err
	}
	if namespace.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		released, err := a.Release(ctx, namespace)
		return append(changes, released...), err
	}
	if namespace.DeletionTimestamp != nil {
		return changes, nil
	}
	change := Change{Ref: Ref{corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKeyFromObject(namespace)}, Action: Deleted}
	if err := a.client.Delete(ctx, namespace, client.Preconditions{UID: ptr.To(namespace.UID)}); client.IgnoreNotFound(err) != nil {
		change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: fmt.Errorf("delete: %w", err)}
	}
	return append(changes, change), change.Err
}
