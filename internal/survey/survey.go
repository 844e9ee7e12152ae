// Package survey compares the walls that an estate wants with those that a cluster
// has. It reads with the caller's rights and writes nothing; the comparison is the
// one by which apply decides whether to write.
package survey

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/apply"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/wall"
)

// Object is one object of the walls, and how it compares with the cluster.
type Object struct {
	apply.Surveyed
	// Walls are the walls of the object.
	Walls []string
	// Owner is the declared object: Platform, Pool/NAME or Tenant/NAME.
	Owner string
}

// Of surveys all walls of an estate. rendered is for walls that something else than
// croft has applied.
func Of(ctx context.Context, c client.Client, e *estate.Estate, rendered bool) ([]Object, error) {
	wanted := wall.Objects(e)
	found, err := apply.New(c).Survey(ctx, apply.SurveyOptions{Rendered: rendered}, wanted...)
	if err != nil {
		return nil, err
	}
	all := make([]Object, len(found))
	for i, f := range found {
		all[i] = Object{Surveyed: f, Walls: wall.Of(wanted[i]), Owner: ownerOf(wanted[i])}
	}
	return all, nil
}

// OfPlatform is the Owner of objects that exist once in the cluster.
const OfPlatform = "Platform"

func ownerOf(o client.Object) string {
	labels := o.GetLabels()
	switch {
	case labels[v1alpha1.TenantLabel] != "":
		return "Tenant/" + labels[v1alpha1.TenantLabel]
	case labels[v1alpha1.PoolLabel] != "":
		return "Pool/" + labels[v1alpha1.PoolLabel]
	default:
		return OfPlatform
	}
}
