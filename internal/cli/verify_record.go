package cli

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/verify"
	"croft.dev/croft/internal/version"
)

// recordedAs is the field manager of the results.
const recordedAs = "croft-verify"

// record writes the result of a whole run into the Platform's status. The operator exports
// it as metrics.
func record(ctx context.Context, c client.Client, results []verify.Result) error {
	var platform v1alpha1.Platform
	if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
		return failedf("--record: reading the Platform: %w", unreachable(err))
	}
	before := platform.DeepCopy()
	platform.Status.Verify = verdict(results, time.Now())
	if err := c.Status().Patch(ctx, &platform, client.MergeFrom(before), client.FieldOwner(recordedAs)); err != nil {
		return failedf("--record: the result could not be written into the Platform's status: %w", unreachable(err))
	}
	return nil
}

func verdict(results []verify.Result, at time.Time) *v1alpha1.VerifyStatus {
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
