package move

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// interval is the polling interval.
const interval = 500 * time.Millisecond

// Move moves one workload, and waits until none of its pods is on a wrong pool and the desired
// number is ready. It reports its progress.
func (m *Mover) Move(ctx context.Context, w *Workload, timeout time.Duration, report func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	last := "it has not started"
	progress := func(text string) { last = text; report(w.String() + ": " + text) }
	err := m.moveWorkload(ctx, w, progress)
	if wait.Interrupted(err) || ctx.Err() != nil {
		return fmt.Errorf("%s is not moved after %s: %s", w, timeout, last)
	}
	return err
}

func (m *Mover) moveWorkload(ctx context.Context, w *Workload, progress func(string)) error {
	if w.Way == Evict {
		for i := range w.Pods {
			if err := m.evictPod(ctx, w, &w.Pods[i], progress); err != nil {
				return err
			}
		}
		return m.waitSettled(ctx, w, progress)
	}
	if err := m.restartWorkload(ctx, w, time.Now()); err != nil {
		return err
	}
	return m.waitSettled(ctx, w, progress)
}

// waitSettled waits until all pods of a workload run on its tenant's pools.
func (m *Mover) waitSettled(ctx context.Context, w *Workload, progress func(string)) error {
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		left, err := m.countMisplaced(ctx, w)
		if err != nil {
			return false, err
		}
		if left > 0 {
			progress(fmt.Sprintf("%d of its pods still run on nodes of other pools", left))
			return false, nil
		}
		if w.Kind == "Pod" || w.Kind == "ReplicaSet" {
			return true, nil
		}
		o, err := m.readWorkload(ctx, w)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if w.Way == Restart && !isRolledOut(o) || w.Way == Evict && !areAllReady(o) {
			progress("its new pods are not ready yet")
			return false, nil
		}
		return true, nil
	})
}

// countMisplaced returns the number of a workload's pods that run on wrong pools.
func (m *Mover) countMisplaced(ctx context.Context, w *Workload) (int, error) {
	misplaced, err := m.ListMisplaced(ctx)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range misplaced {
		kind, name, err := m.findController(ctx, &misplaced[i])
		if err != nil {
			return 0, err
		}
		if misplaced[i].Namespace == w.Namespace && kind == w.Kind && name == w.Name {
			n++
		}
	}
	return n, nil
}

// evictPod evicts a pod, retrying until its budgets allow it. It waits until the pod is deleted
// and its workload is complete again.
func (m *Mover) evictPod(ctx context.Context, w *Workload, s *MisplacedPod, progress func(string)) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Pod}}
	if err := m.client.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	id := pod.UID
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &id}}}
		err := m.client.SubResource("eviction").Create(ctx, pod, eviction)
		if apierrors.IsTooManyRequests(err) {
			progress("pod " + s.Pod + " may not be evicted yet: " + err.Error())
			return false, nil
		}
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // deleted, or replaced by another pod of this name
			return true, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	progress("pod " + s.Pod + " is being evicted")
	return wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		var now corev1.Pod
		err := m.client.Get(ctx, client.ObjectKeyFromObject(pod), &now)
		if client.IgnoreNotFound(err) != nil || err == nil && now.UID == id {
			return false, client.IgnoreNotFound(err)
		}
		if w.Kind == "Pod" || w.Kind == "ReplicaSet" {
			return true, nil
		}
		o, err := m.readWorkload(ctx, w)
		if err != nil {
			return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
		}
		return areAllReady(o), nil
	})
}
