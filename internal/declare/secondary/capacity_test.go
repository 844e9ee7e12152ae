package secondary

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
)

// TestLimits compares some types with AWS's documentation of network interfaces.
func TestLimits(t *testing.T) {
	for name, want := range map[string]Limits{
		"t3.nano": {2, 2}, "m5.large": {3, 10}, "c6i.2xlarge": {4, 15}, "m5.metal": {15, 50},
	} {
		if got, known := LimitsOf(name); !known || got != want {
			t.Errorf("%s has %v (known: %v), not %v", name, got, known, want)
		}
	}
	if _, known := LimitsOf("x9.huge"); known {
		t.Error("x9.huge is known")
	}
	if n := len(InstanceTypes()); n < 1000 {
		t.Errorf("there are only %d instance types", n)
	}
}

func TestTypes(t *testing.T) {
	in := func(key string, op corev1.NodeSelectorOperator, values ...string) v1alpha1.Requirement {
		return v1alpha1.Requirement{Key: key, Operator: op, Values: values}
	}
	for name, test := range map[string]struct {
		instances v1alpha1.Instances
		types     []string
		listed    bool
		small     []string
	}{
		"listed":    {v1alpha1.Instances{InstanceTypes: []string{"t3.nano", "m5.large"}}, []string{"m5.large", "t3.nano"}, true, []string{"t3.nano"}},
		"not known": {v1alpha1.Instances{InstanceTypes: []string{"x9.huge"}}, []string{"x9.huge"}, true, nil},
		"a family in some sizes": {v1alpha1.Instances{Requirements: []v1alpha1.Requirement{
			in("karpenter.k8s.aws/instance-family", corev1.NodeSelectorOpIn, "t3"),
			in("karpenter.k8s.aws/instance-size", corev1.NodeSelectorOpIn, "micro", "large"),
		}}, []string{"t3.large", "t3.micro"}, false, []string{"t3.micro"}},
		"required": {v1alpha1.Instances{Requirements: []v1alpha1.Requirement{
			in(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn, "m5.large"), in("kubernetes.io/arch", corev1.NodeSelectorOpIn, "arm64"),
		}}, []string{"m5.large"}, true, nil},
	} {
		types, listed := PossibleTypes(&test.instances)
		if !slices.Equal(types, test.types) || listed != test.listed {
			t.Errorf("%s: the types are %v (listed: %v), not %v", name, types, listed, test.types)
		}
		if small := FindTooSmall(types, 2); !slices.Equal(small, test.small) {
			t.Errorf("%s: %v are too small for two networks, not %v", name, small, test.small)
		}
	}
	types, _ := PossibleTypes(&v1alpha1.Instances{Requirements: []v1alpha1.Requirement{in("karpenter.k8s.aws/instance-size", corev1.NodeSelectorOpNotIn, "large")}})
	if slices.Contains(types, "m5.large") || !slices.Contains(types, "m5.xlarge") {
		t.Error("a size that is ruled out is among the types, or another one is not")
	}
}
