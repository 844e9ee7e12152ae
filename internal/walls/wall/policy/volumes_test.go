package policy_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"
	apicel "k8s.io/apiserver/pkg/admission/plugin/cel"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/walls/wall"
	"croft.dev/croft/internal/walls/wall/policy"
)

// The rules under test.
var volumeRules = []string{
	policy.VolumeRule, policy.BindingRule, policy.SourceRule, policy.StorageClassRule, policy.AttributesClassRule, policy.VolumeSizeRule,
	policy.VolumeTypesRule, policy.InlineCSIRule, policy.ClaimTemplatesRule,
}

// judge evaluates the platform's policies with the API server's own packages.
type judge struct {
	policies map[string]compiled
	rules    map[string]v1alpha1.TenantRulesSpec
	attacks  []attack.Attack
}

func newJudge(t *testing.T) *judge {
	t.Helper()
	platform := v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
		Spec:       v1alpha1.PlatformSpec{ClusterName: "test", Admins: []string{"platform-admins"}, NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
	}
	scratch, err := verify.NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	j := &judge{policies: map[string]compiled{}, rules: map[string]v1alpha1.TenantRulesSpec{}, attacks: scratch.Attacks()}
	for _, o := range scratch.Objects() {
		if o, ok := o.(*v1alpha1.TenantRules); ok {
			j.rules[o.Namespace] = o.Spec
		}
	}
	for _, o := range wall.PlatformObjects(&estate.Platform{PlatformSpec: platform.Spec}) {
		p, ok := o.(*admissionv1.ValidatingAdmissionPolicy)
		if ok && slices.Contains([]string{policy.ClaimsPolicy, admissionpolicy.PodsPolicy, admissionpolicy.PodTemplatesPolicy}, p.Name) {
			j.policies[p.Name] = compile(t, p)
		}
	}
	return j
}

// compiled is a policy as the API server compiles it.
type compiled struct{ rules, messages apicel.ConditionEvaluator }

// expression is an expression of a policy, and its result.
type expression struct {
	name, text string
	gives      *cel.Type
}

// GetExpression implements apicel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements apicel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return []*cel.Type{e.gives} }

// GetName implements apicel.NamedExpressionAccessor.
func (e expression) GetName() string { return e.name }

func compile(t *testing.T, p *admissionv1.ValidatingAdmissionPolicy) compiled {
	t.Helper()
	compiler, err := apicel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	asking := apicel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []apicel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, expression{v.Name, v.Expression, cel.AnyType})
	}
	compiler.CompileAndStoreVariables(variables, asking, environment.StoredExpressions)
	var rules, messages []apicel.ExpressionAccessor
	for _, v := range p.Spec.Validations {
		rules = append(rules, expression{text: v.Expression, gives: cel.BoolType})
		messages = append(messages, expression{text: admissionpolicy.GetMessage(v), gives: cel.StringType})
	}
	return compiled{
		compiler.CompileCondition(rules, asking, environment.StoredExpressions),
		compiler.CompileCondition(messages, apicel.OptionalVariableDeclarations{}, environment.StoredExpressions),
	}
}

func toUnstructured(t testing.TB, o client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// somebody is a user who may or may not update claims in the whole cluster.
type somebody struct {
	user.DefaultInfo
	everywhere bool
}

// GetGroups implements user.Info. Every authenticated user is in this group.
func (s *somebody) GetGroups() []string { return append([]string{user.AllAuthenticated}, s.Groups...) }

// Authorize implements authorizer.Authorizer.
func (s *somebody) Authorize(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	if s.everywhere {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny, "", nil
}

// refusals returns a policy's refusals of an object. old is nil for a new object.
func (j *judge) refusals(t testing.TB, name string, by *somebody, o, old client.Object) []string {
	t.Helper()
	gvk := o.GetObjectKind().GroupVersionKind()
	gvr := schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: strings.ToLower(gvk.Kind) + "s"}
	operation, before := apiadmission.Create, runtime.Object(nil)
	if old != nil {
		operation, before = apiadmission.Update, toUnstructured(t, old)
	}
	now := toUnstructured(t, defaulted(o))
	attributes := apiadmission.NewAttributesRecord(now, before, gvk, o.GetNamespace(), o.GetName(), gvr, "", operation, nil, false, by)
	versioned := &apiadmission.VersionedAttributes{Attributes: attributes, VersionedObject: now, VersionedOldObject: before, VersionedKind: gvk}
	request := apicel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(gvk))
	namespace := apicel.CreateNamespaceObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.GetNamespace(), Annotations: admissionpolicy.BuildAnnotations(j.rules[o.GetNamespace()])}})
	evaluate := func(all apicel.ConditionEvaluator, with apicel.OptionalVariableBindings) []apicel.EvaluationResult {
		results, _, err := all.ForInput(t.Context(), versioned, request, with, namespace, celconfig.RuntimeCELCostBudget)
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	messages := evaluate(j.policies[name].messages, apicel.OptionalVariableBindings{})
	var all []string
	for i, r := range evaluate(j.policies[name].rules, apicel.OptionalVariableBindings{Authorizer: by}) {
		switch {
		case r.Error != nil:
			all = append(all, r.Error.Error())
		case r.EvalResult == types.True:
		case messages[i].Error != nil:
			all = append(all, messages[i].Error.Error())
		default:
			text, _ := messages[i].EvalResult.Value().(string)
			all = append(all, text)
		}
	}
	return all
}

