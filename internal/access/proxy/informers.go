package proxy

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"croft.dev/croft/api/v1alpha1"
)

// startInformers watches namespaces and RBAC, and keeps n, t and, if it is not nil, filter
// up to date until ctx ends. It returns once the caches have synced.
func startInformers(ctx context.Context, client kubernetes.Interface, n *namespaces, t *tenancy, filter *impersonationFilter) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	change := func(o metav1.Object, apply func() accessChange) {
		n.applyAccessChange(parseResourceVersion(o), t.changeAccess(parseResourceVersion(o), apply))
	}
	setRole := func(o metav1.Object, rules []rbacv1.PolicyRule) {
		change(o, func() accessChange { return n.access.setRole(roleKey{o.GetNamespace(), o.GetName()}, rules) })
	}
	setBinding := func(o metav1.Object, role rbacv1.RoleRef, subjects []rbacv1.Subject) {
		change(o, func() accessChange { return n.access.setBinding(o.GetNamespace(), o.GetName(), role, subjects) })
	}
	rbac := factory.Rbac().V1()
	// Roles come before bindings, so that no user loses access while the caches sync.
	sources := []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{rbac.ClusterRoles().Informer(), newEventHandler(func(o *rbacv1.ClusterRole, exists bool) {
			if filter != nil && o.Name == filter.role {
				filter.setRules(listIfExists(o.Rules, exists))
			}
			setRole(o, listIfExists(o.Rules, exists))
		})},
		{rbac.Roles().Informer(), newEventHandler(func(o *rbacv1.Role, exists bool) {
			setRole(o, listIfExists(o.Rules, exists))
		})},
		{rbac.ClusterRoleBindings().Informer(), newEventHandler(func(o *rbacv1.ClusterRoleBinding, exists bool) {
			setBinding(o, o.RoleRef, listIfExists(o.Subjects, exists))
		})},
		{rbac.RoleBindings().Informer(), newEventHandler(func(o *rbacv1.RoleBinding, exists bool) {
			setBinding(o, o.RoleRef, listIfExists(o.Subjects, exists))
		})},
		{factory.Core().V1().Namespaces().Informer(), newEventHandler(func(o *corev1.Namespace, exists bool) {
			if exists {
				n.put(o)
			} else {
				n.remove(o)
			}
		})},
	}
	var synced []cache.InformerSynced
	for _, s := range sources {
		registration, err := s.informer.AddEventHandler(s.handler)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.Join(errors.New("cannot read the cluster's namespaces and RBAC"), ctx.Err())
	}
	informers := make([]cache.SharedIndexInformer, len(sources))
	for i, s := range sources {
		informers[i] = s.informer
	}
	n.resetHistory(findNewestVersion(informers))
	return nil
}

// findNewestVersion returns the newest resource version that informers have read.
func findNewestVersion(informers []cache.SharedIndexInformer) (newest uint64) {
	for _, i := range informers {
		if version, err := strconv.ParseUint(i.LastSyncResourceVersion(), 10, 64); err == nil {
			newest = max(newest, version)
		}
	}
	return newest
}

// startTenancy watches Tenants, Pools, nodes and the Platform, and keeps t up to date until
// ctx ends. It returns once the caches have synced or one of them cannot be read. On a
// cluster without croft's kinds, or whose operator has not granted the proxy the permission
// yet, namespaces are served nevertheless.
func startTenancy(ctx context.Context, client kubernetes.Interface, croft dynamic.Interface, t *tenancy, log *slog.Logger) error {
	core := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(dropManagedFields))
	own := dynamicinformer.NewDynamicSharedInformerFactory(croft, 0)
	of := func(resource string) cache.SharedIndexInformer {
		return own.ForResource(v1alpha1.GroupVersion.WithResource(resource)).Informer()
	}
	failed := func(ctx context.Context, o metav1.Object, err error) {
		if err != nil {
			log.ErrorContext(ctx, "cannot read an object: users do not see its last change", "name", o.GetName(), "err", err)
		}
	}
	handlers := map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		of("platforms"): newEventHandler(func(o *unstructured.Unstructured, exists bool) {
			key, _, _ := unstructured.NestedString(o.Object, "spec", "nodePoolKey")
			if key == "" || !exists {
				key = v1alpha1.DefaultNodePoolKey
			}
			if o.GetName() == v1alpha1.PlatformName {
				failed(ctx, o, t.setKey(key))
			}
		}),
		of("tenants"): newEventHandler(func(o *unstructured.Unstructured, exists bool) { failed(ctx, o, t.applyTenantEvent(o, exists)) }),
		of("pools"):   newEventHandler(func(o *unstructured.Unstructured, exists bool) { failed(ctx, o, t.applyPoolEvent(o, exists)) }),
		core.Core().V1().Nodes().Informer(): newEventHandler(func(o *corev1.Node, exists bool) {
			failed(ctx, o, t.setNode(o, exists))
		}),
	}
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	var synced []cache.InformerSynced
	for informer, handler := range handlers {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return err
		}
		synced = append(synced, registration.HasSynced)
		err = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			if !t.ready.Load() {
				log.WarnContext(ctx, "cannot read tenants, pools or nodes yet: users do not see their own", "err", err)
				stopWaiting()
			}
			cache.DefaultWatchErrorHandler(ctx, r, err)
		})
		if err != nil {
			return err
		}
	}
	core.Start(ctx.Done())
	own.Start(ctx.Done())
	go func() {
		defer stopWaiting()
		if cache.WaitForCacheSync(ctx.Done(), synced...) {
			version := findNewestVersion(slices.Collect(maps.Keys(handlers)))
			for _, c := range t.listCollections() {
				c.resetHistory(version)
			}
			t.ready.Store(true)
		}
	}()
	<-waiting.Done()
	return ctx.Err()
}

// newEventHandler calls update for each object that exists, and for each object that was
// deleted.
func newEventHandler[T any](update func(object T, exists bool)) cache.ResourceEventHandler {
	call := func(o any, exists bool) {
		if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = tombstone.Obj
		}
		if o, ok := o.(T); ok {
			update(o, exists)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { call(o, true) },
		UpdateFunc: func(_, o any) { call(o, true) },
		DeleteFunc: func(o any) { call(o, false) },
	}
}

// listIfExists returns the list of an existing object, and nil for a deleted one.
func listIfExists[T any](list []T, exists bool) []T {
	if exists {
		return list
	}
	return nil
}

// dropManagedFields removes managed fields to save memory, except from namespaces, which
// are served to users unchanged, and removes from nodes their largest fields.
func dropManagedFields(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		if _, isNamespace := o.(*corev1.Namespace); !isNamespace {
			m.SetManagedFields(nil)
		}
	}
	if node, ok := o.(*corev1.Node); ok { // large fields that are never shown
		node.Annotations, node.Status.Images, node.Status.VolumesInUse, node.Status.VolumesAttached = nil, nil, nil, nil
	}
	return o, nil
}
