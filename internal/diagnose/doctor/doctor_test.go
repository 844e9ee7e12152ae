package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/catalog"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

const declared = `
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {instances: {instanceTypes: [t3a.large]}}}
tenants: {shop: {pool: apps}}
`

// doctorCluster is an API server with croft's kinds and an estate's walls. It has no operator and
// creates no nodes.
type doctorCluster struct {
	client.Client
	version discovery.ServerVersionInterface
	box     *sandbox.Cluster
}

func startDoctorCluster(t *testing.T, o sandbox.Options, file string) *doctorCluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	o.Components = sandbox.APIOnly
	box := sandbox.Start(t, o)
	c, err := client.New(box.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	version, err := discovery.NewDiscoveryClientForConfig(box.Config)
	if err != nil {
		t.Fatal(err)
	}
	k := &doctorCluster{Client: c, version: version, box: box}
	declaration, problems := manifest.Parse("croft.yaml", []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, o := range declaration.Objects() {
		k.createObjects(t, o)
	}
	k.createObjects(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}})
	return k
}

func (k *doctorCluster) createObjects(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := k.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// runCheck checks the cluster, and returns the result of one check.
func (k *doctorCluster) runCheck(t *testing.T, check string) doctor.Result {
	t.Helper()
	seen, err := doctor.Gather(t.Context(), k, k.version, doctor.Options{Checks: []string{check}})
	if err != nil {
		t.Fatal(err)
	}
	doctor.GatherRequests(t.Context(), k.box.Config, k, seen)
	return findResult(t, doctor.Check(seen), check)
}

func findResult(t *testing.T, results []doctor.Result, check string) doctor.Result {
	t.Helper()
	for _, r := range results {
		if r.Check == check {
			return r
		}
	}
	t.Fatalf("there is no check %s", check)
	return doctor.Result{}
}

// awaitFinding waits until a check has the given finding. awaitNoFinding waits until it has none.
// Waiting is needed because the API server serves a changed CRD after a moment.
func (k *doctorCluster) awaitFinding(t *testing.T, check string, severity doctor.Severity, texts ...string) {
	t.Helper()
	k.awaitResult(t, check, func(r doctor.Result) bool {
		for _, f := range r.Findings {
			message := f.Object + ": " + f.Message
			all := f.Severity == severity && f.Fix != ""
			for _, text := range texts {
				all = all && strings.Contains(message, text)
			}
			if all {
				return true
			}
		}
		return false
	})
}

func (k *doctorCluster) awaitNoFinding(t *testing.T, check string) {
	t.Helper()
	k.awaitResult(t, check, func(r doctor.Result) bool { return len(r.Findings) == 0 })
}

func (k *doctorCluster) awaitResult(t *testing.T, check string, matches func(doctor.Result) bool) {
	t.Helper()
	var last doctor.Result
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(context.Context) (bool, error) {
		last = k.runCheck(t, check)
		return matches(last), nil
	})
	if err != nil {
		found, _ := json.MarshalIndent(last, "", "  ")
		t.Fatalf("%v; the result is %s", err, found)
	}
}

// patchObject changes an object by a JSON patch, and reverts the change when the test ends.
func (k *doctorCluster) patchObject(t *testing.T, o client.Object, do, undo string) {
	t.Helper()
	if err := k.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(do))); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Patch(context.WithoutCancel(t.Context()), o, client.RawPatch(types.JSONPatchType, []byte(undo))); err != nil {
			t.Error(err)
		}
	})
}

// TestChecks checks one cluster, with one fault after the other. Faults that cannot be
// reverted come last.
func TestChecks(t *testing.T) {
	sandbox.EndToEnd(t)
	k := startDoctorCluster(t, sandbox.Options{}, served)
	for _, test := range []struct {
		name string
		run  func(*doctorCluster, *testing.T)
	}{
		{"Engine", (*doctorCluster).testNativePolicies}, {"Walls", (*doctorCluster).testWalls}, {"Counts", (*doctorCluster).testCounts}, {"Load", (*doctorCluster).testLoad}, {"Kubelets", (*doctorCluster).testKubelets}, {"APIServices", (*doctorCluster).testAPIServices}, {"Others", (*doctorCluster).testOtherComponents}, {"Kinds", (*doctorCluster).testKinds},
	} {
		if !t.Run(test.name, func(t *testing.T) { test.run(k, t) }) {
			return
		}
	}
}

