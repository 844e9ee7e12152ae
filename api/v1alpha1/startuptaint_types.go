package v1alpha1

import corev1 "k8s.io/api/core/v1"

// StartupTaint is a taint that new nodes have until another program removes it.
type StartupTaint struct {
	// Key is the key of the taint, such as node.cilium.io/agent-not-ready. The domains
	// croft.dev and karpenter.sh are reserved.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	// +required
	Key string `json:"key"`
	// Value is the value of the taint.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Value string `json:"value,omitempty"`
	// Effect is the effect on pods that do not tolerate the taint: NoSchedule keeps them
	// off, PreferNoSchedule avoids the node, NoExecute also evicts them.
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	// +required
	Effect corev1.TaintEffect `json:"effect"`
}
