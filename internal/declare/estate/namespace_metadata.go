package estate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/addons"
)

// TenantParameter is replaced by the tenant's name in labels and annotations of namespaces.
const TenantParameter = "$(tenant)"

var parameter = regexp.MustCompile(`\$\([^)]*\)`)

// maxAnnotationBytes is the maximum size of the value of an annotation. A namespace has at most
// 256 KiB of annotations, and the tenant's rules are among them.
const maxAnnotationBytes = 1024

// reservedKeys are the prefixes of labels and annotations of namespaces that have an effect of
// their own. A domain includes the domains below it.
var reservedKeys = []struct {
	why           string
	domains, keys []string
}{
	{"sets the Pod Security level: set podSecurity instead", []string{"pod-security.kubernetes.io"}, nil},
	{"belongs to croft, which sets it from other fields", []string{"croft.dev"}, nil},
	{"belongs to Kubernetes and its projects, which act on it", []string{"kubernetes.io", "k8s.io", "x-k8s.io"}, nil},
	{"belongs to a service mesh, which changes pods and their network in namespaces with such keys", []string{
		"istio.io", "linkerd.io", "kuma.io", "consul.hashicorp.com", "openservicemesh.io", "appmesh.k8s.aws", "cilium.io", "maesh.containo.us",
		"mesh.cloud.google.com",
	}, []string{"istio-injection", "istio-env"}},
	{"belongs to a policy engine, whose policies may skip namespaces with such keys", []string{"gatekeeper.sh", "kyverno.io", "cosigned.dev", "sigstore.dev"}, nil},
	{"belongs to a tool that gives rights, nodes or networks to namespaces by their keys", []string{
		"openshift.io", "cattle.io", "clastix.io", "projectcapsule.dev", "kubesphere.io", "projectcalico.org", "ovn.org", "karpenter.sh", "k8s.aws",
	}, nil},
}

// ExplainReservedKey returns why croft.yaml cannot set a label or an annotation of namespaces, or
// "" if it can.
func ExplainReservedKey(key string) string {
	domain, _, prefixed := strings.Cut(key, "/")
	for _, entry := range reservedKeys {
		if slices.Contains(entry.keys, key) || prefixed && slices.ContainsFunc(entry.domains, func(d string) bool {
			return domain == d || strings.HasSuffix(domain, "."+d)
		}) {
			return entry.why
		}
	}
	if addon := addons.FindReader(key); addon != "" {
		return "belongs to an add-on of the catalogue (" + addon + ", see docs/reference/addons.md)"
	}
	return ""
}

// IsValidMetadata reports whether a tenant may have the labels and annotations.
func IsValidMetadata(m *v1alpha1.NamespaceMetadata, tenant string) bool {
	return len(checkMetadata(field.NewPath("namespace"), m, tenant)) == 0
}

// mergeMetadata returns the labels or annotations of a tenant's namespaces. A value of the tenant
// replaces the platform's.
func mergeMetadata(defaults, own map[string]string, tenant string) map[string]string {
	if len(defaults)+len(own) == 0 {
		return nil
	}
	merged := map[string]string{}
	maps.Copy(merged, defaults)
	maps.Copy(merged, own)
	for key, value := range merged {
		merged[key] = insertTenant(value, tenant)
	}
	return merged
}

// mergeChoices returns the values of labels that a team may choose, by key. A list of the tenant
// replaces the platform's.
func mergeChoices(defaults, own map[string]v1alpha1.LabelValues) map[string]v1alpha1.LabelValues {
	if len(defaults)+len(own) == 0 {
		return nil
	}
	merged := map[string]v1alpha1.LabelValues{}
	maps.Copy(merged, defaults)
	maps.Copy(merged, own)
	return merged
}

// findChosenLabels returns the labels that a tenant has chosen for its requested namespaces, by
// namespace.
func (w *checker) findChosenLabels(t *Tenant) map[string]map[string]string {
	var all map[string]map[string]string
	for name, anchor := range t.Requested {
		chosen := maps.Clone(w.requestLabels[request{anchor, name}])
		maps.DeleteFunc(chosen, func(key, value string) bool { return !slices.Contains(t.Choose[key], value) })
		if len(chosen) == 0 {
			continue
		}
		if all == nil {
			all = map[string]map[string]string{}
		}
		all[name] = chosen
	}
	return all
}

