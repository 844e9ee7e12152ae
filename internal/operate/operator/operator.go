// Package operator runs croft's controllers against one cluster.
//
// The operator only writes the walls; they are enforced without it. Several replicas may
// run, of which one is the leader. Any replica may be killed at any moment, because each
// reconcile recomputes everything from the declared objects.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/controller"
	"croft.dev/croft/internal/operate/controller/budgets"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/trace"
)

// leaseName is the name of the leader's lease.
const leaseName = "croft.croft.dev"

// Options configures the operator.
type Options struct {
	// HealthAddr is the address of /healthz and /readyz. MetricsAddr is the address of
	// /metrics. "0" disables the endpoint.
	HealthAddr, MetricsAddr string
	// LeaderElect enables leader election, so that only one of several replicas writes.
	// Without it, run a single replica.
	LeaderElect bool
	// APIServers are the addresses (HOST:PORT) of all API servers. If there are none, the
	// operator reads them from the EndpointSlice kubernetes.
	APIServers []string
	// Plugins are the DaemonSets that nodes of pools with waitForNetworks wait for. The zero
	// value waits for none.
	Plugins secondary.Plugins
	// Ledger is the connection to the ledger. The zero value asks none.
	Ledger budgets.LedgerOptions
	// Clock is the controllers' clock. Defaults to the system's. A test can make it jump.
	Clock clock.WithTickerAndDelayedExecution
	// Trace configures the export of reconcile traces. Without an endpoint nothing is
	// exported.
	Trace trace.Options
	// Log receives the operator's logs.
	Log logr.Logger
}

// Run runs the operator until the context is done. A clean stop returns nil.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	cfg = rest.CopyConfig(cfg)
	// No client-side rate limit: the API server's priority and fairness limits croft's
	// share.
	cfg.QPS, cfg.Burst = -1, -1
	stopTraces, err := trace.Start(ctx, o.Trace, version.String())
	if err != nil {
		return err
	}
	if o.Trace.Endpoint != "" {
		cfg.Wrap(trace.Transport)
		defer flushTraces(stopTraces, o.Log)
	}
	m, err := manager.New(cfg, buildOptions(o))
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := controller.Register(ctx, m, o.Plugins, o.APIServers, o.Ledger, o.Clock); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	beat := &heartbeat.Keeper{
		Client: m.GetClient(), Holder: host, Version: version.String(), Log: o.Log.WithName("heartbeat"),
		// An operator that cannot fill its caches, because rights are missing, does
		// nothing, and must write no heartbeat.
		Ready:   func(ctx context.Context) bool { return areCachesFilled(ctx, m.GetCache()) },
		Written: func(at time.Time) { heartbeatAt.WithLabelValues().Set(float64(at.Unix())) },
	}
	if err := m.Add(beat); err != nil {
		return err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("caches", newSyncCheck(m.GetCache())); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("rights", newRights(m.GetClient(), o.Log.WithName("rights")).checkRights); err != nil {
		return err
	}
	err = m.Start(ctx)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		o.Log.Info("stopped, although controllers had not ended", "after", stopTimeout)
		return nil
	}
	return err
}

// flushTraces exports the last traces. It waits a few seconds at most, because the operator's pod
// is about to end.
func flushTraces(stop func(context.Context) error, l logr.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := stop(ctx); err != nil {
		l.Error(err, "The last traces were not sent")
	}
}
