package proxy

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
)

const (
	// maxChanges is the number of changes kept for watches to resume from. A client with an
	// older version lists again.
	maxChanges = 4096
	// versionTimeout is how long a request waits for a resource version that the informers
	// have not reached yet.
	versionTimeout = 3 * time.Second
	// bookmarkInterval is how often open watches receive a bookmark.
	bookmarkInterval = time.Minute
)

// object is an object of a collection.
type object interface {
	runtime.Object
	metav1.Object
}

// visibilityIndex answers which objects of a collection a user may see. The names may include objects
// that do not exist. all is true for users who may see every object.
type visibilityIndex interface {
	canSee(u user.Info, name string) bool
	visibleTo(u user.Info) (names sets.Set[string], all bool)
}

// collection is a cache of the cluster's objects of a kind that serves each user a filtered
// list and watch. It implements rest.Lister, rest.Watcher and rest.Getter, so that the API
// server's own handlers provide encodings, tables, WatchList and its bookmark.
//
// Resource versions are etcd's, which all kinds share: when a user is given access to a
// namespace, the event has the resource version of the binding.
type collection struct {
	*kind
	index visibilityIndex

	mutex   sync.Mutex
	objects map[string]object
	// sorted contains the names of all objects.
	sorted []string
	// version is the newest observed resource version. changes contains all changes after
	// compacted.
	version, compacted uint64
	changes            []change
	watchers           map[*watcher]bool
	// newerVersion is closed and replaced when version increases.
	newerVersion chan struct{}
}

// change is a change of an object, or of the set of users who may see it.
type change struct {
	version uint64
	name    string
	// before is the object before the change; nil if it did not exist.
	before object
	// accessChanged is true if the set of users who may see the object changed. revoked
	// contains the subjects that may no longer see it.
	accessChanged bool
	revoked       []subject
}

func newCollection(k *kind, index visibilityIndex) *collection {
	return &collection{
		kind: k, index: index, objects: map[string]object{}, watchers: map[*watcher]bool{}, newerVersion: make(chan struct{}),
	}
}

// put stores an object that was created or updated.
func (n *collection) put(o object) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	before := n.objects[o.GetName()]
	n.objects[o.GetName()] = o
	if at, found := slices.BinarySearch(n.sorted, o.GetName()); !found {
		n.sorted = slices.Insert(n.sorted, at, o.GetName())
	}
	// A deleted object that other users could see may have had the same name.
	n.record(change{version: parseResourceVersion(o), name: o.GetName(), before: before, accessChanged: before == nil})
}

// remove drops a deleted object. revoked contains the subjects that could see it, unless
// the index still has the answer.
func (n *collection) remove(o object, revoked ...subject) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	before := n.objects[o.GetName()]
	delete(n.objects, o.GetName())
	if at, found := slices.BinarySearch(n.sorted, o.GetName()); found {
		n.sorted = slices.Delete(n.sorted, at, at+1)
	}
	n.record(change{version: parseResourceVersion(o), name: o.GetName(), before: before, revoked: revoked})
}

// changeAccess records that the set of users who may see some objects changed at a resource
// version, and notifies watches. The keys are the objects' names, the values the subjects
// that may no longer see them.
func (n *collection) changeAccess(version uint64, revoked map[string][]subject) {
	if len(revoked) == 0 {
		return
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, name := range slices.Sorted(maps.Keys(revoked)) {
		n.record(change{version: version, name: name, before: n.objects[name], accessChanged: true, revoked: revoked[name]})
	}
}

// listNames returns the names of all objects.
func (n *collection) listNames() []string {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return slices.Clone(n.sorted)
}

// isVisible reports whether an object exists and a user may see it.
func (n *collection) isVisible(u user.Info, name string) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.objects[name] != nil && n.index.canSee(u, name)
}

// resetHistory drops the changes up to a resource version. Watches from older versions have
// to list again.
func (n *collection) resetHistory(version uint64) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.advance(version)
	n.compacted, n.changes = n.version-1, nil
}

func (n *collection) advance(version uint64) {
	if version > n.version {
		n.version = version
		close(n.newerVersion)
		n.newerVersion = make(chan struct{})
	}
}

