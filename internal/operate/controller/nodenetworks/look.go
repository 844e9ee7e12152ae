package nodenetworks

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
)

// observeNodes collects the facts about each node. pools maps each pool to whether it waits for its
// networks.
func (c *Controller) observeNodes(ctx context.Context, pools map[string]bool) ([]*observation, error) {
	var nodes corev1.NodeList
	if err := c.client.List(ctx, &nodes, client.MatchingLabels{v1alpha1.NodeNetworksLabel: "true"}); err != nil {
		return nil, fmt.Errorf("list Nodes: %w", err)
	}
	claims, err := c.listClaims(ctx)
	if err != nil {
		return nil, err
	}
	needed, unread, err := c.listPlugins(ctx)
	if err != nil {
		return nil, err
	}
	ruled, err := c.listRuledPools(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	attached := c.attached
	c.mu.Unlock()
	all := make([]*observation, len(nodes.Items))
	for i := range nodes.Items {
		s := &observation{node: &nodes.Items[i], plugins: needed, unreadableReason: unread}
		if id := s.node.Spec.ProviderID; id != "" {
			s.claim = claims[id]
		}
		s.pool = s.node.Labels[karpenterv1.NodePoolLabelKey]
		if s.claim != nil {
			s.attached = attached[string(s.claim.UID)]
			s.pool = s.claim.Labels[karpenterv1.NodePoolLabelKey]
		}
		waits, known := pools[s.pool]
		s.gaveUp, s.hasReadinessRule = known && !waits, ruled[s.pool]
		all[i] = s
	}
	return all, nil
}

// listClaims returns the NodeClaims by provider ID.
func (c *Controller) listClaims(ctx context.Context) (map[string]*karpenterv1.NodeClaim, error) {
	var list karpenterv1.NodeClaimList
	if err := c.client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("list NodeClaims: %w", err)
	}
	byProvider := map[string]*karpenterv1.NodeClaim{}
	for i := range list.Items {
		byProvider[list.Items[i].Status.ProviderID] = &list.Items[i]
	}
	return byProvider, nil
}
