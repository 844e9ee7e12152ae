package install_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/rules/evaluator"
)

// TestPricePolicyMutants changes each part of the policy on prices once. A case must detect it.
func TestPricePolicyMutants(t *testing.T) {
	type policy = admissionv1.ValidatingAdmissionPolicy
	replace := func(old, with string) func(*policy) {
		return func(p *policy) {
			found := false
			edit := func(text *string) {
				found = found || strings.Contains(*text, old)
				*text = strings.ReplaceAll(*text, old, with)
			}
			for i := range p.Spec.Validations {
				edit(&p.Spec.Validations[i].Expression)
				edit(&p.Spec.Validations[i].MessageExpression)
			}
			if !found {
				t.Errorf("the policy has no %s", old)
			}
		}
	}
	editScope := func(edit func(*admissionv1.NamedRuleWithOperations)) func(*policy) {
		return func(p *policy) { edit(&p.Spec.MatchConstraints.ResourceRules[0]) }
	}
	for name, mutate := range map[string]func(*policy){
		"without the rule":            func(p *policy) { removeRule(p, "price") },
		"for controllers, too":        replace(`request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`, `false`),
		"counts containers only":      replace("initContainers.size() <= 100", "initContainers.size() <= 200"),
		"counts init containers only": replace("containers.size() <= 100", "containers.size() <= 200"),
		"counts too few containers":   replace("<= 100", "<= 99"),
		"does not count the old ones": replace("oldObject != null && !(", "false && !("),
		"in all namespaces":           func(p *policy) { p.Spec.MatchConstraints.NamespaceSelector = &metav1.LabelSelector{} },
		"without Deployments":         editScope(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"statefulsets"} }),
		"without StatefulSets":        editScope(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = []string{"deployments"} }),
		"jobs, too": editScope(func(r *admissionv1.NamedRuleWithOperations) {
			r.APIGroups, r.Resources = []string{"*"}, []string{"*"}
		}),
		"the status, too": editScope(func(r *admissionv1.NamedRuleWithOperations) { r.Resources = append(r.Resources, "deployments/status") }),
		"without CREATE": editScope(func(r *admissionv1.NamedRuleWithOperations) {
			r.Operations = []admissionv1.OperationType{admissionv1.Update}
		}),
		"without UPDATE": editScope(func(r *admissionv1.NamedRuleWithOperations) {
			r.Operations = []admissionv1.OperationType{admissionv1.Create}
		}),
		"deletions, too": editScope(func(r *admissionv1.NamedRuleWithOperations) { r.Operations = []admissionv1.OperationType{"*"} }),

		"without figures":                             replace(`|| !("croft.dev/rules.prices" in namespaceObject.metadata.annotations)`, ``),
		"without a price":                             replace(`!namespaceObject.metadata.annotations["croft.dev/rules.prices"].contains(";" + `, `!"".contains("" == "" ? "" : `),
		"pools by the end of the name":                replace(`";" + (has`, `(has`),
		"pools by the beginning":                      replace(` + "="`, ``),
		"for each update":                             replace(`|| oldObject != null && (has`, `|| false && (has`),
		"for no update":                               replace(`|| oldObject != null && (has`, `|| oldObject != null || (has`),
		"unless replicas change":                      replace(`(has(object.spec.replicas) ? object.spec.replicas : 1) == (has(oldObject.spec.replicas) ? oldObject.spec.replicas : 1)`, `true`),
		"ignores another pool":                        replace(`oldObject.spec.template.spec.nodeSelector`, `object.spec.template.spec.nodeSelector`),
		"ignores requests of the pod":                 replace(`object.spec.template.spec.?resources == oldObject.spec.template.spec.?resources`, `true`),
		"ignores requests of containers":              replace(`object.spec.template.spec.containers.map(c, c.?resources) == oldObject.spec.template.spec.containers.map(c, c.?resources)`, `true`),
		"ignores init containers":                     replace(`: []).map(c, c.?resources)`, `: []).map(c, "")`),
		"ignores sidecars":                            replace(`c.?restartPolicy`, `""`),
		"whole units only":                            replace(`cost < 100.0`, `false`),
		"rounded down":                                replace(`cost + 0.5`, `cost + 0.0`),
		"cents rounded down":                          replace(`* 100.0 + 0.5`, `* 100.0`),
		"always replicas":                             replace(`(has(object.spec.replicas) ? object.spec.replicas : 1) == 1`, `false`),
		"without replicas":                            replace(`double((has(object.spec.replicas) ? object.spec.replicas : 1))`, `1.0`),
		"requires replicas":                           replace(`has(object.spec.replicas) ? object.spec.replicas : 1`, `object.spec.replicas`),
		"the default pool only":                       replace(`has(object.spec.template.spec.nodeSelector) && namespaceObject.metadata.annotations["croft.dev/rules.prices"].split(";")[0] in object.spec.template.spec.nodeSelector`, `false`),
		"without memory":                              replace(`/ 9663676416.0`, `* 0.0`),
		"another weight of memory":                    replace(`9663676416.0`, `8589934592.0`),
		"without requests of the pod":                 replace(`object.spec.template.spec.?resources.?requests[?r].hasValue()`, `false`),
		"the cheap sum only":                          replace(`!has(object.spec.template.spec.initContainers) && !has(object.spec.template.spec.resources)`, `true`),
		"the cheap sum for sidecars":                  replace(`!has(object.spec.template.spec.initContainers) && `, ``),
		"the cheap sum for pods":                      replace(`&& !has(object.spec.template.spec.resources)`, ``),
		"without limits of CPU":                       replace(`"cpu" in c.resources.limits`, `false`),
		"without limits of memory":                    replace(`"memory" in c.resources.limits`, `false`),
		"without requests of CPU":                     replace(`"cpu" in c.resources.requests`, `false`),
		"without requests of memory":                  replace(`"memory" in c.resources.requests`, `false`),
		"without a default of CPU":                    replace(`namespaceObject.metadata.annotations["croft.dev/rules.prices"].split(";")[2]`, `"0"`),
		"without a default of memory":                 replace(`namespaceObject.metadata.annotations["croft.dev/rules.prices"].split(";")[3]`, `"0"`),
		"without sidecars":                            replace(`inits.filter(c, (has(c.restartPolicy) && c.restartPolicy == "Always"))`, `[].filter(c, false)`),
		"all init containers as sidecars":             replace(`(has(c.restartPolicy) && c.restartPolicy == "Always")`, `true`),
		"without sidecars during the init containers": replace(`inits.filter(d, `, `inits.filter(d, false && `),
		"all sidecars during the init containers":     replace(`names.indexOf(d.name) < names.indexOf(c.name)`, `true`),
	} {
		t.Run(name, func(t *testing.T) {
			objects := install.PolicyObjects()
			for _, o := range objects {
				if p, ok := o.(*policy); ok && p.Name == install.PriceWarningsPolicy {
					mutate(p)
				}
			}
			if len(findWrongBudgetCases(t, objects)) == 0 {
				t.Error("no case detects the change")
			}
		})
	}
}

