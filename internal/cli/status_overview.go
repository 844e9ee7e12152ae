package cli

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

// printDeclared prints the pools and tenants, the tenants' quota usage, and the remains of
// deleted tenants.
func (a *app) printDeclared(look *overview) {
	a.printPools(look)
	a.printTenants(look)
	if look.hasNames() {
		a.printUsage(look.Usage)
		a.printFirstRefused(look.Tenants)
	}
	var rows []row
	for _, cells := range listShares(&manifest.Declaration{Platforms: []v1alpha1.Platform{look.Platform}, Tenants: look.Tenants}) {
		rows = append(rows, row{true, cells})
	}
	if len(rows) > 0 {
		a.printRows(look.selection, "namespace", []string{"TENANT", "NAMESPACE", "SHARE OF QUOTA"}, rows)
	}
	a.printRetained(look.selection, look.Retained)
}

func (a *app) printPools(look *overview) {
	var rows []row
	for i := range look.Pools {
		p := &look.Pools[i]
		ready, why := look.evaluateReady("Pool", p.Name, p.Generation, p.Status.Status)
		cells := []string{p.Name, ready, why}
		if !look.rendered {
			cells = append(cells, strconv.FormatInt(p.Status.Nodes, 10),
				dashIfZero(p.Status.Resources.Cpu().String()), dashIfZero(p.Status.Resources.Memory().String()),
				strconv.FormatInt(p.Status.Tenants, 10), formatAge(p.CreationTimestamp.Time))
		}
		rows = append(rows, row{look.isPoolReady(p), cells})
	}
	header := []string{"POOL", "READY", "REASON"}
	if !look.rendered { // only an operator counts nodes and tenants, and objects of a file have no age
		header = append(header, "NODES", "CPU", "MEMORY", "TENANTS", "AGE")
	}
	if len(rows) > 0 || !look.hasNames() {
		a.printRows(look.selection, "pool", header, rows)
	}
}

func (a *app) printTenants(look *overview) {
	var rows []row
	byTenant := map[string][]usage{}
	for _, u := range look.Usage {
		byTenant[u.Tenant] = append(byTenant[u.Tenant], u)
	}
	for i := range look.Tenants {
		t := &look.Tenants[i]
		ready, why := look.evaluateReady("Tenant", t.Name, t.Generation, t.Status.Status)
		cells := []string{
			t.Name, ready, why, shortenNames(t.Status.Pools), shortenNames(t.Status.Namespaces),
			formatUsage(byTenant[t.Name], corev1.ResourceRequestsCPU, corev1.ResourceCPU),
			formatUsage(byTenant[t.Name], corev1.ResourceRequestsMemory, corev1.ResourceMemory),
			formatUsage(byTenant[t.Name], corev1.ResourcePods, "count/pods"),
		}
		if !look.rendered {
			cells = append(cells, formatRefusedCount(t), formatAge(t.CreationTimestamp.Time))
		}
		if look.wide || look.hasNames() {
			cells = append(cells, dashIfEmpty(t.Spec.Owner), dashIfEmpty(t.Spec.Contact))
		}
		rows = append(rows, row{look.isTenantReady(t), cells})
	}
	header := []string{"TENANT", "READY", "REASON", "POOLS", "NAMESPACES", "CPU", "MEMORY", "PODS"}
	if !look.rendered {
		header = append(header, "REFUSED", "AGE")
	}
	if look.wide || look.hasNames() { // otherwise the table of all tenants is wide enough
		header = append(header, "OWNER", "CONTACT")
	}
	if len(rows) > 0 || !look.hasNames() {
		a.printRows(look.selection, "tenant", header, rows)
	}
}
