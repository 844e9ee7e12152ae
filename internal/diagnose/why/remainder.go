package why

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/terminating"
)

// Remainder contains the objects that block a namespace's deletion, and the APIs that do
// not answer.
type Remainder struct {
	Namespace *corev1.Namespace
	// Objects are the objects that still exist, as RESOURCE/NAME.
	Objects []Left
	// Unserved maps APIServices to the reason why they do not answer.
	Unserved map[string]string
}

// Left is an object that still exists in a namespace that is being deleted.
type Left struct {
	Object     string
	Deleted    bool
	Finalizers []string
}

// manyLeft is the maximum number of objects of one kind that are read and named.
const manyLeft = 20

// gatherDeletion reads the objects that may block the deletion of an object.
func (g *gatherer) gatherDeletion(ctx context.Context, o client.Object) {
	switch o := o.(type) {
	case *corev1.Namespace:
		g.gatherRemainder(ctx, o)
	case *v1alpha1.Tenant:
		g.gatherLeavingNamespaces(ctx, o.Name)
	case *corev1.Node, *corev1.PersistentVolume, *karpenterv1.NodeClaim:
		g.gatherAttachments(ctx)
	case *v1alpha1.Pool, *karpenterv1.NodePool:
		g.gatherNodesOfClaims(ctx)
	}
}

// gatherRemainder reads the objects that a namespace still has.
func (g *gatherer) gatherRemainder(ctx context.Context, n *corev1.Namespace) {
	r := Remainder{Namespace: n, Unserved: map[string]string{}}
	for _, name := range terminating.ListUnserved(n) {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		g.getObject(ctx, "apiservice", "", name, service)
		r.Unserved[name] = "it does not respond"
		for _, c := range listConditions(service) {
			if c.kind == "Available" && c.status != string(metav1.ConditionTrue) {
				r.Unserved[name] = c.reason + ": " + c.message
			}
		}
	}
	for _, resource := range terminating.ListRemaining(n) {
		r.Objects = append(r.Objects, g.listLeft(ctx, n.Name, resource)...)
	}
	g.Around.Remainders = append(g.Around.Remainders, r)
}

// listLeft reads the objects of one resource, without their content.
func (g *gatherer) listLeft(ctx context.Context, namespace string, resource schema.GroupResource) []Left {
	mapper, ok := g.client.(interface{ RESTMapper() meta.RESTMapper })
	if !ok {
		return nil
	}
	kind, err := mapper.RESTMapper().KindFor(resource.WithVersion(""))
	if !g.Record(resource.String()+"s", err) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	g.listObjects(ctx, resource.String(), list, client.InNamespace(namespace), client.Limit(manyLeft))
	var all []Left
	for _, o := range list.Items {
		all = append(all, Left{resource.String() + "/" + o.Name, o.DeletionTimestamp != nil, o.Finalizers})
	}
	return all
}

// gatherLeavingNamespaces reads the namespaces of a tenant that are being deleted with it.
func (g *gatherer) gatherLeavingNamespaces(ctx context.Context, tenant string) {
	var list corev1.NamespaceList
	g.listObjects(ctx, "namespace", &list, client.MatchingLabels{v1alpha1.TenantLabel: tenant})
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			continue
		}
		g.gatherRemainder(ctx, &list.Items[i])
	}
}

func (g *gatherer) gatherAttachments(ctx context.Context) {
	var list storagev1.VolumeAttachmentList
	g.listObjects(ctx, "volumeattachment", &list)
	g.Around.Attachments = list.Items
}

// gatherNodesOfClaims reads the nodes of a pool, and their pods.
func (g *gatherer) gatherNodesOfClaims(ctx context.Context) {
	for i := range g.Claims {
		node := g.Claims[i].Status.NodeName
		if node == "" {
			continue
		}
		if g.findNode(node) == nil {
			g.gatherNode(ctx, node)
		}
		g.gatherOnNode(ctx, node)
	}
	g.gatherAttachments(ctx)
}
