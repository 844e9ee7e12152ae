package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// classList is a list in a tenant's policy that names cluster-scoped objects.
type classList struct {
	field string
	kind  schema.GroupVersionKind
	// names returns the names in the list, and the class that croft sets on pods.
	names func(*v1alpha1.Allowances) []string
	// isDefault reports whether a class is the default for objects without a class. refused
	// describes the objects that are refused if the default is not in the list. Both are
	// empty for kinds without a default.
	isDefault func(*unstructured.Unstructured) bool
	refused   string
	severity  Severity
}

var classLists = []classList{
	{
		"priorityClasses", schema.GroupVersionKind{Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
		func(a *v1alpha1.Allowances) []string {
			return addName(a.PriorityClasses, ptr.Deref(a.PriorityClass, v1alpha1.PodPriorityClass{}).Default)
		},
		func(o *unstructured.Unstructured) bool {
			isDefault, _, _ := unstructured.NestedBool(o.Object, "globalDefault")
			return isDefault
		},
		"all pods without a priorityClassName", Problem,
	},
	{
		"runtimeClasses", schema.GroupVersionKind{Group: "node.k8s.io", Version: "v1", Kind: "RuntimeClass"},
		func(a *v1alpha1.Allowances) []string {
			class := ptr.Deref(a.RuntimeClass, v1alpha1.PodRuntimeClass{})
			return addName(a.RuntimeClasses, cmp.Or(class.Force, class.Default))
		}, nil, "", "",
	},
	{
		"storageClasses", schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"},
		func(a *v1alpha1.Allowances) []string { return a.StorageClasses },
		matchAnnotation("storageclass.kubernetes.io/is-default-class"), "all claims without a storageClassName", Warning,
	},
	{
		"ingressClasses", schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"},
		func(a *v1alpha1.Allowances) []string { return a.IngressClasses },
		matchAnnotation("ingressclass.kubernetes.io/is-default-class"), "all Ingresses without an ingressClassName", Warning,
	},
	{
		"gatewayClasses", schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "GatewayClass"},
		func(a *v1alpha1.Allowances) []string { return a.GatewayClasses }, nil, "", "",
	},
	{
		"csiDrivers", schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"},
		func(a *v1alpha1.Allowances) []string { return a.CSIDrivers }, nil, "", "",
	},
	{
		"deviceClasses", schema.GroupVersionKind{Group: "resource.k8s.io", Version: "v1", Kind: "DeviceClass"},
		func(a *v1alpha1.Allowances) []string { return a.DeviceClasses }, nil, "", "",
	},
	{
		"volumeAttributesClasses", schema.GroupVersionKind{Group: "storage.k8s.io", Version: "v1", Kind: "VolumeAttributesClass"},
		func(a *v1alpha1.Allowances) []string { return a.VolumeAttributesClasses }, nil, "", "",
	},
}

// addName returns the names with one more, unless it is empty or among them.
func addName(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append([]string{name}, names...)
}

func matchAnnotation(key string) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool { return o.GetAnnotations()[key] == "true" }
}

// gatherPolicyClasses reads the kinds of classes that tenants' lists restrict.
func (g *gatherer) gatherPolicyClasses(ctx context.Context) {
	for _, l := range classLists {
		if !g.isRestricted(l) {
			continue
		}
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(l.kind.GroupVersion().WithKind(l.kind.Kind + "List"))
		g.ReadList(ctx, readPolicyClasses, list)
		g.PolicyClasses[l.kind.Kind] = dropDeleted(list.Items)
	}
}

// isRestricted reports whether a tenant's policy names or restricts classes of this kind.
func (s *Snapshot) isRestricted(l classList) bool {
	return slices.ContainsFunc(s.listTenants(), func(t *estate.Tenant) bool {
		names := l.names(&t.Allowances)
		if slices.Contains(names, "*") {
			return slices.ContainsFunc(names, func(name string) bool { return name != "" && name != "*" })
		}
		return len(names) > 0 || l.isDefault != nil
	})
}

// checkPolicyClasses reports names in tenants' lists that do not exist in the cluster, and
// default classes that are not in a tenant's list.
func checkPolicyClasses(s *Snapshot) []Finding {
	var all []Finding
	for _, l := range classLists {
		live, read := s.PolicyClasses[l.kind.Kind]
		if read {
			all = append(all, findAbsentClasses(s, l, live)...)
			all = append(all, findRefusedDefaults(s, l, live)...)
		}
	}
	return all
}

func findAbsentClasses(s *Snapshot, l classList, live []unstructured.Unstructured) []Finding {
	tenants := map[string][]string{} // by class
	for _, t := range s.listTenants() {
		for _, name := range l.names(&t.Allowances) {
			if name != "" && name != "*" && !slices.ContainsFunc(live, func(o unstructured.Unstructured) bool { return o.GetName() == name }) {
				tenants[name] = append(tenants[name], t.Name)
			}
		}
	}
	var all []Finding
	for _, name := range sortKeys(tenants) {
		all = append(all, Finding{
			Severity: Warning, Object: l.kind.Kind + "/" + name,
			Message: fmt.Sprintf("it does not exist, and policy.%s of %s names it", l.field, formatSome(tenants[name])),
			Fix:     fmt.Sprintf("correct the name in policy.%s of the Tenant or of the Platform's tenantDefaults, create the class, or remove the name", l.field),
		})
	}
	return all
}

func findRefusedDefaults(s *Snapshot, l classList, live []unstructured.Unstructured) []Finding {
	var all []Finding
	for i := range live {
		if l.isDefault == nil || !l.isDefault(&live[i]) {
			continue
		}
		name := live[i].GetName()
		var without []string
		for _, t := range s.listTenants() {
			if names := l.names(&t.Allowances); !slices.Contains(names, "*") && !slices.Contains(names, name) {
				without = append(without, t.Name)
			}
		}
		if len(without) > 0 {
			all = append(all, Finding{
				Severity: l.severity, Object: l.kind.Kind + "/" + name,
				Message: fmt.Sprintf("it is the cluster's default, and policy.%s of %s does not contain it: %s are refused there", l.field, formatSome(without), l.refused),
				Fix:     fmt.Sprintf("add %s to policy.%s of the Platform's tenantDefaults or of the Tenants, or choose another default", name, l.field),
			})
		}
	}
	return all
}
