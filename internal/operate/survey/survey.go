// Package survey compares the desired walls of an estate with a cluster's. It reads with
// the caller's rights and writes nothing. The comparison is the same with which apply
// decides whether to write.
package survey

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// Object is one object of the walls, with the result of the comparison.
type Object struct {
	apply.Surveyed
	// Walls are the walls that contain the object.
	Walls []string
	// Owner is the declared object: Platform, Pool/NAME or Tenant/NAME.
	Owner string
}

// CompareWalls compares all walls of an estate with the cluster. rendered is for walls that another
// tool than croft has applied.
func CompareWalls(ctx context.Context, c client.Client, e *estate.Estate, rendered bool) ([]Object, error) {
	desired := wall.Objects(e)
	found, err := apply.New(c).Survey(ctx, apply.SurveyOptions{Rendered: rendered}, desired...)
	if err != nil {
		return nil, err
	}
	all := make([]Object, len(found))
	for i, f := range found {
		all[i] = Object{Surveyed: f, Walls: wall.FindNames(desired[i]), Owner: findOwner(desired[i])}
	}
	return all, nil
}

// OfPlatform is the Owner of objects that exist once in the cluster.
const OfPlatform = "Platform"

func findOwner(o client.Object) string {
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
