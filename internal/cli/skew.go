package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/heartbeat"
	"croft.dev/croft/internal/version"
)

// addDowngrade adds the flag --allow-downgrade.
func addDowngrade(c *cobra.Command, allow *bool, means string) {
	c.Flags().BoolVar(allow, "allow-downgrade", false, means)
}

// installsOlder reports whether this croft is older than the cluster's operator, which may
// have stopped since. Without --allow-downgrade that is an error: an older croft removes
// fields and objects that the newer one relies on.
func installsOlder(ctx context.Context, c client.Reader, allowed bool) (bool, error) {
	beat, err := heartbeat.Read(ctx, c)
	if err != nil {
		return false, unreachable(err)
	}
	older := version.Older(version.String(), beat.Version)
	if older && !allowed {
		return true, fmt.Errorf("the operator is croft %s, and this is the older %s: nothing was written; use %[1]s "+
			"or a newer one, or go back to %[2]s with --allow-downgrade, which leaves croft's kinds as they are",
			beat.Version, version.String())
	}
	return older, nil
}

// appliesOlder returns an error if this croft is older than the running operator by more
// than a patch version. An older croft does not know the fields that were added since, and
// would remove them.
func appliesOlder(ctx context.Context, c client.Reader, allowed bool) error {
	beat, err := heartbeat.Read(ctx, c)
	if err != nil {
		return unreachable(err)
	}
	if allowed || !version.OlderMinor(version.String(), beat.Version) {
		return nil
	}
	return fmt.Errorf("the operator is croft %s, and this is the older %s, which does not know all of its fields: "+
		"nothing was written; use %[1]s, or say --allow-downgrade", beat.Version, version.String())
}
