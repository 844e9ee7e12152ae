package quota_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/test/sandbox"
)

// census counts the objects in a tenant's namespaces, change by change, as the API server
// stored them.
type census struct {
	mu sync.Mutex
	// now and most are the current and the highest number of ConfigMaps, or of CPU in
	// thousandths.
	now, most map[string]int64
	spaces    map[string]int64
}

func (f *fixture) startCensus(namespaces []string) *census {
	f.Helper()
	all := &census{now: map[string]int64{}, most: map[string]int64{}, spaces: map[string]int64{}}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &corev1.PodList{}} {
		sandbox.Watch(f, f.Config, list, func(event watch.EventType, o client.Object) {
			if slices.Contains(namespaces, o.GetNamespace()) {
				all.recordEvent(event, o)
			}
		})
	}
	return all
}

func (c *census) recordEvent(event watch.EventType, o client.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add := func(what string, n int64) {
		switch event {
		case "", watch.Added:
		case watch.Deleted:
			n = -n
		default:
			return
		}
		c.now[what] += n
		c.most[what] = max(c.most[what], c.now[what])
		c.spaces[what+" in "+o.GetNamespace()] += n
	}
	switch o := o.(type) {
	case *corev1.ConfigMap:
		add("configmaps", 1)
	case *corev1.Pod:
		add("pods", 1)
		add("cpu", o.Spec.Containers[0].Resources.Requests.Cpu().MilliValue())
	}
}

func (c *census) getCounts(what string) (now, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now[what], c.most[what]
}

func (c *census) getNamespaceCount(what, namespace string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spaces[what+" in "+namespace]
}

// crowd is a group of clients that create objects.
type crowd struct {
	sync.WaitGroup
	// refused is the error of the last refused pod.
	refused atomic.Value
}

// startClients starts clients that create objects in a namespace until the context is done, each at
// a fixed interval. They retry when the quota refuses an object. A test that ends early
// waits for them.
func (f *fixture) startClients(ctx context.Context, all *crowd, namespace string, clients int, pause time.Duration) {
	ctx, cancel := context.WithCancel(ctx)
	f.Cleanup(func() {
		cancel()
		all.Wait()
	})
	for i := range clients {
		all.Go(func() {
			for pace := rate.NewLimiter(rate.Every(pause), 1); pace.Wait(ctx) == nil; {
				var o client.Object = &corev1.ConfigMap{}
				if i%2 == 1 {
					o = &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
						Name: "main", Image: "registry.example.org/pause:3.10",
						Resources: corev1.ResourceRequirements{Requests: makeResourceList("cpu", "100m")},
					}}}}
				}
				o.SetNamespace(namespace)
				o.SetGenerateName("rush-")
				o.SetLabels(map[string]string{"rush": "true"})
				// The API server returns a conflict for a quota that too many requests
				// update at once.
				err := f.Client.Create(f.Context(), o)
				if _, isPod := o.(*corev1.Pod); err != nil && isPod {
					all.refused.Store(err.Error())
				}
				if err != nil && ctx.Err() == nil && !apierrors.IsForbidden(err) && !apierrors.IsConflict(err) {
					f.Errorf("create in %s: %v", namespace, err)
					return
				}
			}
		})
	}
}
