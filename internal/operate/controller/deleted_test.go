package controller_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/platform"
	"croft.dev/croft/internal/operate/controller/pool"
	"croft.dev/croft/internal/operate/controller/tenant"
	"croft.dev/croft/internal/operate/controller/watch"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
)

// staleCache is a cache that returns the declared objects as they were when it was created, like
// the cache of an operator that has just become the leader.
type staleCache struct {
	client.Client
	platforms v1alpha1.PlatformList
	pools     v1alpha1.PoolList
	tenants   v1alpha1.TenantList
}

func newStaleCache(ctx context.Context, cached client.Client, live client.Reader) (*staleCache, error) {
	s := &staleCache{Client: cached}
	for _, list := range []client.ObjectList{&s.platforms, &s.pools, &s.tenants} {
		if err := live.List(ctx, list); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *staleCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	switch o := o.(type) {
	case *v1alpha1.Platform:
		s.platforms.Items[0].DeepCopyInto(o)
	case *v1alpha1.Pool:
		for i := range s.pools.Items {
			if s.pools.Items[i].Name == key.Name {
				s.pools.Items[i].DeepCopyInto(o)
			}
		}
	case *v1alpha1.Tenant:
		for i := range s.tenants.Items {
			if s.tenants.Items[i].Name == key.Name {
				s.tenants.Items[i].DeepCopyInto(o)
			}
		}
	default:
		return s.Client.Get(ctx, key, o, opts...)
	}
	return nil
}

func (s *staleCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.PlatformList:
		s.platforms.DeepCopyInto(list)
	case *v1alpha1.PoolList:
		s.pools.DeepCopyInto(list)
	case *v1alpha1.TenantList:
		s.tenants.DeepCopyInto(list)
	default:
		return s.Client.List(ctx, list, opts...)
	}
	return nil
}

// TestReconcileDeletedObjects calls the reconcilers with a cache that still has deleted
// objects. They must not write anything for them.
func TestReconcileDeletedObjects(t *testing.T) {
	sandbox.EndToEnd(t)
	ctx := t.Context()
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	live, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(ctx, live, install.Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := manager.New(cluster.Config, manager.Options{
		Scheme:     scheme.New(),
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Client:     client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.IndexNamespaces(ctx, m.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = m.GetCache().Start(ctx) }()

	meta := func(name string, finalizers ...string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Finalizers: finalizers}
	}
	declared := []client.Object{
		&v1alpha1.Platform{ObjectMeta: meta(v1alpha1.PlatformName), Spec: v1alpha1.PlatformSpec{
			ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
		}},
		&v1alpha1.Pool{ObjectMeta: meta("new")},
		&v1alpha1.Pool{ObjectMeta: meta("old", v1alpha1.PoolFinalizer)},
		&v1alpha1.Tenant{ObjectMeta: meta("young"), Spec: v1alpha1.TenantSpec{Pool: "new"}},
		&v1alpha1.Tenant{ObjectMeta: meta("aged", v1alpha1.TenantFinalizer), Spec: v1alpha1.TenantSpec{Pool: "new"}},
	}
	for _, o := range declared {
		if err := live.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	cached, err := newStaleCache(ctx, m.GetClient(), live)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range declared {
		if err := live.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
		if len(o.GetFinalizers()) > 0 {
			if err := live.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				t.Fatal(err)
			}
		}
	}
	store := newStore(t, cached, live)
	applier, recorder := apply.NewCached(cached, live), events.NewFakeRecorder(1000)

	for name, test := range map[string]struct {
		controller reconciler
		names      []string
		made       client.Object
	}{
		"tenants":  {tenant.New(cached, live, applier, store, recorder, nil, clock.RealClock{}), []string{"young", "aged"}, &corev1.Namespace{}},
		"pools":    {pool.New(cached, live, applier, store, recorder), []string{"new", "old"}, &karpenterv1.NodePool{}},
		"platform": {platform.New(cached, live, applier, store, recorder), []string{v1alpha1.PlatformName}, nil},
	} {
		if err := test.controller.Register(ctx, m); err != nil {
			t.Fatal(err)
		}
		for _, removed := range test.names {
			t.Run(name+"/"+removed, func(t *testing.T) {
				key := types.NamespacedName{Name: removed}
				if result, err := test.controller.Reconcile(ctx, reconcile.Request{NamespacedName: key}); err != nil {
					t.Errorf("%v, %v", result, err)
				}
				if test.made == nil {
					expectNoPolicies(t, live)
				} else if err := live.Get(ctx, key, test.made); !apierrors.IsNotFound(err) {
					t.Errorf("a %T was created for a deleted owner (%v)", test.made, err)
				}
			})
		}
	}
}

type reconciler interface {
	Register(context.Context, manager.Manager) error
	Reconcile(context.Context, reconcile.Request) (reconcile.Result, error)
}

// newStore returns a Store that has built the estate.
func newStore(t *testing.T, cached, live client.Reader) *declared.Store {
	t.Helper()
	store := declared.New(cached, live, clock.RealClock{})
	go func() { _ = store.Start(t.Context()) }()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return store.Current() != nil, nil
	}); err != nil {
		t.Fatal("no estate")
	}
	return store
}

func expectNoPolicies(t *testing.T, c client.Client) {
	t.Helper()
	for _, kind := range apply.PlatformKinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := c.List(t.Context(), list, client.HasLabels{v1alpha1.WallLabel}); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			t.Errorf("%s %s was created for a deleted Platform", kind.Kind, o.Name)
		}
	}
}
