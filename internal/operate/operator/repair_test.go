package operator_test

import (
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

func driftPutBack(f *field) {
	shop := tenant("shop", "")
	f.ready(shop)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft-isolation"}}
	f.patch(policy, `{"spec":{"ingress":[{}]}}`)
	f.eventually("the open rule to go", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		if len(policy.Spec.Ingress) == 1 && len(policy.Spec.Ingress[0].From) == 0 {
			return "still open"
		}
		return ""
	})
	f.event(shop, "Repaired", "NetworkPolicy shop/croft-isolation, which was changed by somebody")

	f.delete(policy)
	f.eventually("the policy to come back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		return ""
	})

	// Drift of cluster-wide objects is repaired, too.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-viewer"}}
	f.patch(role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	f.eventually("the role to be put back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		if len(role.Rules) == 1 {
			return "still everything"
		}
		return ""
	})
	nodePool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	f.patch(nodePool, `{"spec":{"template":{"spec":{"taints":[]}}}}`)
	f.eventually("the taints to be put back", func() string {
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(nodePool), nodePool); err != nil {
			return err.Error()
		}
		if len(nodePool.Spec.Template.Spec.Taints) == 0 {
			return "still none"
		}
		return ""
	})
}

// repairsReported deletes and changes many objects at once. Each repair must be reported by
// an event, a log line and a metric.
func repairsReported(f *field) {
	shop, whole, apps := tenant("shop", ""), platform(), pool("apps")
	f.ready(shop, whole, apps)
	deleted := f.policies("shop")
	counted := repairs(f, "shop", "NetworkPolicy")
	if err := f.client.DeleteAllOf(f.Context(), &networkingv1.NetworkPolicy{}, client.InNamespace("shop")); err != nil {
		f.Fatal(err)
	}
	f.eventually("the policies to come back", func() string {
		if back := len(f.policies("shop")); back < len(deleted) {
			return fmt.Sprintf("%d of %d", back, len(deleted))
		}
		return ""
	})
	for _, policy := range deleted {
		f.event(shop, "Repaired", "NetworkPolicy shop/"+policy.Name)
		f.logged("restored an object", "kind=NetworkPolicy namespace=shop name="+policy.Name+" was=deleted")
	}
	f.eventually("the repairs to be counted", func() string {
		if n := repairs(f, "shop", "NetworkPolicy") - counted; int(n) < len(deleted) {
			return fmt.Sprintf("%v of %d", n, len(deleted))
		}
		return ""
	})

	before := repairs(f, "", "MutatingAdmissionPolicy") + repairs(f, "", "MutatingAdmissionPolicyBinding")
	var policies admissionv1.MutatingAdmissionPolicyList
	if err := f.client.List(f.Context(), &policies); err != nil {
		f.Fatal(err)
	}
	var bindings admissionv1.MutatingAdmissionPolicyBindingList
	if err := f.client.List(f.Context(), &bindings); err != nil {
		f.Fatal(err)
	}
	if len(policies.Items) == 0 || len(bindings.Items) == 0 {
		f.Fatalf("%d policies and %d bindings: nothing to delete", len(policies.Items), len(bindings.Items))
	}
	f.delete(&bindings.Items[0])
	f.delete(&policies.Items[0])
	f.event(whole, "Repaired", "MutatingAdmissionPolicy "+policies.Items[0].Name)
	f.event(whole, "Repaired", "MutatingAdmissionPolicyBinding "+bindings.Items[0].Name)
	f.logged("restored an object", "kind=MutatingAdmissionPolicy namespace=\"\" name="+policies.Items[0].Name+" was=deleted")
	if n := repairs(f, "", "MutatingAdmissionPolicy") + repairs(f, "", "MutatingAdmissionPolicyBinding") - before; n < 2 {
		f.Errorf("croft_repairs_total counts %v of 2", n)
	}

	nodePool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	f.patch(nodePool, `{"spec":{"weight":7}}`)
	f.event(apps, "Repaired", "restored NodePool apps, which was changed by somebody")
	f.logged("restored an object", "kind=NodePool namespace=\"\" name=apps was=changed managers=somebody")
	f.ready(shop, whole, apps)
}

// rejectedReported uses the platform's own admission policy to reject an object of a new
// tenant. croft apply must not wait for that tenant.
func rejectedReported(f *field) {
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
	f.create(policy, binding)
	f.refusesLimits("strict")
	strict := tenant("strict", "apps")
	f.create(strict)
	f.condition(strict, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonRejected)
	f.event(strict, v1alpha1.ReasonRejected, "no limits here")
	f.delete(binding)
	f.delete(policy)
	f.delete(strict)
	f.gone(strict)
}

// refusesLimits waits until the admission policy refuses LimitRanges.
func (f *field) refusesLimits(name string) {
	f.Helper()
	ns := namespace(name)
	f.create(ns)
	f.eventually("the policy to take effect", func() string {
		limits := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "probe"}}
		if err := f.client.Create(f.Context(), limits, client.DryRunAll); err == nil {
			return "a LimitRange is let through"
		}
		return ""
	})
	f.delete(ns)
	f.gone(ns)
}

// logged waits for a line in the operator's log that contains all parts.
func (f *field) logged(parts ...string) {
	f.Helper()
	f.eventually("log line "+strings.Join(parts, " … "), func() string {
		for line := range strings.Lines(f.lines.String()) {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				return ""
			}
		}
		return "no such line"
	})
}

// repairs returns croft_repairs_total for a tenant and a kind.
func repairs(f *field, tenant, kind string) float64 {
	f.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		f.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "croft_repairs_total" && labels["tenant"] == tenant && labels["kind"] == kind {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}
