// Package doctor checks a whole platform: versions, kinds, the placement engine, pools,
// nodes, and other components in the cluster that interfere. Gather reads the cluster. Each
// check is a function of the Snapshot, and the checks are a list.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/survey"
	"croft.dev/croft/internal/rules/gatekeeper"
)

// Snapshot is the state of a cluster.
type Snapshot struct {
	// Now is the time of the snapshot.
	Now time.Time
	// Checks are the names of the checks whose data was read. Empty means all checks.
	Checks []string
	// Version is the API server's version.
	Version version.Info
	// Native reports whether the API server serves MutatingAdmissionPolicies.
	Native bool
	// Definitions are the cluster's definitions, by name. OwnDefinitions are croft's definitions of
	// this version.
	Definitions    map[string]*apiextensionsv1.CustomResourceDefinition
	OwnDefinitions []*apiextensionsv1.CustomResourceDefinition
	// Declared are the declared objects. Estate is built from them; nil if there is no
	// valid Platform.
	Declared *manifest.Declaration
	Estate   *estate.Estate
	// Deleting contains the declared objects that are being deleted, in the format of the
	// walls' owners.
	Deleting map[string]bool
	// NodePools, Claims and Nodes are Karpenter's objects and the nodes. Classes are
	// Karpenter's node classes, by reference.
	NodePools []karpenterv1.NodePool
	Claims    []karpenterv1.NodeClaim
	Nodes     []corev1.Node
	Classes   map[karpenterv1.NodeClassReference]*unstructured.Unstructured
	// DaemonSets are all DaemonSets. Pods are the pods on nodes that are to be removed.
	// BudgetedPods are the pods in tenants' namespaces with Budgets.
	DaemonSets         []appsv1.DaemonSet
	Pods, BudgetedPods []corev1.Pod
	Budgets            []policyv1.PodDisruptionBudget
	// MisplacedPods are pods on nodes of a pool that their tenant may not use.
	MisplacedPods []move.MisplacedPod
	// Refusals are events about launches that the cloud refused.
	Refusals []corev1.Event
	// Namespaces are the tenants' namespaces. RefusedNamespaces contains the reasons
	// why croft does not write to some of the declared namespaces, by namespace.
	Namespaces        []corev1.Namespace
	RefusedNamespaces map[string]error
	// Webhooks, Mutations and Kyverno are other components that change pods.
	Webhooks  []admissionv1.MutatingWebhookConfiguration
	Mutations []admissionv1.MutatingAdmissionPolicy
	Kyverno   []unstructured.Unstructured
	// Flux are the Deployments of Flux's controllers.
	Flux []appsv1.Deployment
	// Copier is the Lease of `croft copy-secrets`, or nil.
	Copier *coordinationv1.Lease
	// IngressClasses are the cluster's IngressClasses.
	IngressClasses []networkingv1.IngressClass
	// ClusterIssuers are cert-manager's ClusterIssuers.
	ClusterIssuers []unstructured.Unstructured
	// IPPools are whereabouts' IPPools, if secondary networks are declared.
	IPPools []unstructured.Unstructured
	// Gatekeeper is Gatekeeper's configuration, if it is the engine.
	Gatekeeper gatekeeper.Installation
	// APIServices are the API groups with their servers.
	APIServices []unstructured.Unstructured
	// PolicyClasses are the cluster's classes of the kinds that tenants' lists restrict.
	PolicyClasses map[string][]unstructured.Unstructured
	// DNS are the cluster's DNS Services, and the Services at the addresses of nodes'
	// resolvers.
	DNS []corev1.Service
	// Ranges and Quotas are the cluster's LimitRanges and ResourceQuotas.
	Ranges []corev1.LimitRange
	Quotas []corev1.ResourceQuota
	// Counts are the numbers of objects in the cluster, by kind. PodCounts are the numbers of pods by
	// namespace, and WaitingPods the numbers of pods that wait for a node.
	Counts, PodCounts, WaitingPods map[string]int
	// Requests are the requests in progress in the API server.
	Requests Requests
	// Heartbeat is the operator's last heartbeat.
	Heartbeat heartbeat.Beat
	// Rendered means that the declared objects come from a file, whose walls are maintained
	// without the operator.
	Rendered bool
	// Walls are all objects of the walls, compared with the cluster's. Unserved are the
	// kinds among them that the API server does not serve.
	Walls    []survey.Object
	Unserved map[schema.GroupVersionKind]bool
	// Agreements are the policies for connections between tenants.
	Agreements []metav1.PartialObjectMetadata
	// AttackResults are the results of attacks by dry run. Writes are the dry runs of writes by
	// Kubernetes' own components.
	AttackResults []AttackResults
	Writes        []Write
	// MissingPlatformNamespaces are the Platform's platformNamespaces that do not exist.
	MissingPlatformNamespaces []string
	// Unreadable maps data that could not be read to the reason.
	Unreadable map[string]string
}

// Severity is the importance of a finding.
type Severity string

const (
	// Problem has to be fixed: something does not work, or will not.
	Problem Severity = "Problem"
	// Warning may be intended, which a person has to decide.
	Warning Severity = "Warning"
)

