package why_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/why"
)

// TestRangeFull has a pod wait for an address, and expects to be told of which network, how
// full it is, and what to do.
func TestRangeFull(t *testing.T) {
	for name, test := range map[string]struct {
		condition metav1.Condition
		verdict   why.Verdict
		says      string
	}{
		"full": {
			metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRangeFull, Message: "us-west-2a: 32 of 32 addresses of 10.0.4.32/27 are used"},
			why.Bad, "us-west-2a: 32 of 32",
		},
		"free again":    {metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAddressesAvailable}, why.Waiting, "has addresses again"},
		"not permitted": {},
	} {
		t.Run(name, func(t *testing.T) {
			s := waiting()
			s.Pods[0].Spec.NodeName = "node-1"
			s.Events = append(s.Events, event("Pod", "web", "FailedCreatePodSandBox", "kubelet", catalog.Lookup("network-range-full").Texts[0]))
			if test.says != "" {
				test.condition.Type = v1alpha1.ConditionAddressesAvailable
				s.Networks = []v1alpha1.SecondaryNetwork{{ObjectMeta: metav1.ObjectMeta{Name: "n6"}}, {
					ObjectMeta: metav1.ObjectMeta{Name: "n4"}, Status: v1alpha1.Status{Conditions: []metav1.Condition{test.condition}},
				}}
			}
			story := why.Tell(s)
			if story.First == nil || story.First.ID != "network-range-full" || !strings.Contains(story.First.Cure, "podCIDR") {
				t.Errorf("the first cause is %+v", story.First)
			}
			said := false
			for _, step := range story.Steps {
				if step.Link == why.LinkNetwork {
					said = step.Object == "secondarynetwork/n4" && step.Verdict == test.verdict && strings.Contains(step.Seen, test.says)
				}
			}
			if said != (test.says != "") {
				t.Errorf("steps: %+v", story.Steps)
			}
		})
	}
}
