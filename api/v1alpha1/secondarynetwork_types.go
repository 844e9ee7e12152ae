package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SecondaryNetwork is a network in addition to the cluster's. A pool's nodes are attached
// to it, and pods reach it through Multus.
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

// SecondaryNetworkSpec specifies the network and its zones.
type SecondaryNetworkSpec struct {
	// Type is the CNI plugin that creates the pods' interfaces.
	// +kubebuilder:default=ipvlan
	// +optional
	Type SecondaryNetworkType `json:"type,omitempty"`
	// MTU is the maximum packet size, in bytes, of the nodes' and the pods' interfaces.
	// Defaults to the MTU that the cloud gives to the nodes' interfaces, which is 9001 in
	// a VPC.
	// +kubebuilder:validation:Minimum=1280
	// +kubebuilder:validation:Maximum=9216
	// +optional
	MTU int32 `json:"mtu,omitempty"`
	// Routes are networks that pods reach through the gateway of their zone, such as
	// 10.20.0.0/16, or 0.0.0.0/0 for all others. Without routes, pods reach only the
	// subnet or, with sbr, any destination to which they send from their address in this
	// network.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=43
	// +kubebuilder:validation:items:XValidation:rule="isCIDR(self)",message="must be a network, such as 10.20.0.0/16"
	// +listType=set
	// +optional
	Routes []string `json:"routes,omitempty"`
	// SBR gives the pods' interface its own routing table, selected by source address: a
	// reply leaves through the interface that received the request.
	// +optional
	SBR bool `json:"sbr,omitempty"`
	// PrefixesPerNode is the number of /28 prefixes of the zone's podCIDR that each
	// node's interface gets, on AWS. Pods get their addresses from these prefixes, 16
	// each, which the VPC delivers to the node. Without it, the pods of all nodes share
	// podCIDR, and the VPC does not know their addresses. Pools that use the network need
	// waitForNetworks, and podCIDR a reservation of type prefix. Existing nodes keep
	// their prefixes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=49
	// +optional
	PrefixesPerNode int32 `json:"prefixesPerNode,omitempty"`
	// DNS is passed to the container runtime with the pods' addresses. Kubernetes does
	// not write it to a pod's resolv.conf; programs read it from the annotation
	// k8s.v1.cni.cncf.io/network-status.
	// +optional
	DNS *SecondaryNetworkDNS `json:"dns,omitempty"`
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

const (
	// SecondaryNetworkIPVLAN shares a node's interface and its hardware address among
	// pods. A VPC delivers to no other hardware address.
	SecondaryNetworkIPVLAN SecondaryNetworkType = "ipvlan"
	// SecondaryNetworkMACVLAN gives each pod its own hardware address.
	SecondaryNetworkMACVLAN SecondaryNetworkType = "macvlan"
	// SecondaryNetworkHostDevice moves the node's interface into one pod.
	SecondaryNetworkHostDevice SecondaryNetworkType = "host-device"
)

// SecondaryNetworkDNS configures name resolution in a network.
type SecondaryNetworkDNS struct {
	// Nameservers are addresses of DNS servers.
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.0.4.2"
	// +listType=atomic
	// +optional
	Nameservers []string `json:"nameservers,omitempty"`
	// Domain is the domain of short names.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Domain string `json:"domain,omitempty"`
	// Search are the domains that short names are looked up in.
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Search []string `json:"search,omitempty"`
}

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
