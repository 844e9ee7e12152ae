package wall_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/walls/wall"
)

// measuredPods has the pods whose creation is measured. most is the maximum total cost in all
// policies, in the units of the API server's limits, which do not depend on the machine.
// Before the rules on volumes, scheduling, devices and sizes were added, the costs were 840
// and 1,135.
var measuredPods = []struct {
	name, workload, kind, object string
	tenant                       string
	most                         int64
}{
	{"plain", "restricted/certificate.yaml", "Deployment", "api", "bank", 1150},
	{"large", "baseline/mesh.yaml", "Deployment", "reviews-v1", "shop", 2520},
}

const (
	workloads     = "../../test/e2e/testdata/workloads/"
	podController = "system:serviceaccount:kube-system:replicaset-controller"
)

// podPolicy is a policy that matches the creation of pods, as the API server runs it.
type podPolicy struct {
	*policyEvaluator
	matcher matchconditions.Matcher // nil if the policy has no match conditions
	patcher patch.Patcher           // nil for validating policies
	// annotations are the audit annotations. The list is empty, but the API server
	// evaluates it.
	annotations plugincel.ConditionEvaluator
}

// listPodPolicies returns all policies that match the creation of pods in a namespace.
func listPodPolicies(tb testing.TB, objects []client.Object, namespace *corev1.Namespace) []podPolicy {
	tb.Helper()
	created := admission.NewAttributesRecord(&corev1.Pod{}, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "", corev1.SchemeGroupVersion.WithResource("pods"), "",
		admission.Create, nil, false, nil)
	matches := func(all []admissionv1.NamedRuleWithOperations) bool {
		for _, r := range all {
			if (&rules.Matcher{Rule: r.RuleWithOperations, Attr: created}).Matches() {
				return true
			}
		}
		return false
	}
	var all []podPolicy
	for _, o := range objects {
		var match *admissionv1.MatchResources
		conditions := 0
		switch o := o.(type) {
		case *admissionv1.ValidatingAdmissionPolicy:
			match, conditions = o.Spec.MatchConstraints, len(o.Spec.MatchConditions)
		case *admissionv1.MutatingAdmissionPolicy:
			match, conditions = o.Spec.MatchConstraints, len(o.Spec.MatchConditions)
		}
		if match == nil || !matches(match.ResourceRules) || matches(match.ExcludeResourceRules) {
			continue
		}
		if selector, err := metav1.LabelSelectorAsSelector(match.ObjectSelector); err != nil {
			tb.Fatal(err)
		} else if !selector.Matches(labels.Set{"pod-template-hash": "6d5f7c9b4"}) {
			continue // The measured pods belong to Deployments, which the policy does not match.
		}
		if selector, err := metav1.LabelSelectorAsSelector(match.NamespaceSelector); err != nil {
			tb.Fatal(err)
		} else if !selector.Matches(labels.Set(namespace.Labels)) {
			continue // such as the policies on enforced settings and on frozen tenants
		}
		p := podPolicy{policyEvaluator: newPolicyEvaluator(tb, o)}
		if conditions > 0 {
			p.matcher = matchconditions.NewMatcher(p.conditions, ptr.To(admissionv1.Fail), "policy", "validate", p.name)
		}
		if p.patches != nil {
			p.patcher = patch.NewJSONPatcher(p.patches)
		} else {
			p.annotations = p.compiler.CompileCondition(nil, plugincel.OptionalVariableDeclarations{}, "")
		}
		all = append(all, p)
	}
	return all
}

// validatePod evaluates a validating policy as the API server does: it builds the message of
// every rule, violated or not (Validate in its pkg/admission/plugin/policy/validating).
func (p podPolicy) validatePod(tb testing.TB, r request, params runtime.Object, namespace *corev1.Namespace) {
	ctx, attributes := context.Background(), r.newAttributes()
	if p.matcher != nil {
		if match := p.matcher.Match(ctx, attributes, params, denyingAuthorizer{}); match.Error != nil || !match.Matches {
			return
		}
	}
	asked := plugincel.CreateAdmissionRequest(attributes.Attributes, metav1.GroupVersionResource(r.resource), metav1.GroupVersionKind(attributes.VersionedKind))
	bound := plugincel.OptionalVariableBindings{VersionedParams: params, Authorizer: denyingAuthorizer{}}
	shown := plugincel.CreateNamespaceObject(namespace)
	verdicts, left, err := p.rules.ForInput(ctx, attributes, asked, bound, shown, celconfig.RuntimeCELCostBudget)
	bound.Authorizer = nil
	if err == nil {
		_, _, err = p.messages.ForInput(ctx, attributes, asked, bound, shown, left)
	}
	if err == nil {
		_, _, err = p.annotations.ForInput(ctx, attributes, asked, bound, namespace, celconfig.RuntimeCELCostBudget)
	}
	if err != nil {
		tb.Fatal(err)
	}
	for _, v := range verdicts {
		if v.Error != nil || v.EvalResult.Value() != true {
			tb.Fatalf("%s: %s: %v", p.name, v.ExpressionAccessor.GetExpression(), v.Error)
		}
	}
}

