package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// testWhyRollout changes the template of Deployments whose earlier pods keep running.
func testWhyRollout(t *testing.T, c *faultyCluster) {
	roll := func(deployment *appsv1.Deployment, patch string) {
		t.Helper()
		patched := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
		if err := c.admin.Patch(t.Context(), patched, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	refused, _ := newNginxDeployment("frugal", 1)
	createObjects(t, c.admin, refused)
	t.Cleanup(func() { c.deleteObjects(t, refused) })
	c.awaitRunningPods(t, "frugal", 1)
	roll(refused, `{"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}`)
	awaitCondition(t, patience, "croft why to tell the earlier pod apart", func(context.Context) error {
		story, out := c.explainAs(t, "", "deployment/nginx", "-n", "frugal")
		if !strings.Contains(story.Summary, "1 of 1 pods are ready, and the rollout has not finished: 0 of 1 pods have the current template, and 1 an earlier one") {
			return fmt.Errorf("it prints %s", out)
		}
		return nil
	})
	c.awaitCause(t, "quota-exceeded", "team-frugal", "deployment/nginx", "-n", "frugal")

	unplaced, _ := newNginxDeployment("tenant-b", 1)
	unplaced.Name = "rolling"
	unplaced.Spec.ProgressDeadlineSeconds = ptr.To[int32](1)
	createObjects(t, c.newMemberClient(t, "team-b"), unplaced)
	t.Cleanup(func() { c.deleteObjects(t, unplaced) })
	c.awaitRunningPods(t, "tenant-b", 1)
	roll(unplaced, `{"spec": {"template": {"spec": {"nodeSelector": {"node.kubernetes.io/instance-type": "p4d.24xlarge"}}}}}`)
	c.awaitCause(t, "requirement-unmet", "team-b", "deployment/rolling", "-n", "tenant-b")
	c.awaitStep(t, "rollout-stuck", "deployment/rolling", "-n", "tenant-b")
	if story, _ := c.explainAs(t, "", "deployment/rolling", "-n", "tenant-b"); !strings.Contains(story.Summary, "1 of 1 pods have the current template, and 1 an earlier one") {
		t.Errorf("the summary does not count the earlier pod: %s", story.Summary)
	}
}

// testWhyJob tests a Job that exceeds its deadline without a node, and a Job that fails. The test
// writes the failed pod's status as the kubelet does.
func testWhyJob(t *testing.T, c *faultyCluster) {
	job := func(name string, edit func(*batchv1.JobSpec)) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-b", Name: name}}
		j.Spec.Template.Spec = newNginxPod("tenant-b", name, requireInstanceType("p4d.24xlarge")).Spec
		j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		edit(&j.Spec)
		createObjects(t, c.newMemberClient(t, "team-b"), j)
		t.Cleanup(func() {
			if err := c.admin.Delete(context.WithoutCancel(t.Context()), j, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Error(err)
			}
		})
		return j
	}
	job("late", func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = ptr.To[int64](1) })
	story := c.awaitCause(t, "job-deadline", "team-b", "job/late", "-n", "tenant-b")
	if story.Summary != "has failed" {
		t.Errorf("the summary is %q", story.Summary)
	}
	broken := job("broken", func(s *batchv1.JobSpec) { s.BackoffLimit = ptr.To[int32](0) })
	c.awaitCause(t, "requirement-unmet", "team-b", "job/broken", "-n", "tenant-b")
	var pods corev1.PodList
	if err := c.admin.List(t.Context(), &pods, client.InNamespace("tenant-b"), client.MatchingLabels{batchv1.JobNameLabel: broken.Name}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	pods.Items[0].Status.Phase = corev1.PodFailed
	pods.Items[0].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "nginx", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "no database"},
	}}}
	if err := c.admin.Status().Update(t.Context(), &pods.Items[0]); err != nil {
		t.Fatal(err)
	}
	c.awaitStep(t, "job-failed", "job/broken", "-n", "tenant-b")
	story = c.awaitCause(t, "crash-loop", "team-b", "job/broken", "-n", "tenant-b")
	if !strings.Contains(story.First.Symptom, "ended with exit code 1: no database") {
		t.Errorf("the symptom does not contain the pod's end: %s", story.First.Symptom)
	}
}
