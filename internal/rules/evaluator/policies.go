package evaluator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	admissionapiv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/warning"
	listersv1 "k8s.io/client-go/listers/core/v1"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// scheme has Kubernetes' own kinds, for conversions between their versions.
var scheme = clientgoscheme.Scheme

// base is the CEL environment of expressions.
var base = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// validatingPolicy is a policy that denies or warns.
type validatingPolicy struct {
	policy   *admissionv1.ValidatingAdmissionPolicy
	bindings []*admissionv1.ValidatingAdmissionPolicyBinding
	// compiled compiles the policy once.
	compiled func() (*validator, error)
}

// validator is a compiled policy.
type validator struct {
	// quick evaluates the rules without messages: most requests violate no rule, and messages
	// are half of a policy's expressions.
	quick validating.Validator
	// full compiles the messages, too.
	full func() (validating.Validator, error)
}

// silent replaces expressions that are not evaluated.
type silent struct{}

func (silent) ForInput(_ context.Context, _ *admission.VersionedAttributes, _ *admissionapiv1.AdmissionRequest, _ plugincel.OptionalVariableBindings, _ *corev1.Namespace, budget int64) ([]plugincel.EvaluationResult, int64, error) {
	return nil, budget, nil
}
func (silent) CompilationErrors() []error { return nil }

// mutatingPolicy is a compiled policy that changes objects.
type mutatingPolicy struct {
	hook mutating.PolicyHook
}

// compiledPolicy has the common parts of the two kinds of policies.
type compiledPolicy struct {
	compiler *plugincel.CompositedCompiler
	options  plugincel.OptionalVariableDeclarations
	matcher  matchconditions.Matcher
	errs     []error
}

func (k *cache) compile(name string, failure *admissionv1.FailurePolicyType, variables []admissionv1.Variable, conditions []admissionv1.MatchCondition, params bool) (*compiledPolicy, error) {
	compiler, cached, err := newCompiler(k)
	if err != nil {
		return nil, err
	}
	c := &compiledPolicy{compiler: compiler, options: plugincel.OptionalVariableDeclarations{HasParams: params, HasAuthorizer: true}}
	for _, v := range variables {
		r := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, c.options, environment.StoredExpressions)
		cached.recordVariable(v.Name, r)
		if r.Error != nil {
			c.errs = append(c.errs, fmt.Errorf("variable %s: %w", v.Name, r.Error))
		}
	}
	if len(conditions) > 0 {
		var all []plugincel.ExpressionAccessor
		for i := range conditions {
			all = append(all, (*matchconditions.MatchCondition)(&conditions[i]))
		}
		c.matcher = matchconditions.NewMatcher(c.compileConditions("match condition", all, c.options), failure, "policy", "validate", name)
	}
	return c, nil
}

func (c *compiledPolicy) compileConditions(what string, all []plugincel.ExpressionAccessor, options plugincel.OptionalVariableDeclarations) plugincel.ConditionEvaluator {
	evaluator := c.compiler.CompileCondition(all, options, environment.StoredExpressions)
	for _, err := range evaluator.CompilationErrors() {
		c.errs = append(c.errs, fmt.Errorf("%s: %w", what, err))
	}
	return evaluator
}

func (k *cache) compileValidating(p *admissionv1.ValidatingAdmissionPolicy) (*validator, error) {
	c, err := k.compile(p.Name, p.Spec.FailurePolicy, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.ParamKind != nil)
	if err != nil {
		return nil, err
	}
	rules := make([]plugincel.ExpressionAccessor, len(p.Spec.Validations))
	messages := make([]plugincel.ExpressionAccessor, len(p.Spec.Validations))
	for i, v := range p.Spec.Validations {
		rules[i] = &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason}
		if v.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression}
		}
	}
	asked := c.compileConditions("rule", rules, c.options)
	with := func(messageEvaluator plugincel.ConditionEvaluator) validating.Validator {
		return validating.NewValidator(asked, c.matcher, silent{}, messageEvaluator, p.Spec.FailurePolicy, nil)
	}
	return &validator{quick: with(silent{}), full: sync.OnceValues(func() (validating.Validator, error) {
		withoutAuthorizer := plugincel.OptionalVariableDeclarations{HasParams: c.options.HasParams}
		messageEvaluator := c.compileConditions("message", messages, withoutAuthorizer)
		return with(messageEvaluator), errors.Join(c.errs...)
	})}, errors.Join(c.errs...)
}

