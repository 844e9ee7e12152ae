package estate

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// Specified are the resources that every container must set if a quota limits them:
// validationSet of the quota's pod evaluator in k8s.io/kubernetes.
var Specified = []corev1.ResourceName{
	corev1.ResourceCPU, corev1.ResourceMemory,
	corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory,
	corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory,
}

// ParseQuotaName returns the name of a container's resource that a quota's name counts, and
// whether it is a limit.
func ParseQuotaName(name corev1.ResourceName) (of corev1.ResourceName, limit bool) {
	plain, limit := strings.CutPrefix(string(name), "limits.")
	return corev1.ResourceName(strings.TrimPrefix(plain, corev1.DefaultResourceRequestsPrefix)), limit
}

// checkPlatformContainers applies checkContainerDefaults to the defaults of tenants.
func checkPlatformContainers(p *v1alpha1.PlatformSpec) []finding {
	if p.TenantDefaults.Quota == nil {
		return nil
	}
	at := field.NewPath("spec", "tenantDefaults", "quota").Key
	return checkContainerDefaults(at, p.TenantDefaults.Quota, cmp.Or(p.TenantDefaults.Limits, BuiltinLimits()))
}

// checkTenantContainers applies checkContainerDefaults to tenants with their own quota or
// limits.
func checkTenantContainers(w *checker, t *v1alpha1.Tenant) []finding {
	at := field.NewPath("spec", "quota").Key
	switch {
	case t.Spec.Quota != nil:
	case t.Spec.Limits != nil:
		at = func(string) *field.Path { return field.NewPath("spec", "limits") }
	default:
		return nil
	}
	return checkContainerDefaults(at, resolveQuota(&w.platform, t), resolveLimits(&w.platform.TenantDefaults, t))
}

// checkContainerDefaults warns of a quota that refuses every container without requests and limits,
// as in many charts and in injected containers: the quota counts a resource that has no
// default, or the default exceeds the whole quota.
func checkContainerDefaults(at func(name string) *field.Path, quota corev1.ResourceList, limits *v1alpha1.ContainerLimits) []finding {
	var all []finding
	for _, name := range Specified {
		most, counted := quota[name]
		if !counted {
			continue
		}
		of, isLimit := ParseQuotaName(name)
		value, fieldName := findDefault(limits, of, isLimit)
		want := map[bool]string{true: "limits.default.", false: "limits.defaultRequest."}[isLimit] + string(of)
		switch {
		case value == nil:
			all = append(all, makeWarning(at(string(name)), "with this quota every container must set %s, and there is no default: pods of charts and injected containers without it are refused; set %s, or leave %s out of the quota",
				name, want, name)...)
		case value.Cmp(most) > 0:
			all = append(all, makeWarning(at(string(name)), "the quota is %s, and a container without this setting gets %s by limits.%s.%s: each such container is refused; raise the quota, or lower the default",
				most.String(), value.String(), fieldName, of)...)
		}
	}
	return all
}

// findDefault returns the value for a container that sets none, and the field that it comes from.
// As in a LimitRange, max and min replace missing defaults.
func findDefault(limits *v1alpha1.ContainerLimits, of corev1.ResourceName, isLimit bool) (*resource.Quantity, string) {
	parts := []limitsPart{{"default", limits.Default}, {"max", limits.Max}}
	if !isLimit {
		parts = []limitsPart{{"defaultRequest", limits.DefaultRequest}, parts[0], parts[1], {"min", limits.Min}}
	}
	for _, part := range parts {
		if value, ok := part.list[of]; ok {
			return &value, part.name
		}
	}
	return nil, ""
}
