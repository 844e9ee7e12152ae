package why

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// behindPods reads the objects that pods wait for, or run on.
func (g *gatherer) behindPods(ctx context.Context) error {
	wanted := map[string]bool{}
	for i := range g.Pods {
		pod := &g.Pods[i]
		if pool := g.poolOf(pod); pool != "" {
			wanted[pool] = true
		}
		// The node of a ready pod matters only if the pod selects no pool: then the node
		// may belong to another tenant's pool.
		if name := pod.Spec.NodeName; name != "" && g.node(name) == nil && (!ready(pod) || g.Rules != nil && g.poolOf(pod) == "") {
			if err := g.oneNode(ctx, name); err != nil {
				return err
			}
		}
	}
	if err := g.nominated(ctx, wanted); err != nil {
		return err
	}
	if err := g.repellents(ctx); err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	for pool := range wanted {
		if err := g.onePool(ctx, pool); err != nil {
			return err
		}
	}
	if err := g.unlaunched(ctx); err != nil {
		return err
	}
	// Karpenter's events about cluster-scoped objects are in the namespace default.
	if !g.hidden("nodeclaim") && g.Target.Namespace != metav1.NamespaceDefault {
		return g.events(ctx, metav1.NamespaceDefault)
	}
	return nil
}

// unlaunched reads the NodeClaims without an instance, which block all of Karpenter's
// decisions.
func (g *gatherer) unlaunched(ctx context.Context) error {
	var claims karpenterv1.NodeClaimList
	if err := g.list(ctx, "nodeclaim", &claims); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Status.ProviderID == "" {
			g.Unlaunched = append(g.Unlaunched, claim)
		}
	}
	return nil
}

// nominated reads the NodeClaims that Karpenter nominated for pods. Pods of the platform
// select no pool, so their claims are not read otherwise.
func (g *gatherer) nominated(ctx context.Context, wanted map[string]bool) error {
	for i := range g.Pods {
		_, name := karpenterSays(g.Snapshot, &g.Pods[i])
		if name == "" || g.Pods[i].Spec.NodeName != "" || g.claimKnown(name) {
			continue
		}
		var claim karpenterv1.NodeClaim
		found, err := g.get(ctx, "nodeclaim", "", name, &claim)
		if err != nil {
			return err
		}
		if found {
			wanted[claim.Labels[nodePoolLabel]] = true
		}
	}
	return nil
}

// onePool reads a NodePool, its node class, its claims, and the nodes of claims that are
// not initialized.
func (g *gatherer) onePool(ctx context.Context, name string) error {
	var pool karpenterv1.NodePool
	found, err := g.get(ctx, "nodepool", "", name, &pool)
	if err != nil {
		return err
	}
	if found {
		g.Pools = append(g.Pools, pool)
		if err := g.class(ctx, name, pool.Spec.Template.Spec.NodeClassRef); err != nil {
			return err
		}
	}
	var claims karpenterv1.NodeClaimList
	if err := g.list(ctx, "nodeclaim", &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: name}); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if g.claimKnown(claim.Name) {
			continue
		}
		g.Claims = append(g.Claims, claim)
		if node := claim.Status.NodeName; node != "" && !done(&claim) && g.node(node) == nil {
			if err := g.oneNode(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gatherer) claimKnown(name string) bool {
	return find(g.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == name }) != nil
}

// class reads a node class of any provider.
func (g *gatherer) class(ctx context.Context, pool string, ref *karpenterv1.NodeClassReference) error {
	if ref == nil {
		return nil
	}
	gk := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	version := "v1"
	if mapper, ok := g.Reader.(interface{ RESTMapper() meta.RESTMapper }); ok {
		mapping, err := mapper.RESTMapper().RESTMapping(gk)
		if err != nil {
			_, err = g.ask(strings.ToLower(ref.Kind), err)
			return err
		}
		version = mapping.GroupVersionKind.Version
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(gk.WithVersion(version))
	found, err := g.get(ctx, strings.ToLower(ref.Kind), "", ref.Name, class)
	if found {
		g.Classes[pool] = class
	}
	return err
}

func (g *gatherer) oneNode(ctx context.Context, name string) error {
	var node corev1.Node
	found, err := g.get(ctx, "node", "", name, &node)
	if found {
		g.Nodes = append(g.Nodes, node)
	}
	return err
}