// mutatePod evaluates a mutating policy and returns the changed pod. Like the API server, it
// evaluates the policy twice. The second evaluation must change nothing.
func (p podPolicy) mutatePod(tb testing.TB, r request, params runtime.Object, namespace *corev1.Namespace) *corev1.Pod {
	ctx := p.compiler.CreateContext(context.Background())
	for range 2 {
		attributes := r.newAttributes()
		if match := p.matcher.Match(ctx, attributes, params, denyingAuthorizer{}); match.Error != nil {
			tb.Fatal(match.Error)
		} else if !match.Matches {
			return r.object.(*corev1.Pod)
		}
		changed, err := p.patcher.Patch(ctx, patch.Request{
			MatchedResource: r.resource, VersionedAttributes: attributes, ObjectInterfaces: kinds{}, Namespace: namespace,
			OptionalVariables: plugincel.OptionalVariableBindings{VersionedParams: params, Authorizer: denyingAuthorizer{}},
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			tb.Fatal(err)
		}
		r.object = changed.(*corev1.Pod)
		r.object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	}
	tb.Fatalf("%s: changes its own outcome", p.name)
	return nil
}

// kinds provides the scheme that patches are decoded with.
type kinds struct{ admission.ObjectInterfaces }

func (kinds) GetObjectCreater() runtime.ObjectCreater { return scheme.Scheme }
func (kinds) GetObjectTyper() runtime.ObjectTyper     { return scheme.Scheme }

// readPod returns a workload's pod as admission policies receive it, with the defaults of the
// API server and its other plugins.
func readPod(tb testing.TB, file, kind, name, namespace string) *corev1.Pod {
	tb.Helper()
	content, err := os.ReadFile(filepath.Join(workloads, file))
	if err != nil {
		tb.Fatal(err)
	}
	for _, document := range strings.Split(string(content), "\n---\n") {
		var o struct {
			metav1.TypeMeta   `json:",inline"`
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal([]byte(document), &o); err != nil || o.Kind != kind || o.Name != name {
			continue
		}
		return addDefaults(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: o.Spec.Template.ObjectMeta, Spec: o.Spec.Template.Spec}, name, namespace)
	}
	tb.Fatalf("%s has no %s %s", file, kind, name)
	return nil
}

func addDefaults(p *corev1.Pod, owner, namespace string) *corev1.Pod {
	p.Namespace, p.GenerateName, p.Name = namespace, owner+"-6d5f7c9b4-", owner+"-6d5f7c9b4-x2v8q"
	p.Labels["pod-template-hash"] = "6d5f7c9b4"
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner + "-6d5f7c9b4", UID: "7d8a4b0e-93f2-4a46-8c3d-1f0a52b3c6d7", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
	}}
	s := &p.Spec
	s.RestartPolicy, s.DNSPolicy, s.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, corev1.DefaultSchedulerName
	s.Priority, s.PreemptionPolicy, s.EnableServiceLinks = ptr.To[int32](0), ptr.To(corev1.PreemptLowerPriority), ptr.To(true)
	if s.TerminationGracePeriodSeconds == nil {
		s.TerminationGracePeriodSeconds = ptr.To[int64](30)
	}
	if s.SecurityContext == nil {
		s.SecurityContext = &corev1.PodSecurityContext{}
	}
	if s.ServiceAccountName == "" {
		s.ServiceAccountName = "default"
	}
	s.DeprecatedServiceAccount = s.ServiceAccountName
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)})
	}
	for _, containers := range [][]corev1.Container{s.Containers, s.InitContainers} {
		for i := range containers {
			c := &containers[i]
			c.TerminationMessagePath, c.TerminationMessagePolicy, c.ImagePullPolicy = corev1.TerminationMessagePathDefault, corev1.TerminationMessageReadFile, corev1.PullIfNotPresent
			if c.Resources.Limits == nil {
				c.Resources.Limits = corev1.ResourceList{}
			}
			if c.Resources.Requests == nil {
				c.Resources.Requests = corev1.ResourceList{}
			}
			for resourceName, quantity := range map[corev1.ResourceName]string{"cpu": "100m", "memory": "128Mi"} {
				if _, is := c.Resources.Limits[resourceName]; !is {
					c.Resources.Limits[resourceName] = resource.MustParse(quantity)
				}
				if _, is := c.Resources.Requests[resourceName]; !is {
					c.Resources.Requests[resourceName] = c.Resources.Limits[resourceName]
				}
			}
			if !ptr.Deref(s.AutomountServiceAccountToken, true) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "kube-api-access-4kq7m", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		}
	}
	if ptr.Deref(s.AutomountServiceAccountToken, true) {
		s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access-4kq7m", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To[int32](0o644),
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: ptr.To[int64](3607), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
				{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
			},
		}}})
	}
	return p
}

