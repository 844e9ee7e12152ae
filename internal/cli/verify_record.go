package cli

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/prove/verify"
)

// recordedAs is the field manager of the results.
const recordedAs = "croft-verify"

// recordResults writes the result of a whole run into the Platform's status. The operator exports
// it as metrics.
func recordResults(ctx context.Context, c client.Client, results []verify.Result) error {
	var platform v1alpha1.Platform
	if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
		return failuref("--record: reading the Platform: %w", explainUnreachable(err))
	}
	before := platform.DeepCopy()
	platform.Status.Verify = buildVerifyStatus(results, time.Now())
	if err := c.Status().Patch(ctx, &platform, client.MergeFrom(before), client.FieldOwner(recordedAs)); err != nil {
		return failuref("--record: the result could not be written into the Platform's status: %w", explainUnreachable(err))
	}
	return nil
}

func buildVerifyStatus(results []verify.Result, at time.Time) *v1alpha1.VerifyStatus {
	v := &v1alpha1.VerifyStatus{Time: metav1.NewTime(at), Version: version.String()}
	for _, r := range results {
		switch r.Result {
		case verify.Held:
			v.Held++
		case verify.Breached:
			v.Breached++
		case verify.BlockedElsewhere:
			v.BlockedElsewhere++
		case verify.NotTried:
			v.NotTried++
		default:
			panic(fmt.Sprintf("unknown result %q", r.Result))
		}
	}
	return v
}
