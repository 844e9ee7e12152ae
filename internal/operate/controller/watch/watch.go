// Package watch maps events of objects in the cluster to the names of objects to
// reconcile.
package watch

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ByLabel enqueues the object that a label names.
func ByLabel(label string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(MapByLabel(label))
}

// MapByLabel maps objects to the object that a label names.
func MapByLabel(label string) handler.MapFunc {
	return func(_ context.Context, o client.Object) []reconcile.Request {
		return MakeRequests(o.GetLabels()[label])
	}
}

// MakeRequests returns requests for cluster-scoped objects. It omits empty names.
func MakeRequests(names ...string) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range names {
		if name != "" {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
		}
	}
	return requests
}

// Drift passes events that may be drift: all except changes of status, which other managers
// write constantly.
func Drift() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool { return isDrift(e.ObjectOld, e.ObjectNew) }}
}

// Deleting passes objects whose deletion begins, and at the start objects that are being
// deleted.
func Deleting() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.Object.GetDeletionTimestamp().IsZero() },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !e.ObjectNew.GetDeletionTimestamp().IsZero() && e.ObjectOld.GetDeletionTimestamp().IsZero()
		},
	}
}

// Deleted passes deletions.
func Deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func isDrift(before, after client.Object) bool {
	if before.GetUID() != after.GetUID() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!maps.Equal(before.GetLabels(), after.GetLabels()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) {
		return true
	}
	// The status of a ResourceQuota changes with every pod, and it has no generation.
	if quota, ok := after.(*corev1.ResourceQuota); ok {
		was, ok := before.(*corev1.ResourceQuota)
		return !ok || !equality.Semantic.DeepEqual(was.Spec, quota.Spec)
	}
	if after.GetGeneration() != 0 {
		return before.GetGeneration() != after.GetGeneration()
	}
	return before.GetResourceVersion() != after.GetResourceVersion()
}
