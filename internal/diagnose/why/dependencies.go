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

// gatherPodDependencies reads the objects that pods wait for, or run on.
func (g *gatherer) gatherPodDependencies(ctx context.Context) error {
	wanted := map[string]bool{}
	for i := range g.Pods {
		pod := &g.Pods[i]
		if pool := g.selectedPool(pod); pool != "" {
			wanted[pool] = true
		}
		// The node of a ready pod matters only if the pod selects no pool: then the node
		// may belong to another tenant's pool.
		if name := pod.Spec.NodeName; name != "" && g.findNode(name) == nil && (!isPodReady(pod) || g.Rules != nil && g.selectedPool(pod) == "") {
			if err := g.gatherNode(ctx, name); err != nil {
				return err
			}
		}
	}
	if err := g.gatherNominated(ctx, wanted); err != nil {
		return err
	}
	if err := g.gatherRepellents(ctx); err != nil {
		return err
	}
	if len(wanted) == 0 {
		return nil
	}
	for pool := range wanted {
		if err := g.gatherPool(ctx, pool); err != nil {
			return err
		}
	}
	if err := g.gatherUnlaunched(ctx); err != nil {
		return err
	}
	// Karpenter's events about cluster-scoped objects are in the namespace default.
	if !g.isHidden("nodeclaim") && g.Target.Namespace != metav1.NamespaceDefault {
		return g.gatherEvents(ctx, metav1.NamespaceDefault)
	}
	return nil
}

// gatherUnlaunched reads the NodeClaims without an instance, which block all of Karpenter's
// decisions.
func (g *gatherer) gatherUnlaunched(ctx context.Context) error {
	var claims karpenterv1.NodeClaimList
	if err := g.listObjects(ctx, "nodeclaim", &claims); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Status.ProviderID == "" {
			g.Unlaunched = append(g.Unlaunched, claim)
		}
	}
	return nil
}

// gatherNominated reads the NodeClaims that Karpenter nominated for pods. Pods of the platform
// select no pool, so their claims are not read otherwise.
func (g *gatherer) gatherNominated(ctx context.Context, wanted map[string]bool) error {
	for i := range g.Pods {
		_, name := readKarpenterMessage(g.Snapshot, &g.Pods[i])
		if name == "" || g.Pods[i].Spec.NodeName != "" || g.hasClaim(name) {
			continue
		}
		var claim karpenterv1.NodeClaim
		found, err := g.getObject(ctx, "nodeclaim", "", name, &claim)
		if err != nil {
			return err
		}
		if found {
			wanted[claim.Labels[nodePoolLabel]] = true
		}
	}
	return nil
}

// gatherPool reads a NodePool, its node class, its claims, and the nodes of claims that are
// not initialized.
func (g *gatherer) gatherPool(ctx context.Context, name string) error {
	var pool karpenterv1.NodePool
	found, err := g.getObject(ctx, "nodepool", "", name, &pool)
	if err != nil {
		return err
	}
	if found {
		g.Pools = append(g.Pools, pool)
		if err := g.gatherClass(ctx, name, pool.Spec.Template.Spec.NodeClassRef); err != nil {
			return err
		}
	}
	var claims karpenterv1.NodeClaimList
	if err := g.listObjects(ctx, "nodeclaim", &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: name}); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if g.hasClaim(claim.Name) {
			continue
		}
		g.Claims = append(g.Claims, claim)
		if node := claim.Status.NodeName; node != "" && !isInitialized(&claim) && g.findNode(node) == nil {
			if err := g.gatherNode(ctx, node); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *gatherer) hasClaim(name string) bool {
	return findFirst(g.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == name }) != nil
}

// gatherClass reads a node class of any provider.
func (g *gatherer) gatherClass(ctx context.Context, pool string, ref *karpenterv1.NodeClassReference) error {
	if ref == nil {
		return nil
	}
	gk := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	version := "v1"
	if mapper, ok := g.Reader.(interface{ RESTMapper() meta.RESTMapper }); ok {
		mapping, err := mapper.RESTMapper().RESTMapping(gk)
		if err != nil {
			_, err = g.recordHidden(strings.ToLower(ref.Kind), err)
			return err
		}
		version = mapping.GroupVersionKind.Version
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(gk.WithVersion(version))
	found, err := g.getObject(ctx, strings.ToLower(ref.Kind), "", ref.Name, class)
	if found {
		g.Classes[pool] = class
	}
	return err
}

func (g *gatherer) gatherNode(ctx context.Context, name string) error {
	var node corev1.Node
	found, err := g.getObject(ctx, "node", "", name, &node)
	if found {
		g.Nodes = append(g.Nodes, node)
	}
	return err
}
