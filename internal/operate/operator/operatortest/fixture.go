// Package operatortest runs croft's operator in tests, on a sandbox in which croft is installed.
// Only tests import it.
package operatortest

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/budgets"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
)

// deadline limits every wait of a test.
const deadline = 3 * time.Minute

// Fixture is a cluster with croft installed, and an administrator's client.
type Fixture struct {
	testing.TB
	Client  client.Client
	Config  *rest.Config
	Cluster *sandbox.Cluster
	// Ledger is the operator's connection to a ledger.
	Ledger budgets.LedgerOptions
	// Clock is the clock of an operator's controllers. Defaults to the system's.
	Clock clock.WithTickerAndDelayedExecution
	// Writes are the operator's write requests.
	Writes *Writes
	log    *buffer
	// owner is the test that started the cluster. An operator may outlive a subtest that started
	// it, and so it logs to the owner.
	owner testing.TB
}

// Start starts a sandbox and installs croft. with lists additional components.
func Start(t testing.TB, components []string, with ...string) *Fixture {
	t.Helper()
	return StartWith(t, sandbox.Options{Components: components, With: with}, install.Options{})
}

// StartWith starts a sandbox with options and installs croft.
func StartWith(t testing.TB, on sandbox.Options, installed install.Options) *Fixture {
	t.Helper()
	f := New(t, sandbox.Start(t, on))
	if _, err := install.Install(t.Context(), f.Client, installed); err != nil {
		t.Fatal(err)
	}
	return f
}

// New returns a Fixture of a cluster, and does not install croft.
func New(t testing.TB, cluster *sandbox.Cluster) *Fixture {
	t.Helper()
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return &Fixture{TB: t, Client: c, Config: cluster.Config, Cluster: cluster, Writes: &Writes{}, log: &buffer{}, owner: t}
}

// For returns the same cluster for a subtest.
func (f *Fixture) For(t testing.TB) *Fixture {
	inner := *f
	inner.TB = t
	return &inner
}

// leaseLost is controller-runtime's error when it loses the lease and another replica may
// lead.
const leaseLost = "leader election lost"

// Operate runs an operator with the rights that Install grants, and returns a function that
// stops it. An operator that loses its lease, because the API server did not answer for ten
// seconds, is restarted, as its Deployment would do.
func (f *Fixture) Operate() (stop func()) {
	f.Helper()
	return f.OperateAt("0")
}

// OperateAt is Operate with an address for health probes.
func (f *Fixture) OperateAt(health string) (stop func()) {
	f.Helper()
	cfg := f.NewOperatorConfig()
	plugins, err := secondary.ParsePlugins(secondary.PluginsNamespace, secondary.PluginsLabels)
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		for {
			err := operator.Run(ctx, cfg, operator.Options{
				HealthAddr: health, MetricsAddr: "0", LeaderElect: true, Plugins: plugins, Ledger: f.Ledger, Clock: f.Clock, Log: f.NewLogger(),
			})
			if err == nil || ctx.Err() != nil || err.Error() != leaseLost {
				done <- err
				return
			}
			f.owner.Logf("the operator begins again: %v", err)
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.owner.Errorf("the operator stopped: %v", err)
			}
		case <-time.After(deadline):
			f.owner.Error("the operator does not stop")
		}
	})
}

// NewOperatorConfig returns a configuration with the rights that Install grants the operator. Writes
// records its write requests.
func (f *Fixture) NewOperatorConfig() *rest.Config {
	cfg := rest.CopyConfig(f.Config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: admissionpolicy.OperatorUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + v1alpha1.SystemNamespace, "system:authenticated"},
	}
	cfg.Wrap(f.Writes.record)
	return cfg
}

// NewLogger returns a logger for the output of the test that started the cluster. AwaitLog reads
// its lines.
func (f *Fixture) NewLogger() logr.Logger {
	return logr.FromSlogHandler(slog.NewTextHandler(io.MultiWriter(f.owner.Output(), f.log), nil))
}
