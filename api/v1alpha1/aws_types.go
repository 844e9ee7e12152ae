package v1alpha1

// AWSNodeClass becomes an EC2NodeClass (karpenter.k8s.aws/v1) per pool. Its
// fields have the names that Karpenter gives them. A Pool's class is laid over
// the Platform's, field by field: what the Pool does not say is as the Platform
// says it. What neither says is written out all the same, so that the EC2NodeClass
// means the same with whatever defaults a provider has; docs/aws.md has the list.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.role) && has(self.instanceProfile))",message="set role or instanceProfile, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.amiAlias) && has(self.amiSelectorTerms))",message="set amiAlias or amiSelectorTerms, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.discovery) && has(self.subnetSelectorTerms) && has(self.securityGroupSelectorTerms))",message="discovery is for what has no selector terms of its own: leave it out, or one of subnetSelectorTerms and securityGroupSelectorTerms"
type AWSNodeClass struct {
	// Role is the IAM role of the nodes; Karpenter makes the instance profile. Of
	// role and instanceProfile one is set, by the Pool or by the Platform; the
	// Pool's takes the place of either of the Platform's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is an instance profile that exists already.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// AMIAlias names the operating system's images, as Karpenter writes them;
	// al2023@latest if nothing says which images. It is short for one
	// amiSelectorTerm.
	// +optional
	AMIAlias AMIAlias `json:"amiAlias,omitempty"`
	// AMIFamily is what the images are of: how their user data is written and
	// which disks they have. An alias says it itself; other images need it.
	// +optional
	AMIFamily AMIFamily `json:"amiFamily,omitempty"`
	// AMISelectorTerms find the images; one of the terms must hold.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(t, has(t.alias))",message="an alias stands alone: leave out the other terms"
	// +listType=atomic
	// +optional
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms,omitempty"`

	// Discovery are the tags that subnets and security groups are found by, if
	// these have no selector terms; karpenter.sh/discovery: <clusterName> if none
	// are given.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Discovery map[string]string `json:"discovery,omitempty"`
	// SubnetSelectorTerms find the subnets; one of the terms must hold.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms,omitempty"`
	// SecurityGroupSelectorTerms find the security groups; one of the terms must
	// hold.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms,omitempty"`
	// AssociatePublicIPAddress says whether nodes have public addresses; false by
	// default.
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// CapacityReservationSelectorTerms find the capacity reservations that pools
	// with the capacity type reserved use; one of the terms must hold.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`

	// Tags are put on the instances, their volumes and network interfaces of every
	// pool. A Pool's and those in its nodeClass are added to the Platform's.
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// TagKeys are the keys of the tags that croft sets itself, for an account whose
	// cost allocation tags have other names.
	// +optional
	TagKeys *AWSTagKeys `json:"tagKeys,omitempty"`

	// Kubelet are settings of the nodes' kubelets; what is not set Karpenter works
	// out from the instance type.
	// +optional
	Kubelet *AWSKubelet `json:"kubelet,omitempty"`
	// UserData is run when a node starts, in the form of the image's family. In
	// croft.yaml userDataFile may name a file in its place, relative to croft.yaml.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	UserData string `json:"userData,omitempty"`

	// BlockDeviceMappings are the nodes' disks. If none are given: an encrypted gp3
	// volume as large as the family's images want it. A family Custom has those of
	// its image then.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1",message="only one of the disks can be the rootVolume"
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy is what becomes of disks that come with an instance; they
	// are left alone if it is not set.
	// +optional
	InstanceStorePolicy InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// MetadataOptions say who reaches the instance metadata service, which gives
	// out the rights of the node.
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// DetailedMonitoring has CloudWatch look every minute, for money; false by
	// default.
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
}

// AMIAlias is a family of images and a version of them. A version that is pinned
// replaces no node by itself; latest replaces them with every new image.
//
// +kubebuilder:validation:MaxLength=30
// +kubebuilder:validation:XValidation:rule="self.matches('^(al2|al2023|bottlerocket)@.+$')",message="must be family@version, such as al2023@latest or bottlerocket@v1.20.0, of the families al2, al2023 and bottlerocket"
type AMIAlias string

