package estate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"croft.dev/croft/api/v1alpha1"
)

// checkMinimums refuses minimums that cannot be guaranteed: for namespaces of others, for
// resources that the quota does not count, and for more than the quota in total.
func checkMinimums(w *checker, t *v1alpha1.Tenant) []finding {
	at := field.NewPath("spec", "quotaMinimums")
	quota, namespaces := resolveQuota(&w.platform, t), listNamespaces(t)
	if len(t.Spec.QuotaMinimums) > 0 && len(quota) == 0 {
		return makeFinding(at, "the tenant has no quota of which to reserve a part; set quota, or leave quotaMinimums out")
	}
	var all []finding
	sums := corev1.ResourceList{}
	for _, namespace := range slices.Sorted(maps.Keys(t.Spec.QuotaMinimums)) {
		if !slices.Contains(namespaces, namespace) {
			all = append(all, makeFinding(at.Key(namespace), "is not one of the tenant's namespaces, which are %s", strings.Join(namespaces, ", "))...)
			continue
		}
		minimum := t.Spec.QuotaMinimums[namespace]
		all = append(all, checkAmounts(at.Key(namespace), minimum)...)
		all = append(all, findUncounted(at.Key(namespace), minimum, quota)...)
		for name, amount := range minimum {
			sum := sums[name]
			sum.Add(amount)
			sums[name] = sum
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum := sums[name]
		if total, ok := quota[name]; ok && sum.Cmp(total) > 0 {
			all = append(all, makeFinding(at, "together they reserve %s of %s, and the quota is %s; lower them, or raise the quota", sum.String(), name, total.String())...)
		}
	}
	return all
}

// findUncounted refuses resources of a minimum that the quota does not count.
func findUncounted(at *field.Path, minimum, quota corev1.ResourceList) []finding {
	var all []finding
	for _, name := range slices.Sorted(maps.Keys(minimum)) {
		if _, ok := quota[name]; ok {
			continue
		}
		names := make([]string, 0, len(quota))
		for counted := range quota {
			names = append(names, string(counted))
		}
		slices.Sort(names)
		all = append(all, makeFinding(at.Key(string(name)), "the tenant's quota does not include %s, only %s; add it to quota, or leave it out here",
			name, strings.Join(names, ", "))...)
	}
	return all
}
