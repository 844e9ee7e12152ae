package operator

import (
	"context"
	"errors"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/controller/refusedpods"
	"croft.dev/croft/internal/scheme"
	"croft.dev/croft/internal/secondary"
)

// longest is how long one reconcile may take. Writing a tenant of 64 namespaces
// for the first time takes seconds.
const longest = 2 * time.Minute

func options(o Options) manager.Options {
	return manager.Options{
		Scheme: scheme.New(),
		Logger: o.Log,
		Cache:  cacheOptions(o.Plugins),
		// controller-runtime has to know whether the kinds of ByObject are namespaced, and
		// fails for one that the cluster does not serve. Optional kinds may come after croft.
		NewCache: func(c *rest.Config, o cache.Options) (cache.Cache, error) {
			o.Mapper = meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{o.Mapper, optionalKinds()}}
			return cache.New(c, o)
		},
		// What croft makes without a Go type, as node classes of clouds, is read
		// from the cache as everything else.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},

		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       v1alpha1.SystemNamespace,
		LeaderElectionReleaseOnCancel: true,

		HealthProbeBindAddress: o.HealthAddr,
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddr},
		Controller: config.Controller{
			// A replica that stands by has its caches filled when it takes over.
			EnableWarmup:          ptr.To(true),
			ReconciliationTimeout: longest,
			// Names are told apart in this package, and a process may run more than
			// one operator, each for a cluster of its own.
			SkipNameValidation: ptr.To(true),
		},
	}
}

// cacheOptions keep of most kinds only what is croft's, so that the cache does not
// grow with what tenants run. Of namespaces all are kept: a tenant may declare
// one that is there already. Of events those with the reason of
// refusals are, cut short. plugins are what nodes with secondary networks wait for.
func cacheOptions(plugins secondary.Plugins) cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	options := cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}:          all,
			&v1alpha1.Platform{}:         all,
			&v1alpha1.Pool{}:             all,
			&v1alpha1.Tenant{}:           all,
			&v1alpha1.SecondaryNetwork{}: all,
			// Their managed fields are as long as the rest.
			&v1alpha1.Elevation{}:       {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			&v1alpha1.TenantNamespace{}: all,
			&corev1.Event{}:             refusedpods.Events(),
			// They are Karpenter's. They are watched only where nodes are attached to
			// secondary networks.
			&karpenterv1.NodeClaim{}: all,
			// They are whereabouts'. They are watched only where the cluster serves them. Their
			// managed fields name each allocation once more.
			ipPool(): {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			// They are watched only where pools wait for their networks.
			&corev1.Node{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.NodeNetworksLabel: "true"})},
		},
	}
	if !plugins.None() {
		// The operator may read them in this namespace alone, and does so only where pools
		// wait for their networks.
		in := func(which labels.Selector) cache.ByObject {
			return cache.ByObject{
				Namespaces: map[string]cache.Config{plugins.Namespace: {LabelSelector: which}},
				Transform:  cache.TransformStripManagedFields(),
			}
		}
		options.ByObject[&appsv1.DaemonSet{}] = in(labels.Everything())
		options.ByObject[&corev1.Pod{}] = in(plugins.Labels)
	}
	return options
}

// ipPool is an object of whereabouts' kind, which croft reads without a Go type.
func ipPool() client.Object {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(secondary.IPPool)
	return pool
}

// optionalKinds knows the kinds of cacheOptions that a cluster may not serve, as their own
// definitions have them. They are watched once the cluster serves them (watch.Late).
func optionalKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}, meta.RESTScopeRoot)
	m.Add(secondary.IPPool, meta.RESTScopeNamespace)
	return m
}

// synced answers whether the caches have been filled, without waiting for it.
func synced(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		if !filled(req.Context(), c) {
			return errors.New("the caches are being filled")
		}
		return nil
	}
}

// filled reports whether the caches have been filled.
func filled(ctx context.Context, c cache.Cache) bool {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return c.WaitForCacheSync(ctx)
}
