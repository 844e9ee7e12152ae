package sandbox

import (
	"context"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
)

// Watch calls see for each object that a list selects, with an empty event type, before it
// returns. Then it calls see for each change, sequentially, until the test ends or stop is
// called. When stop has returned, see is not called any more.
//
// The API server may end a watch at any time. Watch then resumes after the last event, and
// misses none. If it cannot, the test fails, since it might pass only because it did not
// observe an event.
func Watch(t testing.TB, config *rest.Config, list client.ObjectList, see func(watch.EventType, client.Object), options ...client.ListOption) (stop func()) {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := c.List(ctx, list, options...); err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range items {
		see("", item.(client.Object))
	}
	w, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, append([]client.ListOption{&client.ListOptions{Raw: &o}}, options...)...)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for event := range w.ResultChan() {
			if ctx.Err() != nil {
				return
			}
			object, ok := event.Object.(client.Object)
			if !ok {
				t.Errorf("the watch of %T broke: %+v", list, event.Object)
				return
			}
			see(event.Type, object)
		}
		if ctx.Err() == nil {
			t.Errorf("the watch of %T ended", list)
		}
	})
	stop = func() {
		cancel()
		watching.Wait()
	}
	t.Cleanup(stop)
	return stop
}
