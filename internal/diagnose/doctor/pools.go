package doctor

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/why"
)

// checkNodeClasses checks the node classes of NodePools.
func checkNodeClasses(s *Snapshot) []Finding {
	var all []Finding
	reported := map[karpenterv1.NodeClassReference]bool{}
	for i := range s.NodePools {
		ref := s.NodePools[i].Spec.Template.Spec.NodeClassRef
		if ref == nil || reported[*ref] {
			continue
		}
		reported[*ref] = true
		object := ref.Kind + "/" + ref.Name
		class, ok := s.Classes[*ref]
		if !ok {
			if _, unread := s.Unreadable[readClasses]; !unread {
				all = append(all, newFinding("node-class-not-found", Problem, object, "it does not exist, and NodePool "+s.NodePools[i].Name+" names it"))
			}
			continue
		}
		for _, step := range why.EvaluateClass(object, class, s.Now) {
			if step.Verdict == why.Bad {
				all = append(all, toProblem(step, "Karpenter's log shows more"))
			}
		}
	}
	return all
}

// checkNodePools reports conditions of NodePools, refused launches, and NodePools of others that could be mistaken
// for croft's.
func checkNodePools(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		object := "NodePool/" + pool.Name
		for _, c := range pool.Status.Conditions {
			if c.Type != "Ready" && c.Status == metav1.ConditionFalse {
				all = append(all, newProblem(object, catalog.FormatCondition(c.Type, string(c.Status), c.Reason, c.Message), "follow the message"))
			}
		}
		if text := why.FormatRefusal(pool); text != "" {
			all = append(all, newProblem(object, text, "`croft why nodepool/"+pool.Name+"` shows more"))
		}
		if len(pool.Status.Conditions) == 0 && s.Now.Sub(pool.CreationTimestamp.Time) > why.Usual {
			all = append(all, newFinding("node-class-unknown", Problem, object, "Karpenter has not reconciled it: Karpenter does not run, or does not support node classes of its group"))
		}
		if pool.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			if message := describeOverlap(s, pool); message != "" {
				all = append(all, newFinding("pool-overlaps", Problem, object, message))
			}
		}
	}
	return all
}

// describeOverlap describes how a NodePool that is not croft's could get tenants' pods, which
// select nodes by the label of pools.
func describeOverlap(s *Snapshot, pool *karpenterv1.NodePool) string {
	key := s.key()
	value, labelled := pool.Spec.Template.Labels[key]
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Key == key && r.Operator != corev1.NodeSelectorOpDoesNotExist {
			value, labelled = strings.Join(r.Values, ", "), true
		}
	}
	if !labelled {
		return ""
	}
	if !slices.ContainsFunc(pool.Spec.Template.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key }) {
		return fmt.Sprintf("it does not belong to croft, and gives its nodes the label %s=%s of tenants' pools without the taint", key, value)
	}
	return fmt.Sprintf("it does not belong to croft, and gives its nodes the label %s=%s of tenants' pools: their pods may run there", key, value)
}

// full is the used fraction of a pool's limit from which a warning is reported.
const full = 0.9

func checkLimits(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.NodePools {
		pool := &s.NodePools[i]
		for _, name := range sortKeys(pool.Spec.Limits) {
			limit, used := pool.Spec.Limits[name], pool.Status.Resources[name]
			share := used.AsApproximateFloat64() / max(limit.AsApproximateFloat64(), 1e-9)
			if share < full {
				continue
			}
			severity := Warning
			if share >= 1 {
				severity = Problem
			}
			all = append(all, newFinding("pool-full", severity, "NodePool/"+pool.Name, fmt.Sprintf("its nodes have %s of %s %s", used.String(), limit.String(), name)))
		}
	}
	return all
}

// checkDaemonSets reports DaemonSets that have no pod on the nodes of a tenants' pool only
// because of its taint.
func checkDaemonSets(s *Snapshot) []Finding {
	var all []Finding
	for i := range s.DaemonSets {
		set := &s.DaemonSets[i]
		if s.isTenantNamespace(set.Namespace) {
			continue
		}
		var without []string
		for j := range s.NodePools {
			pool := &s.NodePools[j]
			if taint := findUntolerated(pool, set, s.key()); taint != "" && selectsPool(set, pool) {
				without = append(without, pool.Name)
			}
		}
		if len(without) == 0 {
			continue
		}
		// A node does not work without system-node-critical DaemonSets.
		severity := Warning
		if set.Spec.Template.Spec.PriorityClassName == "system-node-critical" {
			severity = Problem
		}
		all = append(all, newFinding("daemonset-left-out", severity, "DaemonSet/"+set.Namespace+"/"+set.Name, "it does not tolerate the taint "+s.key()+" of "+formatSome(without)))
	}
	return all
}

// isTenantNamespace reports whether a namespace belongs to a tenant. A tenant's DaemonSets are
// placed like its other pods.
func (s *Snapshot) isTenantNamespace(namespace string) bool {
	return slices.ContainsFunc(s.Namespaces, func(n corev1.Namespace) bool { return n.Name == namespace })
}

func findUntolerated(pool *karpenterv1.NodePool, set *appsv1.DaemonSet, key string) string {
	for _, taint := range pool.Spec.Template.Spec.Taints {
		if taint.Key != key {
			continue
		}
		if !slices.ContainsFunc(set.Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Background(), &taint, false) }) {
			return taint.ToString()
		}
	}
	return ""
}

// selectsPool reports whether a DaemonSet selects nodes of a pool. A DaemonSet for Windows, or
// for another team's nodes, does not.
func selectsPool(set *appsv1.DaemonSet, pool *karpenterv1.NodePool) bool {
	for key, value := range set.Spec.Template.Spec.NodeSelector {
		if got, ok := pool.Spec.Template.Labels[key]; ok {
			if got != value {
				return false
			}
			continue
		}
		if !allowsLabel(pool, key, value) {
			return false
		}
	}
	return true
}

// allowsLabel reports whether nodes of a pool may have a value of a label.
func allowsLabel(pool *karpenterv1.NodePool, key, value string) bool {
	for _, r := range pool.Spec.Template.Spec.Requirements {
		if r.Key == key {
			return r.Operator == corev1.NodeSelectorOpExists || (r.Operator == corev1.NodeSelectorOpIn) == slices.Contains(r.Values, value)
		}
	}
	return karpenterv1.WellKnownLabels.Has(key)
}
