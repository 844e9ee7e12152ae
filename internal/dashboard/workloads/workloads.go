// Package workloads lists the workloads of a namespace with their states, as kubectl prints them.
// Gather reads them with the caller's rights; the states are computed without I/O.
package workloads

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/diagnose/why"
)

// Workload is a pod, or an object that creates pods.
type Workload struct {
	// Kind is one of the kinds of package why.
	Kind, Namespace, Name string
	// State describes the workload in some words.
	State string
	// Verdict evaluates State.
	Verdict why.Verdict
	Created time.Time
}

// List contains the workloads of a namespace.
type List struct {
	// Workloads are sorted: problems first.
	Workloads []Workload
	// Hidden are the kinds that the caller may not list.
	Hidden []string
}

// reader lists one kind, and computes the states.
type reader struct {
	kind     string
	list     client.ObjectList
	evaluate func(client.ObjectList) []Workload
}

// Group is a group of kinds. An API server lists only one kind with each request, so a page shows
// only one group.
type Group []string

// The groups.
var (
	Pods     = Group{"pod"}
	Services = Group{"pod", "deployment", "statefulset"}
	Batch    = Group{"daemonset", "job", "cronjob"}
)

// Gather lists the pods and workloads of a namespace, with one request for each kind of the group.
// If the caller may list none of the kinds, it returns the API server's refusal.
func Gather(ctx context.Context, c client.Reader, namespace string, kinds Group) (*List, error) {
	readers := slices.DeleteFunc(newReaders(), func(r reader) bool { return !slices.Contains(kinds, r.kind) })
	return gather(ctx, c, namespace, readers)
}

func newReaders() []reader {
	return []reader{
		{"pod", &corev1.PodList{}, evaluateItems(func(l *corev1.PodList) []corev1.Pod { return l.Items }, EvaluatePod)},
		{"deployment", &appsv1.DeploymentList{}, evaluateItems(func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items }, evaluateDeployment)},
		{"statefulset", &appsv1.StatefulSetList{}, evaluateItems(func(l *appsv1.StatefulSetList) []appsv1.StatefulSet { return l.Items }, evaluateStatefulSet)},
		{"daemonset", &appsv1.DaemonSetList{}, evaluateItems(func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items }, evaluateDaemonSet)},
		{"job", &batchv1.JobList{}, evaluateItems(func(l *batchv1.JobList) []batchv1.Job { return l.Items }, evaluateJob)},
		{"cronjob", &batchv1.CronJobList{}, evaluateItems(func(l *batchv1.CronJobList) []batchv1.CronJob { return l.Items }, evaluateCronJob)},
	}
}

// evaluateItems returns a function that evaluates each item of a list.
func evaluateItems[L client.ObjectList, T any, O interface {
	*T
	client.Object
}](items func(L) []T, evaluate func(*T) (string, why.Verdict)) func(client.ObjectList) []Workload {
	return func(list client.ObjectList) []Workload {
		typed, ok := list.(L)
		if !ok {
			return nil
		}
		var all []Workload
		for _, item := range items(typed) {
			o := O(&item)
			w := Workload{Namespace: o.GetNamespace(), Name: o.GetName(), Created: o.GetCreationTimestamp().Time}
			if w.State, w.Verdict = evaluate(&item); o.GetDeletionTimestamp() != nil {
				w.State, w.Verdict = "Terminating", why.Waiting
			}
			all = append(all, w)
		}
		return all
	}
}

func gather(ctx context.Context, c client.Reader, namespace string, readers []reader) (*List, error) {
	refusals := make([]error, len(readers))
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range readers {
		group.Go(func() error {
			err := c.List(ctx, r.list, client.InNamespace(namespace))
			if apierrors.IsForbidden(err) {
				refusals[i] = err
				return nil
			}
			if err != nil {
				return fmt.Errorf("list %ss: %w", r.kind, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	l := &List{}
	for i, r := range readers {
		if refusals[i] != nil {
			l.Hidden = append(l.Hidden, r.kind+"s")
			continue
		}
		for _, w := range r.evaluate(r.list) {
			w.Kind = r.kind
			l.Workloads = append(l.Workloads, w)
		}
	}
	if len(l.Hidden) == len(readers) {
		return nil, refusals[0]
	}
	slices.SortStableFunc(l.Workloads, CompareUrgency)
	return l, nil
}

// CompareUrgency orders workloads: problems first, then by name.
func CompareUrgency(a, b Workload) int {
	return cmp.Or(cmp.Compare(rankVerdict(a.Verdict), rankVerdict(b.Verdict)), cmp.Compare(a.Name, b.Name))
}

func rankVerdict(v why.Verdict) int {
	return slices.Index([]why.Verdict{why.Bad, why.Waiting, why.Good}, v)
}
