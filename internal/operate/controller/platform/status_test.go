package platform

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/operate/controller/status"
)

// TestStatus checks Ready and the progress of the Platform in each state, and that a second
// reconcile changes nothing.
func TestStatus(t *testing.T) {
	ready := engine{reason: v1alpha1.ReasonPlacementReady}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "clusterroles"}, "x", errors.New("no"))
	for _, test := range []struct {
		name     string
		problems document.Problems
		engine   engine
		err      error
		ready    metav1.ConditionStatus
		reason   string
		progress string
	}{
		{"invalid", document.Problems{{Message: "no"}}, ready, nil, metav1.ConditionFalse, v1alpha1.ReasonInvalid, v1alpha1.ConditionStalled},
		{"no engine", nil, engine{reason: v1alpha1.ReasonEngineMissing}, nil, metav1.ConditionFalse, v1alpha1.ReasonEngineMissing, v1alpha1.ConditionStalled},
		{"an unsafe engine", nil, engine{reason: v1alpha1.ReasonEngineUnsafe}, nil, metav1.ConditionFalse, v1alpha1.ReasonEngineUnsafe, v1alpha1.ConditionStalled},
		{"another engine", nil, engine{reason: v1alpha1.ReasonSwitchingEngine}, nil, metav1.ConditionFalse, v1alpha1.ReasonSwitchingEngine, v1alpha1.ConditionReconciling},
		{"no answer", nil, ready, errors.New("timeout"), metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, v1alpha1.ConditionReconciling},
		{"a missing right", nil, ready, forbidden, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, v1alpha1.ConditionReconciling},
		{"ready", nil, ready, nil, metav1.ConditionTrue, v1alpha1.ReasonReady, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			compute := func(p *v1alpha1.Platform) {
				status.Accept(&p.Status.Status, p.Generation, true, test.problems)
				test.engine.reportCondition(p)
				reportApplied(p, test.err)
				summarizeConditions(p, test.err)
			}
			p := &v1alpha1.Platform{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 4}}
			compute(p)
			ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
			if ready.Status != test.ready || ready.Reason != test.reason || ready.ObservedGeneration != 4 || p.Status.ObservedGeneration != 4 {
				t.Errorf("Ready = %+v", ready)
			}
			for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(p.Status.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s = %+v", name, c)
				}
			}
			again := p.DeepCopy()
			compute(again)
			if !equality.Semantic.DeepEqual(p, again) {
				t.Errorf("a second reconcile changes the status from %+v to %+v", p.Status, again.Status)
			}
		})
	}
}
