package wall_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// policyEvaluator evaluates one policy with the API server's own packages and counts the cost. It
// needs no control plane.
type policyEvaluator struct {
	name                        string
	conditions, rules, messages plugincel.ConditionEvaluator
	patches                     plugincel.MutatingEvaluator
	// constant has the messages of the rules that have no message expression.
	constant      []string
	compiler      *plugincel.CompositedCompiler
	withoutParams bool
}

// verdict is the result of one request.
type verdict struct {
	// cost is in the units of the API server's limits: celconfig.PerCallLimit for each
	// expression, celconfig.RuntimeCELCostBudget for a whole policy.
	cost int64
	// skipped is set if the policy's match conditions exclude the request.
	skipped bool
	// refusals are the messages of the violated rules.
	refusals []string
	// errs are the errors of expressions. An error refuses the request, too.
	errs []error
}

// isRefusedBy reports whether the given rule is violated and no other.
func (v verdict) isRefusedBy(rule string) bool {
	return len(v.errs) == 0 && len(v.refusals) == 1 && strings.HasPrefix(v.refusals[0], "["+rule+"] ")
}

func newPolicyEvaluator(t testing.TB, o client.Object) *policyEvaluator {
	t.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	j := &policyEvaluator{name: o.GetName(), compiler: compiler}
	var variables []admissionv1.Variable
	var conditions []admissionv1.MatchCondition
	var options plugincel.OptionalVariableDeclarations
	compile := func(expressions []plugincel.ExpressionAccessor, authorizer bool) plugincel.ConditionEvaluator {
		declared := options
		declared.HasAuthorizer = authorizer
		compiled := compiler.CompileCondition(expressions, declared, environment.StoredExpressions)
		for _, err := range compiled.CompilationErrors() {
			t.Errorf("%s: %v", o.GetName(), err)
		}
		return compiled
	}
	declare := func() {
		declared := options
		declared.HasAuthorizer = true
		for _, v := range variables {
			if r := compiler.CompileAndStoreVariable(variable{v.Name, expression{v.Expression, []*celgo.Type{celgo.AnyType, celgo.DynType}}}, declared, environment.StoredExpressions); r.Error != nil {
				t.Errorf("%s: variable %s: %v", o.GetName(), v.Name, r.Error)
			}
		}
		var all []plugincel.ExpressionAccessor
		for i := range conditions {
			all = append(all, (*matchconditions.MatchCondition)(&conditions[i]))
		}
		j.conditions = compile(all, true)
	}
	switch o := o.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		variables, conditions, options.HasParams = o.Spec.Variables, o.Spec.MatchConditions, o.Spec.ParamKind != nil
		declare()
		var rules, messages []plugincel.ExpressionAccessor
		for _, v := range o.Spec.Validations {
			rules = append(rules, expression{v.Expression, []*celgo.Type{celgo.BoolType}})
			if v.MessageExpression == "" {
				messages = append(messages, nil) // not evaluated
			} else {
				messages = append(messages, expression{v.MessageExpression, []*celgo.Type{celgo.StringType}})
			}
			j.constant = append(j.constant, v.Message)
		}
		j.rules, j.messages = compile(rules, true), compile(messages, false)
	case *admissionv1.MutatingAdmissionPolicy:
		variables, conditions, options.HasParams = o.Spec.Variables, o.Spec.MatchConditions, o.Spec.ParamKind != nil
		declare()
		declared := options
		declared.HasAuthorizer, declared.HasPatchTypes = true, true
		j.patches = compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: o.Spec.Mutations[0].JSONPatch.Expression}, declared, environment.StoredExpressions)
		for _, err := range j.patches.CompilationErrors() {
			t.Errorf("%s: %v", o.GetName(), err)
		}
	default:
		t.Fatalf("%T is no policy", o)
	}
	j.withoutParams = !options.HasParams
	return j
}

// expression is a CEL expression of a policy.
type expression struct {
	text  string
	types []*celgo.Type
}

