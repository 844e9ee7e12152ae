package why

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/terminating"
)

// explainDeletion explains why an object that is being deleted still exists.
func explainDeletion(s *Snapshot) Story {
	since := s.Object.GetDeletionTimestamp()
	story := Story{Target: s.Target, Summary: "is being deleted since " + wording.FormatTime(since.Time)}
	story.Steps = append(findObstacles(s), explainFinalizers(LinkDeletion, s.Target.String(), s.Object)...)
	if len(story.Steps) == 0 {
		story.Steps = []Step{newWaitingStep(LinkDeletion, s.Target.String(), "nothing delays it: it is about to be deleted")}
	}
	return conclude(story)
}

// These are the catalogue's rows about deletions.
const (
	rowFinalizer   = "finalizer-held"
	rowUsed        = "deletion-waits"
	rowUnavailable = "api-unavailable"
)

// newObstacleStep returns an obstacle to a deletion: Waiting at first, and Bad after Usual.
func newObstacleStep(o metav1.Object, link Link, object, text, row string) Step {
	step := newCatalogStep(link, object, text, row)
	if t := o.GetDeletionTimestamp(); t == nil || time.Since(t.Time) < Usual {
		step.Verdict = Waiting
	}
	return step
}

// explainFinalizers names the finalizers of an object that is being deleted.
func explainFinalizers(link Link, object string, o metav1.Object) []Step {
	var steps []Step
	for _, f := range o.GetFinalizers() {
		steps = append(steps, newObstacleStep(o, link, object, terminating.ExplainFinalizer(f), rowFinalizer))
	}
	return steps
}

// findObstacles returns other objects that block a deletion.
func findObstacles(s *Snapshot) []Step {
	switch o := s.Object.(type) {
	case *corev1.Namespace:
		return explainRemainder(s, o)
	case *v1alpha1.Tenant:
		return append(explainDeletionCondition(s.Target.String(), o, o.Status.Conditions), explainRemainder(s, o)...)
	case *v1alpha1.Pool:
		return append(explainDeletionCondition(s.Target.String(), o, o.Status.Conditions), findClaimObstacles(s)...)
	case *corev1.PersistentVolumeClaim:
		if len(s.Around.Users) > 0 {
			return []Step{newObstacleStep(o, LinkDeletion, s.Target.String(), "pods use it, also pods that have completed: "+formatFirst(s.Around.Users), rowUsed)}
		}
	case *corev1.PersistentVolume:
		var steps []Step
		if ref := o.Spec.ClaimRef; ref != nil && o.Status.Phase == corev1.VolumeBound {
			steps = []Step{newObstacleStep(o, LinkDeletion, s.Target.String(), "persistentvolumeclaim/"+ref.Name+" in "+ref.Namespace+" is bound to it", rowUsed)}
		}
		return append(steps, explainAttachments(s, func(a *storagev1.VolumeAttachment) bool { return s.volumeName(a) == o.Name })...)
	case *corev1.Node:
		return findNodeObstacles(s, o)
	case *karpenterv1.NodeClaim:
		if node := s.findNode(o.Status.NodeName); node != nil {
			return findNodeObstacles(s, node)
		}
	case *karpenterv1.NodePool:
		return findClaimObstacles(s)
	}
	return nil
}

// explainDeletionCondition returns the conditions in which croft's operator reports about the
// deletion.
func explainDeletionCondition(object string, o metav1.Object, conditions []metav1.Condition) []Step {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || !slices.Contains([]string{v1alpha1.ReasonDeleting, v1alpha1.ReasonInUse}, ready.Reason) {
		return nil
	}
	return []Step{newObstacleStep(o, LinkDeletion, object, ready.Reason+": "+ready.Message, rowUsed)}
}