// warnedPrice matches the amount in a warning.
var warnedPrice = regexp.MustCompile(`about ([0-9.]+) EUR per month`)

// newPriceEvaluator returns an evaluator with the installed policies and the namespaces of tenants with budgets.
func newPriceEvaluator(tb testing.TB) *evaluator.Evaluator {
	tb.Helper()
	e, err := evaluator.New(append(install.PolicyObjects(), buildBudgetNamespaces(tb)...))
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// newPriceRequest returns the creation of a Deployment by a person.
func newPriceRequest(tb testing.TB, d *appsv1.Deployment) evaluator.Request {
	tb.Helper()
	d.TypeMeta = metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		tb.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	return evaluator.Request{
		User: &user.DefaultInfo{Name: "ann", Groups: []string{user.AllAuthenticated}}, Verb: "create", Authorized: true, Stored: true,
		Resource: evaluator.FindResource(object.GroupVersionKind()), Namespace: d.Namespace, Name: d.Name, Object: object,
	}
}

// TestPriceAgreesWithLedger creates random Deployments. The price in the warning is within 2 % of the ledger's cost of
// their pods, for the price that the ledger computes from other pods on the same nodes.
func TestPriceAgreesWithLedger(t *testing.T) {
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	hour := ledger.Span{From: begin, Until: begin.Add(time.Hour)}
	compute := func(pods ...ledger.Pod) ledger.Row {
		in := ledger.Input{Pods: pods, Owners: []ledger.Owner{{Namespace: "priced", Tenant: "priced"}}}
		for i := range in.Pods {
			in.Pods[i].Node, in.Pods[i].Namespace, in.Pods[i].Workload, in.Pods[i].Span = "n", "priced", "Deployment/a", hour
		}
		in.Nodes = []ledger.Node{{Name: "n", Pool: "jobs", CPU: 1000 * 1000, Memory: 4000 << 10, Span: hour,
			Price: price.Price{Amount: 55_937_600, Known: true, Source: "list"}}}
		l, err := ledger.New(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range l.Compute(hour).Rows {
			if row.Kind == ledger.Tenant {
				return row
			}
		}
		t.Fatal("the ledger has no cost")
		return ledger.Row{}
	}
	// The price of the namespaces of buildBudgetNamespaces.
	before := compute(ledger.Pod{CPU: 3300, Memory: 700})
	if month, ok := ledger.ScaleToMonth(before.Cost, before.Weight); !ok || month.Format(2) != "28.27" {
		t.Fatalf("a CPU costs %s per month, not the price of the namespaces", month.Format(2))
	}
	e := newPriceEvaluator(t)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test repeats its numbers
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "priced", Name: "a"}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(1 + r.IntN(20))), Template: corev1.PodTemplateSpec{Spec: makePodSpec(r)}}}
		answer, err := e.Evaluate(t.Context(), newPriceRequest(t, d))
		if err != nil {
			t.Fatal(err)
		}
		found := warnedPrice.FindStringSubmatch(strings.Join(answer.Warnings, "\n"))
		if found == nil {
			t.Fatalf("seed %d: no price in %q", seed, answer.Warnings)
		}
		got, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.Pod{Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Spec.NodeName = "n"
		setRequests(pod)
		one, _ := objects.ReadPod(pod)
		want := float64(compute(slices.Repeat([]ledger.Pod{one}, int(*d.Spec.Replicas))...).Cost) / 1e6 * 730
		if difference := (got - want) / want; difference > 0.02 || difference < -0.02 {
			t.Errorf("seed %d: the warning has %g, and the ledger %g", seed, got, want)
		}
	}
}

