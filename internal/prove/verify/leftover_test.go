package verify

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
)

// TestLeftovers adds a foreign policy that refuses the deletion of a prepared object,
// and expects a report with the command that deletes it.
func TestLeftovers(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	r, err := NewRunner(cluster.Config, scheme.New())
	if err != nil {
		t.Fatal(err)
	}
	kept := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		}
	}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "keep"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "oldObject.metadata.name != 'kept'", Message: "it stays"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "keep"},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: "keep", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	for _, o := range []client.Object{policy, binding, kept("kept")} {
		if err := r.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(time.Minute); r.admin.Delete(t.Context(), kept("kept"), client.DryRunAll) == nil; time.Sleep(again) {
		if time.Now().After(deadline) {
			t.Fatal("the policy does not take effect")
		}
	}
	cleanUp, err := r.setUp(t.Context(), []client.Object{kept("kept"), kept("gone")})
	if err != nil {
		t.Fatal(err)
	}
	cleanUp()
	err = r.ReportLeftovers()
	if err == nil || !strings.Contains(err.Error(), "ConfigMap default/kept") || !strings.Contains(err.Error(), "it stays") ||
		!strings.Contains(err.Error(), "run `kubectl delete configmap kept -n default`") || strings.Contains(err.Error(), "gone") {
		t.Errorf("leftovers: %v", err)
	}
	if err := r.ReportLeftovers("default"); err != nil {
		t.Errorf("the namespace is deleted, and still: %v", err)
	}
}