// ExplainIgnoredLabels returns which labels of a TenantNamespace have no effect although the tenant may
// choose a value for their key, or "".
func ExplainIgnoredLabels(t *Tenant, labels map[string]string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(t.Choose)) {
		value, set := labels[key]
		if values := t.Choose[key]; set && !slices.Contains(values, value) {
			all = append(all, fmt.Sprintf("the label %s=%s has no effect: choose one of [%s]", key, value, strings.Join(values, ", ")))
		}
	}
	return strings.Join(all, "; ")
}

func insertTenant(value, tenant string) string {
	return strings.ReplaceAll(value, TenantParameter, tenant)
}

// checkDefaultMetadata checks the platform's labels and annotations with a short name of a tenant.
// checkTenantMetadata refuses tenants whose names are too long for them.
func checkDefaultMetadata(p *v1alpha1.PlatformSpec) []finding {
	return checkMetadata(field.NewPath("spec", "tenantDefaults", "namespace"), &p.TenantDefaults.Namespace, "t")
}

func checkTenantMetadata(w *checker, t *v1alpha1.Tenant) []finding {
	at, own, defaults := field.NewPath("spec", "namespace"), &t.Spec.Namespace, &w.platform.TenantDefaults.Namespace
	return slices.Concat(checkMetadata(at, own, t.Name),
		checkInheritedLengths(at.Child("labels"), defaults.Labels, own.Labels, t.Name, validation.LabelValueMaxLength),
		checkInheritedLengths(at.Child("annotations"), defaults.Annotations, own.Annotations, t.Name, maxAnnotationBytes))
}

// checkInheritedLengths refuses values of the platform that are too long with the tenant's name.
func checkInheritedLengths(at *field.Path, defaults, own map[string]string, tenant string, most int) []finding {
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		_, replaced := own[key]
		if value := defaults[key]; !replaced && strings.Contains(value, TenantParameter) && len(insertTenant(value, tenant)) > most {
			all = append(all, makeFinding(at, "with the name of this tenant, the value of %s in tenantDefaults is longer than %d characters; set a shorter value here", key, most)...)
		}
	}
	return all
}

func checkMetadata(at *field.Path, m *v1alpha1.NamespaceMetadata, tenant string) []finding {
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		here, value := at.Child("labels").Key(key), insertTenant(m.Labels[key], tenant)
		all = append(all, checkMetadataKey(here, key)...)
		switch {
		case parameter.MatchString(value):
			all = append(all, refuseParameter(here, value)...)
		case len(validation.IsValidLabelValue(value)) > 0:
			all = append(all, refuseLabelValue(here, value)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		here, value := at.Child("annotations").Key(key), insertTenant(m.Annotations[key], tenant)
		all = append(all, checkMetadataKey(here, key)...)
		switch {
		case parameter.MatchString(value):
			all = append(all, refuseParameter(here, value)...)
		case len(value) > maxAnnotationBytes:
			all = append(all, makeFinding(here, "the value has %d bytes; write at most %d", len(value), maxAnnotationBytes)...)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Choose)) {
		here := at.Child("choose").Key(key)
		all = append(all, checkMetadataKey(here, key)...)
		for i, value := range m.Choose[key] {
			if len(validation.IsValidLabelValue(value)) > 0 {
				all = append(all, refuseLabelValue(here.Index(i), value)...)
			}
		}
	}
	return all
}

func refuseLabelValue(at *field.Path, value string) []finding {
	return makeFinding(at, "%q is not a valid value of a label; write at most 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", value)
}

func checkMetadataKey(at *field.Path, key string) []finding {
	if !isLabel(key) {
		return makeFinding(at, "%q is not a key of a label or an annotation; write one such as team or example.org/team", key)
	}
	if why := ExplainReservedKey(key); why != "" {
		return makeFinding(at, "%s %s; remove it, or choose a key of your own, such as example.org/team", key, why)
	}
	return nil
}

func refuseParameter(at *field.Path, value string) []finding {
	return makeFinding(at, "%s is not a parameter; the only one is %s", parameter.FindString(value), TenantParameter)
}
