package apply

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Release returns an adopted namespace: it deletes croft's objects in it, access first, and
// then removes croft's labels and annotations from it. Workloads are not changed. The next
// Release completes an interrupted one, because the label that selects the namespace is
// removed last.
//
// Release reads from the API server: a cache may not have an object that was created a
// moment ago, and nothing would delete it once the label is removed.
func (a *Applier) Release(ctx context.Context, namespace *corev1.Namespace) ([]Change, error) {
	a = a.withoutCache()
	live := &corev1.Namespace{}
	if err := a.client.Get(ctx, client.ObjectKeyFromObject(namespace), live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if live.UID != namespace.UID || live.Labels[v1alpha1.TenantLabel] != namespace.Labels[v1alpha1.TenantLabel] {
		return nil, nil // it belongs to another tenant by now
	}
	namespace = live
	made, err := a.listNamespaceObjects(ctx, namespace.Name)
	changes, deleteErr := a.deleteObjects(ctx, made)
	if err := errors.Join(err, deleteErr); err != nil {
		return changes, err
	}
	change := Change{Ref: Ref{corev1.SchemeGroupVersion.WithKind("Namespace"), client.ObjectKeyFromObject(namespace)}, Action: Released}
	if err := a.unmarkNamespace(ctx, namespace); client.IgnoreNotFound(err) != nil {
		change.Action, change.Err = Failed, &ObjectError{Ref: change.Ref, Err: err}
	}
	return append(changes, change), errors.Join(change.Err)
}

// withoutCache returns an Applier that reads from the API server.
func (a *Applier) withoutCache() *Applier {
	if a.live == nil {
		return a
	}
	return New(liveClient{a.client, a.live})
}

// liveClient is a client that reads from the API server.
type liveClient struct {
	client.Client
	live client.Reader
}

// Get implements client.Reader.
func (c liveClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.live.Get(ctx, key, o, opts...)
}

// List implements client.Reader.
func (c liveClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.live.List(ctx, list, opts...)
}

// listNamespaceObjects returns croft's objects in a namespace, access first.
func (a *Applier) listNamespaceObjects(ctx context.Context, namespace string) ([]client.Object, error) {
	return a.listSurplus(ctx, nil, slices.Concat(OptionalKinds, TenantKinds, DialectKinds), client.InNamespace(namespace),
		client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
}

// unmarkNamespace removes croft's fields from a namespace. Applying an empty object removes the
// fields that only croft has set, such as the Pod Security level. Marks are removed by
// name, because other managers may have set them, too.
func (a *Applier) unmarkNamespace(ctx context.Context, namespace *corev1.Namespace) error {
	if err := a.setAnnotation(ctx, namespace, v1alpha1.AdoptAnnotation, nil); err != nil {
		return err
	}
	// With the UID, the apply cannot recreate a namespace that was deleted meanwhile.
	bare, err := a.patchObject(ctx, tree{"apiVersion": "v1", "kind": "Namespace", "metadata": tree{"name": namespace.Name, "uid": string(namespace.UID)}})
	if err != nil {
		return err
	}
	labels, annotations := findMarks(bare.GetLabels()), findMarks(bare.GetAnnotations())
	if len(labels) == 0 && len(annotations) == 0 {
		return nil
	}
	return a.mergeMetadata(ctx, namespace, map[string]any{"labels": labels, "annotations": annotations})
}

// ownMarks are the keys on a namespace that have a meaning only to croft and the platform's
// admins.
var ownMarks = []string{
	v1alpha1.TenantLabel, v1alpha1.WallLabel, v1alpha1.CostCodeLabel, v1alpha1.PlacementLabel, v1alpha1.AdoptAnnotation, v1alpha1.CreatedAnnotation, v1alpha1.OwnerAnnotation,
	v1alpha1.RequestedAnnotation, v1alpha1.FrozenLabel, v1alpha1.BudgetLabel, v1alpha1.PriceLabel,
}

// findMarks returns a null for each of croft's keys, with which a merge patch removes them.
func findMarks(have map[string]string) map[string]any {
	marks := map[string]any{}
	for key := range maps.Keys(have) {
		switch {
		case slices.Contains(ownMarks, key), strings.HasPrefix(key, v1alpha1.RulesAnnotationPrefix),
			isReferenceLabel(key),
			key == v1alpha1.ManagedByLabel && have[key] == v1alpha1.ManagedBy:
			marks[key] = nil
		}
	}
	return marks
}
