package workloads_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

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
	"croft.dev/croft/internal/diagnose/why"
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

// TestSelectEvents selects the events about a Deployment, its ReplicaSets and its pods, the newest
// first.
func TestSelectEvents(t *testing.T) {
	event := func(namespace, kind, name string, minute int) corev1.Event {
		return corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name},
			LastTimestamp: metav1.Date(2026, 11, 26, 12, minute, 0, 0, time.UTC), Message: kind + "/" + name,
		}
	}
	s := &why.Snapshot{
		Target: why.Target{Kind: "deployment", Namespace: "shop", Name: "web"}, Pods: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web-1-a"}}}, Makers: []why.Maker{{Kind: "ReplicaSet", Name: "web-1"}},
		Events: []corev1.Event{
			event("shop", "Deployment", "web", 1), event("shop", "Pod", "web-1-a", 3), event("shop", "ReplicaSet", "web-1", 2), event("shop", "Pod", "web", 4),
			event("shop", "Deployment", "other", 5), event("default", "Deployment", "web", 6),
		},
	}
	var got []string
	for _, e := range workloads.SelectEvents(s) {
		got = append(got, e.Message)
	}
	if want := "Pod/web-1-a ReplicaSet/web-1 Deployment/web"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %s", got, want)
	}
}

// TestListRunning expects the containers in which a command can run, and the one of `kubectl exec` first.
func TestListRunning(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	p := makePod("web", corev1.PodRunning, func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "init"}, {Name: "sidecar"}}
		p.Spec.Containers = []corev1.Container{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "unknown"}}
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug"}}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: ended}, {Name: "sidecar", State: running}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", State: running}, {Name: "b", State: running}, {Name: "c", State: ended}, {Name: "other", State: running}}
		p.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", State: running}}
	})
	for annotation, want := range map[string]string{"": "a sidecar b debug", "b": "b sidecar a debug", "c": "sidecar a b debug", "other": "sidecar a b debug"} {
		p.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": annotation}
		if got := strings.Join(workloads.ListRunning(p), " "); got != want {
			t.Errorf("default container %q: %s, want %s", annotation, got, want)
		}
	}
	if got := workloads.ListRunning(makePod("web", corev1.PodPending, nil)); len(got) > 0 {
		t.Errorf("a pod without containers: %q", got)
	}
}

// TestChooseContainer expects the container whose log explains a failure.
func TestChooseContainer(t *testing.T) {
	containers := func(p *corev1.Pod) {
		p.Spec.InitContainers, p.Spec.Containers = []corev1.Container{{Name: "init"}}, []corev1.Container{{Name: "main"}, {Name: "side"}}
	}
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"the first": {func(*corev1.Pod) {}, "main"},
		"the default": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "side"}
		}, "side"},
		"a default that is absent": {func(p *corev1.Pod) { p.Annotations = map[string]string{"kubectl.kubernetes.io/default-container": "x"} }, "main"},
		"one that failed": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
		}, "init"},
		"one that restarts": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main"}, {
				Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}},
			}}
		}, "side"},
		"none": {func(p *corev1.Pod) { p.Spec = corev1.PodSpec{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := makePod("a", corev1.PodRunning, containers)
			c.change(p)
			if got := workloads.ChooseContainer(p); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
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
