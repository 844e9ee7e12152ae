package apply_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// heldCache is a cache that returns an earlier version of a ResourceQuota while held is set, and none while
// isEmpty is set. Its answers to writes have the fields that admit sets.
type heldCache struct {
	client.Client
	held    *corev1.ResourceQuota
	isEmpty bool
	admit   func(content map[string]any)
}

func (h *heldCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	quota, ok := o.(*corev1.ResourceQuota)
	switch {
	case ok && h.isEmpty:
		return apierrors.NewNotFound(corev1.Resource("resourcequotas"), key.Name)
	case ok && h.held != nil:
		h.held.DeepCopyInto(quota)
		return nil
	default:
		return h.Client.Get(ctx, key, o, opts...)
	}
}

func (h *heldCache) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := h.Client.Apply(ctx, o, opts...)
	if written, ok := o.(runtime.Unstructured); ok && h.admit != nil {
		h.admit(written.UnstructuredContent())
	}
	return err
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

// watchBench is an Applier whose cache may be behind, and a ResourceQuota that it has written.
type watchBench struct {
	*bench
	applier *apply.Applier
	cache   *heldCache
	live    *countedReader
}

func newWatchBench(b *bench) *watchBench {
	w := &watchBench{b, nil, &heldCache{Client: b.client}, &countedReader{Reader: b.client}}
	w.applier = apply.NewWatching(w.cache, w.live)
	if _, err := w.applier.Apply(b.Context(), b.newNamespace(), b.newQuota("cpu")); err != nil {
		b.Fatal(err)
	}
	return w
}

// expect fails the test unless a write of a quota has this outcome after this number of reads from the API server.
func (w *watchBench) expect(action apply.Action, reads int, quota *corev1.ResourceQuota) {
	w.Helper()
	w.live.reads = 0
	changes, err := w.applier.Apply(w.Context(), quota)
	if err != nil || changes[0].Action != action || w.live.reads != reads {
		w.Errorf("%v after %d reads (%v), want %s after %d", changes, w.live.reads, err, action, reads)
	}
}

// expectEvent fails the test unless an event with the quota's current version is an own write, or another client's.
func (w *watchBench) expectEvent(isOwn bool) {
	w.Helper()
	current := w.newQuota()
	w.getObject(current)
	if got := w.applier.IsOwnWrite(current); got != isOwn {
		w.Errorf("version %s is an own write: %t", current.ResourceVersion, got)
	}
}

// testReadsOfWatchedObjects changes a quota. The Applier must read it from the API server only while
// the cache lacks its last write, and must not write it again then. It must recognize its own writes.
func testReadsOfWatchedObjects(b *bench) {
	w := newWatchBench(b)
	earlier := b.newQuota()
	b.getObject(earlier)
	w.expect(apply.Configured, 0, b.newQuota("cpu", "pods"))

	w.cache.held = earlier
	w.expect(apply.Unchanged, 1, b.newQuota("cpu", "pods"))
	w.cache.held = nil

	if !w.applier.IsOwnWrite(earlier) {
		b.Error("the event of the first write is another client's")
	}
	w.expectEvent(true)
	w.expectEvent(false)
	w.expect(apply.Configured, 0, b.newQuota("pods"))
	b.patchObject(b.newQuota(), "kubectl", `{"metadata":{"annotations":{"a":"b"}}}`)
	w.expectEvent(false)

	w.cache.admit = func(content map[string]any) {
		_ = unstructured.SetNestedField(content, "7", "spec", "hard", "cpu")
	}
	w.expect(apply.Configured, 0, b.newQuota("cpu"))
	w.expectEvent(false)
}

// testWritesOfUncachedObjects writes a quota that the cache lacks, since the Applier has just created it, or since
// another client has, without croft's label.
func testWritesOfUncachedObjects(b *bench) {
	w := newWatchBench(b)
	w.cache.isEmpty = true
	w.expect(apply.Unchanged, 1, b.newQuota("cpu"))
	w.expectEvent(true)

	if err := b.client.Delete(b.Context(), b.newQuota()); err != nil {
		b.Fatal(err)
	}
	w.expect(apply.Created, 0, b.newQuota("cpu"))
	w.expectEvent(true)

	foreign := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: b.newQuota().Name}}
	foreign.Spec.Hard = corev1.ResourceList{"services": resource.MustParse("5")}
	if err := b.client.Delete(b.Context(), b.newQuota()); err != nil {
		b.Fatal(err)
	}
	if err := b.client.Create(b.Context(), foreign); err != nil {
		b.Fatal(err)
	}
	w.expect(apply.Created, 0, b.newQuota("cpu"))
	w.expectEvent(true)
	current := b.newQuota()
	b.getObject(current)
	if _, ok := current.Spec.Hard["services"]; ok || len(current.Spec.Hard) != 1 {
		b.Errorf("the other client's fields remain: %v", current.Spec.Hard)
	}
}
