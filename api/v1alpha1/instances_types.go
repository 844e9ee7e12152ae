package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Instances selects the instances that may become nodes. All fields must match.
type Instances struct {
	// CapacityTypes are the allowed capacity types: on-demand, spot or reserved.
	// +croft:change=replaced if their labels do not match the new requirements | pods on replaced nodes restart
	// +kubebuilder:default={"on-demand"}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	CapacityTypes []CapacityType `json:"capacityTypes,omitempty"`
	// InstanceTypes are the cloud's names of instance types, such as t3a.large. Defaults
	// to any type.
	// +croft:change=replaced if their labels do not match the new requirements | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=set
	// +optional
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	// Architectures are amd64 and arm64. Defaults to the architectures of instanceTypes
	// if set, otherwise to amd64, since most images are built only for it.
	// +croft:change=replaced if their labels do not match the new requirements | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	Architectures []Architecture `json:"architectures,omitempty"`
	// Requirements are added unchanged to Karpenter's, for all that other fields cannot
	// express.
	// +croft:change=replaced if their labels do not match the new requirements | pods on replaced nodes restart
	// +kubebuilder:validation:MaxItems=60
	// +listType=atomic
	// +optional
	Requirements []Requirement `json:"requirements,omitempty"`
}

// CapacityType is how instances are bought: on-demand at the full price, spot from
// capacity that the cloud may reclaim, or reserved from a capacity reservation.
//
// +kubebuilder:validation:Enum=on-demand;spot;reserved
type CapacityType string

// Architecture is a processor architecture as Kubernetes names it.
//
// +kubebuilder:validation:Enum=amd64;arm64
type Architecture string

// Requirement is a Karpenter requirement on an instance.
//
// +kubebuilder:validation:XValidation:rule="self.operator in ['Exists', 'DoesNotExist'] ? !has(self.values) || self.values.size() == 0 : has(self.values) && self.values.size() > 0",message="In, NotIn, Gt and Lt need values; Exists and DoesNotExist take none"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Gt', 'Lt']) || has(self.values) && self.values.size() == 1 && self.values[0].matches('^[0-9]+$')",message="Gt and Lt take one whole number"
type Requirement struct {
	// Key is the key of an instance's label, such as karpenter.k8s.aws/instance-family.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Key string `json:"key"`
	// Operator compares the label with the values: In and NotIn with a list, Gt and Lt
	// with one whole number; Exists and DoesNotExist take no values.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values are compared with the label.
	// +kubebuilder:validation:MaxItems=200
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
	// MinValues is the minimum number of different values for Karpenter to choose from.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=50
	// +optional
	MinValues *int `json:"minValues,omitempty"`
}
