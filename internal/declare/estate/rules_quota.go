package estate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/wording"
)

// The rules of this file are the API server's rules for ResourceQuotas and LimitRanges: the
// server accepts every object that passes them.

// quotaNames are all resources that a quota can limit, except for those with a domain and for
// huge pages.
var quotaNames = manifest.CountedObjects.Union(sets.New(
	"cpu", "memory", "ephemeral-storage",
	"requests.cpu", "requests.memory", "requests.ephemeral-storage", "requests.storage",
	"limits.cpu", "limits.memory", "limits.ephemeral-storage",
))

// containerNames are all resources that a container can request, except for those with a
// domain and for huge pages.
var containerNames = []string{"cpu", "ephemeral-storage", "memory"}

const (
	hugePages = corev1.ResourceHugePagesPrefix
	requests  = corev1.DefaultResourceRequestsPrefix
)

// checkQuota refuses a quota that is invalid as a ResourceQuota, and warns of a quota that
// counts nothing.
func checkQuota(at *field.Path, quota corev1.ResourceList) []finding {
	var all []finding
	for _, key := range slices.Sorted(maps.Keys(quota)) {
		name, amount := string(key), quota[key]
		here := at.Key(name)
		if why := explainInvalidQuota(name); why != "" {
			all = append(all, makeFinding(here, "%s", why)...)
			continue
		}
		if manifest.IsWhole(name) && amount.MilliValue()%1000 != 0 {
			all = append(all, makeFinding(here, "%s is counted in whole numbers; write %d, not %s", name, amount.Value(), amount.String())...)
		}
		if countsNothing(name) {
			all = append(all, makeWarning(here, "a quota of %s limits nothing; to limit a device, write %s", name, requests+strings.TrimPrefix(name, "limits."))...)
		}
	}
	return all
}

func explainInvalidQuota(name string) string {
	if strings.Contains(name, "/") {
		return explainInvalidName(name)
	}
	size, huge := strings.CutPrefix(strings.TrimPrefix(name, requests), hugePages)
	if huge {
		return explainInvalidPageSize(name, size)
	}
	if quotaNames.Has(name) {
		return ""
	}
	for _, known := range slices.Sorted(maps.Keys(BuiltinQuota(&v1alpha1.PlatformSpec{}))) {
		if kind, _, _ := strings.Cut(strings.TrimPrefix(string(known), "count/"), "."); kind == name || kind == name+"s" {
			return "a quota cannot limit " + name + "; did you mean " + string(known) + "?"
		}
	}
	return "a quota cannot limit " + name + cmp.Or(suggestName(name, sets.List(quotaNames)),
		"; write one such as requests.cpu, memory, pods, count/deployments.apps or requests.nvidia.com/gpu")
}

func explainInvalidName(name string) string {
	if len(validation.IsQualifiedName(name)) == 0 {
		return ""
	}
	return "\"" + name + "\" is not the name of a resource; write a domain in lower case, a '/' and a name, such as nvidia.com/gpu or count/deployments.apps"
}

func explainInvalidPageSize(name, size string) string {
	if q, err := resource.ParseQuantity(size); err == nil && q.Sign() > 0 {
		return ""
	}
	return "\"" + size + "\" is not a page size; write one such as " + strings.TrimSuffix(name, size) + "2Mi"
}

func suggestName(name string, known []string) string {
	if like, ok := wording.Nearest(name, known); ok {
		return "; did you mean " + like + "?"
	}
	return ""
}

// countedDomains are the suffixes of the domains of resources with a '/' that quotas count, in
// addition to count/ and requests.
var countedDomains = []string{".storageclass.storage.k8s.io", ".volumeattributesclass.storage.k8s.io", ".deviceclass.resource.k8s.io"}

// countsNothing reports whether the API server accepts a name but never counts it.
func countsNothing(name string) bool {
	domain, _, has := strings.Cut(name, "/")
	return has && domain != "count" && !strings.HasPrefix(name, requests) &&
		!slices.ContainsFunc(countedDomains, func(end string) bool { return strings.HasSuffix(domain, end) })
}

// checkContainerLimits refuses limits that are invalid in a LimitRange.
func checkContainerLimits(at *field.Path, limits *v1alpha1.ContainerLimits) []finding {
	if limits == nil {
		return nil
	}
	var all []finding
	for _, part := range listParts(limits) {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			if why := explainInvalidResource(string(name)); why != "" {
				all = append(all, makeFinding(at.Child(part.name).Key(string(name)), "%s", why)...)
			}
		}
	}
	return append(all, checkRequestsEqualLimits(at.Child("defaultRequest"), limits)...)
}

func explainInvalidResource(name string) string {
	if strings.Contains(name, "/") {
		if device, is := strings.CutPrefix(name, requests); is {
			return "no container can request " + name + "; did you mean " + device + "?"
		}
		return explainInvalidName(name)
	}
	if size, huge := strings.CutPrefix(name, hugePages); huge {
		return explainInvalidPageSize(name, size)
	}
	if slices.Contains(containerNames, name) {
		return ""
	}
	plain := strings.TrimPrefix(strings.TrimPrefix(name, requests), "limits.")
	return "no container can request " + name + cmp.Or(suggestName(plain, containerNames), "; containers can request "+wording.Enumerate(containerNames, "and")+", and devices such as nvidia.com/gpu")
}

// checkRequestsEqualLimits refuses a default request that differs from the default limit for resources
// that cannot be overcommitted: devices and huge pages. The default limit is max if default is
// not set.
func checkRequestsEqualLimits(at *field.Path, limits *v1alpha1.ContainerLimits) []finding {
	var all []finding
	for _, name := range slices.Sorted(maps.Keys(limits.DefaultRequest)) {
		if native := !strings.Contains(string(name), "/") || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix); native && !strings.HasPrefix(string(name), hugePages) {
			continue
		}
		from := "default"
		limit, given := limits.Default[name]
		if !given {
			from = "max"
			limit, given = limits.Max[name]
		}
		if request := limits.DefaultRequest[name]; given && request.Cmp(limit) < 0 { // ordered refuses a higher request
			all = append(all, makeFinding(at.Key(string(name)), "a container's request and limit of %s must be equal, so this and %s must be the same; write %s in both", name, from, limit.String())...)
		}
	}
	return all
}
