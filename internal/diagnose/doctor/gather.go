package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/crds"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/diagnose/gather"
	"croft.dev/croft/internal/diagnose/why"
)

// These are the keys of Snapshot.Unreadable.
const (
	readVersion     = "the server's version"
	readDefinitions = "CustomResourceDefinitions"
	readDeclared    = "declared objects"
	readPlatform    = "Platform"
	readNamespaces  = "tenants' namespaces"
	readNodePools   = "NodePools"
	readClaims      = "NodeClaims"
	readNodes       = "Nodes"
	readClasses     = "node classes"
	readPods        = "Pods"
	readDaemonSets  = "DaemonSets"
	readEvents      = "Karpenter's events"
	readBudgets     = "PodDisruptionBudgets"
	readWebhooks    = "webhooks and policies"
	readGatekeeper  = "Gatekeeper's configuration"
	readHeartbeat   = "the operator's heartbeat"
	readWalls       = "walls"
	readAgreements  = "connections between tenants"
	readHolds       = "attacks"

	readWrites         = "writes of kubelets"
	readAPIServices    = "APIServices"
	readPolicyClasses  = "classes in policy lists"
	readServices       = "Services"
	readQuotas         = "LimitRanges and ResourceQuotas"
	readIngressClasses = "IngressClasses"
	readFlux           = "Flux' Deployments"
	readIPPools        = "whereabouts' IPPools"
	readClusterIssuers = "ClusterIssuers"
	readCopier         = "the Lease of croft copy-secrets"
	readCounts         = "numbers of objects"
)

// gatherer reads a Snapshot, and records data that it may not read.
type gatherer struct {
	client.Client
	*gather.Reader
	*Snapshot
}

// Gather reads a cluster with the client's rights. Data that the client may not read is no
// error. version returns the API server's version. A file replaces the cluster's declared
// objects; its walls are maintained without the operator.
func Gather(ctx context.Context, c client.Client, version discovery.ServerVersionInterface, file ...*manifest.Declaration) (*Snapshot, error) {
	definitions, err := loadOwnDefinitions()
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		Now: time.Now(), OwnDefinitions: definitions, Unreadable: map[string]string{readHolds: "no attack was tried", readWrites: "no write was tried"},
		PolicyClasses:     map[string][]unstructured.Unstructured{},
		RefusedNamespaces: map[string]error{}, Deleting: map[string]bool{}, Unserved: map[schema.GroupVersionKind]bool{},
		Definitions: map[string]*apiextensionsv1.CustomResourceDefinition{},
		Classes:     map[karpenterv1.NodeClassReference]*unstructured.Unstructured{},
		Counts:      map[string]int{}, PodCounts: map[string]int{}, WaitingPods: map[string]int{},
		Requests: Requests{Omitted: "they were not read"},
	}
	for _, d := range file {
		s.Declared, s.Rendered = d, true
	}
	info, err := version.ServerVersion()
	if err != nil {
		return nil, err
	}
	s.Version = *info
	g := &gatherer{Client: c, Reader: gather.NewReader(c, s.omitUnread), Snapshot: s}
	for _, step := range []func(context.Context){
		g.gatherDefinitions, g.gatherDeclared, g.gatherHeartbeat, g.gatherAbsent, g.gatherWalls, g.gatherAgreements, g.gatherKarpenter, g.gatherClasses, g.gatherNodes, g.gatherDepartingPods, g.gatherBudgets, g.gatherMisplacedPods, g.gatherDaemonSets,
		g.gatherMutations, g.gatherGatekeeper, g.gatherIngressClasses, g.gatherFlux, g.gatherAddresses, g.gatherPolicyClasses, g.gatherQuotas, g.gatherAPIServices, g.gatherDNS, g.gatherClusterIssuers, g.gatherCopier, g.gatherCounts,
	} {
		if step(ctx); g.Err() != nil {
			return nil, g.Err()
		}
	}
	return s, nil
}