func (e expression) GetExpression() string      { return e.text }
func (e expression) ReturnTypes() []*celgo.Type { return e.types }

type variable struct {
	name string
	expression
}

func (v variable) GetName() string { return v.name }

// denyingAuthorizer is an authorizer that grants no cluster-wide permissions, as for a tenant.
type denyingAuthorizer struct{}

func (denyingAuthorizer) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", nil
}

// request is a tenant's request.
type request struct {
	operation   admission.Operation
	resource    schema.GroupVersionResource
	subresource string
	object, old client.Object
	// user sends the request. It defaults to a developer.
	user string
}

func (j *policyEvaluator) evaluateRequest(t testing.TB, r request, rules *v1alpha1.TenantRules) verdict {
	t.Helper()
	attributes := r.newAttributes()
	asked := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(attributes.VersionedKind))
	namespace := &corev1.Namespace{}
	namespace.Name, namespace.Labels = r.object.GetNamespace(), map[string]string{v1alpha1.TenantLabel: rules.Spec.Tenant}
	namespace.Annotations = admissionpolicy.BuildAnnotations(rules.Spec)
	bound := plugincel.OptionalVariableBindings{Authorizer: denyingAuthorizer{}}
	if !j.withoutParams {
		bound.VersionedParams = rules
	}
	var v verdict
	evaluate := func(e plugincel.ConditionEvaluator, budget int64) []plugincel.EvaluationResult {
		results, left, err := e.ForInput(context.Background(), attributes, asked, bound, namespace, budget)
		if err != nil {
			v.errs = append(v.errs, err)
			v.cost += budget
			return nil
		}
		v.cost += budget - left
		return results
	}
	for _, result := range evaluate(j.conditions, celconfig.RuntimeCELCostBudgetMatchConditions) {
		if result.Error != nil {
			v.errs = append(v.errs, result.Error)
		} else if result.EvalResult.Value() == false {
			v.skipped = true
		}
	}
	if v.skipped || len(v.errs) > 0 {
		return v
	}
	if j.patches != nil {
		bound.VersionedParams = rules
		result, left, err := j.patches.ForInput(j.compiler.CreateContext(context.Background()), attributes, asked, bound, namespace, celconfig.RuntimeCELCostBudget)
		if err == nil {
			err = result.Error
		}
		if err != nil {
			v.errs = append(v.errs, err)
			left = max(left, 0)
		}
		v.cost += celconfig.RuntimeCELCostBudget - left
		return v
	}
	verdicts := evaluate(j.rules, celconfig.RuntimeCELCostBudget)
	messages := evaluate(j.messages, celconfig.RuntimeCELCostBudget)
	for i, result := range verdicts {
		switch {
		case result.Error != nil:
			v.errs = append(v.errs, result.Error)
		case result.EvalResult.Value() == true:
		case j.constant[i] != "":
			v.refusals = append(v.refusals, j.constant[i])
		case i >= len(messages) || messages[i].Error != nil:
			v.errs = append(v.errs, fmt.Errorf("message %d: %w", i, messages[i].Error))
		default:
			v.refusals = append(v.refusals, messages[i].EvalResult.Value().(string))
		}
	}
	return v
}

// newAttributes returns the request in the form that admission plugins receive.
func (r request) newAttributes() *admission.VersionedAttributes {
	kind := r.object.GetObjectKind().GroupVersionKind()
	var old runtime.Object // an untyped nil
	if r.old != nil {
		old = r.old
	}
	return &admission.VersionedAttributes{
		Attributes: admission.NewAttributesRecord(r.object, old, kind, r.object.GetNamespace(), r.object.GetName(), r.resource, r.subresource, r.operation, nil, false,
			&user.DefaultInfo{Name: cmp.Or(r.user, "dev"), Groups: []string{"system:authenticated", "shop-developers"}}),
		VersionedKind: kind, VersionedObject: r.object, VersionedOldObject: old,
	}
}
