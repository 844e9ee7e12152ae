package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantRules are one tenant's rules compiled for one namespace, for people to read.
// croft alone writes them, and the same into the namespace's annotations, where the
// admission policies read them: so the number of policies does not grow with the number
// of tenants.
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

// TenantRulesSpec is what the admission policies read. Each field is a string, an
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
	// Namespaces are all of the tenant's, the reach of its own NetworkPolicies.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +required
	Namespaces []string `json:"namespaces"`
	// SelfService says whether TenantNamespaces may be created in the namespace: where
	// the Tenant declares it and its selfService allows some.
	// +optional
	SelfService bool `json:"selfService"`
	// PlatformNamespaces are those that a NetworkPolicy may let in besides.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +listType=atomic
	// +required
	PlatformNamespaces []string `json:"platformNamespaces"`
	// Egress is where pods may connect to, the reach of its own NetworkPolicies.
	// +required
	Egress Egress `json:"egress"`
	// AllowCIDRs are the networks that egress may reach although Restricted.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=43
	// +listType=atomic
	// +required
	AllowCIDRs []string `json:"allowCIDRs"`
	// Networks are the secondary networks that pods may ask for.
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
	// ServiceTypes are the types that Services may have.
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +required
	ServiceTypes []corev1.ServiceType `json:"serviceTypes"`
	// Registries are where images may come from.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	Registries []string `json:"registries"`
	// ImagePullPolicies are what containers and image volumes may ask for; the first
	// is given to those that ask for another.
	// +kubebuilder:validation:MaxItems=3
	// +listType=atomic
	// +required
	ImagePullPolicies []corev1.PullPolicy `json:"imagePullPolicies"`
	// PriorityClasses are those that pods may ask for.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	PriorityClasses []string `json:"priorityClasses"`
	// RuntimeClasses are those that pods may ask for.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	RuntimeClasses []string `json:"runtimeClasses"`
	// StorageClasses are those that claims may ask for.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	StorageClasses []string `json:"storageClasses"`
	// IngressClasses are those that Ingresses may ask for.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	IngressClasses []string `json:"ingressClasses"`
	// GatewayClasses are those that Gateways may ask for.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	GatewayClasses []string `json:"gatewayClasses"`
	// Issuers are those that Certificates may name, as KIND/NAME.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	Issuers []string `json:"issuers"`
	// IssuerTypes are what Issuers may be.
	// +kubebuilder:validation:MaxItems=5
	// +listType=atomic
	// +required
	IssuerTypes []string `json:"issuerTypes"`
	// SourceHosts are the hosts that Flux may fetch from.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	SourceHosts []string `json:"sourceHosts"`
	// CSIDrivers are those that pods may mount inline volumes of.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	CSIDrivers []string `json:"csiDrivers"`
	// DeviceClasses are those that claims and pods may ask for devices of.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +required
	DeviceClasses []string `json:"deviceClasses"`
	// VolumeTypes are those that pods may mount beside the harmless ones. Rules from
	// before the field allow none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	VolumeTypes []VolumeType `json:"volumeTypes"`
	// VolumeAttributesClasses are those that claims may ask for. Rules from before the
	// field allow none.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:default={}
	// +listType=atomic
	// +required
	VolumeAttributesClasses []string `json:"volumeAttributesClasses"`
	// MaxVolumeSize is the most storage that one claim may ask for, as a quantity.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:default="1Ti"
	// +required
	MaxVolumeSize string `json:"maxVolumeSize"`
	// Subjects are those to whom RoleBindings may give roles, beside the service
	// accounts of namespaces: Group:NAME, User:NAME, ServiceAccount:NAMESPACE/NAME,
	// and "*" as a NAME.
	// +kubebuilder:validation:MaxItems=96
	// +kubebuilder:validation:items:MaxLength=340
	// +listType=atomic
	// +required
	Subjects []string `json:"subjects"`
	// CloudIdentities are those that service accounts may name, whole or up to a
	// trailing "*".
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
	// MaxTokenExpirationSeconds is how long a token of a service account may be
	// valid that somebody asks for.
	// +required
	MaxTokenExpirationSeconds int64 `json:"maxTokenExpirationSeconds"`
	// TokenSecrets says whether Secrets may hold tokens that never expire.
	// +required
	TokenSecrets bool `json:"tokenSecrets"`
	// MaxTerminationGracePeriodSeconds is how long a pod may take to end.
	// +required
	MaxTerminationGracePeriodSeconds int64 `json:"maxTerminationGracePeriodSeconds"`
	// DoNotDisrupt says whether pods may keep their nodes from being disrupted.
	// +required
	DoNotDisrupt bool `json:"doNotDisrupt"`
	// Annotations are annotations and labels that objects may carry although an
	// add-on would act upon them.
	// +kubebuilder:validation:MaxItems=24
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Annotations []string `json:"annotations"`
	// UnknownAnnotations says what becomes of annotations that the catalogue of
	// add-ons does not know.
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