// explainRemainder names the objects that remain in namespaces that are being deleted. If the
// caller may not read the objects, it uses the conditions of the namespace.
func explainRemainder(s *Snapshot, o metav1.Object) []Step {
	var steps []Step
	for _, r := range s.Around.Remainders {
		object := "namespace/" + r.Namespace.Name
		for _, name := range slices.Sorted(maps.Keys(r.Unserved)) {
			steps = append(steps, newObstacleStep(o, LinkDeletion, "apiservice/"+name, "the namespace controller cannot list its resources, and deletes no namespace until it can: "+r.Unserved[name], rowUnavailable))
		}
		for _, left := range r.Objects {
			steps = append(steps, explainLeft(o, r.Namespace.Name, left))
		}
		for _, text := range terminating.ExplainNamespace(r.Namespace) {
			row := rowUsed
			if strings.HasPrefix(text, "finalizer ") {
				row = rowFinalizer
			}
			steps = append(steps, newObstacleStep(o, LinkNamespace, object, text, row))
		}
	}
	return steps
}

func explainLeft(o metav1.Object, namespace string, left Left) Step {
	if len(left.Finalizers) == 0 {
		text := "it is not deleted yet"
		if left.Deleted {
			text = "it is being deleted"
		}
		return newObstacleStep(o, LinkDeletion, left.Object+" in "+namespace, text, rowUsed)
	}
	var texts []string
	for _, f := range left.Finalizers {
		texts = append(texts, terminating.ExplainFinalizer(f))
	}
	return newObstacleStep(o, LinkDeletion, left.Object+" in "+namespace, strings.Join(texts, "; "), rowFinalizer)
}

// findClaimObstacles returns the NodeClaims of a pool, and the pods and volumes that block the
// deletion of their nodes.
func findClaimObstacles(s *Snapshot) []Step {
	var steps []Step
	for i := range s.Claims {
		claim := &s.Claims[i]
		text := "its NodeClaim still exists"
		if claim.DeletionTimestamp != nil {
			text = "its NodeClaim is being deleted since " + wording.FormatTime(claim.DeletionTimestamp.Time)
		}
		steps = append(steps, newObstacleStep(s.Object, LinkDeletion, "nodeclaim/"+claim.Name, text, rowUsed))
		if node := s.findNode(claim.Status.NodeName); node != nil {
			steps = append(steps, findNodeObstacles(s, node)...)
		}
	}
	return steps
}

// findNodeObstacles returns the pods and volumes of a node that is being deleted.
func findNodeObstacles(s *Snapshot, node *corev1.Node) []Step {
	var steps []Step
	object := "node/" + node.Name
	for _, h := range FindHolders(time.Now(), node, s.Pods, s.Budgets) {
		steps = append(steps, newCatalogStep(LinkNode, object, "it is being deleted, and kept by: "+h.Text, h.Row))
	}
	return append(steps, explainAttachments(s, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node.Name })...)
}

// explainAttachments names the volumes that are still attached.
func explainAttachments(s *Snapshot, matches func(*storagev1.VolumeAttachment) bool) []Step {
	var steps []Step
	for i := range s.Around.Attachments {
		a := &s.Around.Attachments[i]
		if !matches(a) {
			continue
		}
		text := fmt.Sprintf("volume %s is attached to node %s", s.volumeName(a), a.Spec.NodeName)
		if a.Status.DetachError != nil {
			text += ", and is not detached: " + a.Status.DetachError.Message
		}
		steps = append(steps, newObstacleStep(s.Object, LinkDeletion, "volumeattachment/"+a.Name, text, rowUsed))
	}
	return steps
}

// volumeName returns the name of an attachment's PersistentVolume.
func (s *Snapshot) volumeName(a *storagev1.VolumeAttachment) string {
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return "of a pod"
}

// explainDeletingPod explains why a pod that is being deleted still exists.
func explainDeletingPod(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	steps := explainFinalizers(LinkPod, object, pod)
	// deletionTimestamp is the end of the pod's grace period.
	end := wording.FormatTime(pod.DeletionTimestamp.Time)
	overdue := time.Since(pod.DeletionTimestamp.Time)
	switch {
	case overdue < 0:
		return append(steps, newWaitingStep(LinkPod, object, "its containers have until "+end+" to exit"))
	case len(steps) > 0:
		return steps
	case pod.Spec.NodeName == "" || overdue < Usual:
		return []Step{newWaitingStep(LinkPod, object, "its containers had until "+end+" to exit, and its node is about to report it")}
	default:
		step := newCatalogStep(LinkPod, object, "its containers had until "+end+" to exit, and node "+pod.Spec.NodeName+" does not report that they exited", rowNodeLost)
		return append([]Step{step}, evaluatePodNode(s, pod)...)
	}
}
