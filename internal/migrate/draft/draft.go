package draft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/migrate/source"
)

// Options are the user's settings beside the input.
type Options struct {
	// ClusterName is the cluster's name if the input does not have it, and the value of
	// shell variables for it.
	ClusterName string
	// Kwok puts every pool on simulated nodes, to try the result on a sandbox.
	Kwok bool
	// GroupPrefix is put before groups by the API server; found out if empty.
	GroupPrefix string
	// HoldNodes keeps nodes that run from being replaced when croft takes over the
	// NodePool that they came from.
	HoldNodes bool
}

// Draft is the estate as it comes about.
type Draft struct {
	Options Options
	Objects []*source.Object
	// kinds are the objects by their group and kind.
	kinds map[string][]*source.Object
	// owners are the tenants by their namespaces.
	owners map[string]string
	// nodes are the nodes of the Provisioners and NodePools, once they are computed.
	nodes []*Nodes
	// Labels are the labels of the namespaces in the input, once they are computed.
	Labels map[string]labels.Set

	Platform  v1alpha1.PlatformSpec
	Pools     map[string]*Pool
	Tenants   map[string]*Tenant
	Secondary map[string]v1alpha1.SecondaryNetworkSpec

	// DefaultProfile is the instance profile that Karpenter's settings name.
	DefaultProfile string
	// Key is the label and taint that ties nodes to pools where people read from.
	Key string
	// Chosen are the pools that tenants are put on.
	Chosen map[string]bool

	Manifests []*unstructured.Unstructured
	// Classes are the names of node classes among the manifests, by the object that they
	// were made from.
	Classes map[string]string
	// Renames are fields that were moved to the platform since all pools share them.
	Renames map[string]string
	// Told are the omitted tenants, and fields of the platform, whose reason was
	// reported.
	Told map[string]bool
	// Standing are the tenants whose namespaces exist, and that croft may not adopt yet.
	Standing []string
	// leftOut are the comments about fields that are left out of croft.yaml.
	leftOut  []string
	Notes    []string
	Problems manifest.Problems
}

// Pool is one as it comes about.
type Pool struct {
	Spec v1alpha1.PoolSpec
	From *source.Object
	// ReadBack says that croft wrote its class, with every default.
	ReadBack bool
	// Values are the values of the key on its nodes: Assigns select it by them.
	Values []string
}

// Tenant is one as it comes about.
type Tenant struct {
	Spec v1alpha1.TenantSpec
	From *source.Object
	// Subjects are to whom its rules let it bind roles.
	Subjects []string
	// Level is the label that gave the tenant its Pod Security level.
	Level source.Field
	// Placed is what said which pool a namespace runs on.
	Placed source.Field
}

// New is a draft of the input, before any decision.
func New(objects []*source.Object, o Options) *Draft {
	d := &Draft{
		Options: o, Pools: map[string]*Pool{}, Tenants: map[string]*Tenant{},
		Secondary: map[string]v1alpha1.SecondaryNetworkSpec{}, Renames: map[string]string{}, Classes: map[string]string{}, Told: map[string]bool{},
	}
	d.Objects, d.kinds, d.owners = objects, map[string][]*source.Object{}, map[string]string{}
	for _, o := range objects {
		kind := o.Group() + "/" + o.Kind
		d.kinds[kind] = append(d.kinds[kind], o)
	}
	return d
}

// Of are the objects of a kind, in the order that they were read in.
func (d *Draft) Of(group, kind string) []*source.Object {
	var all []*source.Object
	for _, o := range d.kinds[group+"/"+kind] {
		if !o.Skip {
			all = append(all, o)
		}
	}
	return all
}

// Named is one object of a kind, or nil.
func (d *Draft) Named(group, kind, name string) *source.Object {
	for _, o := range d.Of(group, kind) {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// Problem reports a field that a person has to put right.
func (d *Draft) Problem(f source.Field, format string, args ...any) {
	d.Problems = append(d.Problems, f.Problem(format, args...))
}

// Lost reports a field that restricts or places a tenant's pods and has no place in
// croft.yaml: a person has to decide about it.
func (d *Draft) Lost(f source.Field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	f.NotKept("%s", message)
	d.Problem(f, "%s", message)
}

// LeaveOut omits a field of croft.yaml, with a comment at the top of the file.
func (d *Draft) LeaveOut(path, format string, args ...any) {
	d.leftOut = append(d.leftOut, "left out: "+path+": "+fmt.Sprintf(format, args...))
}

// Namespaces are the namespaces of a tenant.
func (d *Draft) Namespaces(name string) []string {
	if t := d.Tenants[name]; t != nil && len(t.Spec.Namespaces) > 0 {
		return t.Spec.Namespaces
	}
	return []string{name}
}

// TenantOf is the tenant that a namespace belongs to; "" if it is no tenant's.
func (d *Draft) TenantOf(namespace string) string {
	return d.owners[namespace]
}

// Has gives a tenant its namespaces. croft check refuses a namespace that another tenant
// has already.
func (d *Draft) Has(t *Tenant, name string, namespaces []string) {
	t.Spec.Namespaces = namespaces
	if d.owners[name] == name && !slices.Contains(namespaces, name) {
		delete(d.owners, name)
	}
	for _, namespace := range namespaces {
		if d.owners[namespace] == "" {
			d.owners[namespace] = name
		}
	}
}

// AddTenant is the tenant of a name, a new one if there is none.
func (d *Draft) AddTenant(name string, from *source.Object) *Tenant {
	t, known := d.Tenants[name]
	if !known {
		t = &Tenant{From: from}
		d.Tenants[name] = t
		if d.owners[name] == "" {
			d.owners[name] = name
		}
	}
	return t
}

// Rename writes where fields went by where they are in the end.
func (d *Draft) Rename(f *source.Finding) {
	var all []string
	for _, to := range f.To {
		for _, from := range slices.Sorted(maps.Keys(d.Renames)) {
			if rest, ok := strings.CutPrefix(to, from); ok && (rest == "" || rest[0] == '.') {
				to = d.Renames[from] + rest
				break
			}
		}
		if !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	f.To = all
}

// PoolField is a field of a pool, as croft.yaml names it.
func PoolField(name, field string) string { return "pools." + name + "." + field }

// TenantField is a field of a tenant, as croft.yaml names it.
func TenantField(name, field string) string { return "tenants." + name + "." + field }

// Note adds a remark about the whole.
func (d *Draft) Note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(d.Notes, n) {
		d.Notes = append(d.Notes, n)
	}
}

// Missing reports a field of croft.yaml that nothing which was read says.
func (d *Draft) Missing(path, format string, args ...any) {
	d.Told[path] = true
	d.Problems = append(d.Problems, manifest.Problem{Path: "croft.yaml: " + path, Message: fmt.Sprintf(format, args...)})
}
