package gatekeeper

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func newPointer[T any](value T) *T { return &value }

// newInstallation returns an installation by the chart, with the values that croft requires, and
// two namespaces of tenants.
func newInstallation() *Installation {
	selector := func() *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: IgnoreLabel, Operator: metav1.LabelSelectorOpDoesNotExist},
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"gatekeeper-system"}},
		}}
	}
	rules := func() []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule: admissionv1.Rule{
				APIGroups: []string{"*"}, APIVersions: []string{"*"}, Scope: newPointer(admissionv1.AllScopes),
				Resources: []string{"*", "pods/ephemeralcontainers"},
			},
		}}
	}
	return &Installation{
		Served: []schema.GroupVersionKind{
			{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "Assign"},
			{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: "ModifySet"},
			{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"},
			{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"},
			{Group: "gateway.networking.k8s.io", Version: "v1beta1", Kind: "HTTPRoute"},
		},
		Mutating: &admissionv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper-mutating-webhook-configuration"},
			Webhooks: []admissionv1.MutatingWebhook{{
				Name: MutationWebhook, FailurePolicy: newPointer(admissionv1.Fail), TimeoutSeconds: newPointer(int32(3)),
				ReinvocationPolicy: newPointer(admissionv1.IfNeededReinvocationPolicy), MatchPolicy: newPointer(admissionv1.Exact),
				NamespaceSelector: selector(), ObjectSelector: &metav1.LabelSelector{}, Rules: rules(),
			}},
		},
		Validating: &admissionv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: "gatekeeper-validating-webhook-configuration"},
			Webhooks: []admissionv1.ValidatingWebhook{
				{
					Name: ValidationWebhook, FailurePolicy: newPointer(admissionv1.Fail), TimeoutSeconds: newPointer(int32(3)),
					MatchPolicy: newPointer(admissionv1.Exact), NamespaceSelector: selector(), ObjectSelector: &metav1.LabelSelector{}, Rules: rules(),
				},
				{Name: LabelWebhook, FailurePolicy: newPointer(admissionv1.Fail)},
			},
		},
		Exclusions: []Exclusion{
			{Namespaces: []string{"kube-*", "gatekeeper-system"}, Processes: []string{"*"}},
			{Namespaces: []string{"*"}, Processes: []string{"audit", "sync"}},
		},
		Namespaces: []Namespace{{Name: "bank"}, {Name: "shop", Labels: map[string]string{"tier": "gold"}}},
	}
}

