// Package doctor checks a whole platform: versions, kinds, the placement engine, pools,
// nodes, and other components in the cluster that interfere. Gather reads; a check is a
// plain function of the Snapshot, and the checks are a list.
package doctor

import (
	"context"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/catalog"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/gatekeeper"
	"croft.dev/croft/internal/heartbeat"
	"croft.dev/croft/internal/manifest"
	"croft.dev/croft/internal/move"
	"croft.dev/croft/internal/survey"
)

// Snapshot is the state of a cluster.
type Snapshot struct {
	// Now is when.
	Now time.Time
	// Version is the API server's.
	Version version.Info
	// Native says that the API server serves MutatingAdmissionPolicies.
	Native bool
	// Definitions are the cluster's, by name; Own are croft's as this version has them.
	Definitions map[string]*apiextensionsv1.CustomResourceDefinition
	Own         []*apiextensionsv1.CustomResourceDefinition
	// Declared are the declared objects, and Estate the estate of them, nil if there is
	// none.
	Declared *manifest.Declaration
	Estate   *estate.Estate
	// NodePools, Claims and Nodes are Karpenter's; Classes are its node classes, by
	// their references.
	NodePools []karpenterv1.NodePool
	Claims    []karpenterv1.NodeClaim
	Nodes     []corev1.Node
	Classes   map[karpenterv1.NodeClassReference]*unstructured.Unstructured
	// DaemonSets are all DaemonSets; Pods are those on nodes that are to be removed.
	DaemonSets []appsv1.DaemonSet
	Pods       []corev1.Pod
	Budgets    []policyv1.PodDisruptionBudget
	// Strays are pods on nodes of a pool that is not their tenant's.
	Strays []move.Stray
	// Refusals are events of launches that the cloud refused.
	Refusals []corev1.Event
	// Namespaces are the tenants'.
	Namespaces []corev1.Namespace
	// Webhooks, Mutations and Kyverno are components that change pods beside croft.
	Webhooks  []admissionv1.MutatingWebhookConfiguration
	Mutations []admissionv1.MutatingAdmissionPolicy
	Kyverno   []unstructured.Unstructured
	// Flux are its controllers' Deployments.
	Flux []appsv1.Deployment
	// IngressClasses are all of them.
	IngressClasses []networkingv1.IngressClass
	// IPPools are whereabouts', where secondary networks are declared.
	IPPools []unstructured.Unstructured
	// Gatekeeper is how it is set up, where it is the engine.
	Gatekeeper gatekeeper.Installation
	// Heartbeat is the operator's sign of life.
	Heartbeat heartbeat.Beat
	// Rendered says that the declared objects are a file's, whose walls are kept without
	// the operator.
	Rendered bool
	// Walls are all objects of the walls, compared with the cluster's.
	Walls []survey.Object
	// Tried are attacks that were tried by dry run.
	Tried []Tries
	// Absent are the Platform's platformNamespaces that do not exist.
	Absent []string
	// Unread are the reasons for missing data, by its name.
	Unread map[string]string
}

// Severity is the importance of a finding.
type Severity string

const (
	// Problem has to be fixed: something does not work, or will not.
	Problem Severity = "Problem"
	// Warning is for a person to judge.
	Warning Severity = "Warning"
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Object is its kind and name, where it is an object.
	Object string `json:"object,omitempty"`
	// Message describes the fault.
	Message string `json:"message"`
	// Cause, Cure, Run and Link are the catalogue's, where it has them.
	Cause string `json:"cause,omitempty"`
	Cure  string `json:"cure"`
	Run   string `json:"run,omitempty"`
	Link  string `json:"link,omitempty"`
}

// Result is what came of one check.
type Result struct {
	Check string `json:"check"`
	// Says is the statement if there are no findings.
	Says     string    `json:"says"`
	Findings []Finding `json:"findings,omitempty"`
	// Unread is the data that could not be read, and why.
	Unread []string `json:"unread,omitempty"`
}

// check looks at one thing.
type check struct {
	name, says string
	// reads are the parts of the Snapshot that it needs.
	reads []string
	find  func(*Snapshot) []Finding
}

