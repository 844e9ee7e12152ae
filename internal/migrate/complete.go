package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/migrate/draft"
	"croft.dev/croft/internal/migrate/source"
)

// completeFields sets the fields that pools and tenants share.
func completeFields(d *draft.Draft) {
	d.Platform.ClusterName = d.ClusterName()
	if d.Platform.ClusterName == "" {
		d.ReportMissing("platform.clusterName", "nothing that was read names the cluster: say --cluster-name NAME, the name that the cloud knows it by")
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
			d.Told[name] = true
			d.ReportProblem(t.From.Root(), "nothing that was read says which pool the pods of tenant %s run on: it is left out of croft.yaml until you give it one", name)
		case len(t.Pools()) > 1 && t.Placed.Object() != nil:
			d.ReportProblem(t.Placed, "allows the pods of tenant %s nodes of pools %s: croft runs them on the first, unless they select another by %s; put the one that they need first, or alone",
				name, strings.Join(t.Pools(), ", "), d.Key)
		}
	}
	shareNodeClass(d)
	if (d.Platform.NodeClass == v1alpha1.NodeClass{}) {
		d.ReportMissing("platform.nodeClass",
			"nothing that was read says what nodes are made from: write aws: {role: ...}, or ref: to a node class of yours, or try the result with --node-class kwok")
	}
}

// noteAdoption adds a note about how croft adopts existing namespaces.
func noteAdoption(d *draft.Draft) {
	const most = 10
	if n := len(d.Standing); n > 0 {
		names := strings.Join(d.Standing[:min(n, most)], ", ")
		if n > most {
			names += fmt.Sprintf(" and %d more", n-most)
		}
		d.AddNote("namespaces of these tenants exist: adopt one tenant after the other, as a platform admin, with `croft adopt tenant NAME -f croft.yaml`: %s", names)
	}
	for _, kind := range []string{"RoleBinding", "ResourceQuota", "LimitRange", "NetworkPolicy"} {
		if slices.ContainsFunc(d.Objects, func(o *source.Object) bool {
			return o.Kind == kind && !draft.IsManaged(o) && d.FindTenant(o.Namespace) != ""
		}) {
			d.AddNote("RoleBindings, quotas, limits and network policies that are in tenants' namespaces stay there beside croft's, and add up with them, until you delete them: " +
				"do so once croft verify is good")
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
	d.AddNote("--node-class kwok: every pool has simulated nodes, and the node classes in this report are not written: for trying the result, not for a cluster with work in it")
}
