package estate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/declare/wording"
)

// The maximum sizes of one manifest, and of all manifests of a list. The API server stores at most
// 1.5 MiB for a Tenant, and the operator keeps every object in memory.
const (
	maxTemplates      = 16 // the limit in the schema
	maxTemplateBytes  = 256 << 10
	maxTemplatesBytes = 512 << 10
)

// checkDefaultTemplates checks the manifests of the platform, apart from the limits that depend on a
// tenant.
func checkDefaultTemplates(p *v1alpha1.PlatformSpec) []finding {
	return checkTemplates(field.NewPath("spec", "tenantDefaults", "objects"), p.TenantDefaults.Objects)
}

// checkTenantTemplates checks a tenant's own manifests, and the objects that result from them and from
// the platform's.
func checkTenantTemplates(w *checker, t *v1alpha1.Tenant) []finding {
	at := field.NewPath("spec", "objects")
	if all := checkTemplates(at, t.Spec.Objects); len(all) > 0 {
		return all
	}
	templates := w.resolveTemplates(t)
	if len(templates) == 0 {
		return nil
	}
	var all []finding
	limits := w.listTemplateLimits(t)
	for _, template := range templates {
		if why := limits.explainRefused(template); why != "" {
			all = append(all, makeFinding(at, "%s %s%s: %s", template.Kind, template.Name, w.formatInherited(t, template), why)...)
		}
	}
	return all
}

// ExplainRefusedKind returns why no object of a kind can be declared, or "".
func ExplainRefusedKind(apiVersion, kind string) string {
	for _, k := range templateKinds {
		if k.kind == kind && k.apiVersion == apiVersion {
			return ""
		}
	}
	return explainInvalidTemplate(Template{Kind: kind}, map[string]any{"apiVersion": apiVersion, "kind": kind})
}

// ExplainRefusedObject returns why a manifest cannot be added to the objects of a tenant, or "".
func ExplainRefusedObject(p *v1alpha1.PlatformSpec, t *v1alpha1.Tenant, raw runtime.RawExtension) string {
	template, content, err := readTemplate(raw)
	if err != nil {
		return fmt.Sprintf("must be a manifest: %v", err)
	}
	if why := explainInvalidTemplate(template, content); why != "" {
		return why
	}
	others := slices.Concat(readTemplates(t.Spec.Objects), readTemplates(p.TenantDefaults.Objects))
	if slices.ContainsFunc(others, template.isSameObject) {
		return "another object of this kind and name is declared"
	}
	if !AreValidObjects(append(slices.Clone(t.Spec.Objects), raw)) {
		return fmt.Sprintf("a list has at most %d manifests, a manifest at most %d KiB, and a list at most %d KiB together", maxTemplates, maxTemplateBytes>>10, maxTemplatesBytes>>10)
	}
	w := newChecker(&manifest.Declaration{Platforms: []v1alpha1.Platform{{Spec: *p}}})
	return w.listTemplateLimits(t).explainRefused(template)
}

// formatInherited returns the origin of a template that is not the tenant's own.
func (w *checker) formatInherited(t *v1alpha1.Tenant, template Template) string {
	if slices.ContainsFunc(readTemplates(t.Spec.Objects), template.isSameObject) {
		return ""
	}
	return " of platform.tenantDefaults.objects"
}

func checkTemplates(at *field.Path, manifests []runtime.RawExtension) []finding {
	var all []finding
	var earlier []Template
	bytes := 0
	for i, raw := range manifests {
		template, content, err := readTemplate(raw)
		if err != nil {
			all = append(all, makeFinding(at.Index(i), "must be a manifest: %v", err)...)
			continue
		}
		bytes += len(template.JSON)
		why := explainInvalidTemplate(template, content)
		switch {
		case why != "":
		case len(template.JSON) > maxTemplateBytes:
			why = fmt.Sprintf("has %d KiB; write at most %d KiB", len(template.JSON)>>10, maxTemplateBytes>>10)
		case slices.ContainsFunc(earlier, template.isSameObject):
			why = "is twice in the list; remove one of the two"
		}
		if why != "" {
			all = append(all, makeFinding(at, "%s: %s", nameTemplate(template, i), why)...)
		}
		earlier = append(earlier, template)
	}
	if bytes > maxTemplatesBytes {
		all = append(all, makeFinding(at, "the manifests have %d KiB together; write at most %d KiB", bytes>>10, maxTemplatesBytes>>10)...)
	}
	return all
}

// nameTemplate names a template in a message: it may come from another file.
func nameTemplate(t Template, index int) string {
	if t.Kind == "" || t.Name == "" {
		return fmt.Sprintf("the manifest number %d", index+1)
	}
	return t.Kind + " " + t.Name
}