func (k *cache) compileMutating(p *admissionv1.MutatingAdmissionPolicy) (mutatingPolicy, error) {
	c, err := k.compile(p.Name, p.Spec.FailurePolicy, p.Spec.Variables, p.Spec.MatchConditions, p.Spec.ParamKind != nil)
	if err != nil {
		return mutatingPolicy{}, err
	}
	options := c.options
	options.HasPatchTypes = true
	evaluator := mutating.PolicyEvaluator{Matcher: c.matcher, CompositedCompiler: c.compiler}
	for _, m := range p.Spec.Mutations {
		var accessor plugincel.ExpressionAccessor
		var patcher func(plugincel.MutatingEvaluator) patch.Patcher
		if m.PatchType == admissionv1.PatchTypeJSONPatch {
			accessor, patcher = &patch.JSONPatchCondition{Expression: m.JSONPatch.Expression}, patch.NewJSONPatcher
		} else {
			accessor, patcher = &patch.ApplyConfigurationCondition{Expression: m.ApplyConfiguration.Expression}, patch.NewApplyConfigurationPatcher
		}
		mutation := c.compiler.CompileMutatingEvaluator(accessor, options, environment.StoredExpressions)
		for _, err := range mutation.CompilationErrors() {
			c.errs = append(c.errs, fmt.Errorf("mutation: %w", err))
		}
		evaluator.Mutators = append(evaluator.Mutators, patcher(mutation))
	}
	return mutatingPolicy{mutating.PolicyHook{Policy: p, Evaluator: evaluator}}, errors.Join(c.errs...)
}

// mutate evaluates the mutating policies for a request's object, and evaluates them again if
// one of them has changed it.
func (e *Evaluator) mutate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	hooks := make([]mutating.PolicyHook, len(e.mutating))
	for i := range e.mutating {
		hooks[i] = e.mutating[i].hook
	}
	dispatcher := mutating.NewDispatcher(e.rbac, e.namespaces.newMatcher(), untypedConverters{})
	if err := dispatcher.Dispatch(ctx, a, o, hooks); err != nil {
		return err
	}
	if again := a.GetReinvocationContext(); again.ShouldReinvoke() {
		again.SetIsReinvoke()
		return dispatcher.Dispatch(ctx, a, o, hooks)
	}
	return nil
}

// matchedPolicy is a request in the form in which a policy evaluates it.
type matchedPolicy struct {
	policy   validatingPolicy
	bindings []*admissionv1.ValidatingAdmissionPolicyBinding
	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
}

// matchPolicies returns a question for each policy that matches a request.
func (e *Evaluator) matchPolicies(a admission.Attributes, o admission.ObjectInterfaces) ([]matchedPolicy, error) {
	matcher := generic.NewPolicyMatcher(e.namespaces.newMatcher())
	var all []matchedPolicy
	for _, p := range e.validating {
		matches, resource, kind, err := matcher.DefinitionMatches(a, o, validating.NewValidatingAdmissionPolicyAccessor(p.policy))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.policy.Name, err)
		}
		if !matches {
			continue
		}
		q := matchedPolicy{policy: p, resource: resource, kind: kind}
		for _, binding := range p.bindings {
			matches, err := matcher.BindingMatches(a, o, validating.NewValidatingAdmissionPolicyBindingAccessor(binding))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.policy.Name, err)
			}
			if matches {
				q.bindings = append(q.bindings, binding)
			}
		}
		if len(q.bindings) > 0 {
			all = append(all, q)
		}
	}
	return all, nil
}

