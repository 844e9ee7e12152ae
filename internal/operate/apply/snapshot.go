package apply

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NewSnapshot returns an Applier for one command that compares many objects: it lists each kind
// once, in the whole cluster, and compares with the lists. It does not list the kinds of known,
// which are complete lists of the same moment, and have the Go type of the objects to compare: an
// object of another Go type is read by a request of its own. As with NewCached, an object that differs is read
// again before it is written.
func NewSnapshot(c client.Client, known ...client.ObjectList) (*Applier, error) {
	s := newSnapshot(c)
	for _, list := range known {
		if err := s.addList(list); err != nil {
			return nil, err
		}
	}
	return NewCached(s, c), nil
}

// snapshot is a client that lists a kind when one of its objects is first read, and then reads from
// this list.
type snapshot struct {
	client.Client
	// opts limit the lists. An object that they omit is read individually.
	opts []client.ListOption

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*listing
}

// listing contains the objects of one kind.
type listing struct {
	all         []client.Object
	byKey       map[client.ObjectKey]client.Object
	byNamespace map[string][]client.Object
	// err is the reason why the kind could not be listed: the caller may not, or the cluster does
	// not serve it.
	err error
}

func newSnapshot(c client.Client, opts ...client.ListOption) *snapshot {
	return &snapshot{Client: c, opts: opts, kinds: map[schema.GroupVersionKind]*listing{}}
}

// Get reads an object from the list of its kind.
func (s *snapshot) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	kind, err := s.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	_, untyped := into.(runtime.Unstructured)
	listed, err := s.listKind(ctx, kind, untyped)
	if err != nil {
		return err
	}
	found := listed.byKey[key]
	switch {
	case found == nil && len(s.opts) == 0:
		return apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, key.Name)
	case found == nil, reflect.TypeOf(found) != reflect.TypeOf(into):
		return s.Client.Get(ctx, key, into, opts...)
	default:
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(found.DeepCopyObject()).Elem())
		return nil
	}
}

// List filters the list of a kind by namespace and labels.
func (s *snapshot) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	kind, err := s.GroupVersionKindFor(into)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	_, untyped := into.(runtime.Unstructured)
	listed, err := s.listKind(ctx, kind, untyped)
	if err != nil {
		return err
	}
	o := (&client.ListOptions{}).ApplyOptions(opts)
	objects := listed.all
	if o.Namespace != "" {
		objects = listed.byNamespace[o.Namespace]
	}
	var selected []runtime.Object
	for _, object := range objects {
		if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			selected = append(selected, object.DeepCopyObject())
		}
	}
	return meta.SetList(into, selected)
}

// listKind returns all objects of a kind. It lists them at the first call.
func (s *snapshot) listKind(ctx context.Context, kind schema.GroupVersionKind, untyped bool) (*listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := s.kinds[kind]; found != nil {
		return found, found.err
	}
	found := newListing()
	found.err = found.readPages(ctx, s.Client, func() client.ObjectList {
		if untyped {
			return newUntypedList(kind)
		}
		return newList(s.Scheme(), kind)
	}, s.opts)
	if err := found.err; err == nil || apierrors.IsForbidden(err) || meta.IsNoMatchError(err) {
		s.kinds[kind] = found
	}
	return found, found.err
}

// addList adds the complete list of a kind.
func (s *snapshot) addList(list client.ObjectList) error {
	kind, err := s.GroupVersionKindFor(list)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	found := newListing()
	s.kinds[kind] = found
	return meta.EachListItem(list, found.addItem)
}

func newListing() *listing {
	return &listing{byKey: map[client.ObjectKey]client.Object{}, byNamespace: map[string][]client.Object{}}
}

// readPages lists all objects of a kind.
func (l *listing) readPages(ctx context.Context, c client.Reader, newPage func() client.ObjectList, opts []client.ListOption) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := newPage()
		return page, c.List(ctx, page, append(opts[:len(opts):len(opts)], client.Limit(o.Limit), client.Continue(o.Continue))...)
	})
	return pages.EachListItem(ctx, metav1.ListOptions{}, l.addItem)
}

func (l *listing) addItem(item runtime.Object) error {
	o, ok := item.(client.Object)
	if !ok {
		return fmt.Errorf("%T is not an object", item)
	}
	l.all = append(l.all, o)
	l.byKey[client.ObjectKeyFromObject(o)] = o
	l.byNamespace[o.GetNamespace()] = append(l.byNamespace[o.GetNamespace()], o)
	return nil
}

// newList returns an empty list of a kind, of a Go type if the scheme has it.
func newList(scheme *runtime.Scheme, kind schema.GroupVersionKind) client.ObjectList {
	made, err := scheme.New(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if typed, ok := made.(client.ObjectList); ok && err == nil {
		return typed
	}
	return newUntypedList(kind)
}

func newUntypedList(kind schema.GroupVersionKind) client.ObjectList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}
