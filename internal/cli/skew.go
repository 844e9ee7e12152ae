package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
)

// addDowngradeFlag adds the flag --allow-downgrade.
func addDowngradeFlag(c *cobra.Command, allow *bool, means string) {
	c.Flags().BoolVar(allow, "allow-downgrade", false, means)
}

// checkInstallDowngrade reports whether this croft is older than the cluster's operator, which may
// have stopped since. Without --allow-downgrade that is an error: an older croft removes
// fields and objects that the newer one relies on.
func checkInstallDowngrade(ctx context.Context, c client.Reader, allowed bool) (bool, error) {
	beat, err := heartbeat.Read(ctx, c)
	if err != nil {
		return false, explainUnreachable(err)
	}
	older := version.IsOlder(version.String(), beat.Version)
	if older && !allowed {
		return true, fmt.Errorf("the operator is croft %s, and this is the older croft %s: nothing was written; use %[1]s "+
			"or a newer version, or downgrade to %[2]s with --allow-downgrade, which does not change croft's kinds",
			beat.Version, version.String())
	}
	return older, nil
}

// checkApplyDowngrade returns an error if this croft is older than the running operator by more
// than a patch version. An older croft does not know the fields that were added since, and
// would remove them.
func checkApplyDowngrade(ctx context.Context, c client.Reader, allowed bool) error {
	beat, err := heartbeat.Read(ctx, c)
	if err != nil {
		return explainUnreachable(err)
	}
	if allowed || !version.IsOlderMinor(version.String(), beat.Version) {
		return nil
	}
	return fmt.Errorf("the operator is croft %s, and this is the older croft %s, which does not know all of its fields: "+
		"nothing was written; use %[1]s, or add --allow-downgrade", beat.Version, version.String())
}
