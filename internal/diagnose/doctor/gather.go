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
	"k8s.io/apimachinery/pkg/util/sets"
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
	readAttacks     = "attacks"

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

// step reads parts of the Snapshot.
type step struct {
	parts  []string
	gather func(*gatherer, context.Context)
}

// steps are in order: later ones use the data of earlier ones.
var steps = []step{
	{parts: []string{readDefinitions}, gather: (*gatherer).gatherDefinitions},
	{parts: []string{readDeclared, readPlatform, readNamespaces}, gather: (*gatherer).gatherDeclared},
	{parts: []string{readHeartbeat}, gather: (*gatherer).gatherHeartbeat},
	{parts: []string{readNamespaces}, gather: (*gatherer).gatherAbsent},
	{parts: []string{readWalls}, gather: (*gatherer).gatherWalls},
	{parts: []string{readAgreements}, gather: (*gatherer).gatherAgreements},
	{parts: []string{readNodePools, readClaims, readEvents}, gather: (*gatherer).gatherKarpenter},
	{parts: []string{readClasses}, gather: (*gatherer).gatherClasses},
	{parts: []string{readNodes}, gather: (*gatherer).gatherNodes},
	{parts: []string{readPods}, gather: (*gatherer).gatherDepartingPods},
	{parts: []string{readBudgets}, gather: (*gatherer).gatherBudgets},
	{parts: []string{readPods}, gather: (*gatherer).gatherMisplacedPods},
	{parts: []string{readDaemonSets}, gather: (*gatherer).gatherDaemonSets},
	{parts: []string{readWebhooks, readGatekeeper}, gather: (*gatherer).gatherMutations},
	{parts: []string{readGatekeeper}, gather: (*gatherer).gatherGatekeeper},
	{parts: []string{readIngressClasses}, gather: (*gatherer).gatherIngressClasses},
	{parts: []string{readFlux}, gather: (*gatherer).gatherFlux},
	{parts: []string{readIPPools}, gather: (*gatherer).gatherAddresses},
	{parts: []string{readPolicyClasses}, gather: (*gatherer).gatherPolicyClasses},
	{parts: []string{readQuotas}, gather: (*gatherer).gatherQuotas},
	{parts: []string{readAPIServices}, gather: (*gatherer).gatherAPIServices},
	{parts: []string{readServices}, gather: (*gatherer).gatherDNS},
	{parts: []string{readClusterIssuers}, gather: (*gatherer).gatherClusterIssuers},
	{parts: []string{readCopier}, gather: (*gatherer).gatherCopier},
	{parts: []string{readCounts}, gather: (*gatherer).gatherCounts},
}

// listSteps returns the steps that read the data of some checks. The cluster's definitions and the declared objects
// are read for all checks.
func listSteps(checks []check) []step {
	parts := sets.New(readDefinitions, readDeclared)
	for _, c := range checks {
		parts.Insert(c.needs...).Insert(c.reads...)
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return !parts.HasAny(s.parts...) })
}

// Options select the checks, and the source of the declared objects.
type Options struct {
	// Checks are the names of the checks to run: only their data is read. Empty means all checks.
	Checks []string
	// File replaces the cluster's declared objects; its walls are maintained without the operator.
	File *manifest.Declaration
}

// Gather reads a cluster with the client's rights. Data that the client may not read is no
// error. version returns the API server's version.
func Gather(ctx context.Context, c client.Client, version discovery.ServerVersionInterface, o Options) (*Snapshot, error) {
	definitions, err := loadOwnDefinitions()
	if err != nil {
		return nil, err
	}
	s := &Snapshot{
		Now: time.Now(), Checks: o.Checks, Declared: o.File, Rendered: o.File != nil,
		OwnDefinitions: definitions, Unreadable: map[string]string{readAttacks: "no attack was tried", readWrites: "no write was tried"},
		PolicyClasses:     map[string][]unstructured.Unstructured{},
		RefusedNamespaces: map[string]error{}, Deleting: map[string]bool{}, Unserved: map[schema.GroupVersionKind]bool{},
		Definitions: map[string]*apiextensionsv1.CustomResourceDefinition{},
		Classes:     map[karpenterv1.NodeClassReference]*unstructured.Unstructured{},
		Counts:      map[string]int{}, PodCounts: map[string]int{}, WaitingPods: map[string]int{},
		Requests: Requests{Omitted: "they were not read"},
	}
	info, err := version.ServerVersion()
	if err != nil {
		return nil, err
	}
	s.Version = *info
	g := &gatherer{Client: c, Reader: gather.NewReader(c, s.omitUnread), Snapshot: s}
	for _, step := range listSteps(s.listChecks()) {
		if step.gather(g, ctx); g.Err() != nil {
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
