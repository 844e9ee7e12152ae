// Package secretcopy is the process `croft copy-secrets`: it copies Secrets of the platform into
// tenants' namespaces.
//
// It has a service account of its own, which may read only the named Secrets of the namespace
// croft-secrets, and may write only Secrets with the names of copies, only in namespaces with a
// RoleBinding of the operator for that copy. It never reads a tenant's Secret: it applies copies
// without a look at the existing ones. A watch of the copies' metadata would need the right to list Secrets,
// and this right includes their content. So a copy that was deleted, or changed by the platform, is
// written again by the clock.
package secretcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/metric"
)

const (
	// LeaseName is the name of the Lease with the copier's heartbeat and problems.
	LeaseName = rights.Copier
	// ProblemsAnnotation of this Lease is a list of Problems in JSON.
	ProblemsAnnotation = "croft.dev/secret-problems"

	// defaultRepeat is the interval after which a copy is applied again. An apply that changes nothing
	// writes nothing: 5,000 copies are three requests a second, and no writes in etcd.
	defaultRepeat = 30 * time.Minute
	// workers copy at the same time. One request takes tens of milliseconds, so a changed Secret is in
	// 1,000 namespaces within seconds.
	workers = 16
	// stopTimeout limits the time in which the controller ends, as in the operator.
	stopTimeout = 5 * time.Second
)

// Options configure the copier.
type Options struct {
	// Sources are the names of the Secrets in v1alpha1.SecretsNamespace that may be copied.
	Sources []string
	// HealthAddr is the address of /healthz and /readyz. "0" disables them.
	HealthAddr string
	// MetricsAddr is the address of /metrics. "0" disables them.
	MetricsAddr string
	// Repeat is the interval after which each copy is applied again. Defaults to 30 minutes.
	Repeat time.Duration
	// Log receives the copier's logs, which contain no content of Secrets.
	Log logr.Logger
}

// Run copies Secrets until the context is done. A clean stop returns nil.
func Run(ctx context.Context, cfg *rest.Config, o Options) error {
	cfg = rest.CopyConfig(cfg)
	// No client-side rate limit: the API server's priority and fairness limits croft's share.
	cfg.QPS, cfg.Burst = -1, -1
	m, err := manager.New(cfg, buildManagerOptions(o))
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	c := newCopier(m.GetClient(), o)
	failed := metric.CopiesFailed.StateGauge(c.listFailed)
	if err := metrics.Registry.Register(failed); err != nil {
		return err
	}
	defer metrics.Registry.Unregister(failed)
	if err := c.registerWatches(m, cfg); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if err := m.Add(&heartbeat.Keeper{
		Client: m.GetClient(), Lease: LeaseName, Holder: host, Version: version.String(), Log: o.Log.WithName("heartbeat"),
		Annotate: func() map[string]string { return map[string]string{ProblemsAnnotation: c.problems.encodeProblems()} },
		Ready:    func(ctx context.Context) bool { return isFilled(ctx, m.GetCache()) },
	}); err != nil {
		return err
	}
	if err := m.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	if err := m.AddReadyzCheck("caches", func(r *http.Request) error {
		if !isFilled(r.Context(), m.GetCache()) {
			return errors.New("the caches are being filled")
		}
		return nil
	}); err != nil {
		return err
	}
	err = m.Start(ctx)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		o.Log.Info("stopped, although copies were being written", "after", stopTimeout)
		return nil
	}
	return err
}

func buildManagerOptions(o Options) manager.Options {
	return manager.Options{
		Scheme: scheme.New(),
		Logger: o.Log,
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&rbacv1.RoleBinding{}: {Label: selectBindings(), Transform: cache.TransformStripManagedFields()},
		}},
		HealthProbeBindAddress:  o.HealthAddr,
		Metrics:                 metricsserver.Options{BindAddress: cmp.Or(o.MetricsAddr, "0")},
		GracefulShutdownTimeout: ptr.To(stopTimeout),
		Controller:              config.Controller{SkipNameValidation: ptr.To(true), ReconciliationTimeout: time.Minute},
	}
}

// selectBindings selects the RoleBindings that declare copies. No tenant can write one: the policy
// croft-protection refuses croft's label in tenants' namespaces, and the copier ignores other namespaces.
func selectBindings() labels.Selector {
	managed, err := labels.NewRequirement(v1alpha1.ManagedByLabel, selection.Equals, []string{v1alpha1.ManagedBy})
	utilruntime.Must(err)
	copies, err := labels.NewRequirement(v1alpha1.SecretLabel, selection.Exists, nil)
	utilruntime.Must(err)
	return labels.NewSelector().Add(*managed, *copies)
}

// isFilled reports whether the cache is filled. It waits at most 100 ms.
func isFilled(ctx context.Context, c cache.Cache) bool {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return c.WaitForCacheSync(ctx)
}

// registerWatches adds the controller to the manager, with a watch of each source. RBAC allows a watch of a
// single name, by a field selector, and no watch of several names.
func (c *copier) registerWatches(m manager.Manager, cfg *rest.Config) error {
	clientset, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	b := builder.ControllerManagedBy(m).
		Named("copy-secrets").
		For(&rbacv1.RoleBinding{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	for name := range c.sources {
		watch := toolscache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "secrets", v1alpha1.SecretsNamespace,
			fields.OneTermEqualSelector("metadata.name", name))
		informer := toolscache.NewSharedIndexInformer(watch, &corev1.Secret{}, 0, toolscache.Indexers{})
		c.sources[name] = informer
		if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			informer.RunWithContext(ctx)
			return nil
		})); err != nil {
			return err
		}
		b = b.WatchesRawSource(&source.Informer{Informer: informer, Handler: handler.EnqueueRequestsFromMapFunc(c.listCopies)})
	}
	return b.Complete(c)
}
