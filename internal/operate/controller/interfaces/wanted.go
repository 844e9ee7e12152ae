package interfaces

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/attach"
	"croft.dev/croft/internal/operate/controller/declared"
)

// listDesired returns the pools on AWS with secondary networks, and the valid networks that they
// use. others are the networks that no such pool uses. Invalid pools and networks are left
// out: for them nothing is created or deleted.
func (c *Controller) listDesired(ctx context.Context, snapshot *declared.Snapshot) (pools []attach.Pool, networks, others []*v1alpha1.SecondaryNetwork, err error) {
	var declaredPools v1alpha1.PoolList
	if err := c.client.List(ctx, &declaredPools); err != nil {
		return nil, nil, nil, fmt.Errorf("list Pools: %w", err)
	}
	used := map[string]bool{}
	for i := range declaredPools.Items {
		entry, _ := snapshot.Pool(declaredPools.Items[i].Name)
		if entry.Value == nil || entry.Value.Class.AWS == nil || len(entry.Value.SecondaryNetworks) == 0 {
			continue
		}
		pool := entry.Value
		pools = append(pools, attach.Pool{Name: pool.Name, Networks: pool.SecondaryNetworks, Tags: pool.Class.AWS.Tags})
		for _, name := range pool.SecondaryNetworks {
			used[name] = true
		}
	}
	var list v1alpha1.SecondaryNetworkList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, nil, nil, fmt.Errorf("list SecondaryNetworks: %w", err)
	}
	for i := range list.Items {
		n := &list.Items[i]
		entry, ok := snapshot.Network(n.Name)
		switch {
		case !used[n.Name]:
			others = append(others, n)
		case ok && entry.UID == n.UID && len(entry.Problems) == 0:
			networks = append(networks, n)
		}
	}
	slices.SortFunc(networks, func(a, b *v1alpha1.SecondaryNetwork) int { return cmp.Compare(a.Name, b.Name) })
	return pools, networks, others, nil
}

// convertClaims converts NodeClaims for the plan.
func convertClaims(list []karpenterv1.NodeClaim) []attach.Claim {
	claims := make([]attach.Claim, len(list))
	for i := range list {
		n := &list[i]
		claims[i] = attach.Claim{
			Name: n.Name, UID: string(n.UID), Pool: n.Labels[karpenterv1.NodePoolLabelKey], Zone: n.Labels[corev1.LabelTopologyZone],
			Instance: parseInstanceID(n.Status.ProviderID), InstanceType: n.Labels[corev1.LabelInstanceTypeStable], Deleting: !n.DeletionTimestamp.IsZero(),
		}
	}
	slices.SortFunc(claims, func(a, b attach.Claim) int { return cmp.Compare(a.Name, b.Name) })
	return claims
}

// parseInstanceID returns the instance ID in a provider ID such as aws:///us-west-2a/i-0123, or
// "" if it is not AWS's.
func parseInstanceID(providerID string) string {
	path, isAWS := strings.CutPrefix(providerID, "aws:///")
	_, id, ok := strings.Cut(path, "/")
	if !isAWS || !ok || !strings.HasPrefix(id, "i-") {
		return ""
	}
	return id
}

// newClaimPredicate passes NodeClaims that are created, deleted or launched. Their status changes far
// more often.
func newClaimPredicate() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*karpenterv1.NodeClaim)
		after, ok2 := e.ObjectNew.(*karpenterv1.NodeClaim)
		return !ok || !ok2 || convertClaim(before) != convertClaim(after)
	}}
}

// convertClaim returns all fields of a NodeClaim that the plan reads, as one comparable value.
func convertClaim(n *karpenterv1.NodeClaim) attach.Claim {
	return convertClaims([]karpenterv1.NodeClaim{*n})[0]
}
