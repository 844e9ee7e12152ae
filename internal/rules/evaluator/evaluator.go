// Package evaluator answers a request as the API server would, without a server: the
// mutations and refusals of admission policies, and the decisions of RBAC and Pod Security.
// It uses the API server's own packages, and reads only the given objects.
//
// It does not evaluate the usage of quotas, the validation of Kubernetes' own kinds, most of
// their defaults, webhooks, finalizers and garbage collection.
package evaluator

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Request is a decoded request to the API server.
type Request struct {
	// User is the user with all groups: system:authenticated is not added.
	User user.Info
	// Verb is create, update, patch, delete, get, list or watch, as in RBAC.
	Verb string
	// Resource and Subresource are the target of the request. Subresource is empty for the
	// object itself.
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace is empty for cluster-scoped kinds. Name may be empty if the API server
	// generates it.
	Namespace, Name string
	// Object is the whole object to write, also for a patch. It is nil for a delete and for
	// reads.
	Object *unstructured.Unstructured
	// Old is the existing object, for an update, a patch and a delete.
	Old *unstructured.Unstructured
	// Options are the options of the request, or nil.
	Options runtime.Object
	// Authorized is set if the request is not checked against Roles. It is for requests of
	// Kubernetes' own controllers, whose roles are not among the objects.
	Authorized bool
	// Stored is set if the request is not a dry run.
	Stored bool
}

// Denial is a reason to refuse a request. The API server reports the first one only.
type Denial struct {
	// DeniedBy is RBAC, PodSecurity, or the name of the policy.
	DeniedBy string
	// Rule is the name in brackets that begins a message of croft's policies. It is empty for
	// other refusals, and if an expression fails.
	Rule string
	// Message is the message to the user, without the API server's prefix.
	Message string
	// Err is the complete error of the API server.
	Err error
}

// Answer is the answer to a request.
type Answer struct {
	// Sent is the request's object with the API server's defaults. Object is the object to
	// write, as policies have changed it, or nil.
	Sent, Object *unstructured.Unstructured
	// Denials are all reasons to refuse the request, in the API server's order. The request
	// is allowed if there are none.
	Denials []Denial
	// Warnings are the warnings to the user.
	Warnings []string
}

// Err returns the API server's error for a refused request, or nil if it is allowed.
func (a Answer) Err() error {
	if len(a.Denials) == 0 {
		return nil
	}
	return a.Denials[0].Err
}

// Evaluator answers requests to a cluster that consists of the given objects. It is safe for
// concurrent use.
type Evaluator struct {
	objects     []client.Object
	namespaces  namespaces
	limits      map[string][]*corev1.LimitRange
	quotas      map[string][]*corev1.ResourceQuota
	rbac        rbac
	mutating    []mutatingPolicy
	validating  []validatingPolicy
	podSecurity podSecurity
	// lazy is set if policies are compiled when a request first matches them.
	lazy bool
	// cache is shared with the evaluators that are derived from this one.
	cache *cache
}

// New returns an Evaluator of a cluster with these objects. Kinds without a role in admission
// are ignored. The error names the policies that do not compile.
func New(objects []client.Object) (*Evaluator, error) {
	return (&Evaluator{cache: newCache()}).WithObjects(objects)
}

// NewLazy is like New, for callers that evaluate requests of a few kinds and need not wait for
// the policies on others. A policy is compiled when a request first matches it, and Judge
// returns the error of a policy that does not compile.
func NewLazy(objects []client.Object) (*Evaluator, error) {
	return (&Evaluator{lazy: true, cache: newCache()}).WithObjects(objects)
}

// With returns an Evaluator of the same cluster with more objects. They replace objects of
// the same kind and name. Only new policies are compiled.
func (e *Evaluator) With(more ...client.Object) (*Evaluator, error) {
	if len(more) == 0 {
		return e, nil
	}
	return e.WithObjects(append(e.removeObjects(more), more...))
}

// Without returns an Evaluator of the same cluster without some objects, by kind and name.
func (e *Evaluator) Without(less ...client.Object) (*Evaluator, error) {
	return e.WithObjects(e.removeObjects(less))
}

func (e *Evaluator) removeObjects(less []client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(e.objects), func(o client.Object) bool {
		return slices.ContainsFunc(less, func(l client.Object) bool {
			return reflect.TypeOf(o) == reflect.TypeOf(l) && o.GetName() == l.GetName() && o.GetNamespace() == l.GetNamespace()
		})
	})
}

