package migrate

import (
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/wording"
)

// completeFields sets the fields that pools and tenants share.
func completeFields(d *draft.Draft) {
	d.Platform.ClusterName = d.ClusterName()
	if d.Platform.ClusterName == "" {
		d.ReportMissing("platform.clusterName", "the input does not name the cluster: set --cluster-name to the cluster's name in the cloud")
	}
	if d.Options.GroupPrefix != "" {
		d.Platform.GroupPrefix = d.Options.GroupPrefix
	}
	if d.Options.Kwok {
		simulateNodes(d)
	}
	noteAdoption(d)
	for _, name := range slices.Sorted(maps.Keys(d.Tenants)) {
		switch t := d.Tenants[name]; {
		case len(t.Pools()) == 0:
			d.Reported[name] = true
			d.ReportProblem(t.From.Root(), "the input does not name a pool for the pods of tenant %[1]s: croft.yaml omits tenant %[1]s until it has one", name)
		case len(t.Pools()) > 1 && t.Placed.Object() != nil:
			d.ReportProblem(t.Placed, "the pods of tenant %s may run on nodes of pools %s: croft runs them on the first, unless they select another by %s; write the pool that they need first, or write only that pool",
				name, strings.Join(t.Pools(), ", "), d.Key)
		}
	}
	shareNodeClass(d)
	if (d.Platform.NodeClass == v1alpha1.NodeClass{}) {
		d.ReportMissing("platform.nodeClass",
			"the input has no node class: write aws: {role: ...}, or ref: to a node class of yours, or try the result with --node-class kwok")
	}
}

// noteAdoption adds a note about how croft adopts existing namespaces.
func noteAdoption(d *draft.Draft) {
	const most = 10
	if len(d.NotAdoptable) > 0 {
		d.AddNote("namespaces of these tenants exist: adopt one tenant after the other, as a platform admin, with `croft adopt tenant NAME -f croft.yaml`: %s", wording.FormatFirst(d.NotAdoptable, most))
	}
	for _, kind := range []string{"RoleBinding", "ResourceQuota", "LimitRange", "NetworkPolicy"} {
		if slices.ContainsFunc(d.Objects, func(o *source.Object) bool {
			return o.Kind == kind && !draft.IsManaged(o) && d.FindTenant(o.Namespace) != ""
		}) {
			d.AddNote("existing RoleBindings, quotas, limits and network policies in tenants' namespaces stay in force in addition to croft's: " +
				"delete them after a successful croft verify")
			break
		}
	}
}

// simulateNodes changes all pools to simulated nodes.
func simulateNodes(d *draft.Draft) {
	for _, p := range d.Pools {
		p.Spec.NodeClass = nil
	}
	d.Platform.NodeClass = v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}
	d.Manifests = nil
	d.AddNote("--node-class kwok: every pool has simulated nodes, and the node classes in this report are not written: use the result to try it, and not on a cluster with real workloads")
}