// testNativePolicies fails if doctor reports the API server's own policies.
func (k *doctorCluster) testNativePolicies(t *testing.T) {
	k.awaitNoFinding(t, "engine")
	k.awaitFinding(t, "platform", doctor.Problem, "Pool/apps", "the operator has not reconciled") // no operator runs here
}

// testCounts fails if doctor's number of namespaces is not the API server's.
func (k *doctorCluster) testCounts(t *testing.T) {
	k.awaitResult(t, "thresholds", func(r doctor.Result) bool {
		var namespaces corev1.NamespaceList
		if err := k.List(t.Context(), &namespaces); err != nil {
			t.Fatal(err)
		}
		return len(namespaces.Items) > 3 && strings.Contains(r.Summary, fmt.Sprintf(" %d of 10000 namespaces", len(namespaces.Items)))
	})
}

// testKinds fails if doctor does not report a field that the cluster's CRDs lack: a field of
// croft's own kinds, or a field of Karpenter's that croft writes.
func (k *doctorCluster) testKinds(t *testing.T) {
	k.awaitNoFinding(t, "kinds")
	definition := func(name string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	t.Run("an old one of croft's", func(t *testing.T) {
		tenants := definition("tenants.croft.dev")
		const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/deletion"
		k.patchObject(t, tenants, `[{"op": "remove", "path": "`+path+`"}]`, `[{"op": "add", "path": "`+path+`", "value": {"type": "string"}}]`)
		k.awaitFinding(t, "kinds", doctor.Problem, "tenants.croft.dev", "lacks spec.deletion")
	})
	k.awaitNoFinding(t, "kinds")
	t.Run("an old one of Karpenter's", func(t *testing.T) {
		pools := definition("nodepools.karpenter.sh")
		const path = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/template/properties/spec/properties/terminationGracePeriod"
		k.patchObject(t, pools, `[{"op": "remove", "path": "`+path+`"}]`, `[{"op": "add", "path": "`+path+`", "value": {"type": "string"}}]`)
		k.awaitFinding(t, "kinds", doctor.Problem, "nodepools.karpenter.sh", "lacks spec.template.spec.terminationGracePeriod")
		// The API server's refusal of a write matches the same row.
		e := buildEstate(t, declared)
		k.awaitResult(t, "kinds", func(doctor.Result) bool {
			for _, o := range wall.PoolObjects(&e.Platform, e.Pools[0]) {
				err := k.Create(t.Context(), o, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
				if err != nil && slices.ContainsFunc(catalog.FindMatches(err.Error()), func(f catalog.Finding) bool { return f.ID == "old-crds" }) {
					return true
				}
			}
			return false
		})
	})
	k.awaitNoFinding(t, "kinds")
	t.Run("none of the provider's", func(t *testing.T) {
		if err := k.Delete(t.Context(), definition("kwoknodeclasses.karpenter.kwok.sh")); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "kinds", doctor.Problem, "does not serve karpenter.kwok.sh/v1alpha1 KWOKNodeClass")
	})
	t.Run("none of croft's", func(t *testing.T) {
		if err := k.Delete(t.Context(), definition("pools.croft.dev")); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "kinds", doctor.Problem, "does not serve croft.dev/v1alpha1 Pool")
	})
}

// testOtherComponents fails if doctor does not name other components that change tenants' pods. The
// walls exist.
func (k *doctorCluster) testOtherComponents(t *testing.T) {
	k.awaitNoFinding(t, "others") // croft's own policies are not reported
	pods := []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	webhook := &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "injector"},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: "inject.example.org", Rules: pods, FailurePolicy: ptr.To(admissionv1.Ignore), SideEffects: ptr.To(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, ClientConfig: admissionv1.WebhookClientConfig{URL: ptr.To("https://127.0.0.1:1/")},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: v1alpha1.TenantLabel, Operator: metav1.LabelSelectorOpDoesNotExist}}},
		}},
	}
	k.createObjects(t, webhook)
	k.awaitNoFinding(t, "others") // its selector does not match tenants
	webhook.Webhooks[0].NamespaceSelector = nil
	if err := k.Update(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	k.awaitFinding(t, "others", doctor.Warning, "MutatingWebhookConfiguration/injector", "inject.example.org changes pods in shop")
	if err := k.Delete(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}
	k.awaitNoFinding(t, "others")

	k.createObjects(t, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "labeller"},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints:   &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: pods[0]}}},
			Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
				Expression: `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"a": "b"}}]`,
			}}},
		},
	})
	k.awaitFinding(t, "others", doctor.Warning, "MutatingAdmissionPolicy/labeller", "changes pods in shop")

	k.createKyverno(t)
	k.awaitFinding(t, "others", doctor.Warning, "ClusterPolicy/tolerate", "Kyverno's rule add-tolerations changes pods")
}