// cases are changes of a good installation, and the expected findings.
var cases = map[string]struct {
	change   func(*Installation)
	want     []string // reasons
	wantText []string // parts of the message
}{
	"good": {change: func(*Installation) {}},
	"the API server's defaults": {
		change: func(in *Installation) {
			m, v := &in.Mutating.Webhooks[0], &in.Validating.Webhooks[0]
			m.FailurePolicy, m.TimeoutSeconds, m.NamespaceSelector, m.ObjectSelector, m.MatchPolicy = nil, nil, nil, nil, nil
			v.FailurePolicy, v.TimeoutSeconds, v.NamespaceSelector, v.ObjectSelector, v.MatchPolicy = nil, nil, nil, nil, nil
			m.Rules[0].Scope, v.Rules[0].Scope, in.Validating.Webhooks[1].FailurePolicy = nil, nil, nil
		},
	},
	"no Gatekeeper": {
		change:   func(in *Installation) { *in = Installation{Namespaces: in.Namespaces} },
		want:     []string{ReasonMutationNotServed, ReasonTemplatesNotServed, ReasonMutationWebhookMissing, ReasonValidationWebhookMissing},
		wantText: []string{"install Gatekeeper"},
	},
	"an old one, without ModifySet v1": {
		change: func(in *Installation) {
			in.Served = slices.DeleteFunc(in.Served, func(k schema.GroupVersionKind) bool { return k.Kind == "ModifySet" })
		},
		want:     []string{ReasonMutationNotServed},
		wantText: []string{"mutations.gatekeeper.sh/v1 ModifySet"},
	},
	"no templates": {
		change: func(in *Installation) {
			in.Served = slices.DeleteFunc(in.Served, func(k schema.GroupVersionKind) bool { return k.Kind == "ConstraintTemplate" })
		},
		want: []string{ReasonTemplatesNotServed},
	},
	"mutation switched off": {
		change:   func(in *Installation) { in.Mutating = nil },
		want:     []string{ReasonMutationWebhookMissing},
		wantText: []string{"--set disableMutation=false"},
	},
	"another mutating webhook in its configuration": {
		change: func(in *Installation) { in.Mutating.Webhooks[0].Name = "other.example.org" },
		want:   []string{ReasonMutationWebhookMissing},
	},
	"validation switched off": {
		change:   func(in *Installation) { in.Validating = nil },
		want:     []string{ReasonValidationWebhookMissing},
		wantText: []string{"--set disableValidatingWebhook=false"},
	},
	"the label is not guarded": {
		change: func(in *Installation) { in.Validating.Webhooks = in.Validating.Webhooks[:1] },
		want:   []string{ReasonLabelUnguarded},
	},
	"the label is not guarded during an outage": {
		change:   func(in *Installation) { in.Validating.Webhooks[1].FailurePolicy = newPointer(admissionv1.Ignore) },
		want:     []string{ReasonLabelUnguarded},
		wantText: []string{"webhooks[check-ignore-label.gatekeeper.sh].failurePolicy is Ignore", "--set validatingWebhookCheckIgnoreFailurePolicy=Fail"},
	},
	"mutation fails open": {
		change: func(in *Installation) { in.Mutating.Webhooks[0].FailurePolicy = newPointer(admissionv1.Ignore) },
		want:   []string{ReasonFailsOpen},
		wantText: []string{
			"MutatingWebhookConfiguration/gatekeeper-mutating-webhook-configuration: webhooks[mutation.gatekeeper.sh].failurePolicy is Ignore",
			"set it to Fail (chart: --set mutatingWebhookFailurePolicy=Fail)",
		},
	},
	"validation fails open": {
		change:   func(in *Installation) { in.Validating.Webhooks[0].FailurePolicy = newPointer(admissionv1.Ignore) },
		want:     []string{ReasonFailsOpen},
		wantText: []string{"--set validatingWebhookFailurePolicy=Fail"},
	},
	"the chart's second": {
		change:   func(in *Installation) { in.Mutating.Webhooks[0].TimeoutSeconds = newPointer(int32(1)) },
		want:     []string{ReasonTimeoutShort},
		wantText: []string{"timeoutSeconds is 1", "refused", "--set mutatingWebhookTimeoutSeconds=3"},
	},
	"validation gets less": {
		change:   func(in *Installation) { in.Validating.Webhooks[0].TimeoutSeconds = newPointer(int32(2)) },
		want:     []string{ReasonTimeoutShort},
		wantText: []string{"--set validatingWebhookTimeoutSeconds=3"},
	},
	"never asked again": {
		change: func(in *Installation) {
			in.Mutating.Webhooks[0].ReinvocationPolicy = newPointer(admissionv1.NeverReinvocationPolicy)
		},
		want:     []string{ReasonNotReinvoked},
		wantText: []string{"--set mutatingWebhookReinvocationPolicy=IfNeeded"},
	},
	"pods are not created by its rules": {
		change: func(in *Installation) {
			in.Mutating.Webhooks[0].Rules[0].Operations = []admissionv1.OperationType{admissionv1.Update}
		},
		want:     []string{ReasonRequestsUnseen},
		wantText: []string{"rules leave out CREATE of daemonsets, CREATE of pods:", "are not placed", "--set-json 'mutatingWebhookCustomRules={}'"},
	},
	"daemon sets are left out": {
		change:   func(in *Installation) { in.Mutating.Webhooks[0].Rules[0].APIGroups = []string{""} },
		want:     []string{ReasonRequestsUnseen},
		wantText: []string{"CREATE of daemonsets, UPDATE of daemonsets:"},
	},
	"what is cluster-scoped alone": {
		change: func(in *Installation) { in.Mutating.Webhooks[0].Rules[0].Scope = newPointer(admissionv1.ClusterScope) },
		want:   []string{ReasonRequestsUnseen, ReasonDebugContainersUnseen},
	},
	"services and routes may change": {
		change: func(in *Installation) {
			rule := &in.Validating.Webhooks[0].Rules[0]
			all := rule.DeepCopy()
			rule.Resources = []string{"pods", "ingresses"}
			all.Operations = []admissionv1.OperationType{admissionv1.Create}
			in.Validating.Webhooks[0].Rules = append(in.Validating.Webhooks[0].Rules, *all)
		},
		want: []string{ReasonRequestsUnseen},
		// The cluster does not serve certificates, so they are not reported.
		wantText: []string{"leave out UPDATE of configmaps, UPDATE of httproutes, UPDATE of persistentvolumeclaims, UPDATE of secrets, UPDATE of services: they are not checked"},
	},
	"all operations and every subresource": {
		change: func(in *Installation) {
			rule := &in.Mutating.Webhooks[0].Rules[0]
			rule.Operations, rule.Resources = []admissionv1.OperationType{admissionv1.OperationAll}, []string{"*/*"}
		},
	},
	"one version of routes, exactly": {
		change:   func(in *Installation) { in.Validating.Webhooks[0].Rules[0].APIVersions = []string{"v1"} },
		want:     []string{ReasonRequestsUnseen},
		wantText: []string{"CREATE of httproutes, UPDATE of httproutes:"},
	},
	"one version of routes, and what is equivalent": {
		change: func(in *Installation) {
			in.Validating.Webhooks[0].Rules[0].APIVersions = []string{"v1"}
			in.Validating.Webhooks[0].MatchPolicy = newPointer(admissionv1.Equivalent)
		},
	},
	"no version that is served": {
		change: func(in *Installation) {
			in.Mutating.Webhooks[0].Rules[0].APIVersions = []string{"v2"}
			in.Mutating.Webhooks[0].MatchPolicy = newPointer(admissionv1.Equivalent)
		},
		want: []string{ReasonRequestsUnseen, ReasonDebugContainersUnseen},
	},
	"debug containers are left out": {
		change: func(in *Installation) { in.Mutating.Webhooks[0].Rules[0].Resources = []string{"*"} },
		want:   []string{ReasonDebugContainersUnseen},
	},
	"debug containers by a star": {
		change: func(in *Installation) { in.Mutating.Webhooks[0].Rules[0].Resources = []string{"*", "pods/*"} },
	},
	"a tenant's namespace is labelled": {
		change:   func(in *Installation) { in.Namespaces[1].Labels[IgnoreLabel] = "no-self-managing" },
		want:     []string{ReasonNamespacesExempt, ReasonNamespacesExempt},
		wantText: []string{"namespaceSelector leaves out the tenants' namespaces shop, by !admission.gatekeeper.sh/ignore", "kubectl label namespace shop admission.gatekeeper.sh/ignore-"},
	},
	"a tenant's namespace is exempt by name": {
		change: func(in *Installation) {
			e := &in.Mutating.Webhooks[0].NamespaceSelector.MatchExpressions[1]
			e.Values = append(e.Values, "bank")
		},
		want:     []string{ReasonNamespacesExempt},
		wantText: []string{"namespaces bank, by kubernetes.io/metadata.name notin (bank,gatekeeper-system)", "--set-json 'mutatingWebhookExemptNamespacesLabels={}'"},
	},
	"only namespaces that asked for it": {
		change: func(in *Installation) {
			in.Validating.Webhooks[0].NamespaceSelector.MatchLabels = map[string]string{"tier": "gold"}
		},
		want:     []string{ReasonNamespacesExempt},
		wantText: []string{"namespaces bank, by tier=gold"},
	},
	"a selector that cannot be read": {
		change: func(in *Installation) {
			in.Mutating.Webhooks[0].NamespaceSelector.MatchExpressions[0].Operator = "Near"
		},
		want: []string{ReasonNamespacesExempt},
	},
	"objects are selected": {
		change: func(in *Installation) {
			in.Mutating.Webhooks[0].ObjectSelector.MatchLabels = map[string]string{"mutate": "yes"}
		},
		want:     []string{ReasonObjectsExempt},
		wantText: []string{"--set-json 'mutatingWebhookObjectSelector={}'"},
	},
	"objects are selected by an expression": {
		change: func(in *Installation) {
			in.Validating.Webhooks[0].ObjectSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "skip", Operator: metav1.LabelSelectorOpDoesNotExist}}
		},
		want: []string{ReasonObjectsExempt},
	},
	"conditions": {
		change: func(in *Installation) {
			in.Validating.Webhooks[0].MatchConditions = []admissionv1.MatchCondition{{Name: "not-leases", Expression: "request.resource.resource != 'leases'"}}
		},
		want:     []string{ReasonConditionsUnknown},
		wantText: []string{"not-leases", "--set-json 'validatingWebhookMatchConditions=[]'"},
	},
	"mutation keeps out of what begins with b": {
		change: func(in *Installation) {
			in.Exclusions = append(in.Exclusions, Exclusion{Namespaces: []string{"b*", "*-system"}, Processes: []string{"mutation-webhook", "audit"}})
		},
		want:     []string{ReasonNamespacesExcluded},
		wantText: []string{"Config/config: spec.match[2].excludedNamespaces has b*, for audit, mutation-webhook", "namespaces bank, and an object in them is not placed"},
	},
	"validation keeps out of what ends with op": {
		change: func(in *Installation) {
			in.Exclusions = []Exclusion{{Namespaces: []string{"*op"}, Processes: []string{"webhook"}}}
		},
		want:     []string{ReasonNamespacesExcluded},
		wantText: []string{"namespaces shop, and an object in them is not checked"},
	},
	"everything keeps out of what has an a": {
		change: func(in *Installation) {
			in.Exclusions = []Exclusion{{Namespaces: []string{"*a*"}, Processes: []string{"*"}}}
		},
		want:     []string{ReasonNamespacesExcluded},
		wantText: []string{"is neither placed nor checked"},
	},
	"both keep out of one": {
		change: func(in *Installation) {
			in.Exclusions = []Exclusion{{Namespaces: []string{"bank"}, Processes: []string{"webhook", "mutation-webhook"}}}
		},
		want:     []string{ReasonNamespacesExcluded},
		wantText: []string{"is neither placed nor checked"},
	},
}

