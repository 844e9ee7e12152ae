package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantRules are one tenant's rules compiled for one namespace, for people to read. Only
// croft writes them. It writes the same rules to the namespace's annotations, where the
// admission policies read them: the number of policies does not grow with the number of
// tenants.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,singular=tenantrules,path=tenantrules,shortName=trules
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.spec.tenant`
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.spec.pools`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == 'croft'",message="the policies read the TenantRules named croft and no other: set metadata.name to croft"
type TenantRules struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TenantRulesSpec `json:"spec"`
}

// TenantRulesSpec is the input of the admission policies. Each field is a string, an
// int64, a boolean or a list of strings: annotations carry nothing else.
type TenantRulesSpec struct {
	// Tenant is the tenant's name, for messages.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Tenant string `json:"tenant"`
	// Pools are the pools that pods may run on, the default first.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +required
	Pools []string `json:"pools"`
	// Namespaces are all of the tenant's namespaces, the scope of its own
	// NetworkPolicies.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +required
	Namespaces []string `json:"namespaces"`
	// SelfService allows TenantNamespaces in the namespace: the Tenant declares it, and
	// its selfService allows some.
	// +optional
	SelfService bool `json:"selfService"`
	// PlatformNamespaces are further namespaces that a NetworkPolicy may let in.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +required
	PlatformNamespaces []string `json:"platformNamespaces"`
	// Egress is the policy for pods' connections, which the tenant's own NetworkPolicies
	// cannot exceed.
	// +required
	Egress Egress `json:"egress"`
	// AllowCIDRs are networks that pods may connect to with Restricted egress.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +required
	AllowCIDRs []string `json:"allowCIDRs"`
	// Networks are the secondary networks that pods may attach to.
	// +kubebuilder:validation:MaxItems=14
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	Networks []string `json:"networks"`
	// Domains are the hosts that the tenant may serve.
	// +kubebuilder:validation:MaxItems=258
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	Domains []string `json:"domains"`
	// ServiceTypes are the allowed types of Services.
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +required
	ServiceTypes []corev1.ServiceType `json:"serviceTypes"`
	// Registries are the allowed sources of images.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	Registries []string `json:"registries"`
	// ImagePullPolicies are the allowed pull policies of containers and image volumes.
	// The first replaces policies that are not in the list.
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +required
	ImagePullPolicies []corev1.PullPolicy `json:"imagePullPolicies"`
	// ImagesDigest is Required if references of images need a digest.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	ImagesDigest string `json:"imagesDigest,omitempty"`
	// ImagesLatest is Forbidden if references of images need a digest or a tag other
	// than latest.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	ImagesLatest string `json:"imagesLatest,omitempty"`
	// PriorityClasses are the allowed priority classes of pods.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	PriorityClasses []string `json:"priorityClasses"`
	// PriorityClassDefault is the priority class of pods without one.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	PriorityClassDefault string `json:"priorityClassDefault,omitempty"`
	// RuntimeClasses are the allowed runtime classes of pods.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	RuntimeClasses []string `json:"runtimeClasses"`
	// RuntimeClassForce is the runtime class of all pods.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassForce string `json:"runtimeClassForce,omitempty"`
	// RuntimeClassDefault is the runtime class of pods without one.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	RuntimeClassDefault string `json:"runtimeClassDefault,omitempty"`
	// Seccomp is RuntimeDefault if pods need a seccomp profile.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Seccomp string `json:"seccomp,omitempty"`
	// HostUsers is Forbidden if pods run in a user namespace.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	HostUsers string `json:"hostUsers,omitempty"`
	// ServiceAccountToken is OnRequest if pods must request the token of their service account.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	ServiceAccountToken string `json:"serviceAccountToken,omitempty"`
	// Trial names fields whose rules warn instead of refusing.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=20
	// +listType=atomic
	// +optional
	Trial []string `json:"trial,omitempty"`
	// StorageClasses are the allowed storage classes of claims.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	StorageClasses []string `json:"storageClasses"`
	// IngressClasses are the allowed classes of Ingresses.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	IngressClasses []string `json:"ingressClasses"`
	// GatewayClasses are the allowed classes of Gateways.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	GatewayClasses []string `json:"gatewayClasses"`
	// Issuers are the issuers that Certificates may name, as KIND/NAME.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	Issuers []string `json:"issuers"`
	// IssuerTypes are the allowed types of Issuers.
	// +kubebuilder:validation:MaxItems=5
	// +kubebuilder:validation:items:MaxLength=32
	// +listType=atomic
	// +required
	IssuerTypes []string `json:"issuerTypes"`
	// SourceHosts are the hosts that Flux may fetch from.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	SourceHosts []string `json:"sourceHosts"`
	// CSIDrivers are the allowed drivers of pods' inline volumes.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	CSIDrivers []string `json:"csiDrivers"`
	// DeviceClasses are the allowed device classes of claims and pods.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	DeviceClasses []string `json:"deviceClasses"`
	// VolumeTypes are volume types that pods may mount in addition to the harmless ones.
	// Rules from before the field allow none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	VolumeTypes []VolumeType `json:"volumeTypes"`
	// VolumeAttributesClasses are the allowed VolumeAttributesClasses of claims. Rules
	// from before the field allow none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	VolumeAttributesClasses []string `json:"volumeAttributesClasses"`
	// MaxVolumeSize is the maximum storage of one claim, as a quantity.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:default="1Ti"
	// +required
	MaxVolumeSize string `json:"maxVolumeSize"`
	// Subjects are the subjects that RoleBindings may give roles to, in addition to the
	// service accounts of namespaces: Group:NAME, User:NAME,
	// ServiceAccount:NAMESPACE/NAME, and "*" as a NAME.
	// +kubebuilder:validation:MaxItems=96
	// +kubebuilder:validation:items:MaxLength=340
	// +listType=atomic
	// +required
	Subjects []string `json:"subjects"`
	// CloudIdentities are the cloud identities that service accounts may name: exact, or
	// a prefix with a trailing "*".
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	CloudIdentities []string `json:"cloudIdentities"`
	// ClusterIPs are the addresses that Services may choose.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=45
	// +listType=atomic
	// +required
	ClusterIPs []string `json:"clusterIPs"`
	// LoadBalancerClasses are the classes that Services of type LoadBalancer may choose. Rules
	// from before the field allow none.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	LoadBalancerClasses []string `json:"loadBalancerClasses"`
	// MaxTokenExpirationSeconds is the maximum lifetime of a requested service account
	// token.
	// +required
	MaxTokenExpirationSeconds int64 `json:"maxTokenExpirationSeconds"`
	// TokenSecrets allows Secrets with tokens that never expire.
	// +required
	TokenSecrets bool `json:"tokenSecrets"`
	// MaxTerminationGracePeriodSeconds is the maximum time for a pod to terminate.
	// +required
	MaxTerminationGracePeriodSeconds int64 `json:"maxTerminationGracePeriodSeconds"`
	// DoNotDisrupt allows pods to keep their nodes from being disrupted.
	// +required
	DoNotDisrupt bool `json:"doNotDisrupt"`
	// Annotations are annotations and labels that objects may carry although an add-on
	// acts on them.
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Annotations []string `json:"annotations"`
	// UnknownAnnotations is the policy for annotations that the catalogue of add-ons does
	// not contain.
	// +optional
	UnknownAnnotations UnknownAnnotations `json:"unknownAnnotations"`
}

// TenantRulesList is a list of TenantRules.
//
// +kubebuilder:object:root=true
type TenantRulesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantRules `json:"items"`
}