func (n *collection) record(c change) {
	n.advance(c.version)
	// Informers of different kinds run at different speeds. A change that arrives late gets
	// the current version, so that clients that have observed a newer version still receive
	// it.
	c.version = n.version
	n.changes = append(n.changes, c)
	if len(n.changes) > maxChanges {
		n.compacted = n.changes[0].version
		n.changes = n.changes[1:]
	}
	for w := range n.watchers {
		w.enqueue(n.buildEvent(w, c.name, c.before))
	}
}

// buildEvent returns the event that a watch receives about an object, or nil.
func (n *collection) buildEvent(w *watcher, name string, before object) *watch.Event {
	now := n.objects[name]
	visible := now != nil && w.matches(now) && n.index.canSee(w.user, name)
	sent := w.sent[name]
	switch {
	case visible && sent:
		if before == now {
			return nil
		}
		return &watch.Event{Type: watch.Modified, Object: n.copy(now)}
	case visible:
		w.sent[name] = true
		return &watch.Event{Type: watch.Added, Object: n.copy(now)}
	case sent:
		delete(w.sent, name)
		removed := n.copy(before)
		removed.SetResourceVersion(strconv.FormatUint(n.version, 10))
		return &watch.Event{Type: watch.Deleted, Object: removed}
	}
	return nil
}

// NewList implements rest.Lister.
func (n *collection) NewList() runtime.Object { return n.list(metav1.ListMeta{}, nil) }

// List implements rest.Lister.
func (n *collection) List(ctx context.Context, o *metainternalversion.ListOptions) (runtime.Object, error) {
	u, _ := request.UserFrom(ctx)
	from, requested := "", o.ResourceVersion
	if o.Continue != "" {
		start, _, err := storage.DecodeContinue(o.Continue, continueRoot)
		if err != nil {
			return nil, apierrors.NewBadRequest("continue: invalid token: list again")
		}
		from, requested = start[len(continueRoot):], ""
	}
	if err := n.waitForVersion(ctx, requested); err != nil {
		return nil, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested != strconv.FormatUint(n.version, 10) {
		return nil, apierrors.NewResourceExpired("resource version " + requested + " is no longer available: omit resourceVersionMatch")
	}
	listMeta := metav1.ListMeta{ResourceVersion: strconv.FormatUint(n.version, 10)}
	w := watcher{kind: n.kind, options: o}
	names := n.listVisibleNames(u)
	items := make([]object, 0, len(names))
	for _, name := range names {
		one := n.objects[name]
		switch {
		case name < from || !w.matches(one):
		case o.Limit > 0 && int64(len(items)) == o.Limit:
			next, err := storage.EncodeContinue(continueRoot+name, continueRoot, int64(n.version)) //nolint:gosec // etcd's revisions are int64
			if err != nil {
				return nil, err
			}
			listMeta.Continue = next
			return n.list(listMeta, items), nil
		default:
			items = append(items, one)
		}
	}
	return n.list(listMeta, items), nil
}

// Get implements rest.Getter.
func (n *collection) Get(ctx context.Context, name string, o *metav1.GetOptions) (runtime.Object, error) {
	u, _ := request.UserFrom(ctx)
	if err := n.waitForVersion(ctx, o.ResourceVersion); err != nil {
		return nil, err
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.objects[name] == nil || !n.index.canSee(u, name) {
		return nil, apierrors.NewNotFound(n.resource.GroupResource(), name)
	}
	return n.copy(n.objects[name]), nil
}

// continueRoot is the key prefix that storage.EncodeContinue requires.
const continueRoot = "/"

// listVisibleNames returns the sorted names of the objects that a user may see.
func (n *collection) listVisibleNames(u user.Info) []string {
	visible, all := n.index.visibleTo(u)
	if all {
		return slices.Clone(n.sorted)
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(visible)), func(name string) bool { return n.objects[name] == nil })
}

// waitForVersion waits until the cache has reached the requested resource version.
func (n *collection) waitForVersion(ctx context.Context, requested string) error {
	minimum, err := parseVersion(requested)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	for {
		n.mutex.Lock()
		version, newer := n.version, n.newerVersion
		n.mutex.Unlock()
		if version >= minimum {
			return nil
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return storage.NewTooLargeResourceVersionError(minimum, version, 0)
		}
	}
}

func parseVersion(requested string) (uint64, error) {
	if requested == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(requested, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest("resourceVersion: " + strconv.Quote(requested) + " is not a number")
	}
	return version, nil
}

func parseResourceVersion(o metav1.Object) uint64 {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}
