package migrate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// draft is the estate as it comes about.
type draft struct {
	options Options
	objects []*Object
	// kinds are the objects by their group and kind.
	kinds map[string][]*Object
	// owners are the tenants by their namespaces.
	owners map[string]string
	// labels are those of the namespaces that were read, once they were asked for.
	labels map[string]labels.Set

	platform  v1alpha1.PlatformSpec
	pools     map[string]*pool
	tenants   map[string]*tenant
	secondary map[string]v1alpha1.SecondaryNetworkSpec

	// defaultProfile is the instance profile that Karpenter's settings name.
	defaultProfile string
	// key is the label and taint that ties nodes to pools where people read from.
	key string
	// choices are the values of the key that tenants are put on pools by.
	choices map[string]bool

	manifests []*unstructured.Unstructured
	// classes are the names of those among the manifests, by what they were made of.
	classes map[string]string
	// renames are fields that were moved to the platform since all pools share them.
	renames map[string]string
	// told are the tenants, and the fields of the platform, of which it was said why
	// they are left out.
	told map[string]bool
	// standing are the commands that permit croft to take over namespaces that there
	// are already.
	standing []string
	notes    []string
	problems estate.Problems
}

// pool is one as it comes about.
type pool struct {
	spec v1alpha1.PoolSpec
	from *Object
	// readBack says that its class is one that croft wrote, with every default.
	readBack bool
	// values are those that the key has on its nodes: what Assigns select it by.
	values []string
}

// tenant is one as it comes about.
type tenant struct {
	spec v1alpha1.TenantSpec
	from *Object
	// subjects are to whom its rules let it bind roles.
	subjects []string
	// leveled says that a namespace had a Pod Security level.
	leveled bool
	// placed is what said which pool a namespace runs on.
	placed Field
}

func newDraft(objects []*Object, o Options) *draft {
	d := &draft{
		options: o, pools: map[string]*pool{}, tenants: map[string]*tenant{},
		secondary: map[string]v1alpha1.SecondaryNetworkSpec{}, renames: map[string]string{}, classes: map[string]string{}, told: map[string]bool{},
	}
	d.objects, d.kinds, d.owners = objects, map[string][]*Object{}, map[string]string{}
	for _, o := range objects {
		kind := o.Group() + "/" + o.Kind
		d.kinds[kind] = append(d.kinds[kind], o)
	}
	return d
}

// of are the objects of a kind, in the order that they were read in.
func (d *draft) of(group, kind string) []*Object {
	var all []*Object
	for _, o := range d.kinds[group+"/"+kind] {
		if !o.skip {
			all = append(all, o)
		}
	}
	return all
}

// named is one object of a kind, or nil.
func (d *draft) named(group, kind, name string) *Object {
	for _, o := range d.of(group, kind) {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// problem reports a field that a person has to put right.
func (d *draft) problem(f Field, format string, args ...any) {
	d.problems = append(d.problems, f.object.problem(f.path, format, args...))
}

// namespaces are those of a tenant.
func (d *draft) namespaces(name string) []string {
	if t := d.tenants[name]; t != nil && len(t.spec.Namespaces) > 0 {
		return t.spec.Namespaces
	}
	return []string{name}
}

// tenantOf is the tenant that a namespace belongs to; "" if it is no tenant's.
func (d *draft) tenantOf(namespace string) string {
	return d.owners[namespace]
}

// has gives a tenant its namespaces. One that another tenant has already is left
// to croft check to refuse.
func (d *draft) has(t *tenant, name string, namespaces []string) {
	t.spec.Namespaces = namespaces
	if d.owners[name] == name && !slices.Contains(namespaces, name) {
		delete(d.owners, name)
	}
	for _, namespace := range namespaces {
		if d.owners[namespace] == "" {
			d.owners[namespace] = name
		}
	}
}

// addTenant is the tenant of a name, a new one if there is none.
func (d *draft) addTenant(name string, from *Object) *tenant {
	t, known := d.tenants[name]
	if !known {
		t = &tenant{from: from}
		d.tenants[name] = t
		if d.owners[name] == "" {
			d.owners[name] = name
		}
	}
	return t
}

// rename writes where fields went by where they are in the end.
func (d *draft) rename(f *Finding) {
	var all []string
	for _, to := range f.To {
		for _, from := range slices.Sorted(maps.Keys(d.renames)) {
			if rest, ok := strings.CutPrefix(to, from); ok && (rest == "" || rest[0] == '.') {
				to = d.renames[from] + rest
				break
			}
		}
		if !slices.Contains(all, to) {
			all = append(all, to)
		}
	}
	f.To = all
}

// poolField is a field of a pool, as croft.yaml names it.
func poolField(name, field string) string { return "pools." + name + "." + field }

// tenantField is a field of a tenant, as croft.yaml names it.
func tenantField(name, field string) string { return "tenants." + name + "." + field }
