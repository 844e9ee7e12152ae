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
func (g *gatherer) gatherPodDependencies(ctx context.Context) {
	poolNames := map[string]bool{}
	for i := range g.Pods {
		pod := &g.Pods[i]
		if pool := g.selectedPool(pod); pool != "" {
			poolNames[pool] = true
		}
		// The node of a ready pod matters only if the pod selects no pool: then the node
		// may belong to another tenant's pool.
		if name := pod.Spec.NodeName; name != "" && g.findNode(name) == nil && (!isPodReady(pod) || g.Rules != nil && g.selectedPool(pod) == "") {
			g.gatherNode(ctx, name)
		}
	}
	g.gatherNominated(ctx, poolNames)
	g.gatherRepellents(ctx)
	if len(poolNames) == 0 {
		return
	}
	for pool := range poolNames {
		g.gatherPool(ctx, pool)
	}
	g.gatherUnlaunched(ctx)
	g.gatherNeighbours(ctx)
	// Karpenter's events about cluster-scoped objects are in the namespace default.
	if !g.isHidden("nodeclaim") && g.Target.Namespace != metav1.NamespaceDefault {
		g.gatherEvents(ctx, metav1.NamespaceDefault)
	}
}

// gatherUnlaunched reads the NodeClaims without an instance, which block all of Karpenter's
// decisions.
func (g *gatherer) gatherUnlaunched(ctx context.Context) {
	var claims karpenterv1.NodeClaimList
	g.listObjects(ctx, "nodeclaim", &claims)
	for _, claim := range claims.Items {
		if claim.Status.ProviderID == "" {
			g.Unlaunched = append(g.Unlaunched, claim)
		}
	}
}

// gatherNominated reads the NodeClaims that Karpenter nominated for pods. Pods of the platform
// select no pool, so their claims are not read otherwise.
func (g *gatherer) gatherNominated(ctx context.Context, poolNames map[string]bool) {
	for i := range g.Pods {
		_, name := readKarpenterMessage(g.Snapshot, &g.Pods[i])
		if name == "" || g.Pods[i].Spec.NodeName != "" || g.hasClaim(name) {
			continue
		}
		var claim karpenterv1.NodeClaim
		if g.getObject(ctx, "nodeclaim", "", name, &claim) {
			poolNames[claim.Labels[nodePoolLabel]] = true
		}
	}
}

// gatherPool reads a NodePool, its node class, its claims, and the nodes of claims that are
// not initialized.
func (g *gatherer) gatherPool(ctx context.Context, name string) {
	var pool karpenterv1.NodePool
	if g.getObject(ctx, "nodepool", "", name, &pool) {
		g.Pools = append(g.Pools, pool)
		g.gatherClass(ctx, name, pool.Spec.Template.Spec.NodeClassRef)
	}
	var claims karpenterv1.NodeClaimList
	g.listObjects(ctx, "nodeclaim", &claims, client.MatchingLabels{karpenterv1.NodePoolLabelKey: name})
	for _, claim := range claims.Items {
		if g.hasClaim(claim.Name) {
			continue
		}
		g.Claims = append(g.Claims, claim)
		if node := claim.Status.NodeName; node != "" && !isInitialized(&claim) && g.findNode(node) == nil {
			g.gatherNode(ctx, node)
		}
	}
}

func (g *gatherer) hasClaim(name string) bool {
	return findFirst(g.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Name == name }) != nil
}

// gatherClass reads a node class of any provider.
func (g *gatherer) gatherClass(ctx context.Context, pool string, ref *karpenterv1.NodeClassReference) {
	if ref == nil {
		return
	}
	gk := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
	version := "v1"
	if mapper, ok := g.client.(interface{ RESTMapper() meta.RESTMapper }); ok {
		mapping, err := mapper.RESTMapper().RESTMapping(gk)
		if err != nil {
			g.Record(strings.ToLower(ref.Kind)+"s", err)
			return
		}
		version = mapping.GroupVersionKind.Version
	}
	class := &unstructured.Unstructured{}
	class.SetGroupVersionKind(gk.WithVersion(version))
	if g.getObject(ctx, strings.ToLower(ref.Kind), "", ref.Name, class) {
		g.Classes[pool] = class
	}
}

func (g *gatherer) gatherNode(ctx context.Context, name string) {
	var node corev1.Node
	if g.getObject(ctx, "node", "", name, &node) {
		g.Nodes = append(g.Nodes, node)
	}
}
