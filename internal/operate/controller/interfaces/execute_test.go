package interfaces

import (
	"strings"
	"testing"

	"github.com/aws/smithy-go"
	"k8s.io/utils/clock"
)

// TestSortSteps fails if the steps that nodes wait for do not come first, or if steps whose
// calls were throttled do not come last within their rank until they are no longer planned.
func TestSortSteps(t *testing.T) {
	k := NewKeeper(nil, nil, clock.RealClock{}, Grace)
	steps := []step{
		{key: "goes", rank: goWith}, {key: "refused", rank: uncheck}, {key: "check", rank: uncheck},
		{key: "create", rank: creating}, {key: "attach", rank: attaching},
	}
	k.recordResult(t.Context(), steps[1], &smithy.GenericAPIError{Code: "RequestLimitExceeded"})
	k.recordResult(t.Context(), steps[0], &smithy.GenericAPIError{Code: "IncorrectState"})
	sorted := func() string {
		k.sortSteps(steps)
		var keys []string
		for _, s := range steps {
			keys = append(keys, s.key)
		}
		return strings.Join(keys, " ")
	}
	if got := sorted(); got != "attach check refused goes create" {
		t.Error(got)
	}
	k.forgetFailures(nil)
	steps[1], steps[2] = steps[2], steps[1]
	if got := sorted(); got != "attach refused check goes create" {
		t.Errorf("after it was not planned: %s", got)
	}
}
