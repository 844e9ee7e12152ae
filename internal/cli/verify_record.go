package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/prove/verify"
)

// recordedAs is the field manager of the results.
const recordedAs = "croft-verify"

// recordResults writes the result of a whole run into the Platform's status, and moves the earlier result into its
// history. The operator exports the last result as metrics, and the dashboard shows all.
func recordResults(ctx context.Context, c client.Client, results []verify.Result, took time.Duration) error {
	result := buildVerifyStatus(results, time.Now(), took)
	// The patch replaces the whole list. Without the lock, it would drop the entry that another run has added since.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var platform v1alpha1.Platform
		if err := c.Get(ctx, client.ObjectKey{Name: v1alpha1.PlatformName}, &platform); err != nil {
			return fmt.Errorf("reading the Platform: %w", err)
		}
		before := platform.DeepCopy()
		addVerifyStatus(&platform.Status, result)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := c.Status().Patch(ctx, &platform, patch, client.FieldOwner(recordedAs)); err != nil {
			return fmt.Errorf("the result could not be written into the Platform's status: %w", err)
		}
		return nil
	})
	if err != nil {
		return failuref("--record: %w", explainUnreachable(err))
	}
	return nil
}

// addVerifyStatus adds a result to the last results. A run that ended earlier than a recorded one, but was written
// later, goes to its place in the history.
func addVerifyStatus(status *v1alpha1.PlatformStatus, result v1alpha1.VerifyStatus) {
	all := []v1alpha1.VerifyStatus{result}
	if status.Verify != nil {
		all = append(all, *status.Verify)
	}
	all = append(all, status.VerifyHistory...)
	slices.SortStableFunc(all, func(a, b v1alpha1.VerifyStatus) int { return b.Time.Compare(a.Time.Time) })
	status.Verify = &all[0]
	status.VerifyHistory = all[1:min(len(all), 1+v1alpha1.MaxVerifyHistory)]
}

// buildVerifyStatus counts the results of a run that ended at a time. took is 0 if nothing was tried.
func buildVerifyStatus(results []verify.Result, at time.Time, took time.Duration) v1alpha1.VerifyStatus {
	v := v1alpha1.VerifyStatus{Time: metav1.NewTime(at), Version: version.String()}
	if took > 0 {
		v.Duration = &metav1.Duration{Duration: took.Round(time.Second)}
	}
	for _, r := range results {
		switch r.Result {
		case verify.Held:
			v.Held++
		case verify.Breached:
			v.Breached++
			if v.FirstBreach == "" {
				v.FirstBreach = truncateText(strings.TrimPrefix(r.Wall+"/"+r.Name, "/"), v1alpha1.MaxFirstBreach)
			}
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
