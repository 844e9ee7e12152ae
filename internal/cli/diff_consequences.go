package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/drift"
	"croft.dev/croft/internal/walls/wall"
)

// findConsequences returns the effects of a proposal on running pods and nodes. namespaces are the namespaces of all
// tenants.
func (p *proposal) findConsequences(ctx context.Context, namespaces []corev1.Namespace) ([]consequence.Consequence, error) {
	before, _ := estate.Build(p.live)
	if before == nil || p.after == nil {
		return nil, nil // there is no valid Platform yet
	}
	facts, err := p.readFacts(ctx, before, namespaces)
	if err != nil {
		return nil, fmt.Errorf("reading the objects for the consequences: %w", err)
	}
	return consequence.Compare(before, p.after, facts, func(pool *estate.Pool) drift.Pool {
		return drift.FindPool(wall.PoolObjects(&p.after.Platform, pool))
	}), nil
}

// readFacts reads the objects that consequences depend on. A kind that the cluster does not
// serve counts as a kind without objects.
func (p *proposal) readFacts(ctx context.Context, before *estate.Estate, namespaces []corev1.Namespace) (consequence.Facts, error) {
	f := consequence.Facts{Pools: map[string]consequence.PoolFacts{}, Namespaces: namespaces}
	if err := p.readPoolFacts(ctx, &f); err != nil {
		return f, err
	}
	for i := range f.Namespaces {
		if !p.changesTenant(before, f.Namespaces[i].Labels[v1alpha1.TenantLabel]) {
			continue
		}
		var pods corev1.PodList
		if err := p.client.List(ctx, &pods, client.InNamespace(f.Namespaces[i].Name)); err != nil {
			return f, err
		}
		f.Pods = append(f.Pods, pods.Items...)
	}
	var err error
	if len(f.Pods) > 0 {
		f.Nodes, err = move.ReadNodes(ctx, p.client, before.Platform.NodePoolKey)
		if apierrors.IsForbidden(err) {
			err = nil // a pod's node selector contains the pool, too
		}
	}
	return f, err
}

// changesTenant reports whether a tenant's pools, namespaces or deletion policy change, which may
// affect its pods.
func (p *proposal) changesTenant(before *estate.Estate, tenant string) bool {
	was, will := before.FindTenant(tenant), p.after.FindTenant(tenant)
	return was != nil && (will == nil || fmt.Sprint(was.Pools, was.Namespaces, was.Deletion) != fmt.Sprint(will.Pools, will.Namespaces, will.Deletion))
}

func (p *proposal) readPoolFacts(ctx context.Context, f *consequence.Facts) error {
	var nodePools karpenterv1.NodePoolList
	var claims karpenterv1.NodeClaimList
	classes := &unstructured.UnstructuredList{}
	classes.SetAPIVersion("karpenter.k8s.aws/v1")
	classes.SetKind("EC2NodeClassList")
	for _, list := range []client.ObjectList{&nodePools, &claims, classes} {
		if err := p.client.List(ctx, list); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for i := range nodePools.Items {
		pool := consequence.PoolFacts{Live: drift.Pool{NodePool: &nodePools.Items[i]}}
		name := nodePools.Items[i].Name
		for j := range classes.Items {
			if classes.Items[j].GetName() == name {
				pool.Live.Class = &classes.Items[j]
			}
		}
		for j := range claims.Items {
			if claims.Items[j].Labels[karpenterv1.NodePoolLabelKey] == name {
				pool.Claims = append(pool.Claims, claims.Items[j])
			}
		}
		f.Pools[name] = pool
	}
	return nil
}
