package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes remembers the versions of objects that an Applier wrote, until its cache has them. Losing an entry is
// harmless: then a read or a reconcile is repeated.
type writes struct {
	mu       sync.Mutex
	versions map[types.UID]string
}

// record remembers the version that a write returned. A nil receiver remembers nothing.
func (w *writes) record(o client.Object) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.versions[o.GetUID()] = o.GetResourceVersion()
}

// isBehind reports whether a cached object is older than the last write to it.
func (w *writes) isBehind(cached client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.versions[cached.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(cached.GetResourceVersion(), written)
	return err != nil || order < 0
}

// receive reports whether an object in an event is the result of the last write to it, and forgets that
// write if the event is as new.
func (w *writes) receive(o client.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.versions[o.GetUID()]
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), written)
	if err != nil || order >= 0 {
		delete(w.versions, o.GetUID())
	}
	return err == nil && order == 0
}

// IsOwnWrite reports whether an event of the cache shows an object as this Applier last wrote it. Each event
// must be passed once.
func (a *Applier) IsOwnWrite(o client.Object) bool { return a.writes != nil && a.writes.receive(o) }
