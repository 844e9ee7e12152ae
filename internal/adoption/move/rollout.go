package move

import (
	"context"
	"encoding/json"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restartedAt is the annotation that `kubectl rollout restart` writes into a pod template.
const restartedAt = "kubectl.kubernetes.io/restartedAt"

// readWorkload reads a workload of one of the three kinds that have rollouts.
func (m *Mover) readWorkload(ctx context.Context, w *Workload) (client.Object, error) {
	var o client.Object
	switch w.Kind {
	case "StatefulSet":
		o = &appsv1.StatefulSet{}
	case "DaemonSet":
		o = &appsv1.DaemonSet{}
	default:
		o = &appsv1.Deployment{}
	}
	return o, m.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Name}, o)
}

// countUnavailable returns the number of pods that a rollout deletes before their replacements exist,
// and the labels of the pods. The number is -1 if a changed template restarts no pods.
func countUnavailable(o client.Object) (away int, pod map[string]string) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		pod = o.Spec.Template.Labels
		replicas := int(ptr.Deref(o.Spec.Replicas, 1))
		if o.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			return replicas, pod
		}
		maximum := intstr.FromString("25%")
		if u := o.Spec.Strategy.RollingUpdate; u != nil && u.MaxUnavailable != nil {
			maximum = *u.MaxUnavailable
		}
		away, err := intstr.GetScaledValueFromIntOrPercent(&maximum, replicas, false)
		if err != nil {
			away = replicas
		}
		return away, pod
	case *appsv1.StatefulSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || getPartition(o) > 0 {
			return -1, nil
		}
		var maximum *intstr.IntOrString
		if u := o.Spec.UpdateStrategy.RollingUpdate; u != nil {
			maximum = u.MaxUnavailable
		}
		return scaleUnavailable(maximum, int(ptr.Deref(o.Spec.Replicas, 1))), o.Spec.Template.Labels
	case *appsv1.DaemonSet:
		if o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
			return -1, nil
		}
		var maximum *intstr.IntOrString
		if u := o.Spec.UpdateStrategy.RollingUpdate; u != nil {
			maximum = u.MaxUnavailable
		}
		return scaleUnavailable(maximum, int(o.Status.DesiredNumberScheduled)), o.Spec.Template.Labels
	default:
		return -1, nil
	}
}

// scaleUnavailable returns the number of pods that maxUnavailable allows to be missing: one by default,
// and all if it cannot be parsed.
func scaleUnavailable(unavailable *intstr.IntOrString, replicas int) int {
	if unavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(unavailable, replicas, true)
	if err != nil {
		return replicas
	}
	return max(1, n)
}

// getPartition returns the ordinal below which a StatefulSet does not update its pods.
func getPartition(o *appsv1.StatefulSet) int32 {
	if u := o.Spec.UpdateStrategy.RollingUpdate; u != nil {
		return ptr.Deref(u.Partition, 0)
	}
	return 0
}

// isRolledOut reports whether a rollout is complete. For a DaemonSet it is always true: it is
// enough that none of its pods remains on a wrong pool, since its own template selects its
// nodes.
func isRolledOut(o client.Object) bool {
	switch o := o.(type) {
	case *appsv1.Deployment:
		want := ptr.Deref(o.Spec.Replicas, 1)
		s := o.Status
		return s.ObservedGeneration >= o.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
	case *appsv1.StatefulSet:
		want := ptr.Deref(o.Spec.Replicas, 1)
		s := o.Status
		return s.ObservedGeneration >= o.Generation && s.UpdatedReplicas == want && s.ReadyReplicas == want
	default:
		return true
	}
}

// areAllReady reports whether a workload has the desired number of ready pods.
func areAllReady(o client.Object) bool {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return o.Status.AvailableReplicas >= ptr.Deref(o.Spec.Replicas, 1)
	case *appsv1.StatefulSet:
		return o.Status.ReadyReplicas >= ptr.Deref(o.Spec.Replicas, 1)
	default:
		return true
	}
}

// restartWorkload changes the pod template, as `kubectl rollout restart` does.
func (m *Mover) restartWorkload(ctx context.Context, w *Workload, now time.Time) error {
	o, err := m.readWorkload(ctx, w)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{restartedAt: now.Format(time.RFC3339)},
	}}}})
	if err != nil {
		return err
	}
	return m.client.Patch(ctx, o, client.RawPatch(types.StrategicMergePatchType, patch))
}
