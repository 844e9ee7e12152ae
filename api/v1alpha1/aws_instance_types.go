package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// AWSKubelet are settings of the nodes' kubelets. A Pool's are laid over the
// Platform's, field by field.
type AWSKubelet struct {
	// ClusterDNS are the addresses that pods resolve names at; the Platform's
	// clusterDNS by default. Restricted egress lets out to the Platform's alone.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:MaxLength=45
	// +kubebuilder:validation:items:XValidation:rule="isIP(self)",message="must be an IP address, such as 10.100.0.10"
	// +kubebuilder:validation:items:XValidation:rule="!isIP(self) || ip(self).isGlobalUnicast() || ip(self).isLinkLocalUnicast()",message="must be an address that pods reach: loopback addresses, such as 127.0.0.53, are each pod's own"
	// +listType=set
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods is how many pods a node takes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore is how many pods a node takes for each of its cores, up to
	// maxPods. Bottlerocket does not know it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is kept from pods for the operating system.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="only cpu, memory, ephemeral-storage and pid can be reserved"
	// +optional
	SystemReserved map[corev1.ResourceName]resource.Quantity `json:"systemReserved,omitempty"`
	// KubeReserved is kept from pods for kubelet and containerd.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage', 'pid'])",message="only cpu, memory, ephemeral-storage and pid can be reserved"
	// +optional
	KubeReserved map[corev1.ResourceName]resource.Quantity `json:"kubeReserved,omitempty"`
	// EvictionHard is how little may be left before pods are evicted at once.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="there are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionHard map[string]EvictionThreshold `json:"evictionHard,omitempty"`
	// EvictionSoft is how little may be left, for a while, before pods are evicted.
	// +kubebuilder:validation:MaxProperties=6
	// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['memory.available', 'nodefs.available', 'nodefs.inodesFree', 'imagefs.available', 'imagefs.inodesFree', 'pid.available'])",message="there are memory.available, nodefs.available, nodefs.inodesFree, imagefs.available, imagefs.inodesFree and pid.available"
	// +optional
	EvictionSoft map[string]EvictionThreshold `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod is how long that while is, for each in evictionSoft.
	// +kubebuilder:validation:MaxProperties=6
	// +optional
	EvictionSoftGracePeriod map[string]EvictionGracePeriod `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod is how many seconds a pod has to end that is evicted
	// by evictionSoft.
	// +kubebuilder:validation:Minimum=0
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is how full the disk may be before images that no
	// pod uses are removed.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is how full the disk may stay after that.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota says whether CPU limits of containers are enforced.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
}

// EvictionThreshold is an amount or a percentage.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^(([0-9]{1,2}([.][0-9]{1,2})?|100)%|[0-9]+([.][0-9]+)?([KMGTPE]i|[kMGTPE])?)$')",message="must be an amount or a percentage, such as 200Mi or 5%"
type EvictionThreshold string

// EvictionGracePeriod is a time span with its unit.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+(s|m|h))+$')",message="must be a duration with its unit, such as 90s or 5m"
type EvictionGracePeriod string

// BlockDeviceMapping is one disk of a node.
type BlockDeviceMapping struct {
	// DeviceName is where the image looks for it, such as /dev/xvda.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	DeviceName string `json:"deviceName"`
	// EBS is the volume.
	// +required
	EBS EBSVolume `json:"ebs"`
	// RootVolume says that kubelet keeps what pods write on it: Karpenter takes its
	// size for the node's ephemeral storage.
	// +optional
	RootVolume bool `json:"rootVolume,omitempty"`
}

// EBSVolume is a volume of Elastic Block Store. What is not set here croft writes
// out: gp3, encrypted, and gone with its node.
//
// +kubebuilder:validation:XValidation:rule="has(self.snapshotID) || has(self.volumeSize)",message="set volumeSize, or snapshotID for as much as the snapshot has"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeInitializationRate) || has(self.snapshotID)",message="only what is read from a snapshot has a volumeInitializationRate: leave it out, or set snapshotID"
type EBSVolume struct {
	// DeleteOnTermination says whether the volume goes with its node; true by default.
	// +optional
	DeleteOnTermination *bool `json:"deleteOnTermination,omitempty"`
	// Encrypted says whether the volume is encrypted; true by default, but for one
	// from a snapshot, which is what the snapshot is.
	// +optional
	Encrypted *bool `json:"encrypted,omitempty"`
	// IOPS are the operations per second of a gp3, io1 or io2.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=256000
	// +optional
	IOPS *int64 `json:"iops,omitempty"`
	// KMSKeyID is the key's id, alias or ARN; the account's own for EBS by default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	KMSKeyID string `json:"kmsKeyID,omitempty"`
	// SnapshotID is what the volume starts from.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^snap-[0-9a-z]+$')",message="must be the id of a snapshot, such as snap-0123456789abcdef0"
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// Throughput of a gp3 in MiB per second.
	// +kubebuilder:validation:Minimum=125
	// +kubebuilder:validation:Maximum=2000
	// +optional
	Throughput *int64 `json:"throughput,omitempty"`
	// VolumeInitializationRate is how fast the snapshot is read, in MiB per second.
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=300
	// +optional
	VolumeInitializationRate *int32 `json:"volumeInitializationRate,omitempty"`
	// VolumeSize in Gi, G, Ti or T.
	// +optional
	VolumeSize VolumeSize `json:"volumeSize,omitempty"`
	// VolumeType is the kind of volume; gp3 by default.
	// +kubebuilder:validation:Enum=standard;io1;io2;gp2;sc1;st1;gp3
	// +optional
	VolumeType string `json:"volumeType,omitempty"`
}

// VolumeSize is how large a volume is.
//
// +kubebuilder:validation:MaxLength=8
// +kubebuilder:validation:XValidation:rule="self.matches('^(([1-9][0-9]{0,3}|[1-4][0-9]{4}|5[0-8][0-9]{3}|59000)Gi|([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-3][0-9]{3}|64000)G|([1-9]|[1-5][0-7]|58)Ti|([1-9]|[1-5][0-9]|6[0-4])T)$')",message="must be a size that EBS has, such as 50Gi or 1Ti"
type VolumeSize string

// MetadataOptions say who reaches the instance metadata service, which gives out
// the rights of the node. Karpenter's defaults are written out.
type MetadataOptions struct {
	// HTTPEndpoint is whether there is one; enabled by default, since nodes need it.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPEndpoint string `json:"httpEndpoint,omitempty"`
	// HTTPProtocolIPv6 is whether it has an IPv6 address; disabled by default.
	// +kubebuilder:validation:Enum=enabled;disabled
	// +optional
	HTTPProtocolIPv6 string `json:"httpProtocolIPv6,omitempty"`
	// HTTPPutResponseHopLimit is how many hops an answer goes. One, the default,
	// reaches the node itself and no pod behind it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	// +optional
	HTTPPutResponseHopLimit *int64 `json:"httpPutResponseHopLimit,omitempty"`
	// HTTPTokens is whether a session must be opened first, which a request that was
	// tricked out of a program cannot; required by default.
	// +kubebuilder:validation:Enum=required;optional
	// +optional
	HTTPTokens string `json:"httpTokens,omitempty"`
}
