package why_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// TestFormatRefusal fails if the catalogue does not recognize the cause in the record of refused
// launches, or if the text does not contain the time of the next attempt.
func TestFormatRefusal(t *testing.T) {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		v1alpha1.RefusedLaunchesAnnotation: `{"reason": "Unauthorized", "message": "Error creating fleet request: User is not authorized to perform this operation ` +
			`because no identity-based policy allows it", "attempts": 1, "until": "2026-03-01T12:01:00Z"}`,
	}}}
	text := why.FormatRefusal(pool)
	found := catalog.FindMatches(text)
	if len(found) == 0 || found[0].ID != catalog.UnauthorizedID || !strings.Contains(text, "2026-03-01T12:01:00Z") {
		t.Errorf("%s: %+v", text, found)
	}
	if text := why.FormatRefusal(&karpenterv1.NodePool{}); text != "" {
		t.Errorf("without a record: %s", text)
	}
}
