package apply_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// heldCache is a cache that returns an earlier version of a ResourceQuota while held is set.
type heldCache struct {
	client.Client
	held *corev1.ResourceQuota
}

func (h *heldCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if quota, ok := o.(*corev1.ResourceQuota); ok && h.held != nil {
		h.held.DeepCopyInto(quota)
		return nil
	}
	return h.Client.Get(ctx, key, o, opts...)
}

// countedReader counts reads.
type countedReader struct {
	client.Reader
	reads int
}

func (c *countedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, o, opts...)
}

// testReadsOfWatchedObjects changes a quota. The Applier must read it from the API server only while
// the cache lacks its last write, and must not write it again then. It must recognize its own writes.
func testReadsOfWatchedObjects(b *bench) {
	cache, live := &heldCache{Client: b.client}, &countedReader{Reader: b.client}
	applier := apply.NewWatching(cache, live)
	expect := func(action apply.Action, reads int, quota *corev1.ResourceQuota) {
		b.Helper()
		live.reads = 0
		changes, err := applier.Apply(b.Context(), quota)
		if err != nil || changes[0].Action != action || live.reads != reads {
			b.Errorf("%v after %d reads (%v), want %s after %d", changes, live.reads, err, action, reads)
		}
	}
	if _, err := applier.Apply(b.Context(), b.newNamespace(), b.newQuota("cpu")); err != nil {
		b.Fatal(err)
	}
	earlier, current := b.newQuota(), b.newQuota()
	b.getObject(earlier)
	expect(apply.Configured, 0, b.newQuota("cpu", "pods"))

	cache.held = earlier
	expect(apply.Unchanged, 1, b.newQuota("cpu", "pods"))
	cache.held = nil

	b.getObject(current)
	for i, test := range []struct {
		in   *corev1.ResourceQuota
		want bool
	}{{earlier, false}, {current, true}, {current, false}} {
		if got := applier.IsOwnWrite(test.in); got != test.want {
			b.Errorf("event %d is an own write: %t", i, got)
		}
	}
	expect(apply.Configured, 0, b.newQuota("pods"))
	b.patchObject(b.newQuota(), "kubectl", `{"metadata":{"annotations":{"a":"b"}}}`)
	b.getObject(current)
	if applier.IsOwnWrite(current) {
		b.Error("another client's write is taken for an own one")
	}
}
