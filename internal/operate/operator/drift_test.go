package operator_test

import (
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/operate/operator/operatortest"
)

func testDriftRepair(f *fixture) {
	shop := operatortest.NewTenant("shop", "")
	f.AwaitReady(shop)
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft-isolation"}}
	f.Patch(policy, `{"spec":{"ingress":[{}]}}`)
	f.Await("the open rule to go", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		if len(policy.Spec.Ingress) == 1 && len(policy.Spec.Ingress[0].From) == 0 {
			return "still open"
		}
		return ""
	})
	f.AwaitRepair(shop, "NetworkPolicy shop/croft-isolation, which was changed by somebody")

	f.Delete(policy)
	f.Await("the policy to come back", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(policy), policy); err != nil {
			return err.Error()
		}
		return ""
	})

	// Drift of cluster-wide objects is repaired, too.
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-viewer"}}
	f.Patch(role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	f.Await("the role to be put back", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		if len(role.Rules) == 1 {
			return "still everything"
		}
		return ""
	})
	nodePool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	f.Patch(nodePool, `{"spec":{"template":{"spec":{"taints":[]}}}}`)
	f.Await("the taints to be put back", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(nodePool), nodePool); err != nil {
			return err.Error()
		}
		if len(nodePool.Spec.Template.Spec.Taints) == 0 {
			return "still none"
		}
		return ""
	})
}
