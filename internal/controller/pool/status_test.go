package pool

import (
	"errors"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/controller/declared"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/manifest"
)

// TestStatus checks Ready and the progress of a pool in each state, and that a second
// reconcile changes nothing.
func TestStatus(t *testing.T) {
	karpenter := func(ready metav1.ConditionStatus, reason string) *karpenterv1.NodePool {
		return &karpenterv1.NodePool{Status: karpenterv1.NodePoolStatus{Conditions: []status.Condition{{Type: "Ready", Status: ready, Reason: reason}}}}
	}
	used := declared.Entry[estate.Pool]{Users: []string{"shop"}}
	missing := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "NodePool"}}
	for _, test := range []struct {
		name     string
		observed observation
		ready    metav1.ConditionStatus
		reason   string
		message  string
		progress string
	}{
		{"without a Platform", observation{}, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform, "no valid Platform", v1alpha1.ConditionReconciling},
		{"invalid", observation{hasPlatform: true, entry: declared.Entry[estate.Pool]{Problems: manifest.Problems{{Field: "spec.x", Message: "no"}}}},
			metav1.ConditionFalse, v1alpha1.ReasonInvalid, "spec.x: no", v1alpha1.ConditionStalled},
		{"not applied yet", observation{hasPlatform: true}, metav1.ConditionUnknown, v1alpha1.ReasonPending, "Applied", v1alpha1.ConditionReconciling},
		{"no answer", observation{hasPlatform: true, applied: true, err: errors.New("timeout")},
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "timeout", v1alpha1.ConditionReconciling},
		{"without Karpenter", observation{hasPlatform: true, applied: true, err: missing},
			metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, "NodePool", v1alpha1.ConditionStalled},
		{"rejected", observation{hasPlatform: true, applied: true, err: apierrors.NewInvalid(schema.GroupKind{Kind: "NodePool"}, "apps", nil)},
			metav1.ConditionFalse, v1alpha1.ReasonRejected, "apps", v1alpha1.ConditionStalled},
		{"Karpenter is silent", observation{hasPlatform: true, applied: true},
			metav1.ConditionUnknown, v1alpha1.ReasonNodePoolNotReady, "Karpenter has not reported yet", v1alpha1.ConditionReconciling},
		{"Karpenter waits", observation{hasPlatform: true, applied: true, nodePool: karpenter(metav1.ConditionFalse, "NodeClassNotReady")},
			metav1.ConditionFalse, v1alpha1.ReasonNodePoolNotReady, "NodeClassNotReady", v1alpha1.ConditionReconciling},
		{"ready", observation{hasPlatform: true, applied: true, nodePool: karpenter(metav1.ConditionTrue, "Ready")},
			metav1.ConditionTrue, v1alpha1.ReasonReady, "", ""},
		{"deleted, and in use", observation{hasPlatform: true, applied: true, deleting: true, entry: used, nodePool: karpenter(metav1.ConditionTrue, "Ready")},
			metav1.ConditionFalse, v1alpha1.ReasonInUse, "give another pool to shop", v1alpha1.ConditionStalled},
		{"deleted, with retained namespaces", observation{hasPlatform: true, deleting: true, retained: []string{"old (of tenant shop)"}},
			metav1.ConditionFalse, v1alpha1.ReasonInUse, "old (of tenant shop)", v1alpha1.ConditionStalled},
	} {
		t.Run(test.name, func(t *testing.T) {
			pool := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "apps", Generation: 4}}
			test.observed.computeStatus(pool)
			ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Status != test.ready || ready.Reason != test.reason || !strings.Contains(ready.Message, test.message) {
				t.Errorf("Ready = %+v", ready)
			}
			if pool.Status.ObservedGeneration != 4 || ready.ObservedGeneration != 4 || pool.Status.Tenants != int64(len(test.observed.entry.Users)) {
				t.Errorf("status = %+v", pool.Status)
			}
			for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(pool.Status.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s = %+v", name, c)
				}
			}
			again := pool.DeepCopy()
			test.observed.computeStatus(again)
			if !equality.Semantic.DeepEqual(pool, again) {
				t.Errorf("a second reconcile changes the status from %+v to %+v", pool.Status, again.Status)
			}
		})
	}
}
