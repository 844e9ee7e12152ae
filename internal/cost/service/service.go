// Package service runs the ledger against one cluster: of several processes, the leader observes the
// cluster, writes the store and answers users.
package service

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/collect"
	"croft.dev/croft/internal/cost/recent"
	"croft.dev/croft/internal/cost/server"
	"croft.dev/croft/internal/cost/store"
	"croft.dev/croft/internal/declare/scheme"
)

// LeaseName is the name of the leader's lease, in croft's namespace.
const LeaseName = "croft-ledger"

// Options configure the service.
type Options struct {
	// Directory is the directory of the store. Only the leader uses it.
	Directory string
	Serving   server.Serving
	// HealthAddr is the address of /healthz and /readyz, and MetricsAddr the address of /metrics; "0" disables them.
	HealthAddr, MetricsAddr string
	// LeaderElect enables leader election. Without it, run a single process: a second one on the
	// same directory ends the first.
	LeaderElect bool
	Prices      PriceFiles
	// Tokens authenticates tokens of further issuers, in addition to the API server. It may be nil.
	Tokens authenticator.Token
	Log    *slog.Logger
}

// Run runs the service until the context is done.
func Run(ctx context.Context, config *rest.Config, o Options) error {
	m, err := manager.New(config, manager.Options{
		Scheme: scheme.New(), Logger: logr.FromSlogHandler(o.Log.Handler()), Cache: collect.CacheOptions(),
		LeaderElection: o.LeaderElect, LeaderElectionID: LeaseName, LeaderElectionNamespace: v1alpha1.SystemNamespace,
		LeaderElectionReleaseOnCancel: true, HealthProbeBindAddress: o.HealthAddr,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	measured := newMetrics()
	s, err := store.Open(o.Directory, func(file string, err error) {
		measured.countStoreError(operationRead)
		o.Log.Error("a file of the ledger is damaged: answers that need the damaged part lack its hours", "file", file, "error", err)
	})
	if err != nil {
		return err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(m.GetConfig(), m.GetHTTPClient())
	if err != nil {
		return err
	}
	prices := &priceReader{PriceFiles: o.Prices, log: o.Log}
	pods := &usageReader{client: d.RESTClient(), clock: clock.RealClock{}, log: o.Log}
	l := &leader{Options: o, manager: m, store: s, metrics: measured, collector: collect.New(collect.Options{
		Store: s, ReadPrices: prices.read, ReadUsage: pods.read, Clock: clock.RealClock{}, Log: o.Log,
		OnStored: measured.countHour, OnFailed: func() { measured.countStoreError(operationWrite) },
	})}
	measured.addState(l.collector.GetLatest)
	if o.LeaderElect {
		unlimited := rest.CopyConfig(config)
		unlimited.QPS = -1 // a start reads many ConfigMaps; the API server limits requests
		c, err := client.New(unlimited, client.Options{HTTPClient: m.GetHTTPClient(), Mapper: m.GetRESTMapper()})
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		l.copier = recent.New(recent.Options{Store: s, Client: c, Clock: clock.RealClock{}, Log: o.Log, OnCopied: measured.countCopy})
	}
	if err := m.Add(l); err != nil {
		return err
	}
	if o.MetricsAddr != "0" {
		if err := m.Add(measured.newServer(o.MetricsAddr)); err != nil {
			return err
		}
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	// Users must reach the leader only: another process has no view.
	if err := m.AddReadyzCheck("ledger", func(*http.Request) error { return l.collector.Check() }); err != nil {
		return err
	}
	return m.Start(ctx)
}

// leader observes the cluster and answers users.
type leader struct {
	Options
	manager   manager.Manager
	store     *store.Store
	collector *collect.Collector
	// copier is nil without leader election: another ledger of the same cluster may own the ConfigMaps.
	copier  *recent.Copier
	metrics *metrics
}

// NeedLeaderElection returns true, so that only the leader writes.
func (*leader) NeedLeaderElection() bool { return true }

// Start runs until the context is done. If the store has another leader, it returns an error.
func (l *leader) Start(ctx context.Context) error {
	holder, err := l.readHolder(ctx)
	if err != nil {
		return err
	}
	if err := l.store.Lead(holder); err != nil {
		return err
	}
	if l.copier != nil {
		if err := l.copier.Restore(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 3)
	go func() { errs <- l.collector.Run(ctx, l.manager.GetCache()) }()
	go func() {
		handler := server.New(server.Options{Source: l.collector, Reviews: l.manager.GetClient(), Tokens: l.Tokens, Metrics: l.metrics.newHandler(),
			Log: l.Log, Now: time.Now})
		errs <- l.Serving.Serve(ctx, l.metrics.instrument(handler), l.Log)
	}()
	go func() { errs <- l.copyHours(ctx) }()
	err = <-errs
	cancel()
	for range cap(errs) - 1 {
		if next := <-errs; err == nil {
			err = next
		}
	}
	return err
}

// copyHours copies the stored hours to ConfigMaps until the context is done.
func (l *leader) copyHours(ctx context.Context) error {
	if l.copier == nil {
		<-ctx.Done()
		return nil
	}
	return l.copier.Run(ctx, func() (time.Time, error) {
		stored, _, err := l.collector.GetLatest()
		return stored, err
	})
}

// readHolder returns this process as the holder of the lease.
func (l *leader) readHolder(ctx context.Context) (store.Leader, error) {
	if !l.LeaderElect {
		host, err := os.Hostname()
		return store.Leader{Identity: host}, err
	}
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: LeaseName}
	if err := l.manager.GetAPIReader().Get(ctx, key, &lease); err != nil {
		return store.Leader{}, fmt.Errorf("read the lease: %w", err)
	}
	return store.Leader{Identity: ptr.Deref(lease.Spec.HolderIdentity, ""), Lease: string(lease.UID),
		Transitions: int64(ptr.Deref(lease.Spec.LeaseTransitions, 0))}, nil
}
