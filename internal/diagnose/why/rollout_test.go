package why_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/diagnose/why"
)

func makeMeta(generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: generation}
}

// newDeployment returns a Deployment with 3 replicas, all ready. The edits change it.
func newDeployment(edits ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: makeMeta(2), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3, AvailableReplicas: 3,
	}}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func makeStuck(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Status.Replicas = 1, 4 }

func addCondition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func newStatefulSet(edits ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: makeMeta(2), Spec: appsv1.StatefulSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.StatefulSetStatus{
		ObservedGeneration: 2, Replicas: 3, ReadyReplicas: 3, AvailableReplicas: 3, CurrentRevision: "web-1", UpdateRevision: "web-1", CurrentReplicas: 3, UpdatedReplicas: 3,
	}}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// setNewRevision makes one pod of the StatefulSet have the new revision.
func setNewRevision(set *appsv1.StatefulSet) {
	set.Status.UpdateRevision, set.Status.UpdatedReplicas, set.Status.CurrentReplicas = "web-2", 1, 2
}

func newDaemonSet(edits ...func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{
		ObjectMeta: makeMeta(2),
		Status: appsv1.DaemonSetStatus{
			ObservedGeneration: 2, DesiredNumberScheduled: 3, CurrentNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberReady: 3, NumberAvailable: 3,
		},
	}
	set.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// newPod returns a pod on a node. The edits change it.
func newPod(name, ownerKind, owner string, edits ...func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, Labels: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{{Kind: ownerKind, Name: owner, Controller: ptr.To(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}},
	}
	for _, edit := range edits {
		edit(&p)
	}
	return p
}

func setReady(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }

func makeUnplaced(message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
	}
}

func makeWaiting(reason, message string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
}

