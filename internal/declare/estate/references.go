package estate

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"croft.dev/croft/api/v1alpha1"
)

// BuildReferenceLabel returns the label of namespaces that may name an object of another tenant, for
// one of the prefixes ServiceLabelPrefix and GatewayLabelPrefix. The object is NAMESPACE/NAME. A
// namespace has no dot in its name, so two objects never have the same label.
func BuildReferenceLabel(prefix, object string) string {
	return prefix + strings.Replace(object, "/", ".", 1)
}

// BuildReferenceLabels returns the labels of the tenant's namespaces for the Services and Gateways of
// other tenants that its routes may name.
func (t *Tenant) BuildReferenceLabels() map[string]string {
	labels := map[string]string{}
	for i := range t.Connections {
		c := &t.Connections[i]
		if c.Caller != t.Name {
			continue
		}
		for _, service := range c.Services {
			labels[BuildReferenceLabel(v1alpha1.ServiceLabelPrefix, service)] = v1alpha1.Agreed
		}
		for _, gateway := range c.Gateways {
			labels[BuildReferenceLabel(v1alpha1.GatewayLabelPrefix, gateway)] = v1alpha1.Agreed
		}
	}
	return labels
}

// listAllNamespaces returns a tenant's declared and requested namespaces.
func (w *checker) listAllNamespaces(t *v1alpha1.Tenant) []string {
	return slices.Concat(listNamespaces(t), slices.Sorted(maps.Keys(w.listRequested(t))))
}

// qualifyReference returns a reference as NAMESPACE/NAME.
func qualifyReference(t *v1alpha1.Tenant, reference v1alpha1.ConsentReference) string {
	if strings.Contains(string(reference), "/") {
		return string(reference)
	}
	return listNamespaces(t)[0] + "/" + string(reference)
}

// resolveReferences returns references to objects in namespaces of a tenant, as NAMESPACE/NAME. It
// leaves out other namespaces, to which the tenant cannot consent.
func (w *checker) resolveReferences(t *v1alpha1.Tenant, references []v1alpha1.ConsentReference) []string {
	var all []string
	for _, reference := range references {
		name := qualifyReference(t, reference)
		if namespace, _, _ := strings.Cut(name, "/"); slices.Contains(w.listAllNamespaces(t), namespace) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// checkReferences refuses names that are too long for a label, and warns of namespaces that are not
// the tenant's. These are no errors: a team may withdraw its request for a namespace at any time.
func (w *checker) checkReferences(c consent) []finding {
	var all []finding
	for _, list := range []struct {
		field, prefix string
		references    []v1alpha1.ConsentReference
	}{{"services", v1alpha1.ServiceLabelPrefix, c.services}, {"gateways", v1alpha1.GatewayLabelPrefix, c.gateways}} {
		for i, reference := range list.references {
			at, name := c.fieldPath().Child(list.field).Index(i), qualifyReference(c.by, reference)
			if len(w.resolveReferences(c.by, list.references[i:i+1])) == 0 {
				namespace, _, _ := strings.Cut(name, "/")
				all = append(all, makeWarning(at, "%s is not a namespace of tenant %s, so nothing opens; name one of its namespaces", namespace, c.by.Name)...)
			}
			if label := BuildReferenceLabel(list.prefix, name); len(validation.IsQualifiedName(label)) > 0 {
				all = append(all, makeFinding(at, "%s is too long for the label %s, whose name may have 63 characters; choose a shorter name", name, label)...)
			}
		}
	}
	return all
}
