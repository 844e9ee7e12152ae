// Package controller registers croft's controllers, one small package for each declared
// kind. They share the estate of declared objects and the Applier.
package controller

import (
	"context"
	"fmt"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/budgets"
	"croft.dev/croft/internal/operate/controller/callers"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/elevation"
	"croft.dev/croft/internal/operate/controller/interfaces"
	"croft.dev/croft/internal/operate/controller/nodenetworks"
	"croft.dev/croft/internal/operate/controller/platform"
	"croft.dev/croft/internal/operate/controller/pool"
	"croft.dev/croft/internal/operate/controller/refusedlaunches"
	"croft.dev/croft/internal/operate/controller/refusedpods"
	"croft.dev/croft/internal/operate/controller/secondarynetwork"
	"croft.dev/croft/internal/operate/controller/selfservice"
	"croft.dev/croft/internal/operate/controller/statemetrics"
	"croft.dev/croft/internal/operate/controller/tenant"
	"croft.dev/croft/internal/operate/controller/tenant/enforcement"
	"croft.dev/croft/internal/operate/controller/watch"
)

// Register adds all of croft's controllers to a manager. plugins are the DaemonSets that
// nodes with secondary networks wait for. servers are the addresses of the API servers, or
// none to use the cluster's own list. ledger is the connection to the ledger.
func Register(
	ctx context.Context, m manager.Manager, plugins secondary.Plugins, servers []string, ledger budgets.LedgerOptions,
	clock clock.WithTickerAndDelayedExecution,
) error {
	live, err := client.New(m.GetConfig(), client.Options{HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	if err := watch.IndexNamespaces(ctx, m.GetFieldIndexer()); err != nil {
		return fmt.Errorf("index namespaces: %w", err)
	}
	var (
		cached   = m.GetClient()
		applier  = apply.NewWatching(cached, live)
		store    = declared.New(m.GetCache(), live, clock)
		recorder = m.GetEventRecorder("croft")
		networks = nodenetworks.New(cached, live, store, recorder, plugins, clock)
	)
	costs, err := budgets.New(cached, store, recorder, clock, ledger)
	if err != nil {
		return err
	}
	for _, c := range []interface {
		Register(context.Context, manager.Manager) error
	}{
		store,
		platform.New(cached, live, applier, store, recorder),
		pool.New(cached, live, applier, store, recorder),
		tenant.New(cached, live, applier, store, recorder, enforcement.NewServers(live, m.GetConfig(), servers, clock), clock),
		secondarynetwork.New(cached, store, recorder),
		networks,
		interfaces.New(cached, store, recorder, clock, networks.Publish),
		elevation.New(cached, live, store, recorder, clock),
		selfservice.New(cached, live, store, recorder, clock),
		callers.New(cached, store, recorder),
		refusedpods.New(cached, clock),
		refusedlaunches.New(cached, applier, clock),
		costs,
	} {
		if err := c.Register(ctx, m); err != nil {
			return fmt.Errorf("register %T: %w", c, err)
		}
	}
	return statemetrics.Register(m)
}
