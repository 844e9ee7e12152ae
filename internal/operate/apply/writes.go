package apply

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remembers the versions of objects that an Applier wrote, until its cache has them. Losing an entry is
// harmless: then a read or a reconcile is repeated.
type writes struct {
	mu      sync.Mutex
	pending map[writeKey]pendingWrites
	// running are the objects that are being written. The end of a write closes its channel.
	running map[writeKey]chan struct{}
}

// writeKey identifies an object before its UID is known.
type writeKey struct {
	schema.GroupKind
	types.NamespacedName
}

// pendingWrites are the versions of one object that the cache lacks, the last one at the end.
type pendingWrites struct {
	uid      types.UID
	versions []string
}

// mostPending limits the remembered versions of an object whose events do not arrive.
const mostPending = 4

// mostAnswerTime limits the time from the event of a write until its answer.
const mostAnswerTime = time.Second

func newWrites() *writes {
	return &writes{pending: map[writeKey]pendingWrites{}, running: map[writeKey]chan struct{}{}}
}

// beginWrite notes that a write begins, and returns a function to call at its end, after record. A nil receiver notes
// nothing.
func (w *writes) beginWrite(key writeKey) (end func()) {
	if w == nil {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.running[key] != nil {
		return func() {}
	}
	done := make(chan struct{})
	w.running[key] = done
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.running, key)
		close(done)
	}
}

// awaitAnswer waits for the answer to a write that is running: its event may arrive earlier.
func (w *writes) awaitAnswer(key writeKey) {
	w.mu.Lock()
	running := w.running[key]
	w.mu.Unlock()
	if running == nil {
		return
	}
	timeout := time.NewTimer(mostAnswerTime)
	defer timeout.Stop()
	select {
	case <-running:
	case <-timeout.C:
	}
}

// record remembers the version that a write returned. A nil receiver remembers nothing.
func (w *writes) record(key writeKey, o client.Object) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.pending[key]
	if p.uid != o.GetUID() {
		p = pendingWrites{uid: o.GetUID()}
	}
	if p.versions = append(p.versions, o.GetResourceVersion()); len(p.versions) > mostPending {
		p.versions = slices.Delete(p.versions, 0, 1)
	}
	w.pending[key] = p
}

// isPending reports whether the cache may lack a write to an object. A nil receiver remembers nothing.
func (w *writes) isPending(key writeKey) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.pending[key]
	return ok
}

// isBehind reports whether a cached object is older than the last write to it.
func (w *writes) isBehind(key writeKey, cached client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pending[key]
	return ok && p.uid == cached.GetUID() && !isAsNew(cached, p.versions[len(p.versions)-1])
}

// receive reports whether an object in an event is the result of a write to it, and forgets the writes that
// the event contains.
func (w *writes) receive(key writeKey, o client.Object) bool {
	w.awaitAnswer(key)
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.pending[key]
	if !ok || p.uid != o.GetUID() {
		return false
	}
	isOwn := slices.Contains(p.versions, o.GetResourceVersion())
	if p.versions = slices.DeleteFunc(p.versions, func(version string) bool { return isAsNew(o, version) }); len(p.versions) == 0 {
		delete(w.pending, key)
	} else {
		w.pending[key] = p
	}
	return isOwn
}

// isAsNew reports whether an object has this version or a later one.
func isAsNew(o client.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), version)
	return err == nil && order >= 0
}

// IsOwnWrite reports whether an event of the cache shows an object as this Applier wrote it, with all desired fields and
// without fields of other managers that only croft may set. Each event must be passed once.
func (a *Applier) IsOwnWrite(o client.Object) bool {
	return a.writes != nil && a.writes.receive(a.makeWriteKey(o), o)
}

// makeWriteKey returns the key of an object. Objects of a cache have no TypeMeta.
func (a *Applier) makeWriteKey(o client.Object) writeKey {
	gvk := o.GetObjectKind().GroupVersionKind()
	if found, err := a.client.GroupVersionKindFor(o); gvk.Empty() && err == nil {
		gvk = found
	}
	return writeKey{gvk.GroupKind(), client.ObjectKeyFromObject(o)}
}
