package tenant

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/walls/wall/network"
)

// watchDialects watches network policy kinds that a cluster may not serve. Every change may be
// drift, because not every API server maintains their generation.
func watchDialects(m manager.Manager, c controller.Controller, h handler.EventHandler) *watch.Late {
	return watch.NewLate(m, c, h, slices.Concat(apply.DialectKinds, apply.ClusterDialectKinds))
}

// mergeDialectErrors replaces the errors of single policies by one error if the cluster does not
// serve the platform's dialect.
func mergeDialectErrors(platform *estate.Platform, served []schema.GroupVersionKind, err error) error {
	kinds := network.ListKinds(platform)
	if len(kinds) == 0 || slices.Contains(served, kinds[0]) {
		return err
	}
	var missing error
	others := slices.DeleteFunc(outcome.Leaves(err), func(leaf error) bool {
		var object *apply.ObjectError
		if !errors.As(leaf, &object) || object.GroupVersionKind != kinds[0] || !meta.IsNoMatchError(leaf) {
			return false
		}
		missing = &apply.DialectError{Dialect: platform.Network.Dialect, Kind: kinds[0], Err: object.Err}
		return true
	})
	return errors.Join(append(others, missing)...)
}
