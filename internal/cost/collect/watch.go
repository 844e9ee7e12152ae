package collect

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// kinds are the observed kinds. A cluster may have no NodeClaims, since it has no Karpenter.
var kinds = []client.Object{
	&karpenterv1.NodeClaim{}, &corev1.Node{}, &corev1.Pod{}, &corev1.Namespace{}, &corev1.PersistentVolume{},
	&corev1.Service{}, &v1alpha1.Tenant{},
}

// CacheOptions limit the memory of the cache: of pods and other kinds, it keeps only fields that the
// collector reads.
func CacheOptions() cache.Options {
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: trimPod}},
	}
}

// trimPod removes the parts of a pod on which no cost depends.
func trimPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields, pod.Annotations = nil, nil
	pod.Spec.Volumes, pod.Spec.Affinity, pod.Spec.Tolerations = nil, nil, nil
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			list[i] = corev1.Container{Name: list[i].Name, Resources: list[i].Resources, RestartPolicy: list[i].RestartPolicy}
		}
	}
	return pod, nil
}

// Run observes the cluster until the context ends, or until another process leads. The cache must have
// been started.
func (c *Collector) Run(ctx context.Context, objects cache.Cache) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	var read []toolscache.InformerSynced
	for _, kind := range kinds {
		informer, err := objects.GetInformer(ctx, kind)
		if meta.IsNoMatchError(err) {
			c.Log.InfoContext(ctx, "the cluster does not have a kind: its objects cost nothing until the next start", "kind", fmt.Sprintf("%T", kind))
			continue
		}
		if err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { c.set(nil, object) },
			UpdateFunc: c.set,
			DeleteFunc: func(object any) {
				unseen, missed := object.(toolscache.DeletedFinalStateUnknown)
				if missed {
					object = unseen.Obj
				}
				c.remove(object, missed)
			},
		})
		if err != nil {
			return err
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		read = append(read, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), read...) {
		return ctx.Err()
	}
	if err := c.finish(ctx); err != nil {
		return err
	}
	c.Log.InfoContext(ctx, "observing the cluster", "since", c.computed)
	if c.ReadUsage == nil {
		return c.run(ctx)
	}
	measuring, stop := context.WithCancel(ctx)
	var measured sync.WaitGroup
	measured.Go(func() { c.measureRepeatedly(measuring) })
	defer func() {
		stop()
		measured.Wait()
	}()
	return c.run(ctx)
}
