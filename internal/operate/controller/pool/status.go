package pool

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/launches"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/outcome"
	"croft.dev/croft/internal/operate/controller/status"
)

// observation is the result of one reconcile of a pool. The status is computed from
// it alone.
type observation struct {
	entry       declared.Entry[estate.Pool]
	hasPlatform bool
	// deleting reports whether the pool is being deleted and still in use, by tenants or by
	// retained namespaces.
	deleting bool
	retained []string
	// applied reports whether the pool's objects were written or found in place, with these
	// changes and the result err.
	applied bool
	changes []apply.Change
	err     error
	// maybeDeleted reports that the pool may have been deleted. croft did nothing, so the status
	// stays unchanged.
	maybeDeleted bool
	// nodePool has Karpenter's status. It is nil if the status is unknown.
	nodePool *karpenterv1.NodePool
}

// writeStatus writes the status after a reconcile that ended with err. It returns Ready if
// that has changed and is written.
func (c *Controller) writeStatus(ctx context.Context, before, pool *v1alpha1.Pool, s *observation, err error) (*metav1.Condition, error) {
	if s.maybeDeleted || c.retries.IsRacing(pool.Name, err) {
		return nil, nil
	}
	s.computeStatus(pool)
	if err := c.status.Patch(ctx, before, pool); err != nil {
		return nil, err
	}
	return status.FindChanged(&before.Status.Status, &pool.Status.Status, v1alpha1.ConditionReady), nil
}

// computeStatus computes the pool's status.
func (s *observation) computeStatus(pool *v1alpha1.Pool) {
	st, generation := &pool.Status.Status, pool.Generation
	pool.Status.Tenants = int64(len(s.entry.Users))
	status.Accept(st, generation, s.hasPlatform, s.entry.Problems)
	if s.applied && s.err == nil {
		status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied, "")
		s.reportNodes(pool)
	} else if s.applied {
		status.Set(st, generation, v1alpha1.ConditionApplied, metav1.ConditionFalse, outcome.Reason(s.err), s.err.Error())
	}
	switch {
	case len(s.retained) > 0:
		status.SetNotReady(st, generation, v1alpha1.ReasonInUse,
			"the pool has nodes, and namespaces of deleted tenants have pods that belong on them: "+wording.FormatFirst(s.retained, many)+
				": declare these tenants again, or delete the namespaces")
	case s.deleting:
		status.SetNotReady(st, generation, v1alpha1.ReasonInUse, "tenants use the pool: give another pool to "+wording.FormatFirst(s.entry.Users, many))
	default:
		status.SetReady(st, generation, v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionNodesReady)
	}
	status.SetProgress(st, generation, outcome.NeedsPerson(s.err))
}

// reportNodes copies Karpenter's status.
func (s *observation) reportNodes(pool *v1alpha1.Pool) {
	st, generation := &pool.Status.Status, pool.Generation
	if s.nodePool == nil {
		status.Set(st, generation, v1alpha1.ConditionNodesReady, metav1.ConditionUnknown, v1alpha1.ReasonNodePoolNotReady, "Karpenter has not reported yet")
		return
	}
	pool.Status.Nodes = ptr.Deref(s.nodePool.Status.Nodes, 0)
	pool.Status.Resources = omitZero(s.nodePool.Status.Resources)
	for _, condition := range s.nodePool.Status.Conditions {
		if condition.Type != v1alpha1.ConditionReady {
			continue
		}
		if refusal := launches.ReadRefusal(s.nodePool); refusal != nil {
			status.Set(st, generation, v1alpha1.ConditionNodesReady, metav1.ConditionFalse, v1alpha1.ReasonLaunchesRefused, refusal.Explain())
			return
		}
		if condition.Status == metav1.ConditionTrue {
			status.Set(st, generation, v1alpha1.ConditionNodesReady, metav1.ConditionTrue, v1alpha1.ReasonNodePoolReady, "")
			return
		}
		status.Set(st, generation, v1alpha1.ConditionNodesReady, condition.Status, v1alpha1.ReasonNodePoolNotReady, s.explainNodePool(condition.Reason, condition.Message))
		return
	}
	status.Set(st, generation, v1alpha1.ConditionNodesReady, metav1.ConditionUnknown, v1alpha1.ReasonNodePoolNotReady, "Karpenter has not processed the NodePool yet")
}

// explainNodePool adds the failed conditions to Karpenter's summary, which may be empty.
func (s *observation) explainNodePool(reason, message string) string {
	parts := []string{strings.TrimSuffix(reason+": "+message, ": ")}
	for _, condition := range s.nodePool.Status.Conditions {
		if condition.Type != v1alpha1.ConditionReady && condition.Status == metav1.ConditionFalse {
			parts = append(parts, strings.TrimSuffix(condition.Type+": "+condition.Message, ": "))
		}
	}
	return strings.Join(parts, "; ")
}

// omitZero omits resources of zero.
func omitZero(resources corev1.ResourceList) corev1.ResourceList {
	kept := corev1.ResourceList{}
	for name, quantity := range resources {
		if !quantity.IsZero() {
			kept[name] = quantity
		}
	}
	return kept
}

// many is the maximum number of names in a message.
const many = 10
