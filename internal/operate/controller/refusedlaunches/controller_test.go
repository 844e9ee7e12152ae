package refusedlaunches

import (
	"testing"

	"github.com/awslabs/operatorpkg/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/event"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestDescribeClass fails if a corrected node class does not end a hold, or if a change that comes with
// the use of the account does.
func TestDescribeClass(t *testing.T) {
	describe := func(generation int64, ready, since, subnet string) string {
		return describeClass(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"generation": generation, "uid": "u"},
			"status": map[string]any{
				"subnets":    []any{map[string]any{"id": subnet}},
				"conditions": []any{map[string]any{"type": "Ready", "status": ready, "lastTransitionTime": since}},
			},
		}})
	}
	before := describe(1, "True", "2026-01-02T03:04:05Z", "a")
	for name, test := range map[string]struct {
		after  string
		change bool
	}{
		"another spec":  {describe(2, "True", "2026-01-02T03:04:05Z", "a"), true},
		"ready again":   {describe(1, "True", "2026-01-02T04:04:05Z", "a"), true},
		"not ready":     {describe(1, "False", "2026-01-02T04:04:05Z", "a"), true},
		"other subnets": {describe(1, "True", "2026-01-02T03:04:05Z", "b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (test.after != before) != test.change {
				t.Errorf("%s became %s", before, test.after)
			}
		})
	}
}

// TestClaimPredicate fails if a refused, launched or deleted NodeClaim does not lead to a decision, or
// if each repetition of the launch does.
func TestClaimPredicate(t *testing.T) {
	claim := func(reason, message, provider string) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{Status: karpenterv1.NodeClaimStatus{ProviderID: provider, Conditions: []status.Condition{
			{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionUnknown, Reason: reason, Message: message},
		}}}
	}
	refused, ended := claim("Unauthorized", "a", ""), claim("Unauthorized", "a", "")
	ended.DeletionTimestamp = &metav1.Time{}
	ended.DeletionTimestamp.Time = ended.DeletionTimestamp.AddDate(2026, 0, 0)
	for name, test := range map[string]struct {
		before, after *karpenterv1.NodeClaim
		passes        bool
	}{
		"refused":       {claim("AwaitingReconciliation", "", ""), refused, true},
		"refused again": {refused, claim("Unauthorized", "b", ""), false},
		"launched":      {refused, claim("Launched", "", "aws:///us-west-2a/i-1"), true},
		"deleted":       {refused, ended, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newClaimPredicate().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.passes {
				t.Errorf("passes: %t", got)
			}
		})
	}
}
