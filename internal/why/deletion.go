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
	"croft.dev/croft/internal/terminating"
)

// ofDeletion explains why an object that is being deleted still exists.
func ofDeletion(s *Snapshot) Story {
	since := s.Object.GetDeletionTimestamp()
	story := Story{Target: s.Target, Summary: "is being deleted since " + since.UTC().Format("2006-01-02 15:04:05")}
	story.Steps = append(obstacles(s), finalizerSteps(LinkDeletion, s.Target.String(), s.Object)...)
	if len(story.Steps) == 0 {
		story.Steps = []Step{waiting(LinkDeletion, s.Target.String(), "nothing holds it up: it is about to be deleted")}
	}
	return conclude(story)
}

// These are the catalogue's rows about deletions.
const (
	rowFinalizer   = "finalizer-held"
	rowUsed        = "deletion-waits"
	rowUnavailable = "api-unavailable"
)

// lasting returns an obstacle to a deletion: Waiting at first, and Bad after Usual.
func lasting(o metav1.Object, link Link, object, text, row string) Step {
	step := judged(link, object, text, row)
	if t := o.GetDeletionTimestamp(); t == nil || time.Since(t.Time) < Usual {
		step.Verdict = Waiting
	}
	return step
}

// finalizerSteps names the finalizers of an object that is being deleted.
func finalizerSteps(link Link, object string, o metav1.Object) []Step {
	var steps []Step
	for _, f := range o.GetFinalizers() {
		steps = append(steps, lasting(o, link, object, terminating.Finalizer(f), rowFinalizer))
	}
	return steps
}

// obstacles returns other objects that block a deletion.
func obstacles(s *Snapshot) []Step {
	switch o := s.Object.(type) {
	case *corev1.Namespace:
		return remainderSteps(s, o)
	case *v1alpha1.Tenant:
		return append(conditionSteps(s.Target.String(), o, o.Status.Conditions), remainderSteps(s, o)...)
	case *v1alpha1.Pool:
		return append(conditionSteps(s.Target.String(), o, o.Status.Conditions), claimObstacles(s)...)
	case *corev1.PersistentVolumeClaim:
		if len(s.Around.Users) > 0 {
			return []Step{lasting(o, LinkDeletion, s.Target.String(), "pods use it, also pods that have completed: "+firstOf(s.Around.Users), rowUsed)}
		}
	case *corev1.PersistentVolume:
		var steps []Step
		if ref := o.Spec.ClaimRef; ref != nil && o.Status.Phase == corev1.VolumeBound {
			steps = []Step{lasting(o, LinkDeletion, s.Target.String(), "persistentvolumeclaim/"+ref.Name+" in "+ref.Namespace+" is bound to it", rowUsed)}
		}
		return append(steps, attachmentSteps(s, func(a *storagev1.VolumeAttachment) bool { return s.of(a) == o.Name })...)
	case *corev1.Node:
		return nodeObstacles(s, o)
	case *karpenterv1.NodeClaim:
		if node := s.node(o.Status.NodeName); node != nil {
			return nodeObstacles(s, node)
		}
	case *karpenterv1.NodePool:
		return claimObstacles(s)
	}
	return nil
}

// conditionSteps returns the conditions in which croft's operator reports about the
// deletion.
func conditionSteps(object string, o metav1.Object, conditions []metav1.Condition) []Step {
	ready := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Status == metav1.ConditionTrue || !slices.Contains([]string{v1alpha1.ReasonDeleting, v1alpha1.ReasonInUse}, ready.Reason) {
		return nil
	}
	return []Step{lasting(o, LinkDeletion, object, ready.Reason+": "+ready.Message, rowUsed)}
}

// remainderSteps names the objects that remain in namespaces that are being deleted. If the
// caller may not read the objects, it uses the conditions of the namespace.
func remainderSteps(s *Snapshot, o metav1.Object) []Step {
	var steps []Step
	for _, r := range s.Around.Remainders {
		object := "namespace/" + r.Namespace.Name
		for _, name := range slices.Sorted(maps.Keys(r.Unserved)) {
			steps = append(steps, lasting(o, LinkDeletion, "apiservice/"+name, "the namespace controller cannot list its resources, and deletes no namespace meanwhile: "+r.Unserved[name], rowUnavailable))
		}
		for _, left := range r.Objects {
			steps = append(steps, leftStep(o, r.Namespace.Name, left))
		}
		for _, text := range terminating.Namespace(r.Namespace) {
			row := rowUsed
			if strings.HasPrefix(text, "finalizer ") {
				row = rowFinalizer
			}
			steps = append(steps, lasting(o, LinkNamespace, object, text, row))
		}
	}
	return steps
}

