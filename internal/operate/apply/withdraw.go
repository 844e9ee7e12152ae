package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Withdraw takes a namespace from a tenant, as the deletion policy specifies. People's
// access is always removed. With Retain nothing else is, and the workloads keep running
// behind their walls, with their copies of Secrets. With Delete, a namespace that croft created is deleted with
// everything in it, and an adopted one is released.
func (a *Applier) Withdraw(ctx context.Context, namespace *corev1.Namespace, tenant string, policy v1alpha1.DeletionPolicy) ([]Change, error) {
	changes, err := a.Prune(ctx, OfAccess(tenant), namespace.Name, nil, AccessKinds...)
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
	// Only this version is deleted: the namespace may have been given to another tenant
	// since.
	over := client.Preconditions{UID: ptr.To(namespace.UID), ResourceVersion: ptr.To(namespace.ResourceVersion)}
	if err := a.client.Delete(ctx, namespace, over); client.IgnoreNotFound(err) != nil {
		change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: fmt.Errorf("delete: %w", err)}
	}
	return append(changes, change), change.Err
}

// CloseReferences removes the labels of a namespace whose routes may name other tenants' Services and
// Gateways. A retained namespace keeps its other labels, and nothing would remove these at the end of
// the consent.
func (a *Applier) CloseReferences(ctx context.Context, namespace *corev1.Namespace) ([]Change, error) {
	labels := map[string]any{}
	for key := range namespace.Labels {
		if isReferenceLabel(key) {
			labels[key] = nil
		}
	}
	if len(labels) == 0 {
		return nil, nil
	}
	change := Change{Ref: Ref{corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKeyFromObject(namespace)}, Action: Configured}
	if err := a.mergeMetadata(ctx, namespace, map[string]any{"labels": labels}); client.IgnoreNotFound(err) != nil {
		change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: fmt.Errorf("remove labels: %w", err)}
	}
	return []Change{change}, change.Err
}

// isReferenceLabel reports whether a label lets routes of a namespace name an object of another tenant.
func isReferenceLabel(key string) bool {
	return strings.HasPrefix(key, v1alpha1.ServiceLabelPrefix) || strings.HasPrefix(key, v1alpha1.GatewayLabelPrefix)
}

// DiffWithdraw returns the deletions that Withdraw would make, in the format of Diff.
func (a *Applier) DiffWithdraw(ctx context.Context, namespace *corev1.Namespace, tenant string, policy v1alpha1.DeletionPolicy) (Differences, error) {
	if policy != v1alpha1.DeletionDelete {
		return a.DiffPrune(ctx, OfAccess(tenant), namespace.Name, nil, AccessKinds...)
	}
	before := namespace.DeepCopy()
	before.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if namespace.Annotations[v1alpha1.CreatedAnnotation] == "true" {
		access, err := a.DiffPrune(ctx, OfAccess(tenant), namespace.Name, nil, AccessKinds...)
		deleted, diffErr := DiffDeleted(before)
		return append(access, deleted...), errors.Join(err, diffErr)
	}
	made, err := a.listNamespaceObjects(ctx, namespace.Name)
	deleted, diffErr := DiffDeleted(made...)
	marks, marksErr := diffUnmarked(before)
	return append(deleted, marks...), errors.Join(err, diffErr, marksErr)
}

// diffUnmarked returns the change of a namespace by its release, as far as it is known
// without a request. It omits the fields that only croft has set.
func diffUnmarked(namespace *corev1.Namespace) (Differences, error) {
	after := namespace.DeepCopy()
	for key := range findMarks(after.Labels) {
		delete(after.Labels, key)
	}
	for key := range findMarks(after.Annotations) {
		delete(after.Annotations, key)
	}
	b, err := makeTree(namespace)
	if err != nil {
		return nil, err
	}
	w, err := makeTree(after)
	if err != nil {
		return nil, err
	}
	return diffTrees(RefOf(namespace), b, w)
}