// defaulted sets the API server's defaults for the fields of a pod that rules read.
func defaulted(o client.Object) client.Object {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o
	}
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			containers[i].ImagePullPolicy = corev1.PullAlways
		}
	}
	return pod
}

// about returns the refusals by the rules under test, and the refusals without a rule, such
// as by a failing expression.
func about(refusals []string) []string {
	return slices.DeleteFunc(refusals, func(message string) bool {
		rule, _, _ := strings.Cut(strings.TrimPrefix(message, "["), "] ")
		return strings.HasPrefix(message, "[") && !slices.Contains(volumeRules, rule)
	})
}

var policyOf = map[string]string{
	"PersistentVolumeClaim": policy.ClaimsPolicy, "Pod": admissionpolicy.PodsPolicy,
	"Deployment": admissionpolicy.PodTemplatesPolicy, "StatefulSet": admissionpolicy.PodTemplatesPolicy, "DaemonSet": admissionpolicy.PodTemplatesPolicy,
	"ReplicaSet": admissionpolicy.PodTemplatesPolicy, "ReplicationController": admissionpolicy.PodTemplatesPolicy, "PodTemplate": admissionpolicy.PodTemplatesPolicy,
	"Job": admissionpolicy.PodTemplatesPolicy, "CronJob": admissionpolicy.PodTemplatesPolicy,
}

// TestVolumeRules evaluates the attacks and mirrors on volumes without a server.
func TestVolumeRules(t *testing.T) {
	j := newJudge(t)
	developer := &somebody{DefaultInfo: user.DefaultInfo{Name: "jane"}}
	tried := 0
	for _, a := range j.attacks {
		if a.Wall != "policy" || a.Request == nil || a.Request.Subresource != "" || a.Request.Verb != attack.Create && a.Request.Verb != attack.Update {
			continue
		}
		object := a.Request.Object
		name, ok := policyOf[object.GetObjectKind().GroupVersionKind().Kind]
		if _, tenants := j.rules[object.GetNamespace()]; !ok || !tenants {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			old := client.Object(nil)
			if a.Request.Verb == attack.Update {
				old = object
				object = object.DeepCopyObject().(client.Object)
				if err := a.Request.Change(object); err != nil {
					t.Fatal(err)
				}
			}
			got := about(j.refusals(t, name, developer, object, old))
			want := a.StoppedBy.Policy == name && slices.Contains(volumeRules, a.StoppedBy.Rule)
			switch {
			case want:
				tried++
				if len(got) != 1 || !strings.HasPrefix(got[0], admissionpolicy.RefusalPrefix(a.StoppedBy.Rule)) {
					t.Errorf("want a refusal by rule %s, got %q", a.StoppedBy.Rule, got)
				}
			case len(got) > 0:
				t.Errorf("nothing is wrong with it, got %q", got)
			}
		})
	}
	if tried < 50 {
		t.Errorf("only %d attacks are about volumes", tried)
	}
}

