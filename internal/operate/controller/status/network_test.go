package status_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/controller/status"
)

// TestSetNetworkReady fails if a condition that a cluster does not have prevents Ready, or if
// one that it has does not count.
func TestSetNetworkReady(t *testing.T) {
	const accepted, interfaces, addresses = v1alpha1.ConditionAccepted, v1alpha1.ConditionInterfacesReady, v1alpha1.ConditionAddressesAvailable
	for name, test := range map[string]struct {
		have map[string]metav1.ConditionStatus
		want metav1.ConditionStatus
		by   string
	}{
		"accepted alone":       {map[string]metav1.ConditionStatus{accepted: "True"}, "True", v1alpha1.ReasonReady},
		"nothing is known":     {nil, "Unknown", v1alpha1.ReasonPending},
		"all are True":         {map[string]metav1.ConditionStatus{accepted: "True", interfaces: "True", addresses: "True"}, "True", v1alpha1.ReasonReady},
		"not accepted":         {map[string]metav1.ConditionStatus{accepted: "False", interfaces: "False"}, "False", accepted},
		"interfaces are amiss": {map[string]metav1.ConditionStatus{accepted: "True", interfaces: "Unknown", addresses: "False"}, "Unknown", interfaces},
		"addresses run out":    {map[string]metav1.ConditionStatus{accepted: "True", addresses: "False"}, "False", addresses},
	} {
		s := &v1alpha1.Status{}
		for condition, value := range test.have {
			status.Set(s, 3, condition, value, condition, "")
		}
		status.SetNetworkReady(s, 3)
		ready := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != test.want || ready.Reason != test.by || s.ObservedGeneration != 3 {
			t.Errorf("%s: %+v, want %s %s", name, ready, test.want, test.by)
		}
	}
}
