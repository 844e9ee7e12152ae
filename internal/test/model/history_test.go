package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// watched are the kinds whose versions are checked.
var watched = []client.ObjectList{
	&corev1.NamespaceList{}, &corev1.ResourceQuotaList{}, &corev1.LimitRangeList{}, &corev1.PodList{}, &rbacv1.RoleBindingList{},
	&networkingv1.NetworkPolicyList{}, &v1alpha1.TenantRulesList{}, &v1alpha1.TenantList{},
}

// history collects the versions of all watched objects.
type history struct {
	client client.WithWatch
	stop   context.CancelFunc
	replay *replay

	mu     sync.Mutex
	events []event
	// versions are the resourceVersions of all objects, by ref.
	versions map[ref]string
	// admins are the revisions that steps have written, and deletions the objects that they have
	// deleted.
	admins    map[uint64]bool
	deletions map[types.UID]bool
	lost      error
}

// recordHistory starts to collect versions. No operator may run yet.
func recordHistory(ctx context.Context, cfg *rest.Config) (*history, error) {
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: kinds})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &history{client: c, stop: cancel, replay: newReplay(), versions: map[ref]string{}, admins: map[uint64]bool{}, deletions: map[types.UID]bool{}}
	for _, list := range watched {
		if err := h.watchKind(ctx, list); err != nil {
			cancel()
			return nil, err
		}
	}
	return h, nil
}

func (h *history) watchKind(ctx context.Context, list client.ObjectList) error {
	first := newList(list)
	objects, err := h.listObjects(ctx, first)
	if err != nil {
		return err
	}
	for _, o := range objects {
		// The initial objects may be in any state, such as retained namespaces.
		h.addVersion(o, false)
		h.admins[parseRevision(o.GetResourceVersion())] = true
	}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, first.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return h.client.Watch(ctx, newList(list), &client.ListOptions{Raw: &options})
		},
	})
	if err != nil {
		return err
	}
	go func() {
		for e := range watcher.ResultChan() {
			switch o, ok := e.Object.(client.Object); {
			case ok && e.Type != watch.Bookmark:
				h.addVersion(o, e.Type == watch.Deleted)
			case e.Type == watch.Error:
				h.mu.Lock()
				h.lost = fmt.Errorf("watch %T: %v", list, e.Object)
				h.mu.Unlock()
			}
		}
	}()
	return nil
}

func newList(like client.ObjectList) client.ObjectList {
	list, ok := like.DeepCopyObject().(client.ObjectList)
	if !ok {
		panic("the copy of a list is a list")
	}
	return list
}

// listObjects reads all objects of a kind. Afterwards the list has its revision.
func (h *history) listObjects(ctx context.Context, list client.ObjectList) ([]client.Object, error) {
	if err := h.client.List(ctx, list); err != nil {
		return nil, err
	}
	var objects []client.Object
	return objects, meta.EachListItem(list, func(o runtimeObject) error {
		if o, ok := o.(client.Object); ok {
			objects = append(objects, o)
		}
		return nil
	})
}

func parseRevision(version string) uint64 {
	revision, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		panic(err) // etcd's revisions are numbers
	}
	return revision
}

func (h *history) addVersion(o client.Object, deleted bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e := event{revision: parseRevision(o.GetResourceVersion()), ref: newRef(o), object: o, deleted: deleted}
	h.events = append(h.events, e)
	if deleted {
		delete(h.versions, e.ref)
	} else {
		h.versions[e.ref] = o.GetResourceVersion()
	}
}

// markWritten records that a step has written an object.
func (h *history) markWritten(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admins[parseRevision(o.GetResourceVersion())] = true
}

// markDeleted records that a step is about to delete an object.
func (h *history) markDeleted(o client.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.deletions[o.GetUID()] = true
}

// checkInvariants waits until all versions up to now have been observed, and evaluates them in the
// order of their revisions. It returns the first violation. The cluster must be quiet.
func (h *history) checkInvariants(ctx context.Context) (*violation, error) {
	var behind error
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, deadline, true, func(ctx context.Context) (bool, error) {
		if err := h.checkObserved(ctx); ctx.Err() == nil || behind == nil {
			behind = err
		}
		return behind == nil || h.isLost(), nil
	}); err != nil || behind != nil {
		return nil, fmt.Errorf("the watches do not follow: %w", behind)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.SortStableFunc(h.events, func(a, b event) int { return cmp.Compare(a.revision, b.revision) })
	for _, e := range h.events {
		e.byAdmin = h.admins[e.revision] || e.deleted && h.deletions[e.object.GetUID()]
		h.replay.addEvent(e)
	}
	h.events, h.admins, h.deletions = nil, map[uint64]bool{}, map[types.UID]bool{}
	h.replay.settleSpecs()
	if len(h.replay.violations) > 0 {
		return h.replay.violations[0], nil
	}
	return nil, nil
}

// isLost reports whether a watch has ended.
func (h *history) isLost() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost != nil
}

// checkObserved returns an error if the watches have not observed the current state.
func (h *history) checkObserved(ctx context.Context) error {
	now := map[ref]string{}
	for _, list := range watched {
		objects, err := h.listObjects(ctx, newList(list))
		if err != nil {
			return err
		}
		for _, o := range objects {
			now[newRef(o)] = o.GetResourceVersion()
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lost != nil {
		return h.lost
	}
	for r, version := range now {
		if h.versions[r] != version {
			return fmt.Errorf("%s is at %s, and was observed at %q", r, version, h.versions[r])
		}
	}
	for r := range h.versions {
		if now[r] == "" {
			return fmt.Errorf("%s is deleted, and was observed at %s", r, h.versions[r])
		}
	}
	return nil
}