// podCreation is the input of the policies for one pod.
type podCreation struct {
	name      string
	most      int64
	policies  []podPolicy
	rules     *v1alpha1.TenantRules
	params    runtime.Object
	namespace *corev1.Namespace
	// before is the request before the policies change the pod, and after the request
	// afterwards.
	before, after request
}

func readPodCreations(tb testing.TB) []podCreation {
	tb.Helper()
	content, err := os.ReadFile(workloads + "croft.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	e := parseEstate(tb, string(content))
	objects := wall.PlatformObjects(&e.Platform)
	var all []podCreation
	for _, m := range measuredPods {
		c := podCreation{name: m.name, most: m.most}
		for _, t := range e.Tenants {
			if t.Name != m.tenant {
				continue
			}
			for _, o := range wall.TenantObjects(&e.Platform, t) {
				switch o := o.(type) {
				case *corev1.Namespace:
					c.namespace = o
				case *v1alpha1.TenantRules:
					c.rules = o
				}
			}
		}
		c.policies = listPodPolicies(tb, objects, c.namespace)
		c.before = request{
			operation: admission.Create, resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, user: podController,
			object: readPod(tb, m.workload, m.kind, m.object, m.tenant),
		}
		c.after = c.before
		for _, p := range c.policies {
			if p.patcher != nil {
				c.after.object = p.mutatePod(tb, c.after, c.params, c.namespace)
			}
		}
		all = append(all, c)
	}
	return all
}

// measureCost returns a policy's cost in units. A policy that changes the pod is evaluated twice.
func (c podCreation) measureCost(tb testing.TB, p podPolicy) int64 {
	ask := func(r request) int64 {
		v := p.evaluateRequest(tb, r, c.rules)
		if len(v.errs) > 0 || len(v.refusals) > 0 {
			tb.Errorf("%s, %s: %v %v", c.name, p.name, v.errs, v.refusals)
		}
		return v.cost
	}
	if p.patcher == nil {
		return ask(c.after)
	}
	return ask(c.before) + ask(c.after)
}

// describeEffect returns the word for the policy's effect in the report.
func (p podPolicy) describeEffect() string {
	if p.patcher != nil {
		return "change"
	}
	return "check"
}

// orders is the number of evaluations of each policy. CEL iterates over a map in Go's random
// order and may stop at any entry, so the cost of the large pod varies by up to 62 units. In
// a trial, 8 of 40 evaluations had the highest cost.
const orders = 30

// TestPodCost fails if the highest cost of a pod's creation exceeds its limit.
func TestPodCost(t *testing.T) {
	for _, c := range readPodCreations(t) {
		var sum int64
		var each []string
		for _, p := range c.policies {
			var cost int64
			for range orders {
				cost = max(cost, c.measureCost(t, p))
			}
			sum += cost
			each = append(each, fmt.Sprintf("%s/%s %d", p.describeEffect(), p.name, cost))
		}
		t.Logf("%s pod: %d: %s", c.name, sum, strings.Join(each, ", "))
		if sum > c.most {
			t.Errorf("%s pod: its creation costs %d, more than %d: %s", c.name, sum, c.most, strings.Join(each, ", "))
		}
	}
}

// BenchmarkPod measures each policy's share of a pod's creation, with the API server's own
// packages. Run it with -bench Pod -benchmem.
func BenchmarkPod(b *testing.B) {
	for _, c := range readPodCreations(b) {
		for _, p := range c.policies {
			b.Run(c.name+"/"+p.describeEffect()+"/"+p.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if p.patcher != nil {
						p.mutatePod(b, c.before, c.params, c.namespace)
					} else {
						p.validatePod(b, c.after, c.params, c.namespace)
					}
				}
				b.ReportMetric(float64(c.measureCost(b, p)), "units/op")
			})
		}
	}
}
