package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"croft.dev/croft/api/v1alpha1"
)

// complete fills in what pools and tenants have in common.
func (d *draft) complete() {
	d.platform.ClusterName = d.clusterName()
	if d.platform.ClusterName == "" {
		d.missing("platform.clusterName", "nothing that was read names the cluster: say --cluster-name NAME, the name that the cloud knows it by")
	}
	if d.options.GroupPrefix != "" {
		d.platform.GroupPrefix = d.options.GroupPrefix
	}
	if d.options.Kwok {
		d.simulate()
	}
	d.adoption()
	for _, name := range slices.Sorted(maps.Keys(d.tenants)) {
		if t := d.tenants[name]; t.spec.Pool == "" && len(t.spec.Pools) == 0 {
			d.told[name] = true
			d.problem(t.from.Root(), "nothing that was read says which pool the pods of tenant %s run on: it is left out of croft.yaml until you give it one", name)
		}
	}
	d.share()
	if (d.platform.NodeClass == v1alpha1.NodeClass{}) {
		d.missing("platform.nodeClass",
			"nothing that was read says what nodes are made from: write aws: {role: ...}, or ref: to a node class of yours, or try the result with --node-class kwok")
	}
}

// adoption says how croft is permitted to take over what there is already.
func (d *draft) adoption() {
	const told = 10
	if n := len(d.standing); n > 0 {
		commands := strings.Join(d.standing[:min(n, told)], "; ")
		if n > told {
			commands += fmt.Sprintf("; and so on, for %d namespaces", n)
		}
		d.note("the namespaces of tenants are there already: as a platform admin, permit croft to take them over before you apply: %s", commands)
	}
	for _, kind := range []string{"RoleBinding", "ResourceQuota", "LimitRange", "NetworkPolicy"} {
		if slices.ContainsFunc(d.objects, func(o *Object) bool { return o.Kind == kind && !managed(o) && d.tenantOf(o.Namespace) != "" }) {
			d.note("RoleBindings, quotas, limits and network policies that are in tenants' namespaces stay there beside croft's, and add up with them, until you delete them: " +
				"do so once croft verify is good")
			break
		}
	}
}

// simulate puts all pools on simulated nodes.
func (d *draft) simulate() {
	for _, p := range d.pools {
		p.spec.NodeClass = nil
	}
	d.platform.NodeClass = v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}
	d.manifests = nil
	d.note("--node-class kwok: every pool has simulated nodes, and the node classes in this report are not written: for trying the result, not for a cluster with work in it")
}

// discoveryTag is the tag by which Karpenter's own guides find what is a cluster's.
const discoveryTag = "karpenter.sh/discovery"

// clusterName is what a person said, a values file or settings say, or tags.
func (d *draft) clusterName() string {
	if d.options.ClusterName != "" {
		return d.options.ClusterName
	}
	if d.platform.ClusterName != "" {
		return d.platform.ClusterName
	}
	for _, o := range d.valuesFiles() {
		if name := o.At("global", "clusterName").Text(); name != "" {
			return name
		}
	}
	votes := map[string]int{}
	for _, o := range d.objects {
		if o.skip || !reads(o) || o.Group() != karpenterGroup && o.Group() != awsGroup {
			continue
		}
		o.leaves(func(path []string) {
			value, _ := o.value(path).(string)
			key := path[len(path)-1]
			switch name, owned := cutPrefix(key, "kubernetes.io/cluster/"); {
			case key == discoveryTag && value != "" && !strings.Contains(value, "*"):
				votes[value] += 2
			case owned:
				votes[name]++
			}
		})
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(votes)) {
		if votes[name] > votes[best] {
			best = name
		}
	}
	if len(votes) > 1 {
		d.note("the tags that were read name several clusters, %s: croft.yaml is for %s; say --cluster-name if that is wrong",
			strings.Join(slices.Sorted(maps.Keys(votes)), ", "), best)
	}
	return best
}
