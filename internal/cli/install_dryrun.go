package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
)

// runInstallDryRun shows the changes that install would make.
func (a *app) runInstallDryRun(ctx context.Context, c client.Client, options install.Options) error {
	objects, err := install.Objects(options)
	if err != nil {
		return toFailure(err)
	}
	live := &manifest.Declaration{}
	if err := c.List(ctx, &v1alpha1.PlatformList{}); !meta.IsNoMatchError(err) {
		if live, err = readDeclaration(ctx, c); err != nil {
			return toFailure(err)
		}
	}
	platform, err := buildPlatformObjects(live)
	if err != nil {
		return toFailure(err)
	}
	if len(live.Platforms) == 0 {
		platform = a.dropUnserved(c, platform)
	}
	var leftovers apply.Differences
	if !options.KeepKinds {
		if leftovers, err = install.DiffLeftovers(ctx, apply.New(c), options); err != nil {
			return toFailure(explainUnreachable(err))
		}
	}
	return a.printInstallDiff(ctx, c, append(objects, platform...), leftovers...)
}

// printInstallDiff prints the differences between objects and the cluster. A difference is no
// failure: the exit status is 1 only if the objects cannot be written.
func (a *app) printInstallDiff(ctx context.Context, c client.Client, objects []client.Object, deleted ...apply.Difference) error {
	differences, err := apply.New(c).Diff(ctx, objects...)
	differences = append(differences, deleted...)
	printSafely(a.out, "%s", differences)
	if err != nil {
		return toFailure(explainUnreachable(err))
	}
	created := 0
	for _, d := range differences {
		if d.Action == apply.Created {
			created++
		}
	}
	printSafely(a.err, "%s would be created, %d changed and %d deleted; nothing was written\n", wording.FormatCount(created, "object"), len(differences)-created-len(deleted), len(deleted))
	return nil
}
