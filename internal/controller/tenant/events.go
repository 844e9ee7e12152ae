package tenant

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/status"
)

// longestNote is the most that the events API takes.
const longestNote = 1000

// tell writes events about what a person wants to know of. A reconcile that finds
// everything as it was has nothing to tell.
func (c *Controller) tell(before, after *v1alpha1.Tenant, s *sighting) {
	say := func(kind, reason, action, note string) {
		if len(note) > longestNote {
			note = strings.ToValidUTF8(note[:longestNote], "") + " …"
		}
		c.recorder.Eventf(after, nil, kind, reason, action, "%s", note)
	}
	for _, change := range s.changes {
		if reason, note := news(change, s.stood); reason != "" {
			say(corev1.EventTypeNormal, reason, "Apply", note)
		}
	}
	for _, name := range []string{v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionReady} {
		turned := status.Turned(&before.Status.Status, &after.Status.Status, name)
		if turned == nil || !c.memory.isNew(after.Name, *turned) {
			continue
		}
		switch {
		case turned.Status == metav1.ConditionFalse && name != v1alpha1.ConditionReady:
			say(corev1.EventTypeWarning, turned.Reason, "Check", turned.Message)
		case turned.Status == metav1.ConditionTrue && name == v1alpha1.ConditionReady:
			say(corev1.EventTypeNormal, v1alpha1.ReasonReady, "Apply", "every wall stands")
		}
	}
	if s.gone {
		say(corev1.EventTypeNormal, "Deleted", "Delete", farewell(after))
	}
}

// news is what a change means to a person; nothing, for the making of a tenant
// and for what follows from a change of its declaration.
func news(change apply.Change, stood bool) (reason, note string) {
	switch {
	case change.Kind == "Namespace" && change.Action == apply.Created:
		return "NamespaceCreated", "created namespace " + change.Name
	case change.Kind == "Namespace" && change.Action == apply.Adopted:
		return "NamespaceAdopted", "adopted namespace " + change.Name + ", as its annotation permits"
	case change.Kind == "Namespace" && change.Action == apply.Released:
		return "NamespaceReleased", "gave back namespace " + change.Name + ", which croft had not created"
	case change.Kind == "Namespace" && change.Action == apply.Deleted:
		return "NamespaceDeleted", "deleting namespace " + change.Name + " with everything in it"
	case stood && change.Action == apply.Created:
		return "PutBack", "put back " + change.Ref.String() + ", which somebody had deleted"
	case stood && (change.Action == apply.Configured || change.Action == apply.Recreated):
		note = "put back " + change.Ref.String() + ", which somebody had changed"
		if len(change.Undid) > 0 {
			note += " with " + strings.Join(change.Undid, ", ")
		}
		return "PutBack", note
	default:
		return "", ""
	}
}

func farewell(tenant *v1alpha1.Tenant) string {
	if tenant.Spec.Deletion == v1alpha1.DeletionDelete {
		return "the tenant and the namespaces that croft created for it are gone"
	}
	return "people's access is taken away; the namespaces, their workloads and their walls stay"
}