// Finding is a fault that a check found.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	// Object is the kind and name, if the finding is about an object.
	Object string `json:"object,omitempty"`
	// Contact is the contact of the tenant, if the finding is about a Tenant that has one.
	Contact string `json:"contact,omitempty"`
	// Message describes the fault.
	Message string `json:"message"`
	// Cause, Fix, Run and Link are from the catalogue, if it has them.
	Cause string `json:"cause,omitempty"`
	Fix   string `json:"fix"`
	Run   string `json:"run,omitempty"`
	Link  string `json:"link,omitempty"`
}

// Result is the result of one check.
type Result struct {
	Check string `json:"check"`
	// Summary is the statement if there are no findings.
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings,omitempty"`
	// Unreadable lists the data that could not be read, with the reasons.
	Unreadable []string `json:"unreadable,omitempty"`
}

// instead contains the statements that depend on the Snapshot. They replace the checks'
// own.
var instead = map[string]func(*Snapshot) string{
	"operator": summarizeOperator, "attacks": summarizeAttacks, "engine": summarizeEngine, "thresholds": summarizeThresholds, "load": summarizeLoad,
}

// includes reports whether a check is to run.
func (s *Snapshot) includes(check string) bool {
	return len(s.Checks) == 0 || slices.Contains(s.Checks, check)
}

// listChecks returns the checks to run, in order.
func (s *Snapshot) listChecks() []check {
	return slices.DeleteFunc(slices.Clone(checks), func(c check) bool { return !s.includes(c.name) })
}

// Check runs the checks on the Snapshot. A check that lacks data lists it in Unreadable, and
// still reports its findings.
func Check(s *Snapshot) []Result {
	var results []Result
	for _, c := range s.listChecks() {
		results = append(results, c.run(s))
	}
	return results
}

func (c *check) run(s *Snapshot) Result {
	r := Result{Check: c.name, Summary: c.summary, Unreadable: s.listUnread(c.needs)}
	if len(r.Unreadable) > 0 {
		return r
	}
	r.Findings, r.Unreadable = c.find(s), s.listUnread(c.reads)
	if describe, ok := instead[c.name]; ok {
		r.Summary = describe(s)
	}
	for i := range r.Findings {
		r.Findings[i].Check = c.name
		r.Findings[i].Contact = s.findContact(r.Findings[i].Object)
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return r
}

// findContact returns the contact of a tenant, by an object such as Tenant/shop.
func (s *Snapshot) findContact(object string) string {
	name, isTenant := strings.CutPrefix(object, "Tenant/")
	if !isTenant || s.Declared == nil {
		return ""
	}
	for i := range s.Declared.Tenants {
		if t := &s.Declared.Tenants[i]; t.Name == name {
			return t.Spec.Contact
		}
	}
	return ""
}

// listUnread lists the parts that could not be read, with the reasons.
func (s *Snapshot) listUnread(parts []string) []string {
	var all []string
	for _, part := range parts {
		if reason, ok := s.Unreadable[part]; ok {
			all = append(all, part+": "+reason)
		}
	}
	return all
}

// CountProblems returns the number of problems.
func CountProblems(results []Result) int {
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

// CountUnread counts the checks that lack data.
func CountUnread(results []Result) int {
	n := 0
	for _, r := range results {
		if len(r.Unreadable) > 0 {
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
			if message, _ := catalog.FindEncoded(f.Message); message != "" {
				decoded := catalog.DecodeFinding(ctx, catalog.Finding{Symptom: f.Message, Cause: f.Cause, Fix: f.Fix, Run: f.Run}, decode)
				f.Cause, f.Fix, f.Run = decoded.Cause, decoded.Fix, decoded.Run
			}
		}
	}
}

// platformSpec returns the declared Platform, even if it is invalid, or an empty one.
func (s *Snapshot) platformSpec() *v1alpha1.PlatformSpec {
	switch {
	case s.Estate != nil:
		return &s.Estate.Platform.PlatformSpec
	case s.Declared != nil && len(s.Declared.Platforms) > 0:
		return &s.Declared.Platforms[0].Spec
	default:
		return &v1alpha1.PlatformSpec{}
	}
}

// key returns the key of the label and taint of tenants' pools.
func (s *Snapshot) key() string {
	return cmp.Or(s.platformSpec().NodePoolKey, v1alpha1.DefaultNodePoolKey)
}

// listTenants returns the valid tenants that are not being deleted.
func (s *Snapshot) listTenants() []*estate.Tenant {
	if s.Estate == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Estate.Tenants), func(t *estate.Tenant) bool { return s.Deleting["Tenant/"+t.Name] })
}

// servesKind reports whether a definition serves a kind.
func (s *Snapshot) servesKind(gvk schema.GroupVersionKind) bool {
	for _, d := range s.Definitions {
		if d.Spec.Group == gvk.Group && d.Spec.Names.Kind == gvk.Kind {
			return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == gvk.Version && v.Served })
		}
	}
	return false
}
