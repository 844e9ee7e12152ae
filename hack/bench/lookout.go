package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/hack/internal/tenants"
	"croft.dev/croft/internal/declare/scheme"
)

// manyObjects is the number of objects from which a watch prints its progress, ten times.
const manyObjects = 500

// objectWatch watches objects until each has reached a state. Polling would add load to the API
// server on one side only.
type objectWatch struct {
	// existing are the objects before the first event of the watch.
	existing []watch.Event
	watch    watch.Interface
	// waiting maps the keys of the objects that have not reached the state to the reason.
	waiting map[string]string
	// explain returns why an object has not reached the state, or "" if it has.
	explain func(watch.EventType, client.Object) string
}

// watchObjects starts to watch objects of a kind. It begins with the existing objects. keys are the names of the
// expected objects, as in NAMESPACE/NAME. The API server may end a watch when many objects change at once; then it continues.
func watchObjects(ctx context.Context, config *rest.Config, list client.ObjectList, keys []string,
	explain func(watch.EventType, client.Object) string, options ...client.ListOption) (*objectWatch, error) {
	l := &objectWatch{waiting: map[string]string{}, explain: explain}
	for _, key := range keys {
		l.waiting[key] = "it does not exist"
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		return nil, err
	}
	if err := c.List(ctx, list, options...); err != nil {
		return nil, err
	}
	if err := meta.EachListItem(list, func(o runtime.Object) error {
		l.existing = append(l.existing, watch.Event{Type: watch.Added, Object: o})
		return nil
	}); err != nil {
		return nil, err
	}
	l.watch, err = watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return c.Watch(ctx, list, append(options[:len(options):len(options)], &client.ListOptions{Raw: &o})...)
		},
	})
	return l, err
}

// watchTenants starts to watch tenants before they are declared, until they are Ready.
func watchTenants(ctx context.Context, config *rest.Config, prefix string, count int) (*objectWatch, error) {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = tenants.Name(prefix, i)
	}
	return watchObjects(ctx, config, &v1alpha1.TenantList{}, keys, func(_ watch.EventType, o client.Object) string {
		return explainUnready(o.(*v1alpha1.Tenant))
	})
}

func (l *objectWatch) stop() { l.watch.Stop() }

// observe calls a function, and returns for each object the time from the call until the object had reached
// the state.
func (l *objectWatch) observe(ctx context.Context, do func(context.Context) error) ([]float64, error) {
	var took []float64
	group, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	group.Go(func() (err error) {
		took, err = l.waitAll(ctx, start)
		return err
	})
	group.Go(func() error { return do(ctx) })
	return took, group.Wait()
}

// waitAll waits until all objects have reached the state, and returns for each the time since start. If
// start is zero, it is the time of the first event of one of them.
func (l *objectWatch) waitAll(ctx context.Context, start time.Time) ([]float64, error) {
	total := len(l.waiting)
	limit := limitTime(total)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s have passed", limit))
	defer cancel()
	var took []float64
	for len(l.waiting) > 0 {
		event, err := l.readEvent(ctx)
		if err != nil {
			return nil, l.withPending(err)
		}
		if event.Type == watch.Error {
			return nil, l.withPending(apierrors.FromObject(event.Object))
		}
		object, ok := event.Object.(client.Object)
		if !ok || l.waiting[getKey(object)] == "" {
			continue
		}
		if start.IsZero() {
			start = time.Now()
		}
		key := getKey(object)
		if l.waiting[key] = l.explain(event.Type, object); l.waiting[key] != "" {
			continue
		}
		delete(l.waiting, key)
		took = append(took, time.Since(start).Seconds())
		if total >= manyObjects && len(took)%(total/10) == 0 {
			printProgress("  %d of %d after %s", len(took), total, inSeconds.formatValue(took[len(took)-1]))
		}
	}
	return took, nil
}

// readEvent returns the next event.
func (l *objectWatch) readEvent(ctx context.Context) (watch.Event, error) {
	if len(l.existing) > 0 {
		event := l.existing[0]
		l.existing = l.existing[1:]
		return event, nil
	}
	select {
	case <-ctx.Done():
		return watch.Event{}, context.Cause(ctx)
	case event, open := <-l.watch.ResultChan():
		if !open {
			return event, errors.New("the watch ended")
		}
		return event, nil
	}
}

// getKey returns NAMESPACE/NAME, or NAME if the object has no namespace.
func getKey(o client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(o).String(), "/")
}

// limitTime returns the time limit for operations on tenants.
func limitTime(tenants int) time.Duration {
	return 3*time.Minute + time.Duration(tenants)*time.Second
}

// withPending adds the objects that have not reached the state to an error.
func (l *objectWatch) withPending(err error) error {
	for key, why := range l.waiting {
		return fmt.Errorf("waiting for %d objects, such as %s (%s): %w", len(l.waiting), key, why, err)
	}
	return err
}

// explainUnready returns why a tenant is not Ready, or "" if it is.
func explainUnready(tenant *v1alpha1.Tenant) string {
	ready := meta.FindStatusCondition(tenant.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case ready == nil || tenant.Status.ObservedGeneration != tenant.Generation:
		return "croft has not reported a condition"
	case ready.Status != metav1.ConditionTrue:
		return ready.Reason + ": " + ready.Message
	default:
		return ""
	}
}
