package estate

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// The kinds that people write, and that a declaration is made of.
const (
	kindPlatform = "Platform"
	kindPool     = "Pool"
	kindTenant   = "Tenant"
	kindNetwork  = "SecondaryNetwork"
)

// Declaration is what was declared, before it is known to be valid: the same
// objects whether they come from croft.yaml, from a stream of objects or from
// the API server. Each object by itself is valid and defaulted: Parse and the API
// server see to that alike, by the same schemas.
type Declaration struct {
	Platforms []v1alpha1.Platform
	Pools     []v1alpha1.Pool
	Tenants   []v1alpha1.Tenant
	Networks  []v1alpha1.SecondaryNetwork

	// origins tell where objects were written. Those that come from the API
	// server have none.
	origins map[position]*origin
	// refused are the objects that were written but are not valid by themselves,
	// so that whatever refers to one is not told that it does not exist.
	refused map[identity]*origin
	// partial says that something could not be read at all, so that nothing can
	// be called missing.
	partial bool
}

// identity is what the API server tells objects apart by.
type identity struct{ kind, name string }

// position is an object's place in the Declaration's list of its kind.
type position struct {
	kind  string
	index int
}

// object is one object of a Declaration.
type object struct {
	position
	name string
}

func (o object) identity() identity { return identity{o.kind, o.name} }

// Add appends what other declares, as when several files make one estate.
// It takes other over: do not use it afterwards.
func (d *Declaration) Add(other *Declaration) {
	offset := map[string]int{
		kindPlatform: len(d.Platforms),
		kindPool:     len(d.Pools),
		kindTenant:   len(d.Tenants),
		kindNetwork:  len(d.Networks),
	}
	d.Platforms = append(d.Platforms, other.Platforms...)
	d.Pools = append(d.Pools, other.Pools...)
	d.Tenants = append(d.Tenants, other.Tenants...)
	d.Networks = append(d.Networks, other.Networks...)
	for at, o := range other.origins {
		d.setOrigin(position{at.kind, at.index + offset[at.kind]}, o)
	}
	for id, o := range other.refused {
		d.refuse(id, o)
	}
	d.partial = d.partial || other.partial
}

func (d *Declaration) setOrigin(at position, o *origin) {
	if d.origins == nil {
		d.origins = map[position]*origin{}
	}
	d.origins[at] = o
}

// append adds an object that is valid by itself.
func (d *Declaration) append(kind string, checked map[string]any, from *origin) error {
	var (
		index int
		err   error
	)
	switch kind {
	case kindPlatform:
		index = len(d.Platforms)
		d.Platforms, err = appendTyped(d.Platforms, checked)
	case kindPool:
		index = len(d.Pools)
		d.Pools, err = appendTyped(d.Pools, checked)
	case kindTenant:
		index = len(d.Tenants)
		d.Tenants, err = appendTyped(d.Tenants, checked)
	case kindNetwork:
		index = len(d.Networks)
		d.Networks, err = appendTyped(d.Networks, checked)
	}
	if err == nil {
		d.setOrigin(position{kind, index}, from)
	}
	return err
}

func appendTyped[T any](list []T, content map[string]any) ([]T, error) {
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &typed); err != nil {
		return list, err
	}
	return append(list, typed), nil
}

// refuse remembers an object that is not valid by itself.
func (d *Declaration) refuse(id identity, from *origin) {
	if d.refused == nil {
		d.refused = map[identity]*origin{}
	}
	d.refused[id] = from
}

// origin is where an object was written, or nil. The name is compared because
// the lists are the caller's to change.
func (d *Declaration) origin(o object) *origin {
	if from := d.origins[o.position]; from != nil && from.name == o.name {
		return from
	}
	return nil
}

// Objects returns every object in the order to apply them in: whatever is
// referred to comes first. An object from a file is returned as it was written,
// without defaults, so that to apply it does not take possession of fields that
// nobody wrote.
func (d *Declaration) Objects() []client.Object {
	var all []client.Object
	add := func(kind string, index int, obj client.Object) {
		if from := d.origin(object{position{kind, index}, obj.GetName()}); from != nil {
			all = append(all, (&unstructured.Unstructured{Object: from.declared}).DeepCopy())
			return
		}
		obj.GetObjectKind().SetGroupVersionKind(kindOf(kind))
		all = append(all, obj)
	}
	for i := range d.Platforms {
		add(kindPlatform, i, d.Platforms[i].DeepCopy())
	}
	for i := range d.Networks {
		add(kindNetwork, i, d.Networks[i].DeepCopy())
	}
	for i := range d.Pools {
		add(kindPool, i, d.Pools[i].DeepCopy())
	}
	for i := range d.Tenants {
		add(kindTenant, i, d.Tenants[i].DeepCopy())
	}
	return all
}

func kindOf(kind string) schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind(kind)
}
