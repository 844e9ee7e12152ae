package cluster

import (
	"context"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// mostWatches is the maximum number of watches of a page. The largest pages read about twenty objects.
const mostWatches = 16

// Watcher watches the objects and lists that a page has read, with the user's token. It therefore needs
// no list of the kinds of each page.
type Watcher struct {
	client  *Client
	changed chan struct{}

	mu sync.Mutex
	// reads are the reads since the last call of Watch, with the resource versions that they returned.
	reads map[read]string
	// open ends the open watches.
	open map[read]context.CancelFunc
	// complete means that each of the last reads had a watch.
	complete bool
}

// read is a request for an object or, without a name, for a list.
type read struct {
	kind                            schema.GroupVersionKind
	namespace, name, labels, fields string
}

// NewWatcher returns a watcher without watches.
func NewWatcher(c *Client) *Watcher {
	return &Watcher{client: c, changed: make(chan struct{}, 1), reads: map[read]string{}, open: map[read]context.CancelFunc{}}
}

// Client returns a client that records its reads for the next call of Watch.
func (w *Watcher) Client() *Client {
	recording := *w.client
	recording.WithWatch = recorder{w.client.WithWatch, w}
	return &recording
}

// Changed receives a value after a change of a watched object.
func (w *Watcher) Changed() <-chan struct{} { return w.changed }

// Watch watches the objects that were read since the last call, and no others, until ctx ends. Watches
// that are open stay open: they began before these reads.
func (w *Watcher) Watch(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for r, end := range w.open {
		if _, ok := w.reads[r]; !ok {
			end()
			delete(w.open, r)
		}
	}
	w.complete = true
	for r, version := range w.reads {
		if w.open[r] != nil {
			continue
		}
		if len(w.open) == mostWatches {
			w.complete = false
			break
		}
		one, end := context.WithCancel(ctx)
		w.open[r] = end
		go func() {
			defer end()
			w.watch(one, r, version)
			w.mu.Lock()
			defer w.mu.Unlock()
			if one.Err() == nil {
				delete(w.open, r)
				w.complete = false
			}
		}()
	}
	w.reads = map[read]string{}
}

// IsComplete reports whether each of the last reads has an open watch. A watch ends after some time, or
// the user may list a kind and not watch it. Then the caller has to read again to find changes.
func (w *Watcher) IsComplete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.complete
}

// watch reports the changes of one object or list until the watch ends.
func (w *Watcher) watch(ctx context.Context, r read, version string) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	o := &client.ListOptions{Namespace: r.namespace, Raw: &metav1.ListOptions{
		LabelSelector: r.labels, FieldSelector: r.fields, ResourceVersion: version,
	}}
	if r.name != "" {
		// An API server may no longer have all changes since the version of an object. Without a version,
		// it sends the object first.
		o.Raw.FieldSelector, o.Raw.ResourceVersion = fields.OneTermEqualSelector(metav1.ObjectNameField, r.name).String(), ""
	}
	changes, err := w.client.Watch(ctx, list, o)
	if err != nil {
		return
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		if change.Type == watch.Error {
			return
		}
		if o, err := meta.Accessor(change.Object); err == nil && r.name != "" && change.Type == watch.Added && o.GetResourceVersion() == version {
			continue
		}
		select {
		case w.changed <- struct{}{}:
		default: // the last change is not handled yet
		}
	}
}

// recorder is a client that records its reads.
type recorder struct {
	client.WithWatch
	watcher *Watcher
}

// Get implements client.Reader. An object that does not exist yet is watched, too.
func (r recorder) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.WithWatch.Get(ctx, key, o, opts...)
	if err == nil || apierrors.IsNotFound(err) {
		if kind, err := apiutil.GVKForObject(o, r.Scheme()); err == nil {
			r.watcher.record(read{kind: kind, namespace: key.Namespace, name: key.Name}, o.GetResourceVersion())
		}
	}
	return err
}

// List implements client.Reader.
func (r recorder) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := r.WithWatch.List(ctx, list, opts...); err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(list, r.Scheme())
	if err != nil {
		return nil //nolint:nilerr // the list was read; a page without a watch is read again at times
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	all := (&client.ListOptions{}).ApplyOptions(opts)
	selectors := all.AsListOptions()
	r.watcher.record(read{kind: kind, namespace: all.Namespace, labels: selectors.LabelSelector, fields: selectors.FieldSelector}, list.GetResourceVersion())
	return nil
}

func (w *Watcher) record(r read, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reads[r] = version
}
