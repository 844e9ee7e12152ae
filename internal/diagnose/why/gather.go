package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/gather"
)

// gatherer reads a Snapshot, and records objects that it may not read.
type gatherer struct {
	*gather.Reader
	*Snapshot
	client client.Reader
}

// Gather reads the objects about a Target, with the client's rights. It returns an error
// only if the Target itself cannot be read.
func Gather(ctx context.Context, c client.Reader, target Target) (*Snapshot, error) {
	k := findTargetKind(target)
	o := k.empty()
	if err := c.Get(ctx, client.ObjectKey{Namespace: target.Namespace, Name: target.Name}, o); err != nil {
		if target.Kind == "pool" && (apierrors.IsNotFound(err) || meta.IsNoMatchError(err)) {
			return Gather(ctx, c, Target{Kind: "nodepool", Name: target.Name}) // a NodePool without a Pool
		}
		return nil, explainUnreadable(target, err)
	}
	s := &Snapshot{Target: target, Object: o, Classes: map[string]*unstructured.Unstructured{}}
	g := &gatherer{Reader: gather.NewReader(c, s.omitHidden), Snapshot: s, client: c}
	g.gatherPlatform(ctx)
	g.gatherSurroundings(ctx, k, o)
	if o.GetDeletionTimestamp() != nil {
		g.gatherDeletion(ctx, o)
	}
	return s, g.Err()
}

func (g *gatherer) gatherSurroundings(ctx context.Context, k *kind, o client.Object) {
	around, ok := g.listGatherers()[k.name]
	switch {
	case ok:
		around(ctx, o)
	case g.Target.other.Kind != "":
	case k.namespaced:
		g.gatherNamespaced(ctx, o)
	default:
		g.gatherClusterScoped(ctx, o)
	}
}

// UnreadableError reports that the Target cannot be read: it does not exist, its kind does not
// exist, or the caller has no right to it.
type UnreadableError struct {
	text  string
	cause error
}

// Error implements error.
func (e *UnreadableError) Error() string { return e.text }

// Unwrap returns the API server's error.
func (e *UnreadableError) Unwrap() error { return e.cause }

func explainUnreadable(target Target, err error) error {
	where := ""
	if target.Namespace != "" {
		where = " in namespace " + target.Namespace
	}
	switch {
	case apierrors.IsNotFound(err):
		return &UnreadableError{fmt.Sprintf("there is no %s%s", target, where), err}
	case apierrors.IsForbidden(err):
		return &UnreadableError{fmt.Sprintf("you may not read %s%s: ask a platform admin: `croft why %s%s`", target, where, target, formatNamespaceFlag(target)), err}
	case meta.IsNoMatchError(err):
		return &UnreadableError{fmt.Sprintf("this cluster does not know the kind %s: is %s installed?", target.Kind, cmp.Or(findTargetKind(target).installed, "croft")), err}
	default:
		return err
	}
}

func formatNamespaceFlag(t Target) string {
	if t.Namespace == "" {
		return ""
	}
	return " -n " + t.Namespace
}

// omitHidden records a missing right in Hidden.
func (s *Snapshot) omitHidden(data string, err error) bool {
	if !apierrors.IsForbidden(err) {
		return false
	}
	if kind := strings.TrimSuffix(data, "s"); !s.isHidden(kind) {
		s.Hidden = append(s.Hidden, kind)
	}
	return true
}

// getObject reads an object, and reports whether it was read.
func (g *gatherer) getObject(ctx context.Context, kind, namespace, name string, into client.Object) bool {
	return g.ReadObject(ctx, kind+"s", client.ObjectKey{Namespace: namespace, Name: name}, into)
}

func (g *gatherer) listObjects(ctx context.Context, kind string, into client.ObjectList, opts ...client.ListOption) {
	g.ReadList(ctx, kind+"s", into, opts...)
}

// gatherPlatform reads the key of pools. A tenant may not read the Platform.
func (g *gatherer) gatherPlatform(ctx context.Context) {
	g.Key = v1alpha1.DefaultNodePoolKey
	var platform v1alpha1.Platform
	if g.getObject(ctx, "platform", "", v1alpha1.PlatformName, &platform) && platform.Spec.NodePoolKey != "" {
		g.Key = platform.Spec.NodePoolKey
	}
}

func (g *gatherer) gatherNamespaced(ctx context.Context, o client.Object) {
	var rules v1alpha1.TenantRules
	if g.getObject(ctx, "tenantrules", g.Target.Namespace, v1alpha1.TenantRulesName, &rules) {
		g.Rules = &rules
	}
	if pod, ok := o.(*corev1.Pod); ok {
		g.Pods = []corev1.Pod{*pod}
	} else {
		g.gatherWorkload(ctx, o)
	}
	if g.isHidden("platform") {
		g.guessKey()
	}
	g.gatherEvents(ctx, g.Target.Namespace)
	g.gatherNetworks(ctx)
	g.gatherQuotas(ctx)
	g.gatherBudgets(ctx, client.InNamespace(g.Target.Namespace))
	g.gatherPodDependencies(ctx)
}

func (g *gatherer) gatherBudgets(ctx context.Context, opts ...client.ListOption) {
	var list policyv1.PodDisruptionBudgetList
	g.listObjects(ctx, "poddisruptionbudget", &list, opts...)
	g.Budgets = list.Items
}

// guessKey derives the key of pools from the pods: they select one of the tenant's pools by
// the key, and tolerate it.
func (g *gatherer) guessKey() {
	if g.Rules == nil {
		return
	}
	for i := range g.Pods {
		for key, value := range g.Pods[i].Spec.NodeSelector {
			tolerated := slices.ContainsFunc(g.Pods[i].Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == key && t.Value == value })
			if tolerated && slices.Contains(g.Rules.Spec.Pools, value) {
				g.Key = key
				return
			}
		}
	}
}

func (g *gatherer) gatherEvents(ctx context.Context, namespace string) {
	var list corev1.EventList
	g.listObjects(ctx, "event", &list, client.InNamespace(namespace))
	g.Events = append(g.Events, list.Items...)
}

// gatherClusterScoped reads the objects around a node, a NodeClaim or a NodePool.
func (g *gatherer) gatherClusterScoped(ctx context.Context, o client.Object) {
	g.gatherEvents(ctx, metav1.NamespaceDefault)
	node, pool := "", o.GetLabels()[karpenterv1.NodePoolLabelKey]
	switch o := o.(type) {
	case *karpenterv1.NodePool:
		pool = o.Name
	case *v1alpha1.Pool:
		pool = o.Name
	case *karpenterv1.NodeClaim:
		g.Claims = append(g.Claims, *o)
		node = o.Status.NodeName
	case *corev1.Node:
		node = o.Name
	}
	if node != "" {
		g.gatherNode(ctx, node)
		g.gatherOnNode(ctx, node)
	}
	if pool != "" {
		g.gatherPool(ctx, pool)
	}
}

// gatherOnNode reads the objects that may block a node's removal.
func (g *gatherer) gatherOnNode(ctx context.Context, name string) {
	var pods corev1.PodList
	g.listObjects(ctx, "pod", &pods, client.MatchingFields{"spec.nodeName": name})
	g.Pods = append(g.Pods, pods.Items...)
	if g.Budgets == nil {
		g.gatherBudgets(ctx)
	}
}