// TestWhoWritesClaims expects exceptions for Kubernetes' controllers on existing claims, and
// none on new claims, because these come from tenants' templates.
func TestWhoWritesClaims(t *testing.T) {
	j := newJudge(t)
	var namespace string
	for namespace = range j.rules {
		if strings.HasSuffix(namespace, "-a") {
			break
		}
	}
	controller := func(name string) *somebody {
		return &somebody{DefaultInfo: user.DefaultInfo{Name: name}, everywhere: true}
	}
	const inKubeSystem = "system:serviceaccount:kube-system:"
	claim := func(edits ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		class := "croft-verify"
		c := &corev1.PersistentVolumeClaim{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
		}
		for _, edit := range edits {
			edit(c)
		}
		return c
	}
	named := func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }
	selected := func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "node"}
	}
	of := func(name *string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = name }
	}
	large := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1Pi")
	}
	finalized := func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"kubernetes.io/pvc-protection"} }
	filled := func(from string) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "data", Namespace: &from}
		}
	}
	costly, empty := "costly", ""
	for name, test := range map[string]struct {
		by       *somebody
		old, new *corev1.PersistentVolumeClaim
		refused  string
	}{
		"the StatefulSet controller creates":          {controller(inKubeSystem + "statefulset-controller"), nil, claim(named), policy.VolumeRule},
		"the ephemeral volume controller creates":     {controller(inKubeSystem + "ephemeral-volume-controller"), nil, claim(selected), policy.BindingRule},
		"controllers without accounts create":         {controller("system:kube-controller-manager"), nil, claim(named), policy.VolumeRule},
		"GitOps creates":                              {controller("system:serviceaccount:flux-system:kustomize-controller"), nil, claim(named), policy.VolumeRule},
		"GitOps changes":                              {controller("system:serviceaccount:flux-system:kustomize-controller"), claim(), claim(named), policy.VolumeRule},
		"the volume controller binds":                 {controller(inKubeSystem + "persistent-volume-binder"), claim(), claim(named), ""},
		"a volume controller without an account":      {controller("system:kube-controller-manager"), claim(), claim(named), ""},
		"the scheduler chooses a node":                {controller("system:kube-scheduler"), claim(), claim(selected), ""},
		"a provisioner takes the node back":           {controller("system:serviceaccount:ebs:csi-controller"), claim(selected), claim(), ""},
		"an admin restores":                           {&somebody{DefaultInfo: user.DefaultInfo{Name: "ann", Groups: []string{"platform-admins"}}}, nil, claim(named, selected), ""},
		"an admin restores by another class":          {&somebody{DefaultInfo: user.DefaultInfo{Name: "ann", Groups: []string{"platform-admins"}}}, nil, claim(named, of(&costly)), policy.StorageClassRule},
		"a developer changes a bound claim":           {controller("jane"), claim(named, selected), claim(named, selected, finalized), ""},
		"a class is chosen late":                      {controller("jane"), claim(of(nil)), claim(of(&costly)), policy.StorageClassRule},
		"the empty class is chosen late":              {controller("jane"), claim(of(nil)), claim(of(&empty)), policy.StorageClassRule},
		"data of another namespace":                   {controller("jane"), nil, claim(filled("croft-verify-other")), policy.SourceRule},
		"data of one's own namespace":                 {controller("jane"), nil, claim(filled(namespace)), ""},
		"one that grows":                              {controller("jane"), claim(named), claim(named, large), policy.VolumeSizeRule},
		"one from before the rules loses a finalizer": {controller("jane"), claim(large, of(&costly), named, finalized), claim(large, of(&costly), named), ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := client.Object(nil)
			if test.old != nil {
				old = test.old
			}
			got := j.refusals(t, policy.ClaimsPolicy, test.by, test.new, old)
			if test.refused == "" && len(got) > 0 || test.refused != "" && (len(got) != 1 || !strings.HasPrefix(got[0], admissionpolicy.RefusalPrefix(test.refused))) {
				t.Errorf("want %q, got %q", test.refused, got)
			}
		})
	}
}

// TestVolumesFromBefore expects that the finalizers of a pod with volumes that the rules
// would refuse today can still be removed.
func TestVolumesFromBefore(t *testing.T) {
	j := newJudge(t)
	for namespace := range j.rules {
		old := attack.NewPod(namespace, "p", func(p *corev1.Pod) {
			p.Finalizers = []string{"example.org/held"}
			p.Spec.Volumes = []corev1.Volume{
				{Name: "n", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.7", Path: "/"}}},
				{Name: "c", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com"}}},
				{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
					Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv"},
				}}}},
			}
		})
		freed := old.DeepCopy()
		freed.Finalizers = nil
		if got := about(j.refusals(t, admissionpolicy.PodsPolicy, &somebody{DefaultInfo: user.DefaultInfo{Name: "jane"}}, freed, old)); len(got) > 0 {
			t.Errorf("%q", got)
		}
	}
}

// TestUnknownVolumeType expects a type from a later version of Kubernetes to be refused,
// although no rule names it.
func TestUnknownVolumeType(t *testing.T) {
	j := newJudge(t)
	for namespace := range j.rules {
		if !strings.HasSuffix(namespace, "-a") {
			continue
		}
		for name, volume := range map[string]map[string]any{
			"of a type to come":    {"name": "v", "teleport": map[string]any{"from": "anywhere"}},
			"of two types":         {"name": "v", "emptyDir": map[string]any{}, "teleport": map[string]any{}},
			"of no type":           {"name": "v"},
			"one after a harmless": {"name": "v", "nfs": map[string]any{}},
		} {
			pod := toUnstructured(t, defaulted(attack.NewPod(namespace, "p")))
			if err := unstructured.SetNestedSlice(pod.Object, []any{map[string]any{"name": "e", "emptyDir": map[string]any{}}, volume}, "spec", "volumes"); err != nil {
				t.Fatal(err)
			}
			got := about(j.refusals(t, admissionpolicy.PodsPolicy, &somebody{DefaultInfo: user.DefaultInfo{Name: "jane"}}, pod, nil))
			if len(got) != 1 || !strings.HasPrefix(got[0], admissionpolicy.RefusalPrefix(policy.VolumeTypesRule)) {
				t.Errorf("a volume %s: %q", name, got)
			}
		}
	}
}
