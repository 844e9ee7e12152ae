package tenant_test

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// testReportedRepairs deletes many objects at once. Each repair must be reported by an event, a log
// line and a metric.
func testReportedRepairs(f *fixture) {
	shop := operatortest.NewTenant("shop", "")
	f.AwaitReady(shop)
	deleted := f.ListPolicies("shop")
	counted := f.CountRepairs("shop", "NetworkPolicy")
	if err := f.Client.DeleteAllOf(f.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace("shop")); err != nil {
		f.Fatal(err)
	}
	f.Await("the policies to come back", func() string {
		if back := len(f.ListPolicies("shop")); back < len(deleted) {
			return fmt.Sprintf("%d of %d", back, len(deleted))
		}
		return ""
	})
	for _, policy := range deleted {
		f.AwaitRepair(shop, "NetworkPolicy shop/"+policy.Name)
		f.AwaitLog("restored an object", "kind=NetworkPolicy namespace=shop name="+policy.Name+" was=deleted")
	}
	f.Await("the repairs to be counted", func() string {
		if n := f.CountRepairs("shop", "NetworkPolicy") - counted; int(n) < len(deleted) {
			return fmt.Sprintf("%v of %d", n, len(deleted))
		}
		return ""
	})
	f.AwaitReady(shop)
}

// testReportedRejection uses the platform's own admission policy to reject an object of a new
// tenant. croft apply must not wait for that tenant.
func testReportedRejection(f *fixture) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-limits"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"limitranges"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.namespace != 'strict'", Message: "no limits here"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "no-limits"},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "no-limits", ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	f.Create(policy, binding)
	f.awaitLimitRangeRefusal("strict")
	strict := operatortest.NewTenant("strict", "apps")
	f.Create(strict)
	f.AwaitCondition(strict, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRejected)
	f.AwaitEvent(strict, v1alpha1.ReasonRejected, "no limits here")
	f.Delete(binding)
	f.Delete(policy)
	f.Delete(strict)
	f.AwaitDeletion(strict)
}

// awaitLimitRangeRefusal waits until the admission policy refuses LimitRanges.
func (f *fixture) awaitLimitRangeRefusal(name string) {
	f.Helper()
	ns := operatortest.NewNamespace(name)
	f.Create(ns)
	f.Await("the policy to take effect", func() string {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "probe"}}
		if err := f.Client.Create(f.Context(), limits, client.DryRunAll); err == nil {
			return "a LimitRange is let through"
		}
		return ""
	})
	f.Delete(ns)
	f.AwaitDeletion(ns)
}