// compilePolicies compiles the policies of some questions in parallel.
func compilePolicies(questions []matchedPolicy) error {
	errs := make([]error, len(questions))
	var group sync.WaitGroup
	for i, q := range questions {
		group.Go(func() {
			if _, err := q.policy.compiled(); err != nil {
				errs[i] = fmt.Errorf("%s: %w", q.policy.policy.Name, err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// evaluate evaluates the policy for a request, and returns all violated rules.
func (q matchedPolicy) evaluate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces, authz authorizer.Authorizer, in namespaces) ([]Denial, error) {
	policy := q.policy.policy
	compiled, err := q.policy.compiled()
	if err != nil {
		return nil, err
	}
	var denials []Denial
	for _, binding := range q.bindings {
		versioned, err := admission.NewVersionedAttributes(a, q.kind, o)
		if err != nil {
			return nil, err
		}
		asked := func(v validating.Validator) validating.ValidateResult {
			return v.Validate(ctx, q.resource, versioned, nil, in.findNamespace(a), celconfig.RuntimeCELCostBudget, authz)
		}
		result := asked(compiled.quick)
		if !slices.ContainsFunc(result.Decisions, func(d validating.PolicyDecision) bool { return d.Action == validating.ActionDeny }) {
			continue
		}
		full, err := compiled.full()
		if err != nil {
			return nil, err
		}
		result = asked(full)
		for _, d := range result.Decisions {
			if d.Action != validating.ActionDeny {
				continue
			}
			if slices.Contains(binding.Spec.ValidationActions, admissionv1.Warn) {
				warning.AddWarning(ctx, "", fmt.Sprintf("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s", policy.Name, binding.Name, d.Message))
			}
			if slices.Contains(binding.Spec.ValidationActions, admissionv1.Deny) {
				err := admission.NewForbidden(a, fmt.Errorf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: %s", policy.Name, binding.Name, d.Message))
				denials = append(denials, Denial{DeniedBy: policy.Name, Rule: parseRule(d.Message), Message: d.Message, Err: err})
			}
		}
	}
	return denials, nil
}

// untypedConverters merges objects without their schema: croft's policies patch by JSONPatch, which
// needs no schema.
type untypedConverters struct{}

func (untypedConverters) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return managedfields.NewDeducedTypeConverter()
}
func (untypedConverters) Run(context.Context) {}

// namespaces has the cluster's namespaces by name.
type namespaces map[string]*corev1.Namespace

// findNamespace returns the namespace that expressions read. It is nil for a request on a Namespace.
func (n namespaces) findNamespace(a admission.Attributes) *corev1.Namespace {
	if kind := a.GetKind(); kind.Group == "" && kind.Kind == "Namespace" {
		return nil
	}
	return n[a.GetNamespace()]
}

func (n namespaces) newMatcher() *matching.Matcher { return matching.NewMatcher(lister{n}, nil) }

// GetNamespace implements the NamespaceGetter of Pod Security.
func (n namespaces) GetNamespace(_ context.Context, name string) (*corev1.Namespace, error) {
	return lister{n}.Get(name)
}

// lister lists the namespaces like an informer cache.
type lister struct{ namespaces }

var _ listersv1.NamespaceLister = lister{}

func (l lister) Get(name string) (*corev1.Namespace, error) {
	if n, ok := l.namespaces[name]; ok {
		return n, nil
	}
	// A "not found" error would make the matcher use a client, and there is none.
	return nil, apierrors.NewInternalError(fmt.Errorf("there is no namespace %q", name))
}

func (l lister) List(selector labels.Selector) ([]*corev1.Namespace, error) {
	var all []*corev1.Namespace
	for _, n := range l.namespaces {
		if selector.Matches(labels.Set(n.Labels)) {
			all = append(all, n)
		}
	}
	return all, nil
}

// warnings records the distinct warnings of a request.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

func recordWarnings(ctx context.Context) (context.Context, *warnings) {
	w := &warnings{}
	return warning.WithWarningRecorder(ctx, w), w
}

// AddWarning implements the API server's warning.Recorder.
func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if text = strings.TrimSpace(text); !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

func (w *warnings) listTexts() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.texts)
}
