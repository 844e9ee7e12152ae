package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
	"croft.dev/croft/api/v1alpha1"
)

// kind describes a kind to its collection and to the API server's request handlers.
type kind struct {
	rest.TableConvertor
	resource schema.GroupVersionResource
	name     schema.GroupVersionKind
	// empty returns a new object, and copy a shallow copy, for one event: encoding an event
	// sets the TypeMeta of its object for a moment, which races with other watches that
	// encode the same object.
	empty func() object
	copy  func(object) object
	list  func(metav1.ListMeta, []object) runtime.Object
	// fields returns the fields of an object that field selectors support.
	fields func(object) fields.Set
}

// pointerTo is a pointer to T that implements object.
type pointerTo[T any] interface {
	*T
	object
}

// newKind returns a kind whose objects are Ps.
func newKind[T any, P pointerTo[T]](resource schema.GroupVersionResource, name string, list func(metav1.ListMeta, []T) runtime.Object) *kind {
	return &kind{
		resource: resource, name: resource.GroupVersion().WithKind(name),
		empty: func() object { return P(new(T)) },
		copy: func(o object) object {
			c := *o.(P) // a collection has objects of one kind
			return P(&c)
		},
		list: func(listMeta metav1.ListMeta, objects []object) runtime.Object {
			items := make([]T, len(objects))
			for i, o := range objects {
				items[i] = *o.(P) // a collection has objects of one kind
			}
			return list(listMeta, items)
		},
		fields: func(o object) fields.Set { return fields.Set{"metadata.name": o.GetName()} },
	}
}

func newNamespaceKind() *kind {
	k := newKind(corev1.SchemeGroupVersion.WithResource("namespaces"), "Namespace", func(m metav1.ListMeta, items []corev1.Namespace) runtime.Object {
		return &corev1.NamespaceList{ListMeta: m, Items: items}
	})
	k.fields = func(o object) fields.Set {
		set := fields.Set{"metadata.name": o.GetName(), "name": o.GetName()}
		if namespace, ok := o.(*corev1.Namespace); ok {
			set["status.phase"] = string(namespace.Status.Phase)
		}
		return set
	}
	k.TableConvertor = table{
		columns: newColumns("Name", "Status", "Age"),
		row: func(o runtime.Object) []any {
			namespace, ok := o.(*corev1.Namespace)
			if !ok {
				return nil
			}
			return []any{namespace.Name, string(namespace.Status.Phase), formatAge(namespace)}
		},
	}
	return k
}

func newNodeKind() *kind {
	k := newKind(corev1.SchemeGroupVersion.WithResource("nodes"), "Node", func(m metav1.ListMeta, items []corev1.Node) runtime.Object {
		return &corev1.NodeList{ListMeta: m, Items: items}
	})
	k.fields = func(o object) fields.Set {
		set := fields.Set{"metadata.name": o.GetName()}
		if node, ok := o.(*corev1.Node); ok {
			set["spec.unschedulable"] = fmt.Sprint(node.Spec.Unschedulable)
		}
		return set
	}
	wide := newColumns("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
	for i := range wide {
		wide[i].Priority = 1
	}
	k.TableConvertor = table{columns: append(newColumns("Name", "Status", "Roles", "Age", "Version"), wide...), row: formatNodeRow}
	return k
}

// formatNodeRow returns the columns of kubectl get nodes.
func formatNodeRow(o runtime.Object) []any {
	node, ok := o.(*corev1.Node)
	if !ok {
		return nil
	}
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = map[corev1.ConditionStatus]string{corev1.ConditionTrue: "Ready"}[c.Status]
			if status == "" {
				status = "NotReady"
			}
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	address := func(kind corev1.NodeAddressType) string {
		for _, a := range node.Status.Addresses {
			if a.Type == kind {
				return a.Address
			}
		}
		return "<none>"
	}
	info := &node.Status.NodeInfo
	return []any{
		node.Name, status, formatNodeRoles(node), formatAge(node), info.KubeletVersion,
		address(corev1.NodeInternalIP), address(corev1.NodeExternalIP), info.OSImage, info.KernelVersion, info.ContainerRuntimeVersion,
	}
}

const nodeRolePrefix = "node-role.kubernetes.io/"

func formatNodeRoles(node *corev1.Node) string {
	var roles []string
	for label := range node.Labels {
		if role, ok := strings.CutPrefix(label, nodeRolePrefix); ok && role != "" {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return "<none>"
	}
	slices.Sort(roles)
	return strings.Join(roles, ",")
}

func newTenantKind() (*kind, error) {
	k := newKind(v1alpha1.GroupVersion.WithResource("tenants"), "Tenant", func(m metav1.ListMeta, items []v1alpha1.Tenant) runtime.Object {
		return &v1alpha1.TenantList{ListMeta: m, Items: items}
	})
	return k, k.setPrintColumns()
}

func newPoolKind() (*kind, error) {
	k := newKind(v1alpha1.GroupVersion.WithResource("pools"), "Pool", func(m metav1.ListMeta, items []v1alpha1.Pool) runtime.Object {
		return &v1alpha1.PoolList{ListMeta: m, Items: items}
	})
	return k, k.setPrintColumns()
}

// setPrintColumns sets the columns of the kind's CustomResourceDefinition.
func (k *kind) setPrintColumns() error {
	content, err := crds.FS.ReadFile(k.resource.Group + "_" + k.resource.Resource + ".yaml")
	if err != nil {
		return err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &definition); err != nil {
		return err
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == k.resource.Version {
			k.TableConvertor, err = tableconvertor.New(version.AdditionalPrinterColumns)
			return err
		}
	}
	return errors.New("the CustomResourceDefinition of " + k.name.Kind + " lacks version " + k.resource.Version)
}

// table converts objects to a metav1.Table.
type table struct {
	columns []metav1.TableColumnDefinition
	row     func(runtime.Object) []any
}

func newColumns(names ...string) []metav1.TableColumnDefinition {
	var all []metav1.TableColumnDefinition
	for _, name := range names {
		c := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if name == "Name" {
			c.Format = "name"
		}
		all = append(all, c)
	}
	return all
}

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, o, options runtime.Object) (*metav1.Table, error) {
	converted := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		converted.ColumnDefinitions = t.columns
	}
	add := func(o runtime.Object) error {
		converted.Rows = append(converted.Rows, metav1.TableRow{Cells: t.row(o), Object: runtime.RawExtension{Object: o}})
		return nil
	}
	if list, err := meta.ListAccessor(o); err == nil {
		converted.ListMeta = metav1.ListMeta{ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue()}
		return converted, meta.EachListItem(o, add)
	}
	one, err := meta.Accessor(o)
	if err != nil {
		return nil, err
	}
	converted.ResourceVersion = one.GetResourceVersion()
	return converted, add(o)
}

func formatAge(o metav1.Object) string {
	return duration.HumanDuration(time.Since(o.GetCreationTimestamp().Time))
}
