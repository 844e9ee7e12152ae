package apply

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestConflicts fails if an apply would take a field from another manager without a
// conflict, or if fields that stay, or that are croft's, are conflicts.
func TestConflicts(t *testing.T) {
	const quota, pool = `{"f:spec":{"f:quota":{"f:pods":{}}}}`, `{"f:spec":{"f:pool":{}}}`
	tenant := func(change func(*v1alpha1.TenantSpec)) *v1alpha1.Tenant {
		o := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: v1alpha1.TenantSpec{
			Pool: "apps", Deletion: v1alpha1.DeletionRetain, Quota: corev1.ResourceList{"pods": resource.MustParse("10")},
			Access: []v1alpha1.Access{{Group: "devs", Role: v1alpha1.RoleOperator}},
		}}
		o.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Tenant"))
		change(&o.Spec)
		return o
	}
	same := func(*v1alpha1.TenantSpec) {}
	fewer := func(s *v1alpha1.TenantSpec) { s.Quota = corev1.ResourceList{"pods": resource.MustParse("5")} }
	none := func(s *v1alpha1.TenantSpec) { s.Quota = nil }
	other := func(s *v1alpha1.TenantSpec) { s.Pool = "spare" }
	for name, test := range map[string]struct {
		entry  metav1.ManagedFieldsEntry
		change func(*v1alpha1.TenantSpec)
		want   string
	}{
		"kubectl's value stays":                {newEntry("kubectl-edit", updated, "", quota), same, ""},
		"the same in another notation":         {newEntry("kubectl-edit", updated, "", quota), func(s *v1alpha1.TenantSpec) { s.Quota["pods"] = *resource.NewMilliQuantity(10000, resource.DecimalSI) }, ""},
		"kubectl's value changes":              {newEntry("kubectl-edit", updated, "", quota), fewer, "Tenant shop: spec.quota.pods, set by kubectl-edit"},
		"kubectl's field is removed":           {newEntry("kubectl-patch", updated, "", quota), none, "Tenant shop: spec.quota.pods, set by kubectl-patch"},
		"a first apply after kubectl's":        {newEntry("kubectl-client-side-apply", updated, "", pool), other, "Tenant shop: spec.pool, set by kubectl-client-side-apply"},
		"an applied list":                      {newEntry("argocd-controller", applied, "", `{"f:spec":{"f:access":{}}}`), func(s *v1alpha1.TenantSpec) { s.Access = nil }, "Tenant shop: spec.access, set by argocd-controller"},
		"another field of kubectl's object":    {newEntry("kubectl-edit", updated, "", quota), other, ""},
		"croft apply":                          {newEntry("croft", applied, "", quota), fewer, ""},
		"croft move --undo":                    {newEntry("croft", updated, "", pool), other, ""},
		"status":                               {newEntry("kubectl-edit", updated, "status", `{"f:status":{"f:pool":{}}}`), other, ""},
		"an annotation":                        {newEntry("kubectl-annotate", updated, "", `{"f:metadata":{"f:annotations":{"f:a":{}}}}`), other, ""},
		"an entry without a value by now":      {newEntry("kubectl-edit", updated, "", `{"f:spec":{"f:costCode":{}}}`), other, ""},
		"an empty map gets an entry":           {newEntry("kubectl-create", updated, "", `{"f:spec":{"f:network":{}}}`), func(s *v1alpha1.TenantSpec) { s.Network.Egress = v1alpha1.EgressOpen }, ""},
		"Helm's other field":                   {newEntry("helm", applied, "", pool), fewer, "Tenant shop: spec.quota, set by Helm (release croft in namespace platform)"},
		"Helm 3, by an update":                 {newEntry("helm", updated, "", pool), other, "Tenant shop: spec.pool, set by Helm (release croft in namespace platform)"},
		"Flux' helm-controller":                {newEntry("helm-controller", applied, "", pool), none, "Tenant shop: spec.quota, set by Helm (release croft in namespace platform)"},
		"Helm, and nothing changes":            {newEntry("helm", applied, "", pool), same, ""},
		"Helm's labels after --force":          {newEntry("helm", applied, "", `{"f:metadata":{"f:labels":{"f:a":{}}}}`), fewer, ""},
		"a field that only the file has":       {newEntry("kubectl-edit", updated, "", pool), func(s *v1alpha1.TenantSpec) { s.CostCode = "org1" }, ""},
		"the whole specification, by a create": {newEntry("kubectl-create", updated, "", `{"f:spec":{".":{},"f:pool":{},"f:deletion":{},"f:quota":{".":{},"f:pods":{}}}}`), same, ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := tenant(same)
			live.Annotations = map[string]string{"a": "b", "meta.helm.sh/release-name": "croft", "meta.helm.sh/release-namespace": "platform"}
			live.ManagedFields = []metav1.ManagedFieldsEntry{test.entry}
			found, err := FindConflicts(live, tenant(test.change))
			var got []string
			for _, c := range found {
				got = append(got, c.String())
			}
			if err != nil || strings.Join(got, "\n") != test.want {
				t.Errorf("%v: %q, want %q", err, got, test.want)
			}
			if keeps := IsHelmManaged(live); keeps != (strings.HasPrefix(test.entry.Manager, "helm") && !strings.Contains(name, "labels")) {
				t.Errorf("Helm keeps it: %t", keeps)
			}
		})
	}
}
