package cli

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/install"
	"croft.dev/croft/internal/manifest"
)

// installDryRun shows what install would change.
func (a *app) installDryRun(ctx context.Context, c client.Client, options install.Options) error {
	objects, err := install.Objects(options)
	if err != nil {
		return failed(err)
	}
	live := &manifest.Declaration{}
	if err := c.List(ctx, &v1alpha1.PlatformList{}); !meta.IsNoMatchError(err) {
		if live, err = declared(ctx, c); err != nil {
			return failed(err)
		}
	}
	platform, err := platformObjects(live)
	if err != nil {
		return failed(err)
	}
	if len(live.Platforms) == 0 {
		platform = a.withoutUnserved(c, platform)
	}
	var leftovers apply.Differences
	if !options.KeepKinds {
		if leftovers, err = install.DiffLeftovers(ctx, apply.New(c), options); err != nil {
			return failed(unreachable(err))
		}
	}
	return a.showInstall(ctx, c, append(objects, platform...), leftovers...)
}

// showInstall prints the differences between objects and the cluster. A difference is no
// failure: the exit status is 1 only if the objects cannot be written.
func (a *app) showInstall(ctx context.Context, c client.Client, objects []client.Object, deleted ...apply.Difference) error {
	differences, err := apply.New(c).Diff(ctx, objects...)
	differences = append(differences, deleted...)
	say(a.out, "%s", differences)
	if err != nil {
		return failed(unreachable(err))
	}
	created := 0
	for _, d := range differences {
		if d.Action == apply.Created {
			created++
		}
	}
	say(a.err, "%s would be created, and %d changed, and %d deleted; nothing was written\n", count(created, "object"), len(differences)-created-len(deleted), len(deleted))
	return nil
}