// WithObjects returns an Evaluator of a cluster with other objects. A policy is not compiled again if
// only its scope has changed.
func (e *Evaluator) WithObjects(objects []client.Object) (*Evaluator, error) {
	next := &Evaluator{
		lazy: e.lazy, cache: e.cache, objects: objects, namespaces: namespaces{},
		limits: map[string][]*corev1.LimitRange{}, quotas: map[string][]*corev1.ResourceQuota{},
	}
	var mutatingBindings []*admissionv1.MutatingAdmissionPolicyBinding
	var validatingBindings []*admissionv1.ValidatingAdmissionPolicyBinding
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Namespace:
			next.namespaces[o.Name] = addNameLabel(o)
		case *corev1.LimitRange:
			next.limits[o.Namespace] = append(next.limits[o.Namespace], o)
		case *corev1.ResourceQuota:
			next.quotas[o.Namespace] = append(next.quotas[o.Namespace], o)
		case *admissionv1.MutatingAdmissionPolicyBinding:
			mutatingBindings = append(mutatingBindings, o)
		case *admissionv1.ValidatingAdmissionPolicyBinding:
			validatingBindings = append(validatingBindings, o)
		case *rbacv1.Role:
			next.rbac.roles = append(next.rbac.roles, o)
		case *rbacv1.ClusterRole:
			next.rbac.clusterRoles = append(next.rbac.clusterRoles, o)
		case *rbacv1.RoleBinding:
			next.rbac.bindings = append(next.rbac.bindings, o)
		case *rbacv1.ClusterRoleBinding:
			next.rbac.clusterBindings = append(next.rbac.clusterBindings, o)
		}
	}
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *admissionv1.MutatingAdmissionPolicy:
			var p mutatingPolicy
			if p, err = e.getMutating(o); err == nil {
				p.hook.Bindings = slices.DeleteFunc(slices.Clone(mutatingBindings), func(b *admissionv1.MutatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName != o.Name })
				next.mutating = append(next.mutating, p)
			}
		case *admissionv1.ValidatingAdmissionPolicy:
			p := e.getValidating(o)
			if !e.lazy {
				err = p.compile()
			}
			if err == nil {
				p.bindings = slices.DeleteFunc(slices.Clone(validatingBindings), func(b *admissionv1.ValidatingAdmissionPolicyBinding) bool { return b.Spec.PolicyName != o.Name })
				next.validating = append(next.validating, p)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.GetName(), err)
		}
	}
	var err error
	next.podSecurity, err = newPodSecurity(next.namespaces)
	return next, err
}

func (e *Evaluator) getMutating(o *admissionv1.MutatingAdmissionPolicy) (mutatingPolicy, error) {
	for _, p := range e.mutating {
		if p.hook.Policy == o {
			return p, nil
		}
		if had := p.hook.Policy.Spec; p.hook.Policy.Name == o.Name {
			had.MatchConstraints = o.Spec.MatchConstraints // no expression depends on them
			if equality.Semantic.DeepEqual(had, o.Spec) {
				p.hook.Policy = o
				return p, nil
			}
		}
	}
	return e.cache.compileMutating(o)
}

// getValidating returns the policy, to be compiled at most once.
func (e *Evaluator) getValidating(o *admissionv1.ValidatingAdmissionPolicy) validatingPolicy {
	for _, p := range e.validating {
		if p.policy == o {
			return p
		}
		if had := p.policy.Spec; p.policy.Name == o.Name {
			had.MatchConstraints = o.Spec.MatchConstraints
			if equality.Semantic.DeepEqual(had, o.Spec) {
				p.policy = o
				return p
			}
		}
	}
	return validatingPolicy{policy: o, compiled: sync.OnceValues(func() (*validator, error) { return e.cache.compileValidating(o) })}
}

// compile compiles the whole policy and returns the error.
func (p validatingPolicy) compile() error {
	v, err := p.compiled()
	if err == nil {
		_, err = v.full()
	}
	return err
}

