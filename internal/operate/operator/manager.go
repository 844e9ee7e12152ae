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
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/secondary"
	"croft.dev/croft/internal/operate/controller/refusedpods"
)

// longest is the timeout of one reconcile. The first write of a tenant with 64 namespaces
// takes seconds.
const longest = 2 * time.Minute

// stopTimeout limits the time in which controllers end. Reconciles end at once, because their context
// is cancelled, but the priority queue of controller-runtime 0.24 may block its workers for ever
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538). The Lease is released afterwards, so
// this must be well below its 15 seconds and below the 30 seconds after which a kubelet kills the pod.
const stopTimeout = 5 * time.Second

func buildOptions(o Options) manager.Options {
	return manager.Options{
		Scheme: scheme.New(),
		Logger: o.Log,
		Cache:  buildCacheOptions(o.Plugins),
		// controller-runtime must know the scope of each kind in ByObject, and fails for a
		// kind that the cluster does not serve. Optional kinds may be installed after
		// croft.
		NewCache: func(c *rest.Config, o cache.Options) (cache.Cache, error) {
			o.Mapper = meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{o.Mapper, mapOptionalKinds()}}
			return cache.New(c, o)
		},
		// Objects without a Go type, such as clouds' node classes, are read from the cache,
		// too.
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},

		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       v1alpha1.SystemNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       ptr.To(stopTimeout),

		HealthProbeBindAddress: o.HealthAddr,
		Metrics:                metricsserver.Options{BindAddress: o.MetricsAddr},
		Controller: config.Controller{
			// A standby replica fills its caches before it becomes the leader.
			EnableWarmup:          ptr.To(true),
			ReconciliationTimeout: longest,
			// Controller names are unique within this package, and one process may run
			// several operators, each for its own cluster.
			SkipNameValidation: ptr.To(true),
		},
	}
}

// buildCacheOptions limits the cache of most kinds to croft's own objects, so that it does not
// grow with the tenants' workloads. The exceptions: all namespaces are cached, because a
// tenant may declare an existing one, and events are limited to refusals and truncated.
// plugins are the DaemonSets that nodes with secondary networks wait for.
func buildCacheOptions(plugins secondary.Plugins) cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	options := cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}:          all,
			&v1alpha1.Platform{}:         all,
			&v1alpha1.Pool{}:             all,
			&v1alpha1.Tenant{}:           all,
			&v1alpha1.SecondaryNetwork{}: all,
			// Their managed fields are as large as the rest of the object.
			&v1alpha1.Elevation{}:       {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			&v1alpha1.TenantNamespace{}: all,
			&v1alpha1.TenantCaller{}:    {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			&corev1.Event{}:             refusedpods.Events(),
			// Karpenter's kind. Watched only where the cluster serves it.
			&karpenterv1.NodeClaim{}: {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			// whereabouts' kind. Watched only where the cluster serves it. Its managed
			// fields repeat the key of each allocation.
			newIPPool(): {Label: labels.Everything(), Transform: cache.TransformStripManagedFields()},
			// Watched only where pools wait for their networks.
			&corev1.Node{}: {Label: labels.SelectorFromSet(labels.Set{v1alpha1.NodeNetworksLabel: "true"})},
		},
	}
	if !plugins.IsEmpty() {
		// The operator may read these objects in this namespace only. They are watched only
		// where pools wait for their networks.
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

// newIPPool returns an object of whereabouts' kind IPPool, which croft reads without a Go
// type.
func newIPPool() client.Object {
	pool := &unstructured.Unstructured{}
	pool.SetGroupVersionKind(secondary.IPPool)
	return pool
}

// mapOptionalKinds maps the kinds of buildCacheOptions that a cluster may not serve, with the
// scopes of their CRDs. They are watched as soon as the cluster serves them (watch.Late).
func mapOptionalKinds() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}, meta.RESTScopeRoot)
	m.Add(secondary.IPPool, meta.RESTScopeNamespace)
	return m
}

// newSyncCheck returns a readiness check that fails until the caches are filled. It does not
// wait.
func newSyncCheck(c cache.Cache) healthz.Checker {
	return func(req *http.Request) error {
		if !areCachesFilled(req.Context(), c) {
			return errors.New("the caches are being filled")
		}
		return nil
	}
}

// areCachesFilled reports whether the caches are filled. It waits at most 100 ms.
func areCachesFilled(ctx context.Context, c cache.Cache) bool {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	return c.WaitForCacheSync(ctx)
}