func addLabel(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// formatStory returns the text of `croft why` about an object, without the rows of the
// catalogue.
func formatStory(story why.Story) string {
	text := story.Summary
	for _, step := range story.Steps {
		text += "\n" + string(step.Verdict) + " " + string(step.Link) + " " + step.Object + ": " + step.Observation
	}
	return text
}

// TestRollouts fails if a workload is reported as healthy while pods of its current
// template are not created, not scheduled or not ready, although pods of the earlier
// template still serve.
func TestRollouts(t *testing.T) {
	const (
		overQuota = `pods "web-2-x2x9p" is forbidden: exceeded quota: croft, requested: pods=1, used: pods=3, limited: pods=3`
		insecure  = `pods "web-2-x2x9p" is forbidden: violates PodSecurity "baseline:latest": privileged (container "web" must not set securityContext.privileged=true)`
		outside   = `0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.`
	)
	old, fresh := why.Maker{Kind: "ReplicaSet", Name: "web-1"}, why.Maker{Kind: "ReplicaSet", Name: "web-2"}
	before := newPod("web-1-a", old.Kind, old.Name, setReady)
	for name, c := range map[string]struct {
		kind     string
		object   client.Object
		makers   []why.Maker
		pods     []corev1.Pod
		events   []corev1.Event
		hidden   []string
		verdict  why.Verdict
		first    string
		wantText string
	}{
		"a Deployment that is complete": {kind: "deployment", object: newDeployment(), verdict: why.Good, wantText: "3 of 3 pods are ready, and nothing is wrong"},
		"that is scaled to 0": {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}), verdict: why.Good, wantText: "needs none, and nothing is wrong"},
		"stuck by quota":                  {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, addCondition("ReplicaFailure", "True", "FailedCreate", overQuota)), makers: []why.Maker{fresh}, verdict: why.Bad, first: "quota-exceeded", wantText: "bad admission replicaset/web-2: " + overQuota},
		"stuck by quota, events are read": {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, addCondition("ReplicaFailure", "True", "FailedCreate", overQuota)), makers: []why.Maker{fresh}, events: []corev1.Event{newEvent("ReplicaSet", "web-2", "FailedCreate", "replicaset-controller", "Error creating: "+overQuota)}, verdict: why.Bad, first: "quota-exceeded", wantText: "3 of 3 pods are ready, and the rollout has not finished: 0 of 3 pods have the current template, and 3 an earlier one"},
		"stuck by Pod Security":           {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, addCondition("ReplicaFailure", "True", "FailedCreate", insecure)), makers: []why.Maker{fresh}, hidden: []string{"event"}, verdict: why.Bad, first: "pod-security"},
		"stuck by an instance type":       {kind: "deployment", object: newDeployment(makeStuck), makers: []why.Maker{fresh}, pods: []corev1.Pod{before, newPod("web-2-a", fresh.Kind, fresh.Name, makeUnplaced(outside))}, verdict: why.Waiting, wantText: "waiting scheduler pod/web-2-a: no existing node accepts it: " + outside},
		"stuck by an image":               {kind: "deployment", object: newDeployment(makeStuck), makers: []why.Maker{fresh}, pods: []corev1.Pod{before, newPod("web-2-a", fresh.Kind, fresh.Name, makeWaiting("ImagePullBackOff", "no such image"))}, verdict: why.Bad, first: "image-pull"},
		"its ReplicaSet is refused":       {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }, addCondition("Progressing", "False", "ReplicaSetCreateError", `Failed to create new replica set "web-2": replicasets.apps "web-2" is forbidden: exceeded quota: croft, requested: count/replicasets.apps=1, used: count/replicasets.apps=30, limited: count/replicasets.apps=30`)), makers: []why.Maker{old}, pods: []corev1.Pod{before}, verdict: why.Bad, first: "quota-exceeded"},
		"a new pod that is not ready": {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas = ptr.To[int32](1), 2, 1, 1
		}, addCondition("Progressing", "False", "ProgressDeadlineExceeded", `ReplicaSet "web-2" has timed out progressing.`)), makers: []why.Maker{fresh}, pods: []corev1.Pod{before, newPod("web-2-a", fresh.Kind, fresh.Name, makeUnplaced(outside))}, verdict: why.Bad, first: "rollout-stuck", wantText: "1 of 1 pods are ready, and the rollout has not finished: 1 of 1 pods have the current template, and 1 an earlier one"},
		"that is scaled down":             {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](2) }), makers: []why.Maker{fresh}, verdict: why.Waiting, wantText: "3 of 2 pods are ready\nwaiting pod deployment/web: 1 of its pods are being deleted"},
		"beyond its deadline":             {kind: "deployment", object: newDeployment(makeStuck, addCondition("Progressing", "False", "ProgressDeadlineExceeded", `ReplicaSet "web-2" has timed out progressing.`)), makers: []why.Maker{fresh}, verdict: why.Bad, first: "rollout-stuck"},
		"beyond its deadline, by a cause": {kind: "deployment", object: newDeployment(makeStuck, addCondition("Progressing", "False", "ProgressDeadlineExceeded", `ReplicaSet "web-2" has timed out progressing.`)), makers: []why.Maker{fresh}, pods: []corev1.Pod{newPod("web-2-a", fresh.Kind, fresh.Name, makeWaiting("ImagePullBackOff", "no such image"))}, verdict: why.Bad, first: "image-pull"},
		"that is paused":                  {kind: "deployment", object: newDeployment(makeStuck, func(d *appsv1.Deployment) { d.Spec.Paused = true }), makers: []why.Maker{old}, pods: []corev1.Pod{before}, verdict: why.Waiting, wantText: "kubectl rollout resume deployment/web -n shop"},
		"that is paused, and complete":    {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Spec.Paused = true }), verdict: why.Good},
		"that is not observed yet":        {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Generation = 3 }), verdict: why.Waiting, wantText: "has not processed the latest change"},
		"whose surplus goes":              {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.Replicas = 4 }), makers: []why.Maker{fresh}, verdict: why.Waiting, wantText: "1 of its pods are being deleted"},
		"faults of the earlier template":  {kind: "deployment", object: newDeployment(makeStuck), makers: []why.Maker{fresh}, pods: []corev1.Pod{newPod("web-1-b", old.Kind, old.Name, makeWaiting("ImagePullBackOff", "no such image")), newPod("web-2-a", fresh.Kind, fresh.Name, makeWaiting("CreateContainerConfigError", "no secret"))}, verdict: why.Bad, first: "container-config"},
		"an old pod that does not go": {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2} }), makers: []why.Maker{fresh}, pods: []corev1.Pod{newPod("web-1-b", old.Kind, old.Name, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"example.org/drain"}
		})}, verdict: why.Waiting, wantText: "example.org/drain"},
		"an evicted pod that is replaced": {kind: "deployment", object: newDeployment(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }), makers: []why.Maker{fresh}, pods: []corev1.Pod{newPod("web-2-a", fresh.Kind, fresh.Name, func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }), newPod("web-2-b", fresh.Kind, fresh.Name, makeWaiting("ErrImagePull", "no such image"))}, verdict: why.Bad, first: "image-pull"},

		"a ReplicaSet by quota": {kind: "replicaset", object: &appsv1.ReplicaSet{ObjectMeta: makeMeta(1), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](3)}, Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 1, AvailableReplicas: 1,
			Conditions: []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: "True", Message: overQuota}}}}, makers: []why.Maker{{Kind: "ReplicaSet", Name: "web"}}, verdict: why.Bad, first: "quota-exceeded"},
		"a ReplicaSet that is complete": {kind: "replicaset", object: &appsv1.ReplicaSet{ObjectMeta: makeMeta(1), Status: appsv1.ReplicaSetStatus{ObservedGeneration: 1, Replicas: 1, AvailableReplicas: 1}}, verdict: why.Good},
		"a ReplicationController by quota": {kind: "replicationcontroller", object: &corev1.ReplicationController{ObjectMeta: makeMeta(1), Status: corev1.ReplicationControllerStatus{ObservedGeneration: 1,
			Conditions: []corev1.ReplicationControllerCondition{{Type: corev1.ReplicationControllerReplicaFailure, Status: "True", Message: insecure}}}}, makers: []why.Maker{{Kind: "ReplicationController", Name: "web"}}, verdict: why.Bad, first: "pod-security"},

		"a StatefulSet that is complete":    {kind: "statefulset", object: newStatefulSet(), verdict: why.Good},
		"a StatefulSet by quota":            {kind: "statefulset", object: newStatefulSet(func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.AvailableReplicas = 2, 2 }), makers: []why.Maker{{Kind: "StatefulSet", Name: "web"}}, pods: []corev1.Pod{newPod("web-0", "StatefulSet", "web", setReady), newPod("web-1", "StatefulSet", "web", setReady)}, events: []corev1.Event{newEvent("StatefulSet", "web", "FailedCreate", "statefulset-controller", "create Pod web-2 in StatefulSet web failed error: "+overQuota)}, verdict: why.Bad, first: "quota-exceeded"},
		"whose events are hidden":           {kind: "statefulset", object: newStatefulSet(func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.AvailableReplicas = 2, 2 }), hidden: []string{"event"}, verdict: why.Good, wantText: "hidden admission"},
		"of which one of the new is broken": {kind: "statefulset", object: newStatefulSet(setNewRevision, func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = 2 }), pods: []corev1.Pod{newPod("web-2", "StatefulSet", "web", addLabel("controller-revision-hash", "web-2"), makeWaiting("ImagePullBackOff", "no such image"))}, verdict: why.Bad, first: "image-pull"},
		"whose rollout continues":           {kind: "statefulset", object: newStatefulSet(setNewRevision), verdict: why.Waiting, wantText: "1 of 3 pods have the current template, and 2 an earlier one"},
		"that a broken old pod blocks":      {kind: "statefulset", object: newStatefulSet(setNewRevision, func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = 2 }), pods: []corev1.Pod{newPod("web-0", "StatefulSet", "web", addLabel("controller-revision-hash", "web-1"), makeWaiting("ImagePullBackOff", "no such image"))}, verdict: why.Bad, first: "image-pull"},
		"with a partition that is reached": {kind: "statefulset", object: newStatefulSet(setNewRevision, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
		}), verdict: why.Good},
		"with a partition that is not reached": {kind: "statefulset", object: newStatefulSet(setNewRevision, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}
		}), verdict: why.Waiting, wantText: "1 of 2 pods have the current template"},
		"with OnDelete":                  {kind: "statefulset", object: newStatefulSet(setNewRevision, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType }), pods: []corev1.Pod{newPod("web-0", "StatefulSet", "web", setReady, addLabel("controller-revision-hash", "web-1"))}, verdict: why.Waiting, wantText: "OnDelete: these pods keep the earlier template until you delete them: web-0"},
		"that creates one pod at a time": {kind: "statefulset", object: newStatefulSet(func(s *appsv1.StatefulSet) { s.Status.Replicas, s.Status.AvailableReplicas = 1, 0 }), pods: []corev1.Pod{newPod("web-0", "StatefulSet", "web", makeUnplaced(outside))}, verdict: why.Waiting, wantText: "the next one when all others are ready"},
		"whose pod does not go": {kind: "statefulset", object: newStatefulSet(func(s *appsv1.StatefulSet) { s.Status.AvailableReplicas = 2 }), pods: []corev1.Pod{newPod("web-0", "StatefulSet", "web", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = ptr.To(metav1.Now()), []string{"example.org/drain"}
		})}, verdict: why.Waiting, wantText: "example.org/drain"},

		"a DaemonSet that is complete": {kind: "daemonset", object: newDaemonSet(), verdict: why.Good},
		"on no node":                   {kind: "daemonset", object: newDaemonSet(func(s *appsv1.DaemonSet) { s.Status = appsv1.DaemonSetStatus{ObservedGeneration: 2} }), verdict: why.Good, wantText: "needs none"},
		"whose new pods are broken":    {kind: "daemonset", object: newDaemonSet(func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled, s.Status.NumberAvailable = 1, 2 }), pods: []corev1.Pod{newPod("web-a", "DaemonSet", "web", addLabel("pod-template-generation", "2"), makeWaiting("ImagePullBackOff", "no such image"))}, verdict: why.Bad, first: "image-pull"},
		"whose new pods are refused": {kind: "daemonset", object: newDaemonSet(func(s *appsv1.DaemonSet) {
			s.Status.UpdatedNumberScheduled, s.Status.NumberAvailable, s.Status.CurrentNumberScheduled = 0, 2, 2
		}), makers: []why.Maker{{Kind: "DaemonSet", Name: "web"}}, events: []corev1.Event{newEvent("DaemonSet", "web", "FailedCreate", "daemonset-controller", "Error creating: "+insecure)}, verdict: why.Bad, first: "pod-security"},
		"whose surplus pods are refused": {kind: "daemonset", object: newDaemonSet(func(s *appsv1.DaemonSet) { s.Status.UpdatedNumberScheduled = 0 }), makers: []why.Maker{{Kind: "DaemonSet", Name: "web"}}, pods: []corev1.Pod{newPod("web-a", "DaemonSet", "web", setReady), newPod("web-b", "DaemonSet", "web", setReady), newPod("web-c", "DaemonSet", "web", setReady)}, events: []corev1.Event{newEvent("DaemonSet", "web", "FailedCreate", "daemonset-controller", "Error creating: "+overQuota)}, verdict: why.Bad, first: "quota-exceeded"},
		"a DaemonSet with OnDelete": {kind: "daemonset", object: newDaemonSet(func(s *appsv1.DaemonSet) {
			s.Status.UpdatedNumberScheduled = 0
			s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		}), pods: []corev1.Pod{newPod("web-a", "DaemonSet", "web", setReady, addLabel("pod-template-generation", "1"))}, verdict: why.Waiting, wantText: "until you delete them: web-a"},
	} {
		t.Run(name, func(t *testing.T) {
			story := why.ExplainSnapshot(&why.Snapshot{
				Target: why.Target{Kind: c.kind, Namespace: "shop", Name: "web"}, Object: c.object, Makers: c.makers, Pods: c.pods, Events: c.events, Hidden: append(c.hidden, "node"), Key: key,
			})
			first := ""
			if story.First != nil {
				first = story.First.ID
			}
			if story.Verdict != c.verdict || first != c.first || !strings.Contains(formatStory(story), c.wantText) {
				t.Errorf("%s and %q, want %s, %q and %q:\n%s", story.Verdict, first, c.verdict, c.first, c.wantText, formatStory(story))
			}
		})
	}
}
