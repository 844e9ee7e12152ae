package proxy

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// backlog is the number of events buffered per watch. The watch of a slower client ends;
// the client resumes it from its last version.
const backlog = 256

// watcher is an open watch. collection.mutex guards its fields, except for the channels
// and, once the watch has started, queue.
type watcher struct {
	kind    *kind
	user    user.Info
	options *metainternalversion.ListOptions
	// sent contains the objects that the client has received.
	sent map[string]bool
	// queue contains the initial events, which are sent before the events channel's. Its
	// size is not bounded by backlog, because there may be an event for each object.
	queue  []watch.Event
	events chan watch.Event
	result chan watch.Event
	stop   func()
	done   <-chan struct{}
}

// matches reports whether an object matches the client's selectors.
func (w *watcher) matches(o object) bool {
	if s := w.options.LabelSelector; s != nil && !s.Matches(labels.Set(o.GetLabels())) {
		return false
	}
	s := w.options.FieldSelector
	return s == nil || s.Matches(w.kind.fields(o))
}

// enqueue buffers an event for the client. It ends the watch if the buffer is full.
func (w *watcher) enqueue(e *watch.Event) {
	if e == nil {
		return
	}
	select {
	case w.events <- *e:
	default:
		w.stop()
	}
}

// ResultChan implements watch.Interface.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

// Stop implements watch.Interface.
func (w *watcher) Stop() { w.stop() }

// Watch implements rest.Watcher.
func (n *collection) Watch(ctx context.Context, o *metainternalversion.ListOptions) (watch.Interface, error) {
	u, _ := request.UserFrom(ctx)
	initial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if err := n.waitForVersion(ctx, o.ResourceVersion); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{
		kind: n.kind, user: u, options: o, sent: map[string]bool{}, events: make(chan watch.Event, backlog), result: make(chan watch.Event),
		stop: sync.OnceFunc(cancel), done: ctx.Done(),
	}
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err := n.enqueueInitial(w, initial); err != nil {
		cancel()
		return nil, err
	}
	n.watchers[w] = true
	go n.serve(w)
	return w, nil
}

// enqueueInitial queues the first events of a watch: all objects, or the changes since the
// client's resource version.
func (n *collection) enqueueInitial(w *watcher, initial bool) error {
	since, err := parseVersion(w.options.ResourceVersion)
	if err != nil {
		return err
	}
	switch {
	case initial, since == 0 && w.options.SendInitialEvents == nil:
		for _, name := range n.listVisibleNames(w.user) {
			if e := n.buildEvent(w, name, nil); e != nil {
				w.queue = append(w.queue, *e)
			}
		}
	case since == 0:
		n.replay(w, n.version+1)
	case since <= n.compacted:
		return apierrors.NewResourceExpired("too old resource version: " + w.options.ResourceVersion + ": list again")
	default:
		n.replay(w, since)
	}
	if initial && w.options.AllowWatchBookmarks {
		w.queue = append(w.queue, n.newBookmark(map[string]string{metav1.InitialEventsAnnotationKey: "true"}))
	}
	return nil
}

// pastChanges summarizes the changes of an object since the client's resource version.
type pastChanges struct {
	// before is the object before the last change; nil if it never existed. matched is
	// true if any earlier state matched the client's selectors.
	before  object
	matched bool
	// accessChanged is true if the user may have been given access only since then.
	accessChanged bool
	// lastVisible is the summary up to the last change that the client may have been sent.
	lastVisible *pastChanges
}

// replay queues the changes since a resource version. Several changes can share a version,
// so a client may receive the changes of the version itself twice, and the deletion of an
// object that it never received.
func (n *collection) replay(w *watcher, since uint64) {
	summaries := map[string]*pastChanges{}
	var order []string
	for _, c := range n.changes {
		if c.version < since {
			continue
		}
		p := summaries[c.name]
		if p == nil {
			p = &pastChanges{}
			summaries[c.name] = p
			order = append(order, c.name)
		}
		if c.before != nil {
			p.before, p.matched = c.before, p.matched || w.matches(c.before)
		}
		p.accessChanged = p.accessChanged || c.accessChanged
		if n.index.canSee(w.user, c.name) || w.revokes(c) {
			last := *p
			p.lastVisible = &last
		}
	}
	for _, name := range n.listVisibleNames(w.user) {
		w.sent[name] = summaries[name] == nil && w.matches(n.objects[name])
	}
	for _, name := range order {
		last := summaries[name].lastVisible
		if last == nil {
			continue
		}
		// An object to which the user was given access since then is new to the client.
		now := n.objects[name]
		w.sent[name] = last.matched && (!last.accessChanged || now == nil || !w.matches(now) || !n.index.canSee(w.user, name))
		if e := n.buildEvent(w, name, last.before); e != nil {
			w.queue = append(w.queue, *e)
		}
	}
}

// revokes reports whether the user may no longer see an object because of a change.
func (w *watcher) revokes(c change) bool {
	return slices.ContainsFunc(listSubjects(w.user), func(s subject) bool { return slices.Contains(c.revoked, s) })
}

// newBookmark returns a bookmark of the current version.
func (n *collection) newBookmark(annotations map[string]string) watch.Event {
	o := n.empty()
	o.SetResourceVersion(strconv.FormatUint(n.version, 10))
	o.SetAnnotations(annotations)
	return watch.Event{Type: watch.Bookmark, Object: o}
}

// serve sends events to the client until either side ends the watch.
func (n *collection) serve(w *watcher) {
	defer func() {
		n.mutex.Lock()
		delete(n.watchers, w)
		n.mutex.Unlock()
		close(w.result)
	}()
	for _, e := range w.queue {
		if !w.send(e) {
			return
		}
	}
	w.queue = nil
	bookmarks := time.NewTicker(bookmarkInterval)
	defer bookmarks.Stop()
	for {
		select {
		case <-w.done:
			return
		case e := <-w.events:
			if !w.send(e) {
				return
			}
		case <-bookmarks.C:
			if !w.options.AllowWatchBookmarks {
				continue
			}
			// A bookmark must not overtake buffered events.
			n.mutex.Lock()
			b, buffered := n.newBookmark(nil), len(w.events) > 0
			n.mutex.Unlock()
			if !buffered && !w.send(b) {
				return
			}
		}
	}
}

func (w *watcher) send(e watch.Event) bool {
	select {
	case <-w.done:
		return false
	case w.result <- e:
		return true
	}
}
