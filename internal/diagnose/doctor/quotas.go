package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"croft.dev/croft/api/v1alpha1"
)

// gatherQuotas reads the LimitRanges and ResourceQuotas of tenants' namespaces.
func (g *gatherer) gatherQuotas(ctx context.Context) {
	var ranges corev1.LimitRangeList
	g.ReadList(ctx, readQuotas, &ranges)
	var quotas corev1.ResourceQuotaList
	g.ReadList(ctx, readQuotas, &quotas)
	g.Ranges, g.Quotas = dropDeleted(ranges.Items), dropDeleted(quotas.Items)
}

// checkQuotas reports LimitRanges and ResourceQuotas in one namespace that contradict each
// other: the API server enforces all of them, regardless of their author.
func checkQuotas(s *Snapshot) []Finding {
	ranges, quotas := map[string][]corev1.LimitRange{}, map[string][]corev1.ResourceQuota{}
	for _, r := range s.Ranges {
		ranges[r.Namespace] = append(ranges[r.Namespace], r)
	}
	for _, q := range s.Quotas {
		quotas[q.Namespace] = append(quotas[q.Namespace], q)
	}
	var all []Finding
	for _, tenant := range s.listTenants() {
		for _, namespace := range tenant.Namespaces {
			if s.RefusedNamespaces[namespace] != nil {
				continue
			}
			for _, f := range slices.Concat(findContradictions(ranges[namespace]), findNarrower(quotas[namespace]), findUndefaulted(quotas[namespace], ranges[namespace])) {
				f.Object, f.Message = "Tenant/"+tenant.Name, "namespace "+namespace+": "+f.Message
				all = append(all, f)
			}
		}
	}
	return all
}

// bound is a LimitRange's value for one resource of containers.
type bound struct {
	source string
	value  resource.Quantity
}

func (b bound) String() string { return b.value.String() + " of LimitRange " + b.source }

// findStrictest returns for each resource the value that better prefers to all others. A
// maximum for pods also limits each of their containers.
func findStrictest(ranges []corev1.LimitRange, types []corev1.LimitType, values func(corev1.LimitRangeItem) corev1.ResourceList, better func(int) bool) map[corev1.ResourceName]bound {
	all := map[corev1.ResourceName]bound{}
	for _, r := range ranges {
		for _, item := range r.Spec.Limits {
			if !slices.Contains(types, item.Type) {
				continue
			}
			for name, value := range values(item) {
				if strictest, ok := all[name]; !ok || better(value.Cmp(strictest.value)) {
					all[name] = bound{r.Name, value}
				}
			}
		}
	}
	return all
}

var (
	ofContainers = []corev1.LimitType{corev1.LimitTypeContainer}
	ofPods       = []corev1.LimitType{corev1.LimitTypeContainer, corev1.LimitTypePod}
	less         = func(c int) bool { return c < 0 }
	more         = func(c int) bool { return c > 0 }
)

// findContradictions reports minimums and defaults of LimitRanges that another LimitRange
// refuses.
func findContradictions(ranges []corev1.LimitRange) []Finding {
	maxima := findStrictest(ranges, ofPods, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Max }, less)
	least := findStrictest(ranges, ofContainers, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Min }, more)
	high := findStrictest(ranges, ofContainers, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Default }, more)
	low := findStrictest(ranges, ofContainers, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.DefaultRequest }, less)
	var all []Finding
	add := func(severity Severity, format string, args ...any) {
		all = append(all, Finding{
			Severity: severity, Message: fmt.Sprintf(format, args...),
			Fix: "change one of the two, or delete the other one; croft's LimitRange follows `limits` of the Tenant",
		})
	}
	for _, name := range sortKeys(maxima) {
		limit := maxima[name]
		if b, ok := least[name]; ok && b.value.Cmp(limit.value) > 0 {
			add(Problem, "no container is admitted: the minimum of %s is %s, and the maximum %s", name, b, limit)
		}
		if b, ok := high[name]; ok && b.value.Cmp(limit.value) > 0 {
			add(Problem, "containers without a limit are refused: the default limit of %s is %s, and the maximum %s", name, b, limit)
		}
	}
	for _, name := range sortKeys(least) {
		if b, ok := low[name]; ok && b.value.Cmp(least[name].value) < 0 {
			add(Problem, "containers without a request are refused: the default request of %s is %s, and the minimum %s", name, b, least[name])
		}
	}
	return all
}

// findNarrower reports other quotas that allow less than croft's.
func findNarrower(quotas []corev1.ResourceQuota) []Finding {
	i := slices.IndexFunc(quotas, func(q corev1.ResourceQuota) bool { return q.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy })
	if i < 0 {
		return nil
	}
	var all []Finding
	for _, q := range quotas {
		if q.Name == quotas[i].Name || !countsEverything(&q) {
			continue
		}
		var texts []string
		for _, name := range sortKeys(q.Spec.Hard) {
			value, share := q.Spec.Hard[name], quotas[i].Spec.Hard[name]
			if _, ok := quotas[i].Spec.Hard[name]; ok && value.Cmp(share) < 0 {
				texts = append(texts, fmt.Sprintf("%s %s instead of %s", name, value.String(), share.String()))
			}
		}
		if len(texts) > 0 {
			all = append(all, Finding{
				Severity: Warning, Message: "ResourceQuota " + q.Name + " allows less than croft's: " + formatSome(texts),
				Fix: "set `quota` of the Tenant to the intended values, and delete that ResourceQuota",
			})
		}
	}
	return all
}

// countsEverything reports whether a quota has no scopes, and so counts all objects.
func countsEverything(q *corev1.ResourceQuota) bool {
	return len(q.Spec.Scopes) == 0 && q.Spec.ScopeSelector == nil
}

// findUndefaulted reports requests and limits of CPU and memory that a quota counts and no
// LimitRange sets: the API server refuses every pod that does not specify them.
func findUndefaulted(quotas []corev1.ResourceQuota, ranges []corev1.LimitRange) []Finding {
	limits := findStrictest(ranges, ofContainers, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.Default }, more)
	requests := findStrictest(ranges, ofContainers, func(i corev1.LimitRangeItem) corev1.ResourceList { return i.DefaultRequest }, more)
	var all []Finding
	for _, q := range quotas {
		var texts []string
		for _, name := range sortKeys(q.Spec.Hard) {
			limit, isLimit := strings.CutPrefix(string(name), "limits.")
			counted := corev1.ResourceName(strings.TrimPrefix(limit, "requests."))
			_, set := limits[counted] // a limit is also the request if no request is set
			if !isLimit && !set {
				_, set = requests[counted]
			}
			if !set && (counted == corev1.ResourceCPU || counted == corev1.ResourceMemory) {
				texts = append(texts, string(name))
			}
		}
		if len(texts) > 0 && countsEverything(&q) {
			all = append(all, Finding{
				Severity: Warning, Message: "ResourceQuota " + q.Name + " counts " + formatSome(texts) + ", and no LimitRange has a default: pods without it are refused",
				Fix: "add a default to `limits` of the Tenant, or remove it from the quota",
			})
		}
	}
	return all
}
