package cli

import (
	"context"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/prove/verify"
)

// systemMasters is the group that the API server exempts from authorization, and that
// croft's policies exempt, too.
const systemMasters = "system:masters"

// checkRights reports the rights that the caller lacks to run attacks, before any attack:
// otherwise each attack would fail for a reason unrelated to the walls.
func checkRights(ctx context.Context, c client.Client, platform *v1alpha1.Platform, s stage) error {
	lacking, err := verify.FindLacking(ctx, c, s.Needs())
	if err != nil {
		return failuref("reading your rights in the cluster: %w", explainUnreachable(err))
	}
	if len(lacking) > 0 {
		rights := make([]string, len(lacking))
		for i, r := range lacking {
			rights[i] = r.String()
		}
		return failuref("nothing was tried: verify acts as tenants' people, and you may not %s: a cluster admin can run the command (see docs/reference/rights.md)",
			strings.Join(rights, ", "))
	}
	if _, scratch := s.(*verify.Scratch); !scratch {
		return nil
	}
	me, err := verify.GetSelf(ctx, c)
	if err != nil {
		return failuref("reading your user name in the cluster: %w", explainUnreachable(err))
	}
	if slices.ContainsFunc(me.Groups, func(g string) bool { return slices.Contains(listAdminGroups(platform), g) }) {
		return nil
	}
	return failuref("nothing was tried: verify creates scratch tenants, which croft's policies allow only to members of %s, and %s is not a member: run the command as a member of system:masters, or ask a platform admin to add one of your groups to platform.admins",
		strings.Join(listAdminGroups(platform), " or "), me.Username)
}

// listAdminGroups returns the groups whose members are platform admins.
func listAdminGroups(platform *v1alpha1.Platform) []string {
	return append(slices.Clone(platform.Spec.Admins), systemMasters)
}

// sweepScratch removes the objects of killed runs of verify.
func (a *app) sweepScratch(ctx context.Context, c client.Client, s *verify.Scratch, tenants []v1alpha1.Tenant) {
	var declared []string
	for _, t := range tenants {
		declared = append(declared, t.Name)
	}
	removed, err := s.Sweep(ctx, c, declared)
	if len(removed) > 0 {
		names := make([]string, len(removed))
		for i, r := range removed {
			names[i] = r.String()
		}
		printSafely(a.err, "removing scratch objects of an earlier run that was killed: %s\n", strings.Join(names, ", "))
	}
	if err != nil {
		printSafely(a.err, "croft: %v\n", err) // the sweep is not needed for this run
	}
}