// explainInvalidTemplate returns why a manifest is invalid for every tenant, or "".
func explainInvalidTemplate(t Template, content map[string]any) string {
	var kinds []string
	for _, k := range templateKinds {
		if k.kind == t.Kind && k.apiVersion == content["apiVersion"] {
			if why := explainInvalidMetadata(t, content); why != "" {
				return why
			}
			return explainInvalidContent(t, content)
		}
		kinds = append(kinds, k.kind+" of "+k.apiVersion)
	}
	if t.Kind == "Secret" {
		return "a Secret cannot be declared here, since everyone who may read croft.yaml could read its content; " +
			"create it in the namespace " + v1alpha1.SecretsNamespace + ", and write secrets: {" + cmp.Or(t.Name, "NAME") + ": {}} next to objects, " +
			"so that `croft copy-secrets` copies it"
	}
	return fmt.Sprintf("%s of %s cannot be declared here; the kinds are %s",
		wording.Text(content["kind"]), wording.Text(content["apiVersion"]), wording.Enumerate(kinds, "and"))
}

// reservedNames are the names of objects that Kubernetes or a distribution writes in every namespace.
var reservedNames = []string{"kube-root-ca.crt", "openshift-service-ca.crt", "istio-ca-root-cert"}

func explainInvalidMetadata(t Template, content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		switch key {
		case "name", "labels", "annotations":
		case "namespace":
			return "remove metadata.namespace: croft creates the object in each namespace of the tenant"
		default:
			return fmt.Sprintf("remove metadata.%s: only name, labels and annotations are possible", key)
		}
	}
	switch {
	case len(validation.NameIsDNSSubdomain(t.Name, false)) > 0:
		return fmt.Sprintf("metadata.name: %q is not a name; write lower-case letters, digits, '-' and '.', without parameters", t.Name)
	case t.Name == "croft" || strings.HasPrefix(t.Name, "croft-"):
		return "metadata.name: names that begin with croft belong to croft's own objects; choose another"
	case slices.Contains(reservedNames, t.Name):
		return "metadata.name: Kubernetes writes an object of this name; choose another"
	}
	return ""
}

// explainInvalidContent decodes the manifest with the Go type of its kind, which refuses unknown
// fields.
func explainInvalidContent(t Template, content map[string]any) string {
	object := newTemplateObject(t.Kind)
	if err := yaml.UnmarshalStrict([]byte(t.JSON), object); err != nil {
		message := err.Error()
		if _, after, ok := strings.Cut(message, "while decoding JSON: "); ok {
			message = strings.TrimPrefix(after, "json: ")
		}
		return "does not fit its kind: " + message
	}
	for _, keys := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			switch {
			case !isLabel(key):
				return fmt.Sprintf("%q is not a key of a label or an annotation", key)
			case key == v1alpha1.ManagedByLabel || isOwnKey(key):
				return fmt.Sprintf("remove the label or annotation %s, which croft sets", key)
			}
		}
	}
	for key, value := range object.GetLabels() {
		if why := explainInvalidLabel(key, value); why != "" && !strings.Contains(value, "$(") {
			return why
		}
	}
	checked := t.JSON
	if config, ok := object.(*corev1.ConfigMap); ok {
		if why := explainInvalidConfigMap(config); why != "" {
			return why
		}
		// Scripts contain $(…) of their own.
		rest := maps.Clone(content)
		delete(rest, "data")
		text, err := json.Marshal(rest)
		if err != nil {
			return err.Error()
		}
		checked = string(text)
	}
	left := parameter.FindString(parameterValues{}.insertInto(strings.ReplaceAll(checked, "$$(", "")))
	if left != "" {
		return fmt.Sprintf("%s is not a parameter; the parameters are %s", left,
			wording.Enumerate([]string{TenantParameter, namespaceParameter, costCodeParameter, domainParameter}, "and"))
	}
	return ""
}

func explainInvalidLabel(key, value string) string {
	if len(utilvalidation.IsValidLabelValue(value)) == 0 {
		return ""
	}
	return fmt.Sprintf("%q is not a value of the label %s; write at most 63 letters, digits, '-', '_' and '.'", value, key)
}

func isOwnKey(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	return prefixed && (domain == v1alpha1.GroupVersion.Group || strings.HasSuffix(domain, "."+v1alpha1.GroupVersion.Group))
}

