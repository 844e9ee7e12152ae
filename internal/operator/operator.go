// Package operator runs croft's controllers against one cluster.
//
// The operator only writes walls; none of them needs it to stand. Several
// replicas may run, of which one leads; any of them may be killed at any moment,
// since everything is computed anew from what the cluster declares.
package operator

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"croft.dev/croft/internal/controller"
	"croft.dev/croft/internal/heartbeat"
	"croft.dev/croft/internal/secondary"
	"croft.dev/croft/internal/trace"
	"croft.dev/croft/internal/version"
)

// leaseName is the lease that the leader holds.
const leaseName = "croft.croft.dev"

// Options say how the operator runs.
type Options struct {
	// HealthAddr serves /healthz and /readyz; MetricsAddr serves /metrics. "0"
	// serves neither.
	HealthAddr, MetricsAddr string
	// LeaderElect lets only one of several replicas write. Without it there must
	// be only one.
	LeaderElect bool
	// APIServers are the addresses (HOST:PORT) of all API servers. If there are none, the
	// operator reads them from the EndpointSlice kubernetes.
	APIServers []string
	// Plugins are the DaemonSets that nodes of pools with waitForNetworks wait for. The zero
	// value waits for none.
	Plugins secondary.Plugins
	// Trace says where traces of reconciles go; without an endpoint there are none.
	Trace trace.Options
	// Log takes the operator's logs. If it is not given they are JSON lines on
	// standard error, and so are those of the libraries below, of which the whole
	// process has one logger.
	Log logr.Logger
}

// Run runs the operator until the context is done. A clean stop returns nil.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	if o.Log.GetSink() == nil {
		o.Log = logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: readable}))
		log.SetLogger(o.Log)
		klog.SetLogger(o.Log)
	}
	cfg = rest.CopyConfig(cfg)
	// The API server's own priority and fairness sees to it that croft does not
	// take more than its share.
	cfg.QPS, cfg.Burst = -1, -1
	stopTraces, err := trace.Start(ctx, o.Trace, version.String())
	if err != nil {
		return err
	}
	if o.Trace.Endpoint != "" {
		cfg.Wrap(trace.Transport)
		defer flush(stopTraces, o.Log)
	}
	m, err := manager.New(cfg, options(o))
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := controller.Register(ctx, m, o.Plugins, o.APIServers); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	beat := &heartbeat.Keeper{
		Client: m.GetClient(), Holder: host, Version: version.String(), Log: o.Log.WithName("heartbeat"),
		// An operator whose caches cannot be filled, for want of rights, does nothing.
		Ready:   func(ctx context.Context) bool { return filled(ctx, m.GetCache()) },
		Written: func(at time.Time) { heartbeatAt.WithLabelValues().Set(float64(at.Unix())) },
	}
	if err := m.Add(beat); err != nil {
		return err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("caches", synced(m.GetCache())); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("rights", newRights(m.GetClient(), o.Log.WithName("rights")).check); err != nil {
		return err
	}
	return m.Start(ctx)
}

// flush sends the last traces, for a few seconds: the operator's pod is about to end.
func flush(stop func(context.Context) error, l logr.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := stop(ctx); err != nil {
		l.Error(err, "The last traces were not sent")
	}
}

// readable writes what says itself how it reads in its own words. Some of what
// controller-runtime logs could not be written as JSON at all.
func readable(_ []string, a slog.Attr) slog.Attr {
	if s, ok := a.Value.Any().(fmt.Stringer); ok && a.Value.Kind() == slog.KindAny {
		a.Value = slog.StringValue(s.String())
	}
	return a
}
