package workloads_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/internal/dashboard/workloads"
	"croft.dev/croft/internal/declare/scheme"
)

func makeMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: name}
}

func makePod(name string, phase corev1.PodPhase, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: makeMeta(name), Status: corev1.PodStatus{Phase: phase}}
	if change != nil {
		change(p)
	}
	return p
}

func setReady(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
}

func setWaiting(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName = "n"
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
}

// TestGather lists each kind in each state, problems first. A kind that the caller may not list
// is named.
func TestGather(t *testing.T) {
	two, yes := int32(2), true
	objects := []client.Object{
		makePod("a-runs", corev1.PodRunning, setReady), makePod("b-unready", corev1.PodRunning, nil), makePod("c-new", corev1.PodPending, nil),
		makePod("d-starts", corev1.PodPending, setWaiting("ContainerCreating")), makePod("e-image", corev1.PodPending, setWaiting("ImagePullBackOff")),
		makePod("f-done", corev1.PodSucceeded, nil), makePod("g-evicted", corev1.PodFailed, func(p *corev1.Pod) { p.Status.Reason = "Evicted" }),
		makePod("h-failed", corev1.PodFailed, nil),
		makePod("i-going", corev1.PodRunning, func(p *corev1.Pod) {
			p.Finalizers, p.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: metav1.Now().Time}
		}),
		&appsv1.Deployment{ObjectMeta: makeMeta("j-default"), Status: appsv1.DeploymentStatus{ReadyReplicas: 1}},
		&appsv1.Deployment{ObjectMeta: makeMeta("k-short"), Spec: appsv1.DeploymentSpec{Replicas: &two}, Status: appsv1.DeploymentStatus{ReadyReplicas: 1}},
		&appsv1.Deployment{ObjectMeta: makeMeta("l-refused"), Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate"}}}},
		&appsv1.StatefulSet{ObjectMeta: makeMeta("m-set"), Spec: appsv1.StatefulSetSpec{Replicas: &two}, Status: appsv1.StatefulSetStatus{ReadyReplicas: 2}},
		&appsv1.DaemonSet{ObjectMeta: makeMeta("n-agents"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3, NumberReady: 2}},
		&batchv1.Job{ObjectMeta: makeMeta("o-failed"), Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}},
		&batchv1.Job{ObjectMeta: makeMeta("p-done"), Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}}},
		&batchv1.Job{ObjectMeta: makeMeta("q-runs"), Status: batchv1.JobStatus{Active: 2}},
		&batchv1.Job{ObjectMeta: makeMeta("r-new")},
		&batchv1.CronJob{ObjectMeta: makeMeta("s-nightly"), Spec: batchv1.CronJobSpec{Schedule: "0 1 * * *"}},
		&batchv1.CronJob{ObjectMeta: makeMeta("t-off"), Spec: batchv1.CronJobSpec{Suspend: &yes}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "a"}},
	}
	const all = `pod e-image: ImagePullBackOff, bad
pod g-evicted: Evicted, bad
pod h-failed: Failed, bad
deployment l-refused: 0 of 1 ready, FailedCreate, bad
job o-failed: Failed, bad
pod b-unready: Running, not ready, waiting
pod c-new: Pending, no node, waiting
pod d-starts: Pending, waiting
pod i-going: Terminating, waiting
deployment k-short: 1 of 2 ready, waiting
daemonset n-agents: 2 of 3 ready, waiting
job r-new: no pod yet, waiting
pod a-runs: Running, good
pod f-done: Completed, good
deployment j-default: 1 of 1 ready, good
statefulset m-set: 2 of 2 ready, good
job p-done: Complete, good
job q-runs: 2 running, good
cronjob s-nightly: 0 1 * * *, 0 running, good
cronjob t-off: Suspended, good
`
	var withoutPods string
	for line := range strings.Lines(all) {
		if !strings.HasPrefix(line, "pod ") {
			withoutPods += line
		}
	}
	for name, c := range map[string]struct {
		forbidden func(client.ObjectList) bool
		want      string
		hidden    string
	}{
		"all kinds":   {func(client.ObjectList) bool { return false }, all, ""},
		"hidden pods": {func(l client.ObjectList) bool { _, is := l.(*corev1.PodList); return is }, withoutPods, "pods"},
		"nothing":     {func(client.ObjectList) bool { return true }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if c.forbidden(list) {
						return apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
					}
					return under.List(ctx, list, opts...)
				},
			}).Build()
			l, err := workloads.Gather(t.Context(), on, "shop", slices.Concat(workloads.Services, workloads.Batch))
			if c.want == "" {
				if !apierrors.IsForbidden(err) {
					t.Errorf("got %v, want forbidden", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, w := range l.Workloads {
				got.WriteString(w.Kind + " " + w.Name + ": " + w.State + ", " + string(w.Verdict) + "\n")
			}
			if got.String() != c.want || strings.Join(l.Hidden, " ") != c.hidden {
				t.Errorf("got\n%shidden %q\nwant\n%shidden %q", got.String(), l.Hidden, c.want, c.hidden)
			}
		})
	}
}
