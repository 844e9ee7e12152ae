package callers

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// TestSetStatus expects the decision in the conditions. A TenantCaller that only waits is Ready, so that
// tools do not wait for another team.
func TestSetStatus(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	for _, test := range []struct {
		name             string
		refused, message string
		accepted, agreed metav1.ConditionStatus
		reason           string
		ready            metav1.ConditionStatus
		stalled          bool
	}{
		{"open", "", "", yes, yes, v1alpha1.ReasonAgreed, yes, false},
		{"waiting", "", "waits for tenant billing", yes, no, v1alpha1.ReasonConsentPending, yes, false},
		{"outside of callersFrom", v1alpha1.ReasonNotAllowed, "teams may not", no, no, v1alpha1.ReasonConsentPending, no, true},
		{"a wrong port", v1alpha1.ReasonInvalid, "spec.ports[0]", no, no, v1alpha1.ReasonConsentPending, no, true},
		{"too many", v1alpha1.ReasonLimitReached, "older", no, no, v1alpha1.ReasonConsentPending, no, true},
		{"for an earlier tenant", v1alpha1.ReasonRefused, "earlier", no, no, v1alpha1.ReasonConsentPending, no, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &v1alpha1.TenantCaller{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			d := &estate.CallerDecision{Refused: test.refused, Message: test.message, Giver: "1", Receiver: "2"}
			setStatus(o, d)
			if o.Status.Giver != "1" || o.Status.Receiver != "2" || o.Status.ObservedGeneration != 2 {
				t.Errorf("status %+v", o.Status)
			}
			for condition, want := range map[string]metav1.ConditionStatus{
				v1alpha1.ConditionAccepted: test.accepted, v1alpha1.ConditionAgreed: test.agreed, v1alpha1.ConditionReady: test.ready,
			} {
				if c := meta.FindStatusCondition(o.Status.Conditions, condition); c == nil || c.Status != want {
					t.Errorf("%s is %+v, want %s", condition, c, want)
				}
			}
			agreed := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionAgreed)
			if agreed.Reason != test.reason || agreed.Message != test.message {
				t.Errorf("Agreed is %+v", agreed)
			}
			if stalled := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.ConditionStalled) != nil; stalled != test.stalled {
				t.Errorf("stalled: %t", stalled)
			}
			again := o.DeepCopy()
			setStatus(again, d)
			if !equality.Semantic.DeepEqual(o, again) {
				t.Errorf("the same decision changes %+v to %+v", o.Status, again.Status)
			}
		})
	}
}
