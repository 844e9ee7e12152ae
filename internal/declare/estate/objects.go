package estate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// Template is a manifest of an object that exists in every namespace of a tenant. Its parameters are
// not replaced yet.
type Template struct {
	Kind, Name string
	// JSON is the manifest with sorted keys, so that equal manifests have equal texts.
	JSON string
}

// The parameters of templates.
const (
	namespaceParameter = "$(namespace)"
	costCodeParameter  = "$(costCode)"
	domainParameter    = "$(domain)"
)

// parameterValues are the values of the parameters in one namespace. They contain only letters, digits, '-',
// '_' and '.', so they need no quotes in JSON.
type parameterValues struct {
	tenant, namespace, costCode, domain string
}

// insertInto replaces the parameters in a text. As in the env of containers, $$(tenant) stands for the
// text $(tenant).
func (v parameterValues) insertInto(text string) string {
	var pairs []string
	for _, p := range []struct{ parameter, value string }{
		{TenantParameter, v.tenant}, {namespaceParameter, v.namespace}, {costCodeParameter, v.costCode}, {domainParameter, v.domain},
	} {
		pairs = append(pairs, "$"+p.parameter, p.parameter, p.parameter, p.value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// EscapeParameters returns a text that templates insert unchanged.
func EscapeParameters(text string) string {
	for _, p := range []string{TenantParameter, namespaceParameter, costCodeParameter, domainParameter} {
		text = strings.ReplaceAll(text, p, "$"+p)
	}
	return text
}

// AreValidObjects reports whether croft.yaml may contain a list of manifests, apart from the limits
// that depend on a tenant.
func AreValidObjects(all []runtime.RawExtension) bool {
	return len(all) <= maxTemplates && len(checkTemplates(field.NewPath("objects"), all)) == 0
}

// templateKinds are the kinds that a template may have, with a function that returns an empty object.
// Namespaces may get no other kinds: croft's operator has no rights to write them, and the policy
// croft-protection keeps tenants from changing these.
var templateKinds = []struct {
	apiVersion, kind string
	newObject        func() client.Object
}{
	{"v1", "ConfigMap", func() client.Object { return &corev1.ConfigMap{} }},
	{"v1", "LimitRange", func() client.Object { return &corev1.LimitRange{} }},
	{"networking.k8s.io/v1", "NetworkPolicy", func() client.Object { return &networkingv1.NetworkPolicy{} }},
	{"rbac.authorization.k8s.io/v1", "RoleBinding", func() client.Object { return &rbacv1.RoleBinding{} }},
}

func newTemplateObject(kind string) client.Object {
	for _, k := range templateKinds {
		if k.kind == kind {
			return k.newObject()
		}
	}
	return nil
}

// readTemplate reads a manifest. It returns the content as well, for the checks.
func readTemplate(raw runtime.RawExtension) (Template, map[string]any, error) {
	content := map[string]any{}
	if err := json.Unmarshal(raw.Raw, &content); err != nil {
		return Template{}, nil, err
	}
	removeNulls(content)
	text, err := json.Marshal(content)
	if err != nil {
		return Template{}, nil, err
	}
	kind, _ := content["kind"].(string)
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	return Template{kind, name, string(text)}, content, nil
}

// removeNulls removes fields that are null, such as the creationTimestamp that kubectl prints.
func removeNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				delete(v, key)
				continue
			}
			removeNulls(value)
		}
	case []any:
		for _, item := range v {
			removeNulls(item)
		}
	}
}

// readTemplates reads the valid manifests of a list.
func readTemplates(all []runtime.RawExtension) []Template {
	var templates []Template
	for _, raw := range all {
		if template, content, err := readTemplate(raw); err == nil && explainInvalidTemplate(template, content) == "" {
			templates = append(templates, template)
		}
	}
	return templates
}

// mergeTemplates returns a tenant's templates, sorted by kind and name. A tenant's own template
// replaces the platform's.
func mergeTemplates(defaults, own []Template) []Template {
	all := slices.Clone(own)
	for _, template := range defaults {
		if !slices.ContainsFunc(own, template.isSameObject) {
			all = append(all, template)
		}
	}
	slices.SortFunc(all, func(a, b Template) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return all
}

func (t Template) isSameObject(other Template) bool {
	return t.Kind == other.Kind && t.Name == other.Name
}

// build returns the object for one namespace.
func (t Template) build(v parameterValues) (client.Object, error) {
	object := newTemplateObject(t.Kind)
	if err := json.Unmarshal([]byte(v.insertInto(t.JSON)), object); err != nil {
		return nil, err
	}
	object.SetNamespace(v.namespace)
	return object, nil
}

// BuildObjects returns the declared objects of one of the tenant's namespaces.
func (t *Tenant) BuildObjects(namespace string) []client.Object {
	var all []client.Object
	for _, template := range t.Objects {
		object, err := template.build(parameterValues{t.Name, namespace, t.CostCode, findDomain(t.Domains)})
		utilruntime.Must(err) // a rule of the estate has built the same object
		all = append(all, object)
	}
	return all
}

// findDomain returns the value of $(domain): the first domain without a wildcard, which is the
// tenant's own if the Platform has a tenantDomain.
func findDomain(domains []string) string {
	for _, d := range domains {
		if !strings.HasPrefix(d, "*.") {
			return d
		}
	}
	return ""
}

// resolveTemplates returns the templates of a tenant. The platform's are read once.
func (w *checker) resolveTemplates(t *v1alpha1.Tenant) []Template {
	return mergeTemplates(w.listDefaultTemplates(), readTemplates(t.Spec.Objects))
}

func (w *checker) listDefaultTemplates() []Template {
	if w.defaultTemplates == nil {
		w.defaultTemplates = append([]Template{}, readTemplates(w.platform.TenantDefaults.Objects)...)
	}
	return w.defaultTemplates
}