// Evaluate answers a request. It returns an error if the evaluator fails, not if the request is
// refused.
func (e *Evaluator) Evaluate(ctx context.Context, r Request) (Answer, error) {
	if r.Resource.Group == "" && r.Resource.Resource == "namespaces" && r.Verb != "create" {
		r.Namespace = r.Name // as in the API server
	}
	if !r.Authorized {
		if denied := e.rbac.evaluate(r); denied != nil {
			return Answer{Denials: []Denial{*denied}}, nil
		}
	}
	if r.Namespace != "" && r.Namespace != r.Name && e.namespaces[r.Namespace] == nil {
		err := apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.Namespace)
		return Answer{Denials: []Denial{{DeniedBy: "NamespaceLifecycle", Message: err.Error(), Err: err}}}, nil
	}
	operation, ok := operations[r.Verb]
	if !ok {
		return Answer{}, nil
	}
	if connects[r.Subresource] {
		operation = admission.Connect
	}
	a := e.buildAttributes(r, operation)
	o := admission.NewObjectInterfacesFromScheme(scheme)
	ctx, warnings := recordWarnings(ctx)
	var answer Answer
	if denied := e.rbac.checkEscalation(r); denied != nil && !r.Authorized {
		answer.Denials = append(answer.Denials, *denied)
	}
	if r.Object != nil && operation != admission.Delete {
		answer.Sent = a.GetObject().(*unstructured.Unstructured).DeepCopy()
		if err := e.mutate(ctx, a, o); err != nil {
			answer.Denials = append(answer.Denials, newDenial("mutation", err))
		}
		answer.Object = a.GetObject().(*unstructured.Unstructured)
	}
	answer.Denials = append(answer.Denials, e.listResourceDenials(a, answer.Object)...)
	answer.Denials = append(answer.Denials, e.podSecurity.evaluate(ctx, a)...)
	denials, err := e.validate(ctx, a, o)
	if err != nil {
		return Answer{}, err
	}
	answer.Denials = append(answer.Denials, denials...)
	answer.Warnings = warnings.listTexts()
	return answer, nil
}

// validate evaluates the policies that match a request.
func (e *Evaluator) validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) ([]Denial, error) {
	questions, err := e.matchPolicies(a, o)
	if err == nil && e.lazy {
		err = compilePolicies(questions)
	}
	if err != nil {
		return nil, err
	}
	var all []Denial
	for _, q := range questions {
		denials, err := q.evaluate(ctx, a, o, e.rbac, e.namespaces)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.policy.policy.Name, err)
		}
		all = append(all, denials...)
	}
	return all, nil
}

// operations are the operations of the verbs that admission handles.
var operations = map[string]admission.Operation{
	"create": admission.Create, "update": admission.Update, "patch": admission.Update, "delete": admission.Delete,
}

// connects has the subresources that open a stream.
var connects = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

func (e *Evaluator) buildAttributes(r Request, operation admission.Operation) admission.Attributes {
	var object, old runtime.Object
	var kind schema.GroupVersionKind
	if r.Old != nil {
		kind = r.Old.GroupVersionKind()
		old = r.Old
	}
	if r.Object != nil && operation != admission.Delete {
		kind = r.Object.GroupVersionKind()
		copied := r.Object.DeepCopy()
		fillDefaults(copied, r.Subresource)
		if copied.GroupVersionKind().GroupKind() == (schema.GroupKind{Kind: "Pod"}) && operation == admission.Create {
			fillResources(copied, e.limits[r.Namespace])
		}
		object = copied
	}
	return admission.NewAttributesRecord(object, old, kind, r.Namespace, r.Name, r.Resource, r.Subresource, operation, r.Options, !r.Stored, r.User)
}

// newDenial returns a refusal with the API server's message.
func newDenial(by string, err error) Denial {
	d := Denial{DeniedBy: by, Message: err.Error(), Err: err}
	if _, after, ok := strings.Cut(d.Message, "denied request: "); ok {
		d.Message = after
	}
	d.Rule = parseRule(d.Message)
	return d
}

// parseRule returns the name in brackets at the beginning of a message.
func parseRule(message string) string {
	inner, ok := strings.CutPrefix(message, "[")
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(inner, "] ")
	if !ok || strings.ContainsAny(name, " :'\"") {
		return ""
	}
	return name
}

// addNameLabel returns a namespace with the label that the API server adds to each.
func addNameLabel(n *corev1.Namespace) *corev1.Namespace {
	n = n.DeepCopy()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
	return n
}

// FindResource returns the resource of a kind, as it appears in API paths.
func FindResource(kind schema.GroupVersionKind) schema.GroupVersionResource {
	if plural, ok := plurals[kind.GroupKind()]; ok {
		return kind.GroupVersion().WithResource(plural)
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}

// plurals has the resources with irregular plurals.
var plurals = map[schema.GroupKind]string{
	{Group: "croft.dev", Kind: "TenantRules"}:                       "tenantrules",
	{Group: "k8s.cni.cncf.io", Kind: "NetworkAttachmentDefinition"}: "network-attachment-definitions",
	{Group: "gateway.networking.k8s.io", Kind: "Gateway"}:           "gateways",
}

// newForbidden returns the API server's error for a request that RBAC does not permit.
func newForbidden(r Request) error {
	what := r.Resource.Resource
	if r.Subresource != "" {
		what += "/" + r.Subresource
	}
	in := "at the cluster scope"
	if r.Namespace != "" {
		in = fmt.Sprintf("in the namespace %q", r.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: r.Resource.Group, Resource: what}, r.Name,
		//nolint:staticcheck // the API server's own words
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", r.User.GetName(), r.Verb, what, r.Resource.Group, in))
}

var _ authorizer.Authorizer = rbac{}