// testAPIServices fails if the server of an API group does not answer and doctor fails, too, or
// does not report why it cannot read policies.
func (k *doctorCluster) testAPIServices(t *testing.T) {
	k.awaitNoFinding(t, "api-services")
	silent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.kyverno.io"},
		"spec": map[string]any{
			"group": "kyverno.io", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"namespace": "default", "name": "missing"},
		},
	}}
	k.createObjects(t, silent)
	k.awaitResult(t, "others", func(r doctor.Result) bool {
		return slices.Contains(r.Unreadable, "webhooks and policies: their API group does not respond: see the check api-services")
	})
	k.awaitFinding(t, "api-services", doctor.Problem, "APIService/v1.kyverno.io", "it is not available: ServiceNotFound")
	if err := k.Delete(t.Context(), silent); err != nil {
		t.Fatal(err)
	}
	k.awaitNoFinding(t, "api-services")
}

// createKyverno creates the kind of Kyverno's policies, and a policy that changes pods.
func (k *doctorCluster) createKyverno(t *testing.T) {
	t.Helper()
	k.createObjects(t, &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "clusterpolicies.kyverno.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "kyverno.io", Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "ClusterPolicy", ListKind: "ClusterPolicyList", Plural: "clusterpolicies", Singular: "clusterpolicy"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}},
			}},
		},
	})
	policy := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kyverno.io/v1", "kind": "ClusterPolicy", "metadata": map[string]any{"name": "tolerate"},
		"spec": map[string]any{"rules": []any{
			map[string]any{"name": "validate", "match": map[string]any{}, "validate": map[string]any{}},
			map[string]any{
				"name": "add-tolerations", "mutate": map[string]any{},
				"match": map[string]any{"any": []any{map[string]any{"resources": map[string]any{"kinds": []any{"Pod"}}}}},
			},
		}},
	}}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		return k.Create(ctx, policy) == nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEngine fails if doctor does not report that no engine places pods.
func TestEngine(t *testing.T) {
	t.Run("native where it is not served", func(t *testing.T) {
		sandbox.Thorough(t)
		k := startDoctorCluster(t, sandbox.Options{Without: []string{"MutatingAdmissionPolicy"}}, declared)
		k.awaitFinding(t, "engine", doctor.Problem, "does not serve MutatingAdmissionPolicy")
	})
	t.Run("Gatekeeper that is not there", func(t *testing.T) {
		sandbox.Thorough(t)
		k := startDoctorCluster(t, sandbox.Options{}, strings.Replace(declared, "clusterName: demo", "clusterName: demo, placement: Gatekeeper", 1))
		k.awaitFinding(t, "engine", doctor.Problem, "does not serve mutations.gatekeeper.sh/v1 Assign")
		if err := k.box.InstallCRDs(t.Context(), sandbox.Gatekeeper); err != nil {
			t.Fatal(err)
		}
		k.awaitFinding(t, "engine", doctor.Problem, "no MutatingWebhookConfiguration has the webhook mutation.gatekeeper.sh")
	})
}

// TestVersions tests the only check that cannot fail in a sandbox.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		minor, placement string
		problems         int
	}{{"33", "Native", 1}, {"34", "Native", 0}, {"35", "Native", 0}, {"36", "Native", 0}, {"36+", "Native", 0}, {"30", "Gatekeeper", 0}, {"29+", "Gatekeeper", 1}, {"x", "Native", 0}} {
		s := &doctor.Snapshot{
			Version: version.Info{Major: "1", Minor: c.minor, GitVersion: "v1." + c.minor},
			Estate:  buildEstate(t, strings.Replace(declared, "clusterName: demo", "clusterName: demo, placement: "+c.placement, 1)),
		}
		if r := findResult(t, doctor.Check(s), "kubernetes"); len(r.Findings) != c.problems {
			t.Errorf("1.%s with %s: %+v", c.minor, c.placement, r.Findings)
		}
	}
}

