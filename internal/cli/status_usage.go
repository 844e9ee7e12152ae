package cli

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// usage is the quota usage of a tenant's namespace.
type usage struct {
	Tenant    string              `json:"tenant"`
	Namespace string              `json:"namespace"`
	Hard      corev1.ResourceList `json:"hard"`
	Used      corev1.ResourceList `json:"used"`
}

// usageOf reads the quotas of the tenants' namespaces with one list request.
func usageOf(ctx context.Context, c client.Reader, tenants []v1alpha1.Tenant) ([]usage, error) {
	var quotas corev1.ResourceQuotaList
	if err := c.List(ctx, &quotas, client.MatchingLabels{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}); err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for i := range tenants {
		named[tenants[i].Name] = true
	}
	all := []usage{}
	for _, q := range quotas.Items {
		tenant := q.Labels[v1alpha1.TenantLabel]
		if named[tenant] {
			all = append(all, usage{Tenant: tenant, Namespace: q.Namespace, Hard: q.Status.Hard, Used: q.Status.Used})
		}
	}
	slices.SortFunc(all, func(x, y usage) int {
		return cmp.Or(cmp.Compare(x.Tenant, y.Tenant), cmp.Compare(x.Namespace, y.Namespace))
	})
	return all, nil
}

// used returns the usage of a resource by all namespaces together, as used/hard. names are
// the resource's possible names in a quota.
func used(all []usage, names ...corev1.ResourceName) string {
	for _, name := range names {
		var hard, sum resource.Quantity
		bounded := false
		for _, u := range all {
			if h, ok := u.Hard[name]; ok {
				bounded = true
				hard.Add(h)
				sum.Add(u.Used[name])
			}
		}
		if bounded {
			return sum.String() + "/" + hard.String()
		}
	}
	return "-"
}

// printUsage prints each namespace's usage of each resource.
func (a *app) printUsage(all []usage) {
	var rows [][]string
	for _, u := range all {
		names := make([]corev1.ResourceName, 0, len(u.Hard))
		for name := range u.Hard {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			hard, now := u.Hard[name], u.Used[name]
			rows = append(rows, []string{u.Tenant, u.Namespace, string(name), now.String(), hard.String()})
		}
	}
	if len(rows) > 0 {
		say(a.out, "\n")
		table(a.out, []string{"TENANT", "NAMESPACE", "RESOURCE", "USED", "HARD"}, rows)
	}
}