func explainInvalidConfigMap(c *corev1.ConfigMap) string {
	if c.Immutable != nil && *c.Immutable {
		return "remove immutable: croft could not write changes of croft.yaml"
	}
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(c.Data)), slices.Sorted(maps.Keys(c.BinaryData))) {
		if len(utilvalidation.IsConfigMapKey(key)) > 0 {
			return fmt.Sprintf("%q is not a key of a ConfigMap; write letters, digits, '-', '_' and '.'", key)
		}
		if _, twice := c.BinaryData[key]; twice && c.Data[key] != "" {
			return fmt.Sprintf("%s is in data and in binaryData; remove one of the two", key)
		}
	}
	return ""
}

// templateLimits are the limits of the objects of one tenant. The tenant's own objects have the same
// limits.
type templateLimits struct {
	scenes []parameterValues
	floor  networkFloor
	roles  []string
	// accounts are service accounts outside of the tenant: monitoring/prometheus, argocd/*.
	accounts []string
}

func (w *checker) listTemplateLimits(t *v1alpha1.Tenant) *templateLimits {
	limits := &templateLimits{floor: w.buildNetworkFloor(t)}
	domain := findDomain(listDomains(w.platform.TenantDomain, t))
	for _, namespace := range listNamespaces(t) {
		limits.scenes = append(limits.scenes, parameterValues{t.Name, namespace, t.Spec.CostCode, domain})
	}
	for _, role := range append([]string{string(v1alpha1.RoleViewer), string(v1alpha1.RoleOperator)}, slices.Sorted(maps.Keys(w.platform.Roles))...) {
		limits.roles = append(limits.roles, rights.NameClusterRole(v1alpha1.Role(role)))
	}
	allowances := mergeAllowances(&w.platform.TenantDefaults.Policy, &t.Spec.Policy.Allowances)
	for _, s := range allowances.ShareWith {
		if s.ServiceAccount != "" {
			limits.accounts = append(limits.accounts, s.ServiceAccount)
		}
	}
	return limits
}

// explainRefused returns why a tenant cannot have the object of a template, or "".
func (l *templateLimits) explainRefused(t Template) string {
	if !strings.Contains(t.JSON, "$(") && t.Kind != "NetworkPolicy" && t.Kind != "RoleBinding" {
		return ""
	}
	for _, scene := range l.scenes {
		used := strings.ReplaceAll(t.JSON, "$$(", "")
		switch {
		case scene.costCode == "" && strings.Contains(used, costCodeParameter):
			return "uses " + costCodeParameter + ", and the tenant has none; set costCode"
		case scene.domain == "" && strings.Contains(used, domainParameter):
			return "uses " + domainParameter + ", and the tenant has none; set domains, or platform.tenantDomain"
		}
		object, err := t.build(scene)
		if err != nil {
			return err.Error()
		}
		if why := l.explainRefusedObject(object); why != "" {
			return why
		}
	}
	return ""
}

func (l *templateLimits) explainRefusedObject(object client.Object) string {
	for _, key := range slices.Sorted(maps.Keys(object.GetLabels())) {
		if why := explainInvalidLabel(key, object.GetLabels()[key]); why != "" {
			return why
		}
	}
	switch object := object.(type) {
	case *networkingv1.NetworkPolicy:
		return l.floor.explainRefused(object)
	case *rbacv1.RoleBinding:
		return l.explainRefusedBinding(object)
	default:
		return ""
	}
}

// explainRefusedBinding allows the bindings to service accounts that the tenant could create itself,
// of roles that the operator may bind. People get roles by access, which may end.
func (l *templateLimits) explainRefusedBinding(b *rbacv1.RoleBinding) string {
	if b.RoleRef.APIGroup != rbacv1.GroupName || b.RoleRef.Kind != "ClusterRole" || !slices.Contains(l.roles, b.RoleRef.Name) {
		return fmt.Sprintf("roleRef: must be one of the ClusterRoles %s, not %s %s", wording.Enumerate(l.roles, "and"), b.RoleRef.Kind, b.RoleRef.Name)
	}
	if len(b.Subjects) == 0 {
		return "subjects: is empty; name service accounts"
	}
	for _, s := range b.Subjects {
		own := slices.ContainsFunc(l.scenes, func(v parameterValues) bool { return v.namespace == s.Namespace })
		shared := slices.Contains(l.accounts, s.Namespace+"/"+s.Name) || slices.Contains(l.accounts, s.Namespace+"/*")
		switch {
		case s.Kind != rbacv1.ServiceAccountKind || s.APIGroup != "":
			return fmt.Sprintf("subjects: %s %s is not a service account; give people a role by access", s.Kind, s.Name)
		case s.Name == "" || !own && !shared:
			return fmt.Sprintf("subjects: the service account %s/%s does not belong to the tenant; write namespace: %s, or allow it by policy.shareWith", s.Namespace, s.Name, namespaceParameter)
		}
	}
	return ""
}
