package e2e

import (
	"slices"
	"strings"
	"testing"

	"croft.dev/croft/internal/cloud/iam"
)

// testIAM fails if the policy that `croft iam` prints for the file does not allow a call that
// Karpenter made in the preceding tests, or if it allows an action that no call needed. To find
// such an action, it removes each in turn.
func testIAM(t *testing.T, c *twoTenants) {
	calls, err := c.AWSCalls(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	statements := iam.Location{Partition: "aws", Region: "us-west-2", Account: "111122223333"}.
		Resolve(iam.ControllerRights(buildEstate(t, "aws.yaml", buildDocument004File(t))))
	var requests []iam.Request
	for _, call := range calls {
		for _, need := range call.Authorizations {
			requests = append(requests, iam.Request{Action: need.Action, Resources: need.Resources, Context: need.Context})
		}
	}
	if len(requests) == 0 {
		t.Fatal("nothing was asked of AWS")
	}
	refused := 0
	for _, r := range requests {
		if !iam.Allows(statements, r) {
			if refused++; refused <= 20 {
				t.Errorf("the policy does not allow %s on %v with %v", r.Action, r.Resources, r.Context)
			}
		}
	}
	actions := map[string]bool{}
	for _, s := range statements {
		for _, action := range s.Actions {
			actions[action] = true
		}
	}
	t.Logf("%d calls, for which %d requests have to be allowed; %d actions", len(calls), len(requests), len(actions))
	for action := range actions {
		if !slices.ContainsFunc(requests, func(r iam.Request) bool { return !iam.Allows(removeAction(statements, action), r) }) {
			t.Errorf("the policy allows %s, and no call needs it", action)
		}
	}
}

// removeAction returns the statements without one action.
func removeAction(statements []iam.Statement, action string) []iam.Statement {
	fewer := slices.Clone(statements)
	for i := range fewer {
		fewer[i].Actions = slices.DeleteFunc(slices.Clone(fewer[i].Actions), func(a string) bool { return strings.EqualFold(a, action) })
	}
	return fewer
}