// AMIFamily is a family of Linux images.
//
// +kubebuilder:validation:Enum=AL2;AL2023;Bottlerocket;Custom
type AMIFamily string

const (
	// FamilyAL2 is Amazon Linux 2, which has no images for Kubernetes 1.33 and later.
	FamilyAL2 AMIFamily = "AL2"
	// FamilyAL2023 is Amazon Linux 2023.
	FamilyAL2023 AMIFamily = "AL2023"
	// FamilyBottlerocket is Bottlerocket.
	FamilyBottlerocket AMIFamily = "Bottlerocket"
	// FamilyCustom are images of which Karpenter knows nothing: userData has to join
	// the node to the cluster.
	FamilyCustom AMIFamily = "Custom"
)

// AMISelectorTerm finds images. All that it says must hold.
//
// +kubebuilder:validation:XValidation:rule="(has(self.alias) ? 1 : 0) + (has(self.id) ? 1 : 0) + (has(self.ssmParameter) ? 1 : 0) + (has(self.tags) || has(self.name) || has(self.owner) ? 1 : 0) == 1",message="set one of alias, id and ssmParameter, or tags and name, with the owner"
// +kubebuilder:validation:XValidation:rule="!has(self.owner) || has(self.tags) || has(self.name)",message="an owner has many images: say tags or name too"
type AMISelectorTerm struct {
	// Alias is a family of images and their version.
	// +optional
	Alias AMIAlias `json:"alias,omitempty"`
	// Tags that the image has; "*" is any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the image.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^ami-[0-9a-z]+$')",message="must be the id of an image, such as ami-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image, which may hold "*". It is not the tag Name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// Owner is an account's number, self, amazon or aws-marketplace; self and
	// amazon if it is not set.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or the ARN of a parameter that holds the image's id.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}

// SubnetSelectorTerm finds subnets. A subnet's name is its tag Name.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="set one of tags and id"
type SubnetSelectorTerm struct {
	// Tags that the subnet has; "*" is any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the subnet.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^subnet-[0-9a-z]+$')",message="must be the id of a subnet, such as subnet-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm finds security groups.
//
// +kubebuilder:validation:XValidation:rule="(has(self.tags) ? 1 : 0) + (has(self.id) ? 1 : 0) + (has(self.name) ? 1 : 0) == 1",message="set exactly one of tags, id and name"
type SecurityGroupSelectorTerm struct {
	// Tags that the security group has; "*" is any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the security group.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^sg-[0-9a-z]+$')",message="must be the id of a security group, such as sg-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the security group. It is not the tag Name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm finds capacity reservations. All that it says
// must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) != (has(self.tags) || has(self.instanceMatchCriteria))",message="set id, or tags and instanceMatchCriteria"
// +kubebuilder:validation:XValidation:rule="!(has(self.id) && has(self.ownerID))",message="an id needs no ownerID: leave it out"
type CapacityReservationSelectorTerm struct {
	// Tags that the reservation has; "*" is any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^cr-[0-9a-z]+$')",message="must be the id of a capacity reservation, such as cr-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the account that the reservation is of.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{12}$')",message="must be the number of an account, of twelve digits in quotes"
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria is whether every instance that fits uses the
	// reservation, open, or only those that ask for it, targeted.
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// AWSTagKeys are the keys of the tags that croft sets. To be seen in bills they are
// activated as cost allocation tags, once, in the account that pays.
type AWSTagKeys struct {
	// CostCode is the key of the pool's costCode; CostCode by default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	CostCode string `json:"costCode,omitempty"`
	// Project is a key of the pool's name; Project by default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Project string `json:"project,omitempty"`
	// NodePool is a key of the pool's name; NodePool by default.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	NodePool string `json:"nodePool,omitempty"`
}

// InstanceStorePolicy is what becomes of disks that come with an instance.
//
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string
