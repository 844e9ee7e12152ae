package manifest

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
)

// These are the kinds in a declaration.
const (
	KindPlatform = "Platform"
	KindPool     = "Pool"
	KindTenant   = "Tenant"
	KindNetwork  = "SecondaryNetwork"
)

// Declaration has the declared objects before they are checked against one another: from
// croft.yaml, from a stream of objects or from the API server. Each object alone is valid and
// defaulted: Parse and the API server both ensure this, with the same schemas.
type Declaration struct {
	Platforms []v1alpha1.Platform
	Pools     []v1alpha1.Pool
	Tenants   []v1alpha1.Tenant
	Networks  []v1alpha1.SecondaryNetwork

	// Requests are the namespaces that tenants request. They come from the cluster only, never
	// from a file.
	Requests []v1alpha1.TenantNamespace
	// Callers are the consents that teams give themselves. They come from the cluster only, too.
	Callers []v1alpha1.TenantCaller

	// Now is the time at which the declaration was read: access and consents that have ended by
	// then are left out of the estate. If it is zero, none has ended.
	Now time.Time

	// origins are the positions of objects in files. Objects from the API server have none.
	origins map[Object]*origin
	// refused are the objects in files that are invalid alone, so that references to them are
	// not reported as dangling.
	refused map[ID]*origin
	// partial means that a part could not be read at all, so that no object can be reported as
	// missing.
	partial bool
}

// ID is the API server's identity of an object.
type ID struct{ Kind, Name string }

// Object is one object of a Declaration: several may be declared under one ID.
type Object struct {
	ID
	// Index is the index in the Declaration's list of its kind.
	Index int
}

// Add appends the objects of other, if several files form one estate. other must not be used
// afterwards.
func (d *Declaration) Add(other *Declaration) {
	offset := map[string]int{
		KindPlatform: len(d.Platforms),
		KindPool:     len(d.Pools),
		KindTenant:   len(d.Tenants),
		KindNetwork:  len(d.Networks),
	}
	d.Platforms = append(d.Platforms, other.Platforms...)
	d.Pools = append(d.Pools, other.Pools...)
	d.Tenants = append(d.Tenants, other.Tenants...)
	d.Networks = append(d.Networks, other.Networks...)
	d.Requests = append(d.Requests, other.Requests...)
	d.Callers = append(d.Callers, other.Callers...)
	for at, from := range other.origins {
		d.setOrigin(Object{at.ID, at.Index + offset[at.Kind]}, from)
	}
	for id, o := range other.refused {
		d.recordRefused(id, o)
	}
	d.partial = d.partial || other.partial
	if other.Now.After(d.Now) {
		d.Now = other.Now
	}
}

func (d *Declaration) setOrigin(o Object, from *origin) {
	if d.origins == nil {
		d.origins = map[Object]*origin{}
	}
	d.origins[o] = from
}

// appendObject adds an object that is valid alone.
func (d *Declaration) appendObject(kind string, checked map[string]any, from *origin) error {
	var (
		index int
		err   error
	)
	switch kind {
	case KindPlatform:
		index = len(d.Platforms)
		d.Platforms, err = appendTyped(d.Platforms, checked)
	case KindPool:
		index = len(d.Pools)
		d.Pools, err = appendTyped(d.Pools, checked)
	case KindTenant:
		index = len(d.Tenants)
		d.Tenants, err = appendTyped(d.Tenants, checked)
	case KindNetwork:
		index = len(d.Networks)
		d.Networks, err = appendTyped(d.Networks, checked)
	}
	if err == nil {
		d.setOrigin(Object{ID{kind, from.name}, index}, from)
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

// recordRefused records an object that is invalid alone.
func (d *Declaration) recordRefused(id ID, from *origin) {
	if d.refused == nil {
		d.refused = map[ID]*origin{}
	}
	d.refused[id] = from
}

// FindRefused reports whether an object is in a file but invalid alone. where is its position in
// parentheses, for the end of a message.
func (d *Declaration) FindRefused(id ID) (where string, refused bool) {
	from, refused := d.refused[id]
	return from.formatLocation(), refused
}

// IsIncomplete reports whether a part could not be read at all, so that no object can be reported
// as missing.
func (d *Declaration) IsIncomplete() bool { return d.partial }

// NewProblem returns a problem of an object, with the position of its field. The field is a path
// such as spec.pool, or empty for the object as a whole.
func (d *Declaration) NewProblem(o Object, field, message string) document.Problem {
	p := document.Problem{Kind: o.Kind, Name: o.Name, Field: field, Message: message}
	from := d.origins[o]
	if from != nil {
		from.locateProblem(&p)
	}
	p.Live = from == nil && len(d.origins) > 0
	return p
}

// FormatLocation returns the position of an object in parentheses, for the end of a message. For
// an object from the API server it is empty, or "(in the cluster)" if there are files too.
func (d *Declaration) FormatLocation(o Object) string {
	if from := d.origins[o]; from != nil {
		return from.formatLocation()
	}
	if len(d.origins) > 0 {
		return " (in the cluster)"
	}
	return ""
}

// Objects returns every object in the order in which they are applied: referenced objects come
// first. An object from a file is returned as written, without defaults, so that applying it
// does not take ownership of unset fields.
func (d *Declaration) Objects() []client.Object {
	var all []client.Object
	add := func(kind string, index int, obj client.Object) {
		if from := d.origins[Object{ID{kind, obj.GetName()}, index}]; from != nil {
			all = append(all, (&unstructured.Unstructured{Object: from.declared}).DeepCopy())
			return
		}
		obj.GetObjectKind().SetGroupVersionKind(withGroupVersion(kind))
		all = append(all, obj)
	}
	for i := range d.Platforms {
		add(KindPlatform, i, d.Platforms[i].DeepCopy())
	}
	for i := range d.Networks {
		add(KindNetwork, i, d.Networks[i].DeepCopy())
	}
	for i := range d.Pools {
		add(KindPool, i, d.Pools[i].DeepCopy())
	}
	for i := range d.Tenants {
		add(KindTenant, i, d.Tenants[i].DeepCopy())
	}
	return all
}

func withGroupVersion(kind string) schema.GroupVersionKind {
	return v1alpha1.GroupVersion.WithKind(kind)
}
