package tenant

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
)

// TestStatus checks Ready and the progress of a tenant in each state, and that a second
// reconcile changes nothing.
func TestStatus(t *testing.T) {
	valid := declared.Entry[estate.Tenant]{Value: &estate.Tenant{Name: "shop", Pools: []string{"apps"}, Namespaces: []string{"shop", "shop-dev"}}}
	notOwned := &apply.NamespaceNotOwnedError{Namespace: "shop-dev", Tenant: "shop"}
	taken := apply.Change{
		Ref:    apply.Ref{GroupVersionKind: schema.GroupVersionKind{Kind: "Namespace"}, NamespacedName: types.NamespacedName{Name: "shop-dev"}},
		Action: apply.Failed, Err: notOwned,
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "rolebindings"}, "x", errors.New("no"))
	const reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	for _, test := range []struct {
		name       string
		observed   observation
		ready      metav1.ConditionStatus
		reason     string
		message    string
		progress   string
		namespaces []string
	}{
		{"without a Platform", observation{}, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform, "no valid Platform", reconciling, nil},
		{"invalid", observation{hasPlatform: true, entry: declared.Entry[estate.Tenant]{Problems: manifest.Problems{{Field: "spec.pool", Message: "no pool"}}}},
			metav1.ConditionFalse, v1alpha1.ReasonInvalid, "spec.pool: no pool", stalled, nil},
		{"not applied yet", observation{hasPlatform: true, entry: valid}, metav1.ConditionUnknown, v1alpha1.ReasonPending, "Applied", reconciling, nil},
		{"no answer", observation{hasPlatform: true, entry: valid, applied: true, err: errors.New("timeout")},
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "timeout", reconciling, []string{"shop", "shop-dev"}},
		{"a missing right", observation{hasPlatform: true, entry: valid, applied: true, err: forbidden},
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "forbidden", stalled, []string{"shop", "shop-dev"}},
		{"another owner's namespace", observation{hasPlatform: true, entry: valid, applied: true, err: notOwned, changes: []apply.Change{taken}},
			metav1.ConditionFalse, v1alpha1.ReasonNamespaceNotOwned, "croft adopt tenant shop", stalled, []string{"shop"}},
		{"without Flux", observation{hasPlatform: true, entry: valid, applied: true, enforced: true, unserved: errors.New("install Flux")},
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "install Flux", stalled, []string{"shop", "shop-dev"}},
		{"not enforced yet", observation{hasPlatform: true, entry: valid, applied: true, probed: true, reason: v1alpha1.ReasonAPIServerBehind, why: "10.0.0.1"},
			metav1.ConditionFalse, v1alpha1.ReasonAPIServerBehind, "10.0.0.1", reconciling, []string{"shop", "shop-dev"}},
		{"ready", observation{hasPlatform: true, entry: valid, applied: true, enforced: true}, metav1.ConditionTrue, v1alpha1.ReasonReady, "", "", []string{"shop", "shop-dev"}},
		{"being deleted", observation{deleting: true, leaving: []string{"shop"}}, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "are deleted: shop", reconciling, nil},
		{"a failed deletion", observation{deleting: true, err: forbidden}, metav1.ConditionFalse, v1alpha1.ReasonDeleting, "forbidden", stalled, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 4}}
			test.observed.computeStatus(tenant)
			ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Status != test.ready || ready.Reason != test.reason || !strings.Contains(ready.Message, test.message) {
				t.Errorf("Ready = %+v", ready)
			}
			if tenant.Status.ObservedGeneration != 4 || ready.ObservedGeneration != 4 || !slices.Equal(tenant.Status.Namespaces, test.namespaces) {
				t.Errorf("status = %+v", tenant.Status)
			}
			for _, name := range []string{reconciling, stalled} {
				if c := meta.FindStatusCondition(tenant.Status.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s = %+v", name, c)
				}
			}
			again := tenant.DeepCopy()
			test.observed.computeStatus(again)
			if !equality.Semantic.DeepEqual(tenant, again) {
				t.Errorf("a second reconcile changes the status from %+v to %+v", tenant.Status, again.Status)
			}
		})
	}
}
