package tenant

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/event"
	"croft.dev/croft/internal/operate/controller/repair"
	"croft.dev/croft/internal/operate/controller/status"
)

// emitChanges emits events on the Tenant about its namespaces and about repairs. A
// reconcile without changes emits none, and neither does the creation of a new tenant's namespaces.
func (c *Controller) emitChanges(ctx context.Context, tenant *v1alpha1.Tenant, s *observation) {
	for _, change := range s.changes {
		reason, note := describeChange(change)
		if isFirst := change.Action == apply.Created && hasNoVerdict(tenant); reason != "" && !isFirst {
			event.Emit(c.recorder, tenant, corev1.EventTypeNormal, reason, "Apply", note)
		}
	}
	if s.wasInPlace {
		repair.Report(ctx, c.recorder, tenant, corev1.EventTypeNormal, tenant.Name, repair.Find(s.changes))
	}
	if s.finalizerRemoved {
		event.Emit(c.recorder, tenant, corev1.EventTypeNormal, "Deleted", "Delete", describeDeletion(tenant))
	}
}

// emitConditions emits events about conditions that have changed. The event of a new tenant that is soon Ready would
// repeat its condition.
func (c *Controller) emitConditions(before, after *v1alpha1.Tenant) {
	for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionReady} {
		turned := status.FindChanged(&before.Status.Status, &after.Status.Status, name)
		if turned == nil || !c.memory.isNew(after.Name, *turned) {
			continue
		}
		switch {
		case turned.Status == metav1.ConditionFalse && name != v1alpha1.ConditionReady:
			event.Emit(c.recorder, after, corev1.EventTypeWarning, turned.Reason, "Check", turned.Message)
		case turned.Status == metav1.ConditionTrue && name == v1alpha1.ConditionReady && len(before.Status.Conditions) > 0:
			event.Emit(c.recorder, after, corev1.EventTypeNormal, v1alpha1.ReasonReady, "Apply", "every wall is in force")
		}
	}
}

// describeChange returns the event about a namespace that was created, adopted, deleted or released,
// or "".
func describeChange(change apply.Change) (reason, note string) {
	if change.Kind != "Namespace" {
		return "", ""
	}
	switch change.Action {
	case apply.Created:
		return "NamespaceCreated", "created namespace " + change.Name
	case apply.Adopted:
		return "NamespaceAdopted", "adopted namespace " + change.Name + ", as its annotation permits"
	case apply.Released:
		return "NamespaceReleased", "released namespace " + change.Name + ", which croft had not created"
	case apply.Deleted:
		return "NamespaceDeleted", "deleting namespace " + change.Name + " and all objects in it"
	default:
		return "", ""
	}
}

func describeDeletion(tenant *v1alpha1.Tenant) string {
	if tenant.Spec.Deletion == v1alpha1.DeletionDelete {
		return "the tenant and the namespaces that croft created for it are deleted"
	}
	return "people's access is removed; the namespaces, their workloads and their walls stay"
}
