package install_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/walls/wall/policy"
)

// TestBudgetPolicies tries the cases in the rule files, in namespaces as the policy wall writes them.
func TestBudgetPolicies(t *testing.T) {
	if wrong := findWrongBudgetCases(t, install.PolicyObjects()); len(wrong) > 0 {
		t.Error(strings.Join(wrong, "\n"))
	}
}

// TestBudgetPolicyMutants removes each rule and each part of the scope of the policies once. A case must
// detect it.
func TestBudgetPolicyMutants(t *testing.T) {
	for name, mutate := range map[string]func(*admissionv1.ValidatingAdmissionPolicy){
		"without new-pods":  func(p *admissionv1.ValidatingAdmissionPolicy) { removeRule(p, "new-pods") },
		"without new-nodes": func(p *admissionv1.ValidatingAdmissionPolicy) { removeRule(p, "new-nodes") },
		"without budget":    func(p *admissionv1.ValidatingAdmissionPolicy) { removeRule(p, "budget") },
		"without conditions": func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConditions = nil
		},
		"in all namespaces": func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{}
		},
		"updates, too": func(p *admissionv1.ValidatingAdmissionPolicy) {
			r := &p.Spec.MatchConstraints.ResourceRules[0]
			r.Operations = append(slices.Clone(r.Operations), admissionv1.Update)
		},
		"deletions, too": func(p *admissionv1.ValidatingAdmissionPolicy) {
			r := &p.Spec.MatchConstraints.ResourceRules[0]
			r.Operations = append(slices.Clone(r.Operations), admissionv1.Delete)
		},
		"without jobs": func(p *admissionv1.ValidatingAdmissionPolicy) {
			p.Spec.MatchConstraints.ResourceRules = slices.DeleteFunc(p.Spec.MatchConstraints.ResourceRules,
				func(r admissionv1.NamedRuleWithOperations) bool { return slices.Contains(r.APIGroups, "batch") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := install.PolicyObjects()
			for _, o := range objects {
				p, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
				if ok && (p.Name == install.BudgetsPolicy || p.Name == install.BudgetWarningsPolicy) {
					mutate(p)
				}
			}
			if len(findWrongBudgetCases(t, objects)) == 0 {
				t.Error("no case detects the change")
			}
		})
	}
}

// buildBudgetNamespaces returns the namespaces of tenants at all stages: bank is within its budget, and in lost
// the annotation with the figures is missing. priced and spent have prices, and silent
// has them in its status only. lost-prices and lost-label lack a part of them.
func buildBudgetNamespaces(t testing.TB) []client.Object {
	t.Helper()
	prices := map[string]string{"jobs": "28.27", "spot": "9.00"}
	d := &manifest.Declaration{
		Platforms: []v1alpha1.Platform{{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName}}},
		Pools:     []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}}},
	}
	for name, s := range map[string]v1alpha1.TenantBudgetStatus{
		"bank":   {Spent: "639.00"},
		"warned": {Stage: v1alpha1.BudgetWarn, StagePercent: 80, StageSpent: "641.00"},
		"nodes":  {Stage: v1alpha1.BudgetDenyNewNodes, StagePercent: 100, StageSpent: "801.00"},
		"shop":   {Stage: v1alpha1.BudgetDenyNewPods, StagePercent: 120, StageSpent: "961.00"},
		"priced": {Spent: "459.50", Prices: prices},
		"spent":  {Spent: "800.01", Prices: prices},
		"silent": {Spent: "459.50", Prices: prices},
	} {
		s.Month, s.Monthly, s.Currency = "2026-11", 800, "EUR"
		d.Tenants = append(d.Tenants, v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.TenantSpec{Pool: "jobs", Contact: "#shop-oncall", Budget: &v1alpha1.TenantBudget{
				Monthly: 800, Currency: "EUR", At: map[string]v1alpha1.BudgetStage{"120": v1alpha1.BudgetDenyNewPods}, PriceInResponse: name != "silent"}},
			Status: v1alpha1.TenantStatus{Budget: &s},
		})
	}
	e, problems := estate.Build(d)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}}
	for _, tenant := range e.Tenants {
		for _, o := range (policy.Wall{}).Tenant(&e.Platform, tenant) {
			n, ok := o.(*corev1.Namespace)
			if !ok {
				continue
			}
			all = append(all, n)
			for name, mark := range map[string]struct{ of, key string }{
				"lost": {"shop", v1alpha1.BudgetAnnotation}, "lost-prices": {"priced", v1alpha1.PriceAnnotation}, "lost-label": {"priced", v1alpha1.PriceLabel},
			} {
				if n.Name == mark.of {
					lost := n.DeepCopy()
					lost.Name = name
					delete(lost.Annotations, mark.key)
					delete(lost.Labels, mark.key)
					all = append(all, lost)
				}
			}
		}
	}
	return all
}

// findWrongBudgetCases returns the cases with another answer than expected.
func findWrongBudgetCases(t *testing.T, objects []client.Object) []string {
	t.Helper()
	return findWrongCases(t, append(objects, buildBudgetNamespaces(t)...), install.BudgetsPolicy, install.BudgetWarningsPolicy, install.PriceWarningsPolicy)
}
