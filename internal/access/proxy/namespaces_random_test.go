package proxy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestVisibleNamespacesRandomly runs clients that list, watch, disconnect and resume
// against random changes, which arrive out of order, as from informers of different kinds.
// It fails if a client's copy differs from a list.
func TestVisibleNamespacesRandomly(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &randomCluster{namespaces: newNamespaces(), Rand: rand.New(rand.NewPCG(seed, 0)), version: 100} //nolint:gosec // a reproducible test
				ctx, cancel := context.WithCancel(request.WithUser(t.Context(), jane))
				var clients []*informerClient
				for _, selector := range []string{"", "", "a=1", "a!=1"} {
					chosen, err := labels.Parse(selector)
					if err != nil {
						t.Fatal(err)
					}
					clients = append(clients, &informerClient{selector: chosen})
				}
				for range 150 {
					h.applyRandomChange()
					for _, f := range clients {
						switch h.IntN(6) {
						case 0:
							f.stopWatch()
						case 1, 2:
							f.syncEvents(ctx, t, h.collection)
						}
					}
				}
				for _, f := range clients {
					f.syncEvents(ctx, t, h.collection)
					synctest.Wait()
					f.applyEvents(t)
					if want, _ := f.listAll(ctx, t, h.collection); fmt.Sprint(f.copied) != fmt.Sprint(want) {
						t.Errorf("the client with selector %q has %v, want %v", f.selector, f.copied, want)
					}
				}
				cancel()
			})
		})
	}
}

// randomCluster applies random changes.
type randomCluster struct {
	*namespaces
	*rand.Rand
	version uint64
}

// applyRandomChange applies one change; some arrive late.
func (h *randomCluster) applyRandomChange() {
	h.version += 1 + h.Uint64N(2)
	version := h.version - h.Uint64N(3)
	name := fmt.Sprintf("n%d", h.IntN(4))
	role := roleKey{name: fmt.Sprintf("r%d", h.IntN(2))}
	switch h.IntN(8) {
	case 0, 1, 2:
		h.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"a": strconv.Itoa(h.IntN(2))}, ResourceVersion: strconv.FormatUint(h.version, 10),
		}})
	case 3:
		if o, ok := h.objects[name].(*corev1.Namespace); ok {
			deleted := o.DeepCopy()
			deleted.ResourceVersion = strconv.FormatUint(version, 10)
			h.remove(deleted)
		}
	case 4:
		h.applyAccessChange(version, h.access.setRole(role, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}))
	case 5:
		h.applyAccessChange(version, h.access.setRole(role, nil))
	default:
		var subjects []rbacv1.Subject
		for _, group := range []string{"devs", "ops"} {
			if h.IntN(2) == 0 {
				subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: group})
			}
		}
		h.applyAccessChange(version, h.access.setBinding(name, fmt.Sprintf("b%d", h.IntN(2)), rbacv1.RoleRef{Kind: "ClusterRole", Name: role.name}, subjects))
	}
}

// informerClient keeps a copy of its namespaces, as client-go's informers do.
type informerClient struct {
	selector labels.Selector
	version  string
	copied   map[string]string
	open     watch.Interface
	// seen is called for each object received; nil for no callback.
	seen func(object)
}

func (f *informerClient) listAll(ctx context.Context, t *testing.T, c *collection) (all map[string]string, version string) {
	t.Helper()
	list, err := c.List(ctx, &metainternalversion.ListOptions{LabelSelector: f.selector})
	if err != nil {
		t.Fatal(err)
	}
	all = map[string]string{}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		one, err := meta.Accessor(o)
		if err == nil {
			all[one.GetName()] = one.GetResourceVersion()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	return all, l.GetResourceVersion()
}

// syncEvents receives the pending events. If no watch is open, it starts one.
func (f *informerClient) syncEvents(ctx context.Context, t *testing.T, n *collection) {
	t.Helper()
	for f.open == nil {
		fresh := f.version == ""
		if fresh {
			f.copied, f.version = f.listAll(ctx, t, n)
		}
		w, err := n.Watch(ctx, &metainternalversion.ListOptions{LabelSelector: f.selector, ResourceVersion: f.version})
		switch {
		case err == nil:
			f.open = w
		case fresh || !apierrors.IsResourceExpired(err):
			t.Fatalf("starting a watch at the version of a list: %v", err)
		default:
			f.version = ""
		}
	}
	f.applyEvents(t)
}

// applyEvents applies all pending events.
func (f *informerClient) applyEvents(t *testing.T) {
	t.Helper()
	for {
		select {
		case e, ok := <-f.open.ResultChan():
			if !ok {
				t.Fatal("the watch ended")
			}
			o, ok := e.Object.(object)
			if !ok {
				t.Fatalf("got event %v", e)
			}
			if f.seen != nil {
				f.seen(o)
			}
			f.version = o.GetResourceVersion()
			f.copied[o.GetName()] = o.GetResourceVersion()
			if e.Type == watch.Deleted {
				delete(f.copied, o.GetName())
			}
		default:
			return
		}
		synctest.Wait()
	}
}

// stopWatch stops the watch without reading pending events.
func (f *informerClient) stopWatch() {
	if f.open != nil {
		f.open.Stop()
		f.open = nil
	}
}