func leftStep(o metav1.Object, namespace string, left Left) Step {
	if len(left.Finalizers) == 0 {
		text := "it is not deleted yet"
		if left.Deleted {
			text = "it is being deleted"
		}
		return lasting(o, LinkDeletion, left.Object+" in "+namespace, text, rowUsed)
	}
	var texts []string
	for _, f := range left.Finalizers {
		texts = append(texts, terminating.Finalizer(f))
	}
	return lasting(o, LinkDeletion, left.Object+" in "+namespace, strings.Join(texts, "; "), rowFinalizer)
}

// claimObstacles returns the NodeClaims of a pool, and the pods and volumes that block the
// deletion of their nodes.
func claimObstacles(s *Snapshot) []Step {
	var steps []Step
	for i := range s.Claims {
		claim := &s.Claims[i]
		text := "its NodeClaim still exists"
		if claim.DeletionTimestamp != nil {
			text = "its NodeClaim is being deleted since " + claim.DeletionTimestamp.UTC().Format("15:04:05")
		}
		steps = append(steps, lasting(s.Object, LinkDeletion, "nodeclaim/"+claim.Name, text, rowUsed))
		if node := s.node(claim.Status.NodeName); node != nil {
			steps = append(steps, nodeObstacles(s, node)...)
		}
	}
	return steps
}

// nodeObstacles returns the pods and volumes of a node that is being deleted.
func nodeObstacles(s *Snapshot, node *corev1.Node) []Step {
	var steps []Step
	object := "node/" + node.Name
	for _, h := range Holders(time.Now(), node, s.Pods, s.Budgets) {
		steps = append(steps, judged(LinkNode, object, "it is being deleted, and held: "+h.Text, h.Row))
	}
	return append(steps, attachmentSteps(s, func(a *storagev1.VolumeAttachment) bool { return a.Spec.NodeName == node.Name })...)
}

// attachmentSteps names the volumes that are still attached.
func attachmentSteps(s *Snapshot, is func(*storagev1.VolumeAttachment) bool) []Step {
	var steps []Step
	for i := range s.Around.Attachments {
		a := &s.Around.Attachments[i]
		if !is(a) {
			continue
		}
		text := fmt.Sprintf("volume %s is attached to node %s", s.of(a), a.Spec.NodeName)
		if a.Status.DetachError != nil {
			text += ", and is not detached: " + a.Status.DetachError.Message
		}
		steps = append(steps, lasting(s.Object, LinkDeletion, "volumeattachment/"+a.Name, text, rowUsed))
	}
	return steps
}

// of returns the name of an attachment's PersistentVolume.
func (s *Snapshot) of(a *storagev1.VolumeAttachment) string {
	if name := a.Spec.Source.PersistentVolumeName; name != nil {
		return *name
	}
	return "of a pod"
}

// deletingPod explains why a pod that is being deleted still exists.
func deletingPod(s *Snapshot, pod *corev1.Pod) []Step {
	object := "pod/" + pod.Name
	steps := finalizerSteps(LinkPod, object, pod)
	// deletionTimestamp is the end of the pod's grace period.
	end := pod.DeletionTimestamp.UTC().Format("15:04:05")
	overdue := time.Since(pod.DeletionTimestamp.Time)
	switch {
	case overdue < 0:
		return append(steps, waiting(LinkPod, object, "its containers have until "+end+" to end"))
	case len(steps) > 0:
		return steps
	case pod.Spec.NodeName == "" || overdue < Usual:
		return []Step{waiting(LinkPod, object, "its containers were to end by "+end+", and its node is about to report that")}
	default:
		step := judged(LinkPod, object, "its containers were to end by "+end+", and node "+pod.Spec.NodeName+" does not report that they have", rowNodeLost)
		return append([]Step{step}, nodeOf(s, pod)...)
	}
}
