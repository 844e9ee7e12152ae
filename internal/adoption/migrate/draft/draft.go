package draft

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
)

// Options are the user's settings in addition to the input.
type Options struct {
	// ClusterName is the cluster's name if the input does not have it, and the value of shell
	// variables for it.
	ClusterName string
	// Kwok changes every pool to simulated nodes, to try the result in a sandbox.
	Kwok bool
	// GroupPrefix is the prefix of groups at the API server; inferred if empty.
	GroupPrefix string
	// HoldNodes keeps running nodes from being replaced when croft adopts their NodePool.
	HoldNodes bool
}

// Draft is the estate under construction.
type Draft struct {
	Options Options
	Objects []*source.Object
	// kinds are the objects by group and kind.
	kinds map[string][]*source.Object
	// owners maps namespaces to their tenants.
	owners map[string]string
	// nodes are the nodes of the Provisioners and NodePools, computed on first use.
	nodes []*Nodes
	// namespaceLabels are the labels of the namespaces in the input, computed on first use.
	namespaceLabels map[string]labels.Set

	Platform  v1alpha1.PlatformSpec
	Pools     map[string]*Pool
	Tenants   map[string]*Tenant
	Secondary map[string]v1alpha1.SecondaryNetworkSpec

	// DefaultProfile is the instance profile in Karpenter's settings.
	DefaultProfile string
	// Key is the key of the label and taint that ties nodes to pools in the input.
	Key string
	// Chosen are the pools with tenants.
	Chosen map[string]bool

	Manifests []*unstructured.Unstructured
	// Classes maps source objects to the names of the node classes among the manifests that
	// were made from them.
	Classes map[string]string
	// Renames maps a pool's field to the platform's field to which it was moved, since all pools
	// share it.
	Renames map[string]string
	// SecretOrigins identifies each Secret of the namespace croft-secrets in the input.
	SecretOrigins map[string]string
	// Reported are the omitted tenants, and the fields of the platform, whose reason was reported.
	Reported map[string]bool
	// NotAdoptable are the tenants whose namespaces exist, and that croft may not adopt yet.
	NotAdoptable []string
	// leftOut are the comments about fields that are left out of croft.yaml.
	leftOut  []string
	Notes    []string
	Problems document.Problems
}

// Pool is a pool under construction.
type Pool struct {
	Spec v1alpha1.PoolSpec
	From *source.Object
	// ReadBack reports whether croft wrote its class, with every default.
	ReadBack bool
	// Values are the values of the key on its nodes, by which Assigns select it.
	Values []string
}

// Tenant is a tenant under construction.
type Tenant struct {
	Spec v1alpha1.TenantSpec
	From *source.Object
	// Subjects are the subjects to which its rules let it bind roles.
	Subjects []string
	// Level is the label that set the tenant's Pod Security level.
	Level source.Field
	// Placed is the field that placed the tenant on its pools.
	Placed source.Field
}

// New returns a draft of the input, before any decision.
func New(objects []*source.Object, o Options) *Draft {
	d := &Draft{
		Options: o, Pools: map[string]*Pool{}, Tenants: map[string]*Tenant{},
		Secondary: map[string]v1alpha1.SecondaryNetworkSpec{}, Renames: map[string]string{}, Classes: map[string]string{}, Reported: map[string]bool{},
		SecretOrigins: map[string]string{},
	}
	d.Objects, d.kinds, d.owners = objects, map[string][]*source.Object{}, map[string]string{}
	for _, o := range objects {
		kind := o.Group() + "/" + o.Kind
		d.kinds[kind] = append(d.kinds[kind], o)
	}
	return d
}

// List returns the objects of a kind, in the order of the input.
func (d *Draft) List(group, kind string) []*source.Object {
	var all []*source.Object
	for _, o := range d.kinds[group+"/"+kind] {
		if !o.Skip {
			all = append(all, o)
		}
	}
	return all
}

// Find returns the object of a kind with a name, or nil.
func (d *Draft) Find(group, kind, name string) *source.Object {
	for _, o := range d.List(group, kind) {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// ReportProblem reports a field that the user must correct.
func (d *Draft) ReportProblem(f source.Field, format string, args ...any) {
	d.Problems = append(d.Problems, f.Problem(format, args...))
}

// ReportLost reports a field that restricts or places a tenant's pods and that croft.yaml cannot
// express: the user must decide about it.
func (d *Draft) ReportLost(f source.Field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	f.MarkNotKept("%s", message)
	d.ReportProblem(f, "%s", message)
}

// LeaveOut omits a field of croft.yaml, with a comment at the top of the file.
func (d *Draft) LeaveOut(path, format string, args ...any) {
	d.leftOut = append(d.leftOut, "left out: "+path+": "+fmt.Sprintf(format, args...))
}

// Namespaces returns the namespaces of a tenant.
func (d *Draft) Namespaces(name string) []string {
	if t := d.Tenants[name]; t != nil && len(t.Spec.Namespaces) > 0 {
		return t.Spec.Namespaces
	}
	return []string{name}
}

// FindLabels returns the labels of a namespace, and whether the input has the namespace.
func (d *Draft) FindLabels(namespace string) (labels.Set, bool) {
	if d.namespaceLabels == nil {
		d.namespaceLabels = map[string]labels.Set{}
		for _, o := range d.List("", "Namespace") {
			marks := labels.Set{}
			maps.Copy(marks, o.At("metadata", "labels").TextMap())
			marks[corev1.LabelMetadataName] = o.Name
			d.namespaceLabels[o.Name] = marks
		}
	}
	marks, found := d.namespaceLabels[namespace]
	return marks, found
}

// FindTenant returns the tenant of a namespace, or "" if it has none.
func (d *Draft) FindTenant(namespace string) string {
	return d.owners[namespace]
}

// SetNamespaces sets a tenant's namespaces. A namespace that another tenant has already keeps its owner;
// croft check refuses it.
func (d *Draft) SetNamespaces(t *Tenant, name string, namespaces []string) {
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

// AddTenant returns the tenant with a name, and creates it if it does not exist.
func (d *Draft) AddTenant(name string, from *source.Object) *Tenant {
	t, ok := d.Tenants[name]
	if !ok {
		t = &Tenant{From: from}
		d.Tenants[name] = t
		if d.owners[name] == "" {
			d.owners[name] = name
		}
	}
	return t
}

// Rename replaces the target fields of a finding by those to which they were moved.
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

// PoolField returns the path of a pool's field in croft.yaml.
func PoolField(name, field string) string { return "pools." + name + "." + field }

// TenantField returns the path of a tenant's field in croft.yaml.
func TenantField(name, field string) string { return "tenants." + name + "." + field }

// AddNote adds a general remark.
func (d *Draft) AddNote(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(d.Notes, n) {
		d.Notes = append(d.Notes, n)
	}
}

// ReportMissing reports a field of croft.yaml for which the input has no value.
func (d *Draft) ReportMissing(path, format string, args ...any) {
	d.Reported[path] = true
	d.Problems = append(d.Problems, document.Problem{Path: "croft.yaml: " + path, Message: fmt.Sprintf(format, args...)})
}
