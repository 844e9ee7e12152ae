package drift_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/operate/drift"
)

// newPool returns a NodePool with every part of a template, and an EC2NodeClass.
func newPool() drift.Pool {
	month := 720 * time.Hour
	n := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "apps"}}
	n.Spec.Template.Labels = map[string]string{"pool": "apps"}
	n.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "pool", Value: "apps", Effect: corev1.TaintEffectNoExecute}}
	n.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "apps"}
	n.Spec.Template.Spec.ExpireAfter = karpenterv1.NillableDuration{Duration: &month}
	n.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{newRequirement(corev1.LabelInstanceTypeStable, "t3a.large", "t3a.xlarge")}
	n.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmpty
	n.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: "10%"}}
	return drift.Pool{NodePool: n, Class: parseClass(`{amiFamily: AL2023, amiSelectorTerms: [{alias: al2023@latest}], role: nodes, tags: {a: b},
		blockDeviceMappings: [{deviceName: /dev/xvda}, {deviceName: /dev/xvdb}], subnetSelectorTerms: [{id: subnet-1}]}`)}
}

func parseClass(spec string) *unstructured.Unstructured {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		panic(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": "EC2NodeClass", "spec": fields}}
}

func newRequirement(key string, values ...string) karpenterv1.NodeSelectorRequirementWithMinValues {
	return karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// newNodeClaims returns NodeClaims of these instance types.
func newNodeClaims(types ...string) []karpenterv1.NodeClaim {
	all := make([]karpenterv1.NodeClaim, len(types))
	for i, t := range types {
		all[i].Labels = map[string]string{corev1.LabelInstanceTypeStable: t, karpenterv1.NodePoolLabelKey: "apps"}
	}
	return all
}

// TestCompare fails if a change that Karpenter treats as drift is not predicted, or if a change
// without effect is.
func TestCompare(t *testing.T) {
	day := 24 * time.Hour
	drifted := []karpenterv1.DisruptionReason{karpenterv1.DisruptionReasonDrifted}
	spec := func(change func(*karpenterv1.NodePoolSpec)) func(*drift.Pool) {
		return func(p *drift.Pool) { change(&p.NodePool.Spec) }
	}
	set := func(field, value string) func(*drift.Pool) {
		return func(p *drift.Pool) {
			if value == "" {
				unstructured.RemoveNestedField(p.Class.Object, "spec", field)
				return
			}
			_ = unstructured.SetNestedField(p.Class.Object, parseClass("{x: " + value + "}").Object["spec"].(map[string]any)["x"], "spec", field)
		}
	}
	for name, test := range map[string]struct {
		change func(*drift.Pool)
		want   drift.Effect
	}{
		"nothing":     {func(*drift.Pool) {}, drift.Effect{}},
		"a label":     {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Labels["croft.dev/cost-code"] = "org1" }), drift.Effect{Fields: []string{"labels"}, Replaced: 3}},
		"a label off": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Labels = nil }), drift.Effect{Fields: []string{"labels"}, Replaced: 3}},
		"an annotation": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Annotations = map[string]string{"a": "b"} }),
			drift.Effect{Fields: []string{"annotations"}, Replaced: 3}},
		"a taint": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Spec.Taints = append(s.Template.Spec.Taints, corev1.Taint{Key: "a"})
		}),
			drift.Effect{Fields: []string{"taints"}, Replaced: 3}},
		"a startup taint": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Spec.StartupTaints = []corev1.Taint{{Key: "a"}} }),
			drift.Effect{Fields: []string{"startupTaints"}, Replaced: 3}},
		"another class": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Spec.NodeClassRef.Name = "other" }),
			drift.Effect{Fields: []string{"nodeClassRef"}, Replaced: 3}},
		"a grace period": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: day}
		}),
			drift.Effect{Fields: []string{"terminationGracePeriod"}, Replaced: 3}},
		"an expiry": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Spec.ExpireAfter.Duration = &day }),
			drift.Effect{Fields: []string{"expireAfter"}, Replaced: 3}},
		"no expiry": {spec(func(s *karpenterv1.NodePoolSpec) { s.Template.Spec.ExpireAfter.Duration = nil }),
			drift.Effect{Fields: []string{"expireAfter"}, Replaced: 3}},
		"an instance type less": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Spec.Requirements[0].Values = []string{"t3a.xlarge"}
		}), drift.Effect{Replaced: 2}},
		"an instance type more": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Spec.Requirements[0].Values = append(s.Template.Spec.Requirements[0].Values, "t3a.medium")
		}), drift.Effect{}},
		"a label that nodes do not have": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Spec.Requirements = append(s.Template.Spec.Requirements, newRequirement("team", "a"))
		}), drift.Effect{Replaced: 3}},
		"limits":           {spec(func(s *karpenterv1.NodePoolSpec) { s.Limits = karpenterv1.Limits{} }), drift.Effect{}},
		"weight":           {spec(func(s *karpenterv1.NodePoolSpec) { w := int32(3); s.Weight = &w }), drift.Effect{}},
		"consolidateAfter": {spec(func(s *karpenterv1.NodePoolSpec) { s.Disruption.ConsolidateAfter.Duration = &day }), drift.Effect{}},
		"consolidation": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
		}), drift.Effect{Consolidates: true}},
		"a budget that blocks": {spec(func(s *karpenterv1.NodePoolSpec) {
			s.Template.Labels = nil
			s.Disruption.Budgets = []karpenterv1.Budget{{Nodes: "0", Reasons: drifted}}
		}), drift.Effect{Fields: []string{"labels"}, Replaced: 3, HeldByBudget: true}},
		"a tag of the class":    {set("tags", "{a: c}"), drift.Effect{Fields: []string{"tags"}, Replaced: 3}},
		"a role":                {set("role", "other"), drift.Effect{Fields: []string{"role"}, Replaced: 3}},
		"user data":             {set("userData", "echo"), drift.Effect{Fields: []string{"userData"}, Replaced: 3}},
		"a kubelet":             {set("kubelet", "{maxPods: 20}"), drift.Effect{Fields: []string{"kubelet"}, Replaced: 3}},
		"disks":                 {set("blockDeviceMappings", "[{deviceName: /dev/xvda}]"), drift.Effect{Fields: []string{"blockDeviceMappings"}, Replaced: 3}},
		"disks in other order":  {set("blockDeviceMappings", "[{deviceName: /dev/xvdb}, {deviceName: /dev/xvda}]"), drift.Effect{}},
		"subnets":               {set("subnetSelectorTerms", "[{id: subnet-2}]"), drift.Effect{Dynamic: []string{"subnetSelectorTerms"}}},
		"security groups":       {set("securityGroupSelectorTerms", "[{id: sg-2}]"), drift.Effect{Dynamic: []string{"securityGroupSelectorTerms"}}},
		"reservations":          {set("capacityReservationSelectorTerms", "[{id: cr-2}]"), drift.Effect{Dynamic: []string{"capacityReservationSelectorTerms"}}},
		"an image":              {set("amiSelectorTerms", "[{alias: al2023@v20250101}]"), drift.Effect{Dynamic: []string{"amiSelectorTerms"}}},
		"the alias' own family": {set("amiFamily", ""), drift.Effect{}},
		"another family":        {set("amiFamily", "Custom"), drift.Effect{Fields: []string{"amiFamily"}, Replaced: 3}},
		"metadata and a label": {func(p *drift.Pool) {
			set("metadataOptions", "{httpTokens: optional}")(p)
			p.NodePool.Spec.Template.Labels = nil
		}, drift.Effect{Fields: []string{"labels", "metadataOptions"}, Replaced: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			desired := newPool()
			test.change(&desired)
			got := drift.Compare(newPool(), desired, newNodeClaims("t3a.large", "t3a.large", "t3a.xlarge"))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
	if got := drift.Compare(drift.Pool{}, newPool(), nil); !reflect.DeepEqual(got, drift.Effect{}) {
		t.Errorf("a new pool: %+v", got)
	}
	// A node that does not match the present requirements is replaced in any case.
	if got := drift.Compare(newPool(), newPool(), newNodeClaims("m5.large")); got.Replaced != 0 {
		t.Errorf("a node that has drifted before: %+v", got)
	}
}

// TestEveryHashedField fails if a new version of Karpenter hashes a part of the template that
// Compare does not know: the change of any part of it must be predicted.
func TestEveryHashedField(t *testing.T) {
	known := strings.Fields("Labels Annotations Taints StartupTaints NodeClassRef TerminationGracePeriod ExpireAfter")
	hashed := 0
	for _, part := range []reflect.Type{reflect.TypeFor[karpenterv1.ObjectMeta](), reflect.TypeFor[karpenterv1.NodeClaimTemplateSpec]()} {
		for field := range part.Fields() {
			if field.Tag.Get("hash") == "ignore" {
				continue
			}
			if hashed++; !slices.Contains(known, field.Name) {
				t.Errorf("Karpenter hashes %s, and TestCompare has no change of it", field.Name)
			}
		}
	}
	if hashed != len(known) {
		t.Errorf("Karpenter hashes %d parts, want %d", hashed, len(known))
	}
}
