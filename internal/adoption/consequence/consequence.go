// Package consequence describes the effects of a change of the declared objects on existing
// nodes, on pods and on users; no I/O.
package consequence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/operate/drift"
)

// Kind is the subject of a consequence.
type Kind string

// These are the kinds of consequences.
const (
	Nodes      Kind = "Nodes"
	Pods       Kind = "Pods"
	Access     Kind = "Access"
	Namespaces Kind = "Namespaces"
	Protection Kind = "Protection"
)

// Consequence is one effect of a change.
type Consequence struct {
	Kind Kind `json:"kind"`
	// Object is the declared object, such as Pool/apps.
	Object string `json:"object"`
	// Message is one line for users.
	Message string `json:"message"`
}

// Facts are the cluster's objects that belong to the compared estates.
type Facts struct {
	// Pools are the existing objects of pools, by name.
	Pools map[string]PoolFacts
	// Namespaces are the namespaces of tenants.
	Namespaces []corev1.Namespace
	// Pods are the pods of the tenants whose pools or namespaces change.
	Pods []corev1.Pod
	// Nodes are the pools of nodes.
	Nodes move.Nodes
}

// PoolFacts are the existing objects of one pool.
type PoolFacts struct {
	Live   drift.Pool
	Claims []karpenterv1.NodeClaim
}

// Compare returns the consequences of changing one estate into another. desired returns the objects
// of a pool in the second. If either estate is nil, there are no known consequences.
func Compare(before, after *estate.Estate, facts Facts, desired func(*estate.Pool) drift.Pool) []Consequence {
	if before == nil || after == nil {
		return nil
	}
	var all []Consequence
	for _, pool := range after.Pools {
		before := facts.Pools[pool.Name]
		will := desired(pool)
		all = append(all, describePool(pool.Name, drift.Compare(before.Live, will, before.Claims), poolChange{before.Live, will}, len(before.Claims))...)
	}
	for _, pool := range before.Pools {
		if n := len(facts.Pools[pool.Name].Claims); n > 0 && after.FindPool(pool.Name) == nil {
			all = append(all, Consequence{Nodes, "Pool/" + pool.Name, fmt.Sprintf("pool %s is deleted: Karpenter drains and deletes %s", pool.Name, wording.FormatCount(n, "node"))})
		}
	}
	for _, tenant := range before.Tenants {
		all = append(all, describeTenant(before, tenant, after.FindTenant(tenant.Name), facts)...)
	}
	return append(all, describePlatform(&before.Platform, &after.Platform)...)
}

func describePool(name string, effect drift.Effect, c poolChange, nodes int) []Consequence {
	if nodes == 0 {
		return nil
	}
	var all []Consequence
	add := func(format string, args ...any) {
		all = append(all, Consequence{Nodes, "Pool/" + name, fmt.Sprintf(format, args...)})
	}
	var reason string
	if len(effect.Fields) > 0 {
		reason = strings.Join(c.findDeclaredFields(effect.Fields), ", ") + ", which Karpenter compares with each node"
	} else {
		reason = "they no longer match the pool's requirements"
	}
	switch {
	case effect.Replaced > 0 && effect.HeldByBudget:
		add("%s of pool %s would be replaced (drift: %s), but a budget prevents it: only new nodes match the declaration", wording.FormatCount(effect.Replaced, "node"), name, reason)
	case effect.Replaced > 0:
		add("replaces %s of pool %s (drift: %s): their pods restart on new nodes, as the pool's budgets allow", wording.FormatCount(effect.Replaced, "node"), name, reason)
	}
	if len(effect.Dynamic) > 0 && effect.Replaced < nodes {
		add("may replace nodes of pool %s (drift): the ones that %s no longer select", name, strings.Join(effect.Dynamic, ", "))
	}
	if effect.Consolidates {
		add("pods of pool %s restart as Karpenter moves them to fewer nodes (consolidation)", name)
	}
	return all
}

// poolChange are the objects of a pool before and after a change.
type poolChange struct{ before, after drift.Pool }

// findDeclaredFields returns the fields of a Pool or a Platform that lead to changed fields of a NodePool
// or a node class.
func (c poolChange) findDeclaredFields(fields []string) []string {
	names := map[string]string{
		"annotations": "tags", "taints": "nodePoolKey", "nodeClassRef": "nodeClass",
		"terminationGracePeriod": "terminationGracePeriod", "expireAfter": "ttl",
	}
	var all []string
	for _, field := range fields {
		name, ok := names[field]
		switch {
		case field == "labels":
			all = append(all, c.findLabelFields()...)
		case field == "startupTaints":
			all = append(all, c.findTaintFields()...)
		case ok:
			all = append(all, name)
		default:
			all = append(all, "nodeClass.aws."+field)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// findTaintFields returns the fields that lead to the changed startup taints of nodes.
func (c poolChange) findTaintFields() []string {
	before, after := c.before.NodePool.Spec.Template.Spec.StartupTaints, c.after.NodePool.Spec.Template.Spec.StartupTaints
	var all []string
	for taint := range sets.New(before...).SymmetricDifference(sets.New(after...)) {
		if taint.Key == v1alpha1.NetworksTaint {
			all = append(all, "waitForNetworks")
		} else {
			all = append(all, "startupTaints")
		}
	}
	return all
}

// findLabelFields returns the fields that lead to the changed labels of nodes.
func (c poolChange) findLabelFields() []string {
	before, after := c.before.NodePool.Spec.Template.Labels, c.after.NodePool.Spec.Template.Labels
	names := map[string]string{v1alpha1.CostCodeLabel: "costCode", v1alpha1.NodeNetworksLabel: "waitForNetworks"}
	for _, pool := range []drift.Pool{c.before, c.after} {
		for _, taint := range pool.NodePool.Spec.Template.Spec.Taints {
			names[taint.Key] = "nodePoolKey"
		}
	}
	var all []string
	for _, labels := range []map[string]string{before, after} {
		for key := range labels {
			if before[key] != after[key] {
				all = append(all, cmp.Or(names[key], "label "+key))
			}
		}
	}
	return all
}

func describePlatform(before, after *estate.Platform) []Consequence {
	var all []Consequence
	add := func(format string, args ...any) {
		all = append(all, Consequence{Access, "Platform/" + v1alpha1.PlatformName, fmt.Sprintf(format, args...)})
	}
	for _, list := range []struct {
		before, after []string
		what          string
	}{
		{before.Admins, after.Admins, "platform admins: they may no longer declare objects"},
		{before.Auditors, after.Auditors, "platform auditors: they may no longer read the platform"},
		{before.ClassReaders, after.ClassReaders, "class readers"},
	} {
		if lost := findMissing(list.before, list.after); len(lost) > 0 {
			add("%s %s %s no longer among the %s", wording.FormatNoun(len(lost), "group"), wording.FormatFirst(lost, mostNames), conjugateBe(len(lost)), list.what)
		}
	}
	if before.Proxy != nil && after.Proxy == nil {
		add("croft proxy loses its rights: its users lose access to the cluster")
	}
	if before.Elevation != nil && after.Elevation == nil {
		add("elevations can no longer be requested, and running elevations end")
	}
	return all
}

// findMissing returns the elements of before that are not in after.
func findMissing(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(one string) bool { return slices.Contains(after, one) })
}

// mostNames is the maximum number of names in one line.
const mostNames = 5

func conjugateBe(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
