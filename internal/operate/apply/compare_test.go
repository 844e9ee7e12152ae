package apply

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"croft.dev/croft/api/v1alpha1"
)

func TestContainsValues(t *testing.T) {
	for _, test := range []struct {
		name       string
		have, want any
		covered    bool
	}{
		{"the same", tree{"a": "x"}, tree{"a": "x"}, true},
		{"a default more", tree{"a": "x", "b": "y"}, tree{"a": "x"}, true},
		{"another value", tree{"a": "x"}, tree{"a": "y"}, false},
		{"a field missing", tree{}, tree{"a": "x"}, false},
		{"an element more", []any{"a", "b"}, []any{"a"}, false},
		{"an element less", []any{"a"}, []any{"a", "b"}, false},
		{"another order", []any{"b", "a"}, []any{"a", "b"}, false},
		{"a default in an element", []any{tree{"port": int64(53), "protocol": "UDP"}}, []any{tree{"port": int64(53)}}, true},
		{"an empty selector missing", tree{"podSelector": tree{}}, tree{"podSelector": tree{}, "namespaceSelector": tree{}}, false},
		{"an empty list missing", tree{}, tree{"domains": []any{}}, false},
		{"another type", tree{"a": "1"}, tree{"a": int64(1)}, false},
		{"a list for a map", tree{"a": []any{}}, tree{"a": tree{}}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := containsValues(test.have, test.want); got != test.covered {
				t.Errorf("covers(%v, %v) = %v", test.have, test.want, got)
			}
		})
	}
}

func TestBuildPatch(t *testing.T) {
	want, err := buildPatch(&corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft", ResourceVersion: "7", UID: "u"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"cpu": resource.MustParse("1000m")}},
		Status:     corev1.ResourceQuotaStatus{Used: corev1.ResourceList{"cpu": resource.MustParse("1")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	expected := tree{
		"apiVersion": "v1", "kind": "ResourceQuota",
		"metadata": tree{"namespace": "shop", "name": "croft", "annotations": tree{v1alpha1.AppliedAnnotation: getSignature(want)}},
		"spec":     tree{"hard": tree{"cpu": "1"}},
	}
	if !containsValues(want, expected) || !containsValues(expected, want) {
		t.Errorf("patch = %v, want %v", want, expected)
	}
}

func TestBuildPatchWithoutKind(t *testing.T) {
	if _, err := buildPatch(&corev1.ConfigMap{}); err == nil {
		t.Error("an object without TypeMeta was taken")
	}
}

func TestIsSettled(t *testing.T) {
	deny := func(change func(*networkingv1.NetworkPolicy)) client.Object {
		p := &networkingv1.NetworkPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deny", Labels: map[string]string{"a": "b"}},
			Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{"Ingress"}},
		}
		if change != nil {
			change(p)
		}
		return p
	}
	for _, test := range []struct {
		name    string
		live    client.Object
		settled bool
	}{
		{"as desired", deny(nil), true},
		{"read as a Go type, without its kind", deny(func(p *networkingv1.NetworkPolicy) { p.TypeMeta = metav1.TypeMeta{} }), true},
		{"a label of another manager", deny(func(p *networkingv1.NetworkPolicy) { p.Labels["c"] = "d" }), true},
		{"our label changed", deny(func(p *networkingv1.NetworkPolicy) { p.Labels["a"] = "c" }), false},
		{"our label removed", deny(func(p *networkingv1.NetworkPolicy) { p.Labels = nil }), false},
		{"a direction removed", deny(func(p *networkingv1.NetworkPolicy) { p.Spec.PolicyTypes = nil }), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, err := buildPatch(deny(nil))
			if err != nil {
				t.Fatal(err)
			}
			got, err := isSettled(test.live, want)
			if err != nil || got != test.settled {
				t.Errorf("settled = %v, %v", got, err)
			}
		})
	}
}

// TestIsSettledBySignature covers an element of an atomic list with extra fields:
// defaults, or leftovers of an earlier apply.
func TestIsSettledBySignature(t *testing.T) {
	limits := func(item corev1.LimitRangeItem) *corev1.LimitRange {
		return &corev1.LimitRange{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "LimitRange"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "croft"},
			Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{item}},
		}
	}
	four := corev1.ResourceList{"cpu": resource.MustParse("4")}
	narrow, wide := corev1.LimitRangeItem{Min: four}, corev1.LimitRangeItem{Min: four, Max: four}
	for _, test := range []struct {
		name          string
		want, applied *corev1.LimitRange
		live          *corev1.LimitRange
		settled       bool
	}{
		{"a default", limits(narrow), limits(narrow), limits(wide), true},
		{"a field that croft applied", limits(narrow), limits(wide), limits(wide), false},
		{"no signature, and more than desired", limits(narrow), nil, limits(wide), false},
		{"no signature, and as desired", limits(narrow), nil, limits(narrow), true},
		{"another's signature, and as desired", limits(narrow), limits(wide), limits(narrow), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, err := buildPatch(test.want)
			if err != nil {
				t.Fatal(err)
			}
			if test.applied != nil {
				applied, err := buildPatch(test.applied)
				if err != nil {
					t.Fatal(err)
				}
				test.live.Annotations = map[string]string{v1alpha1.AppliedAnnotation: getSignature(applied)}
			}
			if got, err := isSettled(test.live, want); err != nil || got != test.settled {
				t.Errorf("settled = %v, %v", got, err)
			}
		})
	}
}

// TestIsSettledWithCustomMarshaler covers a duration, which stores its original bytes
// next to its value.
func TestIsSettledWithCustomMarshaler(t *testing.T) {
	pool := func(after karpenterv1.NillableDuration) *karpenterv1.NodePool {
		p := &karpenterv1.NodePool{TypeMeta: metav1.TypeMeta{APIVersion: "karpenter.sh/v1", Kind: "NodePool"}}
		p.Spec.Disruption.ConsolidateAfter = after
		return p
	}
	hour := time.Hour
	want, err := buildPatch(pool(karpenterv1.NillableDuration{Duration: &hour}))
	if err != nil {
		t.Fatal(err)
	}
	same, err := isSettled(pool(karpenterv1.NillableDuration{Duration: &hour, Raw: []byte(`"1h0m0s"`)}), want)
	if err != nil || !same {
		t.Errorf("settled = %v, %v", same, err)
	}
}

func TestHasField(t *testing.T) {
	want := tree{"spec": tree{
		"ports":      []any{tree{"port": int64(53)}, tree{"port": int64(80), "protocol": "TCP"}},
		"finalizers": []any{"one"},
	}}
	for _, test := range []struct {
		path     []any
		wantText bool
	}{
		{[]any{"spec"}, true},
		{[]any{"spec", "other"}, false},
		{[]any{"spec", "ports", fieldpath.KeyByFields("port", 53, "protocol", "UDP"), "port"}, true},
		{[]any{"spec", "ports", fieldpath.KeyByFields("port", 80, "protocol", "UDP")}, false},
		{[]any{"spec", "ports", 1}, true},
		{[]any{"spec", "ports", 2}, false},
	} {
		path := fieldpath.MakePathOrDie(test.path...)
		if got := hasField(want, path); got != test.wantText {
			t.Errorf("hasField(%v) = %v", path, got)
		}
	}
}