var checks = []check{
	{"kubernetes", "the API server is recent enough for the placement engine", nil, kubernetes},
	{"kinds", "croft's and Karpenter's kinds are there, and know every field that croft writes", []string{readDefinitions}, definitions},
	{"operator", "the operator is alive", []string{readHeartbeat}, operator},
	{"platform", "the Platform, its Pools and its Tenants are Ready", []string{readDeclared}, platform},
	{"walls", "every object of the walls stands as it is declared", []string{readDeclared, readWalls}, walls},
	{"holds", "a few attacks bounce", []string{readHolds}, holds},
	{"engine", "the placement engine is there, and lets nothing past it", []string{readWebhooks}, engine},
	{"node-classes", "node classes are ready", []string{readNodePools, readClasses}, nodeClasses},
	{"node-pools", "NodePools are ready, and none is croft's in part", []string{readNodePools}, nodePools},
	{"limits", "no pool is near its limits", []string{readNodePools}, limits},
	{"addresses", "no secondary network runs out of addresses", []string{readDeclared, readIPPools}, addresses},
	{"launches", "nodes launch, register and initialize", []string{readClaims, readNodes}, launches},
	{"taints", "nodes have no taints that Karpenter does not know of", []string{readClaims, readNodes}, taints},
	{"departures", "nodes that are to go do go", []string{readClaims, readNodes, readPods}, departures},
	{"strays", "tenants' pods run on their own pools", []string{readDeclared, readNodes, readPods}, strays},
	{"daemonsets", "the platform's DaemonSets tolerate tenants' pools", []string{readDaemonSets, readNodePools}, daemonSets},
	{"scratch", "no killed `croft verify` has left anything behind", []string{readDeclared}, leftovers},
	{"add-ons", "the catalogue knows the add-ons", []string{readDefinitions, readIngressClasses}, addonsKnown},
	{"flux", "Flux' controllers are locked down for several tenants", []string{readFlux}, flux},
	{"others", "nobody else changes tenants' pods", []string{readWebhooks}, others},
}

// instead replaces the statement of a check, where it depends on the Snapshot.
var instead = map[string]func(*Snapshot) string{"operator": operatorSays, "holds": holdsSays, "engine": engineSays}

// Checks are the names of the checks, and the subject of each.
func Checks() [][2]string {
	var all [][2]string
	for _, c := range checks {
		all = append(all, [2]string{c.name, c.says})
	}
	return all
}

// Check runs the checks on the Snapshot. A check that lacks data says so, and still
// reports its findings.
func Check(s *Snapshot) []Result {
	var results []Result
	for _, c := range checks {
		r := Result{Check: c.name, Says: c.says, Findings: c.find(s)}
		if says, ok := instead[c.name]; ok {
			r.Says = says(s)
		}
		for i := range r.Findings {
			r.Findings[i].Check = c.name
		}
		slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
		for _, part := range c.reads {
			if why, ok := s.Unread[part]; ok {
				r.Unread = append(r.Unread, part+": "+why)
			}
		}
		results = append(results, r)
	}
	return results
}

// Problems is the number of problems.
func Problems(results []Result) int {
	n := 0
	for _, r := range results {
		for _, f := range r.Findings {
			if f.Severity == Problem {
				n++
			}
		}
	}
	return n
}

// Unread counts the checks that could not look at everything.
func Unread(results []Result) int {
	n := 0
	for _, r := range results {
		if len(r.Unread) > 0 {
			n++
		}
	}
	return n
}

// Decode adds the content of encoded messages to the findings.
func Decode(ctx context.Context, results []Result, decode catalog.Decode) {
	for i := range results {
		for j := range results[i].Findings {
			f := &results[i].Findings[j]
			if message, _ := catalog.Encoded(f.Message); message != "" {
				told := catalog.Decoded(ctx, catalog.Finding{Seen: f.Message, Cause: f.Cause, Cure: f.Cure, Run: f.Run}, decode)
				f.Cause, f.Cure, f.Run = told.Cause, told.Cure, told.Run
			}
		}
	}
}

// key is the label and taint of tenants' pools.
func (s *Snapshot) key() string {
	if s.Estate != nil {
		return s.Estate.Platform.NodePoolKey
	}
	return v1alpha1.DefaultNodePoolKey
}

// serves reports whether a definition serves a kind.
func (s *Snapshot) serves(gvk schema.GroupVersionKind) bool {
	for _, d := range s.Definitions {
		if d.Spec.Group == gvk.Group && d.Spec.Names.Kind == gvk.Kind {
			return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		}
	}
	return false
}
