package policy

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
)

// Name is the name of the ResourceQuota and the LimitRange in every tenant namespace.
const Name = "croft"

// buildNamespace returns a namespace with the label by which every policy selects it, and with its
// Pod Security level. The level is also set for warnings, so that a Deployment whose pods
// would be refused gets a warning.
func buildNamespace(t *estate.Tenant, name string) *corev1.Namespace {
	// The estate refuses the platform's labels and annotations with keys that croft sets.
	labels := joinMaps(t.NamespaceLabels, t.ChosenLabels[name], t.BuildReferenceLabels(), map[string]string{
		v1alpha1.TenantLabel:                         t.Name,
		"pod-security.kubernetes.io/enforce":         string(t.PodSecurity),
		"pod-security.kubernetes.io/enforce-version": "latest",
		"pod-security.kubernetes.io/warn":            string(t.PodSecurity),
		"pod-security.kubernetes.io/warn-version":    "latest",
	})
	if t.CostCode != "" {
		labels[v1alpha1.CostCodeLabel] = t.CostCode
	}
	annotations := joinMaps(t.NamespaceAnnotations, buildSizeAnnotations(&t.Allowances))
	if t.BudgetStage != "" {
		labels[v1alpha1.BudgetLabel] = string(t.BudgetStage)
		annotations[v1alpha1.BudgetAnnotation] = t.BudgetText
	}
	if t.PriceText != "" {
		labels[v1alpha1.PriceLabel] = "true"
		annotations[v1alpha1.PriceAnnotation] = t.PriceText
	}
	if anchor, ok := t.Requested[name]; ok {
		annotations[v1alpha1.RequestedAnnotation] = anchor
	}
	if t.Freeze != nil {
		annotations[v1alpha1.FrozenLabel] = t.FreezeNotice
		labels[v1alpha1.FrozenLabel] = v1alpha1.FrozenCompletely
		if slices.Contains(t.Freeze.Except, v1alpha1.FreezeExceptScale) {
			labels[v1alpha1.FrozenLabel] = v1alpha1.FrozenExceptScale
		}
	}
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
	}
}

// joinMaps returns the entries of all maps. Later maps win.
func joinMaps(several ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, one := range several {
		maps.Copy(all, one)
	}
	return all
}

// buildSizeAnnotations returns the annotations with the maximum sizes of objects, in bytes.
func buildSizeAnnotations(may *v1alpha1.Allowances) map[string]string {
	return map[string]string{
		v1alpha1.MaxObjectBytesAnnotation:      strconv.FormatInt(*may.MaxObjectBytes, 10),
		v1alpha1.MaxHelmReleaseBytesAnnotation: strconv.FormatInt(*may.MaxHelmReleaseBytes, 10),
		v1alpha1.MaxOtherObjectBytesAnnotation: strconv.FormatInt(*may.MaxOtherObjectBytes, 10),
	}
}

// buildTenantRules returns the rules that the admission policies of all walls read.
func buildTenantRules(p *estate.Platform, t *estate.Tenant, namespace string) *v1alpha1.TenantRules {
	return &v1alpha1.TenantRules{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantRules"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.TenantRulesName},
		Spec:       buildRulesSpec(p, t, namespace),
	}
}

// buildRulesSpec returns the rules for a namespace. They are the same in all namespaces, except for
// SelfService. Lists are never null: otherwise the policies would have to check for null.
func buildRulesSpec(p *estate.Platform, t *estate.Tenant, namespace string) v1alpha1.TenantRulesSpec {
	spec := v1alpha1.TenantRulesSpec{
		Tenant:             t.Name,
		Pools:              t.Pools,
		Namespaces:         t.Namespaces,
		SelfService:        t.MayRequest > 0 && t.Declares(namespace),
		PlatformNamespaces: ensureNotNil(p.Network.PlatformNamespaces),
		Egress:             t.Egress,
		AllowCIDRs:         ensureNotNil(t.AllowCIDRs),
		Networks:           listNetworkNames(t),
		Domains:            ensureNotNil(t.Domains),
		Subjects:           listAllowedSubjects(t),
	}
	estate.CopyAllowances(&spec, &t.Allowances)
	return spec
}

// listNetworkNames returns the secondary networks that pods may request.
func listNetworkNames(t *estate.Tenant) []string {
	all := []string{}
	for i := range t.Networks {
		all = append(all, t.Networks[i].Name)
	}
	return all
}

func ensureNotNil(values []string) []string {
	if values == nil {
		return []string{}
	}
	return values
}

// buildQuota returns the namespace's share of the tenant's quota.
func buildQuota(t *estate.Tenant, namespace string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name},
		Spec:       corev1.ResourceQuotaSpec{Hard: t.Shares[namespace]},
	}
}

func buildLimitRange(t *estate.Tenant, namespace string) *corev1.LimitRange {
	return &corev1.LimitRange{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: Name},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			Default:        t.Limits.Default,
			DefaultRequest: t.Limits.DefaultRequest,
			Max:            t.Limits.Max,
			Min:            t.Limits.Min,
		}}},
	}
}
