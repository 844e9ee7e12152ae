package why

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// workload reads the creator of pods, and the pods.
func (g *gatherer) workload(ctx context.Context, o client.Object) error {
	w := &Workload{Makers: []string{o.GetName()}}
	g.Workload = w
	owners := map[types.UID]bool{o.GetUID(): true}
	var selector *metav1.LabelSelector
	switch o := o.(type) {
	case *appsv1.Deployment:
		w.Wanted, w.Ready, selector = ptr.Deref(o.Spec.Replicas, 1), o.Status.AvailableReplicas, o.Spec.Selector
		if err := g.replicaSets(ctx, o, owners); err != nil {
			return err
		}
	case *appsv1.ReplicaSet:
		w.Wanted, w.Ready, selector = ptr.Deref(o.Spec.Replicas, 1), o.Status.ReadyReplicas, o.Spec.Selector
	case *appsv1.StatefulSet:
		w.Wanted, w.Ready, selector = ptr.Deref(o.Spec.Replicas, 1), o.Status.ReadyReplicas, o.Spec.Selector
	case *appsv1.DaemonSet:
		w.Wanted, w.Ready, selector = o.Status.DesiredNumberScheduled, o.Status.NumberReady, o.Spec.Selector
	case *batchv1.Job:
		w.Wanted, selector = ptr.Deref(o.Spec.Parallelism, 1), o.Spec.Selector
		w.Ready = ptr.Deref(o.Status.Ready, 0) + o.Status.Succeeded
		if o.Spec.Completions != nil {
			// Finished pods stay, and others are to come beside them.
			w.Wanted = o.Status.Succeeded + min(w.Wanted, *o.Spec.Completions-o.Status.Succeeded)
		}
		if o.Status.CompletionTime != nil {
			w.Wanted, w.Ready = o.Status.Succeeded, o.Status.Succeeded
		}
	}
	return g.podsOf(ctx, selector, owners)
}

// replicaSets reads those of the Deployment's own revision: faults of older ones are
// irrelevant.
func (g *gatherer) replicaSets(ctx context.Context, d *appsv1.Deployment, owners map[types.UID]bool) error {
	const revision = "deployment.kubernetes.io/revision"
	var sets appsv1.ReplicaSetList
	if err := g.list(ctx, "replicaset", &sets, client.InNamespace(d.Namespace)); err != nil {
		return err
	}
	for _, set := range sets.Items {
		if metav1.IsControlledBy(&set, d) {
			owners[set.UID] = true
			if set.Annotations[revision] == d.Annotations[revision] {
				g.Workload.Makers = append(g.Workload.Makers, set.Name)
			}
		}
	}
	return nil
}

func (g *gatherer) podsOf(ctx context.Context, selector *metav1.LabelSelector, owners map[types.UID]bool) error {
	matches, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return err
	}
	var pods corev1.PodList
	if err := g.list(ctx, "pod", &pods, client.InNamespace(g.Target.Namespace), client.MatchingLabelsSelector{Selector: matches}); err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if owner := metav1.GetControllerOf(&pod); owner != nil && owners[owner.UID] {
			g.Pods = append(g.Pods, pod)
		}
	}
	return nil
}
