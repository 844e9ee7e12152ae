// Package owner checks that a declared object still exists before croft writes objects for
// it. A cache may show a deleted object: objects written for it would have no owner, and
// nothing would delete them.
package owner

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"croft.dev/croft/api/v1alpha1"
)

// ErrGone reports that an object was deleted, or is being deleted, and that the cache does
// not show this yet. The next event reconciles the object again.
var ErrGone = errors.New("the object is deleted, and the cache still contains it")

// Check returns nil if the API server has the same object as the cache, with the finalizer
// that keeps it until croft has cleaned up. finalizer is "" for a kind without a finalizer.
// Check returns ErrGone if the object was deleted or recreated, or is being deleted and the
// cache does not show it, and a conflict if the finalizer is missing.
func Check(ctx context.Context, live client.Reader, kind string, cached client.Object, finalizer string) error {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	err := live.Get(ctx, client.ObjectKeyFromObject(cached), o)
	switch {
	case apierrors.IsNotFound(err):
		return ErrGone
	case err != nil:
		return fmt.Errorf("read %s %s: %w", kind, cached.GetName(), err)
	case o.UID != cached.GetUID(), o.DeletionTimestamp != nil && cached.GetDeletionTimestamp() == nil:
		return ErrGone
	case finalizer != "" && !controllerutil.ContainsFinalizer(o, finalizer):
		resource := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: kind}
		return apierrors.NewConflict(resource, cached.GetName(), errors.New("its finalizer was removed"))
	default:
		return nil
	}
}

// PatchFinalizers writes the finalizers of an object if its resourceVersion has not
// changed since it was read. It leaves the status alone, and returns ErrGone if the
// object does not exist.
func PatchFinalizers(ctx context.Context, c client.Writer, object, before client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	switch err := c.Patch(ctx, object, patch); {
	case apierrors.IsNotFound(err):
		return ErrGone
	case err != nil:
		return fmt.Errorf("patch finalizers: %w", err)
	default:
		return nil
	}
}
