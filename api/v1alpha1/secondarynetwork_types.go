package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecondaryNetwork is a network beside the cluster's own that a pool's nodes
// are attached to and pods reach through Multus.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories=croft
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="a secondary network's name must be at most 63 lower-case letters, digits and '-'"
type SecondaryNetwork struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec SecondaryNetworkSpec `json:"spec"`
	// +optional
	Status Status `json:"status,omitempty"`
}

// SecondaryNetworkSpec says where the network lies in each zone.
type SecondaryNetworkSpec struct {
	// Type is the CNI plugin that makes the pods' interfaces.
	// +kubebuilder:default=ipvlan
	// +optional
	Type SecondaryNetworkType `json:"type,omitempty"`
	// Zones hold one entry per availability zone.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=zone
	// +required
	Zones []SecondaryNetworkZone `json:"zones"`
}

// SecondaryNetworkType is a CNI plugin.
//
// +kubebuilder:validation:Enum=ipvlan;macvlan;host-device
type SecondaryNetworkType string

// SecondaryNetworkZone is the part of a network in one availability zone.
//
// +kubebuilder:validation:XValidation:rule="!isCIDR(self.cidr) || !isCIDR(self.podCIDR) || cidr(self.cidr).containsCIDR(self.podCIDR)",message="podCIDR must lie within cidr"
// +kubebuilder:validation:XValidation:rule="!has(self.gateway) || !isIP(self.gateway) || !isCIDR(self.cidr) || cidr(self.cidr).containsIP(self.gateway)",message="gateway must lie within cidr"
type SecondaryNetworkZone struct {
	// Zone is the availability zone, such as us-west-2a.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Zone string `json:"zone"`
	// Subnet is the cloud's id of the subnet, such as subnet-0abc.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Subnet string `json:"subnet"`
	// SecurityGroups are the cloud's ids of the security groups.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	SecurityGroups []string `json:"securityGroups,omitempty"`
	// CIDR is the subnet's network.
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network, such as 10.0.4.0/24"
	// +required
	CIDR string `json:"cidr"`
	// PodCIDR is the reservation in the subnet that pods' addresses come from.
	// +kubebuilder:validation:MaxLength=43
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="must be a network, such as 10.0.4.32/27"
	// +required
	PodCIDR string `json:"podCIDR"`
	// Gateway is the address that pods reach other networks through.
	// +kubebuilder:validation:MaxLength=45
	// +kubebuilder:validation:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.0.4.1"
	// +optional
	Gateway string `json:"gateway,omitempty"`
}

// SecondaryNetworkList is a list of SecondaryNetworks.
//
// +kubebuilder:object:root=true
type SecondaryNetworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []SecondaryNetwork `json:"items"`
}