func TestCheck(t *testing.T) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInstallation()
			tc.change(in)
			var reasons, messages []string
			for _, f := range Check(*in) {
				reasons, messages = append(reasons, f.Reason), append(messages, f.String())
			}
			if !slices.Equal(reasons, tc.want) {
				t.Fatalf("found %v, want %v:\n%s", reasons, tc.want, strings.Join(messages, "\n"))
			}
			for _, part := range tc.wantText {
				if !strings.Contains(strings.Join(messages, "\n"), part) {
					t.Errorf("no finding contains %q:\n%s", part, strings.Join(messages, "\n"))
				}
			}
			for _, line := range messages {
				if strings.Contains(line, "\n") || strings.Contains(line, "  ") {
					t.Errorf("more than a line: %q", line)
				}
			}
		})
	}
}

// TestCheckReportsUnsafeFirst fails if an unsafe setting is not the first finding.
func TestCheckReportsUnsafeFirst(t *testing.T) {
	in := newInstallation()
	in.Mutating.Webhooks[0].TimeoutSeconds = newPointer(int32(1))
	in.Validating.Webhooks[0].FailurePolicy = newPointer(admissionv1.Ignore)
	found := Check(*in)
	if len(found) != 2 || found[0].Severity != Unsafe || found[1].Severity != Advice {
		t.Errorf("got %v", found)
	}
}

// TestMessagesNameChartValues fails if Gatekeeper's chart, in the sandboxes' version, lacks a
// value that a message names.
func TestMessagesNameChartValues(t *testing.T) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/open-policy-agent/gatekeeper/v3")
	list.Dir = filepath.Join("..", "..", "..", "sandbox", "addons")
	dir, err := list.Output()
	if err != nil || strings.TrimSpace(string(dir)) == "" {
		t.Skipf("the module is not downloaded: `make gatekeeper` does (%v)", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "charts", "gatekeeper", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	value := regexp.MustCompile(`--set(?:-json)? '?(\w+)=`)
	named := 0
	for name, tc := range cases {
		in := newInstallation()
		tc.change(in)
		for _, f := range Check(*in) {
			for _, match := range value.FindAllStringSubmatch(f.Message, -1) {
				named++
				if _, ok := values[match[1]]; !ok {
					t.Errorf("%s: the chart has no value %s", name, match[1])
				}
			}
		}
	}
	if named == 0 {
		t.Error("no message names a value")
	}
}
