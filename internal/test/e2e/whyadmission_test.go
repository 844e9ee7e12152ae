package e2e

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func testWhyQuota(t *testing.T, c *faultyCluster) {
	deployment, _ := newNginxDeployment("frugal", 2)
	createObjects(t, c.newMemberClient(t, "team-frugal"), deployment)
	t.Cleanup(func() { c.deleteObjects(t, deployment) })
	c.awaitCause(t, "quota-exceeded", "team-frugal", "deployment/nginx", "-n", "frugal")
}

// testWhyQuotaReserved tests a quota that is not used up, but reserved for another namespace.
func testWhyQuotaReserved(t *testing.T, c *faultyCluster) {
	deployment, _ := newNginxDeployment("thrifty", 2)
	member := c.newMemberClient(t, "team-thrifty")
	awaitCondition(t, patience, "team-thrifty to be let in", func(ctx context.Context) error { return member.Create(ctx, deployment) })
	t.Cleanup(func() { c.deleteObjects(t, deployment) })
	story := c.awaitCause(t, "quota-reserved", "", "deployment/nginx", "-n", "thrifty")
	if !strings.Contains(story.First.Cause, "3 of the shares of thrifty-prod") {
		t.Errorf("the cause does not name the remaining shares: %s", story.First.Cause)
	}
}

func testWhyPolicy(t *testing.T, c *faultyCluster) {
	deployment, _ := newNginxDeployment("tenant-b", 1)
	deployment.Name = "stowaway"
	tolerateEverything(&deployment.Spec.Template.Spec)
	createObjects(t, c.newMemberClient(t, "team-b"), deployment)
	t.Cleanup(func() { c.deleteObjects(t, deployment) })
	story := c.awaitCause(t, "policy-refused", "team-b", "deployment/stowaway", "-n", "tenant-b")
	if !strings.Contains(story.First.Symptom, "[tolerations]") {
		t.Errorf("the symptom does not name the rule: %s", story.First.Symptom)
	}
}

// testWhyAdmission makes the API server refuse pods by rules that are not croft's, each in its own
// namespace.
func testWhyAdmission(t *testing.T, c *faultyCluster) {
	webhook := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "nobody.example.org", FailurePolicy: ptr.To(admissionv1.Fail), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "webhook-fails"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}
	gib := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	for id, by := range map[string]struct {
		labels map[string]string
		object client.Object
		edit   func(*corev1.PodSpec)
	}{
		"quota-unstated": {nil, &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{corev1.ResourceLimitsMemory: gib[corev1.ResourceMemory]},
		}}, nil},
		"limit-range": {nil, &corev1.LimitRange{Spec: corev1.LimitRangeSpec{
			Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: gib}},
		}}, func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")}
		}},
		"pod-security":  {map[string]string{"pod-security.kubernetes.io/enforce": "baseline"}, nil, func(s *corev1.PodSpec) { s.HostNetwork = true }},
		"webhook-fails": {nil, webhook, nil},
	} {
		t.Run(id, func(t *testing.T) {
			createObjects(t, c.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: by.labels}})
			c.awaitServiceAccount(t, id)
			if by.object != nil {
				if by.object.GetName() == "" {
					by.object.SetNamespace(id)
					by.object.SetName(id)
				}
				createObjects(t, c.admin, by.object)
				t.Cleanup(func() { c.deleteObjects(t, by.object) })
			}
			deployment, _ := newNginxDeployment(id, 1)
			if by.edit != nil {
				by.edit(&deployment.Spec.Template.Spec)
			}
			createObjects(t, c.admin, deployment)
			t.Cleanup(func() { c.deleteObjects(t, deployment) })
			c.awaitCause(t, id, "", "deployment/nginx", "-n", id)
		})
	}
}