// TestCheckRecordedConditions uses recorded conditions of AWS's provider in node classes and
// claims, and expects the catalogue's fix.
func TestCheckRecordedConditions(t *testing.T) {
	condition := regexp.MustCompile(`(?s)^(\w+)=(\w+) (\w+)(?:: (.*))?$`)
	ref := karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "apps"}
	tried := map[string]bool{}
	for _, row := range catalog.Rows() {
		for _, text := range row.Texts {
			s := &doctor.Snapshot{Now: time.Now(), NodePools: []karpenterv1.NodePool{{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}}}
			s.NodePools[0].Spec.Template.Spec.NodeClassRef = &ref
			check := "launches"
			m := condition.FindStringSubmatch(text)
			switch {
			case m != nil && m[1] == "Launched":
				s.Claims = []karpenterv1.NodeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "apps-x2x9p"}}}
				status, err := json.Marshal(map[string]any{"conditions": []metav1.Condition{{Type: m[1], Status: metav1.ConditionStatus(m[2]), Reason: m[3], Message: m[4]}}})
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(status, &s.Claims[0].Status); err != nil {
					t.Fatal(err)
				}
			case m != nil && row.ID != "pool-invalid" && (strings.HasSuffix(m[1], "sReady") || m[1] == "InstanceProfileReady" || m[1] == "ValidationSucceeded"):
				check = "node-classes"
				s.Classes = map[karpenterv1.NodeClassReference]*unstructured.Unstructured{ref: {Object: map[string]any{"status": map[string]any{"conditions": []any{
					map[string]any{"type": m[1], "status": m[2], "reason": m[3], "message": m[4]},
				}}}}}
			case strings.HasPrefix(text, "NodeClaim pool-"):
				s.Refusals = []corev1.Event{{InvolvedObject: corev1.ObjectReference{Name: "apps-x2x9p"}, Message: text, LastTimestamp: metav1.NewTime(s.Now)}}
			default:
				continue
			}
			tried[row.ID] = true
			if r := findResult(t, doctor.Check(s), check); len(r.Findings) != 1 || r.Findings[0].Fix != row.Fix || r.Findings[0].Severity != doctor.Problem {
				t.Errorf("%s: %q: %+v", row.ID, text, r.Findings)
			}
		}
	}
	for _, id := range []string{
		catalog.UnauthorizedID, "explicit-deny", "instance-profile-name", "spot-service-linked-role", "insufficient-capacity", "account-quota", "subnet-full",
		"subnets-not-found", "security-groups-not-found", "amis-not-found", "dry-run-denied", "class-unresolved",
	} {
		if !tried[id] {
			t.Errorf("%s was not tried", id)
		}
	}
}

// TestDecode expects doctor to decode an encoded message.
func TestDecode(t *testing.T) {
	results := []doctor.Result{{Findings: []doctor.Finding{{Message: "UnauthorizedOperation: no. Encoded authorization failure message: abc"}, {Message: "fine", Fix: "none"}}}}
	doctor.Decode(t.Context(), results, func(context.Context, string) (string, error) {
		return `{"context": {"principal": {"arn": "arn:aws:sts::1:assumed-role/nodes/i-0fa0"}, "action": "ec2:CreateFleet", "resource": "*"}}`, nil
	})
	if f := results[0].Findings[0]; !strings.Contains(f.Cause, "the role nodes of the node i-0fa0") || !strings.Contains(f.Fix, "IRSA") {
		t.Errorf("the finding is %+v", f)
	}
	if f := results[0].Findings[1]; f.Fix != "none" {
		t.Errorf("the finding without an encoded message is %+v", f)
	}
}

func buildEstate(t *testing.T, file string) *estate.Estate {
	t.Helper()
	declaration, problems := manifest.Parse("croft.yaml", []byte(file))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	e, problems := estate.Build(declaration)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return e
}
