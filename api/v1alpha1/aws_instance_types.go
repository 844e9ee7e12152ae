package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AWSKubelet configures the nodes' kubelets. A Pool's fields override the Platform's.
type AWSKubelet struct {
	// ClusterDNS are the addresses of the pods' DNS servers. Defaults to the Platform's
	// clusterDNS. Restricted egress allows only the Platform's.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.100.0.10"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be an address that pods can reach: loopback addresses, such as 127.0.0.53, lead to the pod itself"
	// +listType=set
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is the maximum number of pods on a node.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore is the maximum number of pods for each core of a node, up to maxPods.
	// Bottlerocket does not support it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is reserved for the operating system.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="only cpu, memory, ephemeral-storage and pid can be reserved"
	// +optional
	SystemReserved map[corev1.ResourceName]resource.Quantity `json:"systemReserved,omitempty"`
	// KubeReserved is reserved for kubelet and containerd.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="only cpu, memory, ephemeral-storage and pid can be reserved"
	// +optional
	KubeReserved map[corev1.ResourceName]resource.Quantity `json:"kubeReserved,omitempty"`
	// EvictionHard are the amounts of free resources below which pods are evicted at
	// once.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="the signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionHard map[string]EvictionThreshold `json:"evictionHard,omitempty"`
	// EvictionSoft are the amounts of free resources below which pods are evicted after a
	// grace period.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="the signals are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionSoft map[string]EvictionThreshold `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod is the grace period for each signal in evictionSoft.
	// +kubebuilder:validation:MaxProperties=6
	// +optional
	EvictionSoftGracePeriod map[string]EvictionGracePeriod `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is the maximum time to terminate, in seconds, of a pod
	// that evictionSoft evicts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is the disk usage above which images that no pod uses
	// are removed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk usage at which the removal ends.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota enforces containers' CPU limits.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}

// EvictionThreshold is an amount or a percentage.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9]{1,2}([.][0-9]{1,2})?|100)%|[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?)$')",message="must be an amount or a percentage, such as 200Mi or 5%"
type EvictionThreshold string

// EvictionGracePeriod is a duration with its unit.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="must be a duration with its unit, such as 90s or 5m"
type EvictionGracePeriod string

// BlockDeviceMapping is one disk of a node.
type BlockDeviceMapping struct {
	// DeviceName is the name that the image expects, such as /dev/xvda.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	DeviceName string `json:"deviceName"`
	// EBS is the volume.
	// +required
	EBS EBSVolume `json:"ebs"`
	// RootVolume marks the disk on which kubelet keeps pods' data. Karpenter uses its
	// size as the node's ephemeral storage.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// EBSVolume is a volume of Elastic Block Store. croft writes the defaults explicitly:
// gp3, encrypted, and deleted with the node.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="set volumeSize, or snapshotID for the size of the snapshot"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || has(self.snapshotID)",message="volumeInitializationRate is for volumes from a snapshot: leave it out, or set snapshotID"
type EBSVolume struct {
	// DeleteOnTermination deletes the volume with its node. Defaults to true.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted enables encryption. Defaults to true; a volume from a snapshot keeps the
	// snapshot's setting.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS are the I/O operations per second of a gp3, io1 or io2.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=256000
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key's ID, alias or ARN. Defaults to the account's own key for EBS.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	KMSKeyID string `json:"kmsKeyID,omitempty"`
	// SnapshotID is the snapshot that the volume starts from.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^snap-[0-9a-z]+$')",message="must be the id of a snapshot, such as snap-0123456789abcdef0"
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// Throughput is a gp3's throughput in MiB per second.
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=2000
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate is the rate of reading the snapshot, in MiB per second.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize is the size in Gi, G, Ti or T.
	// +optional
	VolumeSize VolumeSize `json:"volumeSize,omitempty"`
	// VolumeType is the type of volume. Defaults to gp3.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType string `json:"volumeType,omitempty"`
}

// VolumeSize is the size of a volume.
//
// +kubebuilder:validation:MaxLength=8
// +kubebuilder:validation:XValidation:rule="self.matches('^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-4])T)$')",message="must be a size that EBS supports, such as 50Gi or 1Ti"
type VolumeSize string

// MetadataOptions restrict the instance metadata service, which issues the node's
// credentials. croft writes Karpenter's defaults explicitly.
type MetadataOptions struct {
	// HTTPEndpoint enables the service. Defaults to enabled, since nodes need it.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 enables an IPv6 address. Defaults to disabled.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is the maximum number of hops of a response. The default of
	// 1 reaches the node itself and no pod behind it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens requires IMDSv2 session tokens, which protect against SSRF. Defaults to
	// required.
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens string `json:"httpTokens,omitempty"`
}
