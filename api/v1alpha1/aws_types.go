package v1alpha1

// AWSNodeClass becomes an EC2NodeClass (karpenter.k8s.aws/v1) for each pool. Its fields
// have Karpenter's names. A Pool's class overrides the Platform's, field by field. croft
// writes explicit values for fields that neither sets, so that the EC2NodeClass does not
// depend on a provider's defaults; docs/reference/aws.md lists them.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.role) && has(self.instanceProfile))",message="set role or instanceProfile, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.amiAlias) && has(self.amiSelectorTerms))",message="set amiAlias or amiSelectorTerms, not both"
// +kubebuilder:validation:XValidation:rule="!(has(self.discovery) && has(self.subnetSelectorTerms) && has(self.securityGroupSelectorTerms))",message="discovery replaces missing selector terms: leave it out, or leave out subnetSelectorTerms or securityGroupSelectorTerms"
type AWSNodeClass struct {
	// Role is the IAM role of the nodes; Karpenter creates the instance profile. The Pool
	// or the Platform must set role or instanceProfile. The Pool's overrides either of
	// the Platform's.
	// +croft:change=replaced | restart
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Role string `json:"role,omitempty"`
	// InstanceProfile is an existing instance profile.
	// +croft:change=replaced | restart
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`

	// AMIAlias selects the images, by an alias of Karpenter's. It is short for one
	// amiSelectorTerm. If no images are selected, defaults to the latest of amiFamily, or
	// al2023@latest.
	// +croft:change=replaced if their image is no longer selected. With `@latest` that also happens without a change, when AWS publishes an image | pods on replaced nodes restart
	// +optional
	AMIAlias AMIAlias `json:"amiAlias,omitempty"`
	// AMIFamily is the family of the images: the format of their user data, and their
	// disks. An alias implies it; other images require it.
	// +croft:change=replaced | restart
	// +optional
	AMIFamily AMIFamily `json:"amiFamily,omitempty"`
	// AMISelectorTerms select the images that match one of the terms.
	// +croft:change=replaced if their image is no longer selected. With `@latest` that also happens without a change, when AWS publishes an image | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +kubebuilder:validation:XValidation:rule="self.size() == 1 || !self.exists(t, has(t.alias))",message="an alias excludes other terms: leave them out"
	// +listType=atomic
	// +optional
	AMISelectorTerms []AMISelectorTerm `json:"amiSelectorTerms,omitempty"`

	// Discovery are the tags that select subnets and security groups without selector
	// terms. Defaults to karpenter.sh/discovery: <clusterName>.
	// +croft:change=replaced if their subnet is no longer selected, or the security groups differ | pods on replaced nodes restart
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Discovery map[string]string `json:"discovery,omitempty"`
	// SubnetSelectorTerms select the subnets that match one of the terms.
	// +croft:change=replaced if their subnet is no longer selected, or the security groups differ | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SubnetSelectorTerms []SubnetSelectorTerm `json:"subnetSelectorTerms,omitempty"`
	// SecurityGroupSelectorTerms select the security groups that match one of the terms.
	// +croft:change=replaced if their subnet is no longer selected, or the security groups differ | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	SecurityGroupSelectorTerms []SecurityGroupSelectorTerm `json:"securityGroupSelectorTerms,omitempty"`
	// AssociatePublicIPAddress gives nodes public addresses. Defaults to false.
	// +croft:change=replaced | restart
	// +optional
	AssociatePublicIPAddress *bool `json:"associatePublicIPAddress,omitempty"`
	// CapacityReservationSelectorTerms select the capacity reservations that match one of
	// the terms. Pools with the capacity type reserved use them.
	// +croft:change=replaced if they run in a reservation that is no longer selected | pods on replaced nodes restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=30
	// +listType=atomic
	// +optional
	CapacityReservationSelectorTerms []CapacityReservationSelectorTerm `json:"capacityReservationSelectorTerms,omitempty"`

	// Tags are the tags of the instances, volumes and network interfaces of every pool. A
	// Pool's tags, and the tags in its nodeClass, are added to the Platform's.
	// +croft:change=replaced | restart
	// +kubebuilder:validation:MaxProperties=40
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// TagKeys are the keys of the tags that croft sets, for an account with other names
	// of cost allocation tags.
	// +croft:change=replaced | restart
	// +optional
	TagKeys *AWSTagKeys `json:"tagKeys,omitempty"`

	// Kubelet configures the nodes' kubelets. Karpenter derives unset fields from the
	// instance type.
	// +croft:change=replaced | restart
	// +optional
	Kubelet *AWSKubelet `json:"kubelet,omitempty"`
	// UserData runs when a node starts, in the format of the image's family. In
	// croft.yaml, userDataFile may name a file instead, relative to croft.yaml.
	// +croft:change=replaced | restart
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	UserData string `json:"userData,omitempty"`

	// BlockDeviceMappings are the nodes' disks. Defaults to encrypted gp3 volumes, in the
	// sizes that the family's images need; for the family Custom, to the image's own.
	// +croft:change=replaced | restart
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.filter(m, has(m.rootVolume) && m.rootVolume).size() <= 1",message="only one of the disks can be the rootVolume"
	// +listType=atomic
	// +optional
	BlockDeviceMappings []BlockDeviceMapping `json:"blockDeviceMappings,omitempty"`
	// InstanceStorePolicy is the policy for disks that come with an instance. If unset,
	// they are left alone.
	// +croft:change=replaced | restart
	// +optional
	InstanceStorePolicy InstanceStorePolicy `json:"instanceStorePolicy,omitempty"`
	// MetadataOptions restrict the instance metadata service, which issues the node's
	// credentials.
	// +croft:change=replaced | restart
	// +optional
	MetadataOptions *MetadataOptions `json:"metadataOptions,omitempty"`
	// DetailedMonitoring sends metrics to CloudWatch every minute, at a charge. Defaults
	// to false.
	// +croft:change=replaced | restart
	// +optional
	DetailedMonitoring *bool `json:"detailedMonitoring,omitempty"`
}

// AMIAlias is a family of images and a version. A pinned version replaces no nodes;
// latest replaces them with every new image.
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
	// FamilyCustom is any image that Karpenter does not know: userData must join the node
	// to the cluster.
	FamilyCustom AMIFamily = "Custom"
)

// AMISelectorTerm selects images. An image must match all fields.
//
// +kubebuilder:validation:XValidation:rule="(has(self.alias) ? 1 : 0) + (has(self.id) ? 1 : 0) + (has(self.ssmParameter) ? 1 : 0) + (has(self.tags) || has(self.name) || has(self.owner) ? 1 : 0) == 1",message="set one of alias, id and ssmParameter, or tags and name, with the owner"
// +kubebuilder:validation:XValidation:rule="!has(self.owner) || has(self.tags) || has(self.name)",message="an owner has many images: set tags or name, too"
type AMISelectorTerm struct {
	// Alias is a family of images and a version.
	// +optional
	Alias AMIAlias `json:"alias,omitempty"`
	// Tags are the image's tags; "*" matches any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the image's ID.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^ami-[0-9a-z]+$')",message="must be the id of an image, such as ami-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// Name is the image's name, with "*" as wildcard. It is not the tag Name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Name string `json:"name,omitempty"`
	// Owner is an account ID, self, amazon or aws-marketplace. Defaults to self and
	// amazon.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a parameter with the image's ID.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}

// SubnetSelectorTerm selects subnets. A subnet's name is its tag Name.
//
// +kubebuilder:validation:XValidation:rule="has(self.tags) != has(self.id)",message="set one of tags and id"
type SubnetSelectorTerm struct {
	// Tags are the subnet's tags; "*" matches any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the subnet's ID.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^subnet-[0-9a-z]+$')",message="must be the id of a subnet, such as subnet-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm selects security groups.
//
// +kubebuilder:validation:XValidation:rule="(has(self.tags) ? 1 : 0) + (has(self.id) ? 1 : 0) + (has(self.name) ? 1 : 0) == 1",message="set exactly one of tags, id and name"
type SecurityGroupSelectorTerm struct {
	// Tags are the security group's tags; "*" matches any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the security group's ID.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^sg-[0-9a-z]+$')",message="must be the id of a security group, such as sg-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// Name is the security group's name. It is not the tag Name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm selects capacity reservations. A reservation must match
// all fields.
//
// +kubebuilder:validation:XValidation:rule="has(self.id) != (has(self.tags) || has(self.instanceMatchCriteria))",message="set id, or tags and instanceMatchCriteria"
// +kubebuilder:validation:XValidation:rule="!(has(self.id) && has(self.ownerID))",message="an id needs no ownerID: leave it out"
type CapacityReservationSelectorTerm struct {
	// Tags are the reservation's tags; "*" matches any value.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=20
	// +kubebuilder:validation:XValidation:rule="self.all(k, k != '' && self[k] != '')",message="tags have keys and values; for any value write \"*\""
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID is the reservation's ID.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^cr-[0-9a-z]+$')",message="must be the id of a capacity reservation, such as cr-0123456789abcdef0"
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the ID of the reservation's account.
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{12}$')",message="must be the number of an account, of twelve digits in quotes"
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria selects reservations that every matching instance uses
	// (open), or only instances that request them (targeted).
	// +kubebuilder:validation:Enum=open;targeted
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// AWSTagKeys are the keys of the tags that croft sets. Bills show them after they are
// activated as cost allocation tags, once, in the account that pays.
type AWSTagKeys struct {
	// CostCode is the key for the pool's costCode. Defaults to CostCode.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	CostCode string `json:"costCode,omitempty"`
	// Project is a key for the pool's name. Defaults to Project.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Project string `json:"project,omitempty"`
	// NodePool is a key for the pool's name. Defaults to NodePool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	NodePool string `json:"nodePool,omitempty"`
}

// InstanceStorePolicy is the policy for disks that come with an instance. RAID0 joins
// them into one array for the node's ephemeral storage.
//
// +kubebuilder:validation:Enum=RAID0
type InstanceStorePolicy string
