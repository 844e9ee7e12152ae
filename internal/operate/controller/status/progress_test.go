package status_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/controller/status"
)

func TestProgress(t *testing.T) {
	const reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	for _, test := range []struct {
		name   string
		ready  metav1.ConditionStatus
		reason string
		stuck  bool
		want   string
	}{
		{"Ready", metav1.ConditionTrue, v1alpha1.ReasonReady, false, ""},
		{"Ready in spite of an error", metav1.ConditionTrue, v1alpha1.ReasonReady, true, ""},
		{"time resolves it", metav1.ConditionFalse, v1alpha1.ReasonNotEnforcedYet, false, reconciling},
		{"nothing is known yet", metav1.ConditionUnknown, v1alpha1.ReasonPending, false, reconciling},
		{"a person resolves it", metav1.ConditionFalse, v1alpha1.ReasonInvalid, false, stalled},
		{"an error that is retried", metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, false, reconciling},
		{"an error that a person resolves", metav1.ConditionFalse, v1alpha1.ReasonApplyFailed, true, stalled},
		{"final", metav1.ConditionFalse, v1alpha1.ReasonEnded, false, ""},
	} {
		for _, before := range []string{"", reconciling, stalled} {
			t.Run(test.name+" after "+before, func(t *testing.T) {
				s := &v1alpha1.Status{}
				if before != "" {
					status.Set(s, 1, before, metav1.ConditionTrue, "Before", "before")
				}
				status.Set(s, 2, v1alpha1.ConditionReady, test.ready, test.reason, "why")
				status.SetProgress(s, 2, test.stuck)
				for _, name := range []string{reconciling, stalled} {
					c := meta.FindStatusCondition(s.Conditions, name)
					if (c != nil) != (name == test.want) {
						t.Errorf("%s = %+v", name, c)
					} else if c != nil && (c.Status != metav1.ConditionTrue || c.Reason != test.reason || c.Message != "why" || c.ObservedGeneration != 2) {
						t.Errorf("%s = %+v", name, c)
					}
				}
				again := s.DeepCopy()
				status.SetProgress(again, 2, test.stuck)
				if !equality.Semantic.DeepEqual(s, again) {
					t.Errorf("a second call changes %+v to %+v", s, again)
				}
			})
		}
	}
}

// TestEveryReason fails if a new reason is neither in Progress nor known as one that leaves
// Ready True or is final.
func TestEveryReason(t *testing.T) {
	neither := []string{
		v1alpha1.ReasonReady, v1alpha1.ReasonAccepted, v1alpha1.ReasonApplied, v1alpha1.ReasonEnforced, v1alpha1.ReasonPlacementReady,
		v1alpha1.ReasonNodePoolReady, v1alpha1.ReasonInterfacesKept, v1alpha1.ReasonAddressesAvailable, v1alpha1.ReasonRangeNearlyFull,
		v1alpha1.ReasonGranted, v1alpha1.ReasonEnded, v1alpha1.ReasonAgreed, v1alpha1.ReasonConsentPending,
		v1alpha1.ReasonEndsWithinDay, v1alpha1.ReasonEndsWithinHour,
		// Only Nodes have these.
		v1alpha1.ReasonLinksReady, v1alpha1.ReasonInterfacesUnknown, v1alpha1.ReasonLinkMissing, v1alpha1.ReasonLinkFailed,
		v1alpha1.ReasonPodNetworksReady, v1alpha1.ReasonNotRegistered, v1alpha1.ReasonInterfacesPending, v1alpha1.ReasonLinksPending,
		v1alpha1.ReasonPluginsPending, v1alpha1.ReasonNotAwaited,
	}
	file, err := parser.ParseFile(token.NewFileSet(), "../../../../api/v1alpha1/conditions.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	ast.Inspect(file, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(constant.Names[0].Name, "Reason") {
			return true
		}
		count++
		reason, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if (status.Progress[reason] != "") == slices.Contains(neither, reason) {
			t.Errorf("%s must be in one of Progress and this test's list", constant.Names[0].Name)
		}
		return true
	})
	if count < 40 {
		t.Errorf("%d reasons were found", count)
	}
}
