// Package doctor checks a whole platform: versions, kinds, the placement engine, pools,
// nodes, and other components in the cluster that interfere. Gather reads; a check is a
// plain function of the Snapshot, and the checks are a list.
package doctor

import (
	"cmp"
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
	// Leaving are the declared objects that are being deleted, as walls name their owners.
	Leaving map[string]bool
	// NodePools, Claims and Nodes are Karpenter's; Classes are its node classes, by
	// their references.
	NodePools []karpenterv1.NodePool
	Claims    []karpenterv1.NodeClaim
	Nodes     []corev1.Node
	Classes   map[karpenterv1.NodeClassReference]*unstructured.Unstructured
	// DaemonSets are all DaemonSets. Pods are those on nodes that are to be removed, Guarded
	// those of tenants' namespaces that have Budgets.
	DaemonSets    []appsv1.DaemonSet
	Pods, Guarded []corev1.Pod
	Budgets       []policyv1.PodDisruptionBudget
	// Strays are pods on nodes of a pool that is not their tenant's.
	Strays []move.Stray
	// Refusals are events of launches that the cloud refused.
	Refusals []corev1.Event
	// Namespaces are the tenants'. Refused are the reasons why croft does not write to some
	// that are declared.
	Namespaces []corev1.Namespace
	Refused    map[string]error
	// Webhooks, Mutations and Kyverno are components that change pods beside croft.
	Webhooks  []admissionv1.MutatingWebhookConfiguration
	Mutations []admissionv1.MutatingAdmissionPolicy
	Kyverno   []unstructured.Unstructured
	// Flux are its controllers' Deployments.
	Flux []appsv1.Deployment
	// IngressClasses are all of them.
	IngressClasses []networkingv1.IngressClass
	// ClusterIssuers are cert-manager's.
	ClusterIssuers []unstructured.Unstructured
	// IPPools are whereabouts', where secondary networks are declared.
	IPPools []unstructured.Unstructured
	// Gatekeeper is how it is set up, where it is the engine.
	Gatekeeper gatekeeper.Installation
	// APIServices are the API groups with their servers.
	APIServices []unstructured.Unstructured
	// PolicyClasses are the cluster's classes of the kinds that tenants' lists restrict.
	PolicyClasses map[string][]unstructured.Unstructured
	// DNS are the cluster's DNS Services, and those at the addresses of nodes' resolvers.
	DNS []corev1.Service
	// Ranges and Quotas are the cluster's LimitRanges and ResourceQuotas.
	Ranges []corev1.LimitRange
	Quotas []corev1.ResourceQuota
	// Heartbeat is the operator's sign of life.
	Heartbeat heartbeat.Beat
	// Rendered says that the declared objects are a file's, whose walls are kept without
	// the operator.
	Rendered bool
	// Walls are all objects of the walls, compared with the cluster's. Unserved are the
	// kinds among them that the API server does not serve.
	Walls    []survey.Object
	Unserved map[schema.GroupVersionKind]bool
	// Tried are attacks that were tried by dry run, Writes the writes of Kubernetes itself.
	Tried  []Tries
	Writes []Write
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

// instead replaces the statement of a check, where it depends on the Snapshot.
var instead = map[string]func(*Snapshot) string{"operator": operatorSays, "holds": holdsSays, "engine": engineSays}

// Check runs the checks on the Snapshot. A check that may have missed something for want of
// data lists that data, and still reports its findings.
func Check(s *Snapshot) []Result {
	var results []Result
	for _, c := range checks {
		results = append(results, c.run(s))
	}
	return results
}

func (c *check) run(s *Snapshot) Result {
	r := Result{Check: c.name, Says: c.says, Unread: s.unread(c.needs)}
	if len(r.Unread) > 0 {
		return r
	}
	r.Findings, r.Unread = c.find(s), s.unread(c.reads)
	if says, ok := instead[c.name]; ok {
		r.Says = says(s)
	}
	for i := range r.Findings {
		r.Findings[i].Check = c.name
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return r
}

// unread lists the parts that could not be read, with the reasons.
func (s *Snapshot) unread(parts []string) []string {
	var all []string
	for _, part := range parts {
		if reason, ok := s.Unread[part]; ok {
			all = append(all, part+": "+reason)
		}
	}
	return all
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

// platform is the declared Platform, also if it is invalid; empty if there is none.
func (s *Snapshot) platform() *v1alpha1.PlatformSpec {
	switch {
	case s.Estate != nil:
		return &s.Estate.Platform.PlatformSpec
	case s.Declared != nil && len(s.Declared.Platforms) > 0:
		return &s.Declared.Platforms[0].Spec
	default:
		return &v1alpha1.PlatformSpec{}
	}
}

// key is the label and taint of tenants' pools.
func (s *Snapshot) key() string { return cmp.Or(s.platform().NodePoolKey, v1alpha1.DefaultNodePoolKey) }

// tenants are the valid tenants that are not being deleted.
func (s *Snapshot) tenants() []*estate.Tenant {
	if s.Estate == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Estate.Tenants), func(t *estate.Tenant) bool { return s.Leaving["Tenant/"+t.Name] })
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