// omitUnread records a missing right, or an API group whose server does not answer, as a reason in
// Unreadable.
func (s *Snapshot) omitUnread(data string, err error) bool {
	switch {
	case apierrors.IsForbidden(err):
		s.Unreadable[data] = "you may not read them"
	case apierrors.IsServiceUnavailable(err):
		s.Unreadable[data] = "their API group does not respond: see the check api-services"
	default:
		return false
	}
	return true
}

// dropDeleted leaves out objects that are being deleted: nothing about them has to be
// fixed.
func dropDeleted[T any, P interface {
	*T
	client.Object
}](items []T) []T {
	return slices.DeleteFunc(items, func(o T) bool { return P(&o).GetDeletionTimestamp() != nil })
}

func loadOwnDefinitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(crds.FS, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := crds.FS.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, d)
	}
	return all, nil
}

func (g *gatherer) gatherDefinitions(ctx context.Context) {
	var list apiextensionsv1.CustomResourceDefinitionList
	g.ReadList(ctx, readDefinitions, &list)
	for i := range list.Items {
		g.Definitions[list.Items[i].Name] = &list.Items[i]
	}
}

func (g *gatherer) gatherKarpenter(ctx context.Context) {
	var pools karpenterv1.NodePoolList
	var claims karpenterv1.NodeClaimList
	var refusals corev1.EventList
	g.ReadList(ctx, readNodePools, &pools)
	g.ReadList(ctx, readClaims, &claims)
	g.ReadList(ctx, readEvents, &refusals, client.InNamespace(metav1.NamespaceDefault), client.MatchingFields{"reason": RefusedLaunch})
	g.NodePools, g.Claims, g.Refusals = dropDeleted(pools.Items), claims.Items, refusals.Items
}

// gatherClasses reads the node classes that NodePools name, of any provider.
func (g *gatherer) gatherClasses(ctx context.Context) {
	for i := range g.NodePools {
		ref := g.NodePools[i].Spec.Template.Spec.NodeClassRef
		if ref == nil || g.Classes[*ref] != nil {
			continue
		}
		mapping, err := g.RESTMapper().RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
		if !g.Record(readClasses, err) {
			continue
		}
		class := &unstructured.Unstructured{}
		class.SetGroupVersionKind(mapping.GroupVersionKind)
		if g.ReadObject(ctx, readClasses, client.ObjectKey{Name: ref.Name}, class) {
			g.Classes[*ref] = class
		}
	}
}

func (g *gatherer) gatherNodes(ctx context.Context) {
	var nodes corev1.NodeList
	g.ReadList(ctx, readNodes, &nodes, client.HasLabels{karpenterv1.NodePoolLabelKey})
	g.Nodes = nodes.Items
}

// gatherDepartingPods reads only the pods on nodes that are to be removed, since the whole cluster
// may have many.
func (g *gatherer) gatherDepartingPods(ctx context.Context) {
	for i := range g.Nodes {
		claim := g.findClaim(&g.Nodes[i])
		if claim == nil {
			continue
		}
		if how, _ := why.FindRemovalReason(g.Now, &g.Nodes[i], claim); how == "" {
			continue
		}
		var pods corev1.PodList
		g.ReadList(ctx, readPods, &pods, client.MatchingFields{"spec.nodeName": g.Nodes[i].Name})
		g.Pods = append(g.Pods, pods.Items...)
	}
}

func (g *gatherer) gatherBudgets(ctx context.Context) {
	var budgets policyv1.PodDisruptionBudgetList
	g.ReadList(ctx, readBudgets, &budgets)
	g.Budgets = budgets.Items
}

func (g *gatherer) gatherDaemonSets(ctx context.Context) {
	var sets appsv1.DaemonSetList
	g.ReadList(ctx, readDaemonSets, &sets)
	g.DaemonSets = dropDeleted(sets.Items)
}