// makePodSpec returns a random template with containers, init containers and sidecars.
func makePodSpec(r *rand.Rand) corev1.PodSpec {
	number := 0
	makeContainers := func(count int) []corev1.Container {
		var all []corev1.Container
		for range count {
			number++
			c := corev1.Container{Name: fmt.Sprintf("c%d", number), Image: "i"}
			for _, list := range []*corev1.ResourceList{&c.Resources.Requests, &c.Resources.Limits} {
				*list = corev1.ResourceList{}
				if r.IntN(2) == 0 {
					(*list)[corev1.ResourceCPU] = *resource.NewMilliQuantity(1+r.Int64N(4000), resource.DecimalSI)
				}
				if r.IntN(2) == 0 {
					(*list)[corev1.ResourceMemory] = *resource.NewQuantity(r.Int64N(8<<30), resource.BinarySI)
				}
			}
			all = append(all, c)
		}
		return all
	}
	spec := corev1.PodSpec{Containers: makeContainers(1 + r.IntN(3)), InitContainers: makeContainers(r.IntN(4))}
	for i := range spec.InitContainers {
		if r.IntN(2) == 0 {
			spec.InitContainers[i].RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
	}
	if r.IntN(4) == 0 {
		spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("20Gi")}}
	}
	return spec
}

// setRequests sets the requests of a new pod as the API server does, by its limits and by the namespace's LimitRange.
func setRequests(pod *corev1.Pod) {
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			resources := &list[i].Resources
			for name, defaulted := range estate.BuiltinLimits().DefaultRequest {
				if limit, ok := resources.Limits[name]; ok {
					defaulted = limit
				}
				if _, ok := resources.Requests[name]; !ok {
					resources.Requests[name] = defaulted
				}
			}
		}
	}
}

// BenchmarkPriceWarning measures the evaluation of the policy on prices for a new Deployment, with the API server's own
// packages, next to a policy with a constant warning.
func BenchmarkPriceWarning(b *testing.B) {
	var price admissionv1.Validation
	for _, o := range install.PolicyObjects() {
		if p, ok := o.(*admissionv1.ValidatingAdmissionPolicy); ok && p.Name == install.PriceWarningsPolicy {
			price = p.Spec.Validations[0]
		}
	}
	var namespace *corev1.Namespace
	for _, o := range buildBudgetNamespaces(b) {
		if n, ok := o.(*corev1.Namespace); ok && n.Name == "priced" {
			namespace = n
		}
	}
	c := corev1.Container{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4608Mi")}}}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "priced", Name: "a"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(int32(3)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{c}}}}}
	kind, deployments := appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithResource("deployments")
	attributes := &admission.VersionedAttributes{VersionedKind: kind, VersionedObject: d, Attributes: admission.NewAttributesRecord(
		d, nil, kind, "priced", "a", deployments, "", admission.Create, nil, false, &user.DefaultInfo{Name: "ann"})}
	const text = "[price] about 212 EUR per month with 3 replicas; 340 of 800 EUR left"
	for name, v := range map[string]admissionv1.Validation{"price": price, "constant": {Expression: "false", Message: text}} {
		b.Run(name, func(b *testing.B) {
			validator := compileValidation(b, v)
			for b.Loop() {
				result := validator.Validate(b.Context(), deployments, attributes, nil, namespace, celconfig.RuntimeCELCostBudget, nil)
				if got := result.Decisions[0].Message; got != text {
					b.Fatal(got)
				}
			}
		})
	}
}

// compileValidation compiles a rule with its message as the API server does.
func compileValidation(b *testing.B, v admissionv1.Validation) validating.Validator {
	b.Helper()
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		b.Fatal(err)
	}
	compile := func(all ...plugincel.ExpressionAccessor) plugincel.ConditionEvaluator {
		compiled := compiler.CompileCondition(all, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
		if errs := compiled.CompilationErrors(); len(errs) > 0 {
			b.Fatal(errs)
		}
		return compiled
	}
	var message []plugincel.ExpressionAccessor
	if v.MessageExpression != "" {
		message = append(message, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	rule := &validating.ValidationCondition{Expression: v.Expression, Message: v.Message}
	return validating.NewValidator(compile(rule), nil, compile(), compile(message...), ptr.To(admissionv1.Fail), nil)
}
