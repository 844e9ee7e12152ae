package v1alpha1

import (
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

// TenantRulesSpec is the input of the admission policies. Each field is text, a number, a
// boolean, a quantity or a list of text: annotations carry nothing else.
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
	// ImagesDigest is Required if references of images need a digest.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	ImagesDigest string `json:"imagesDigest,omitempty"`
	// ImagesLatest is Forbidden if references of images need a digest or a tag other
	// than latest.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	ImagesLatest string `json:"imagesLatest,omitempty"`
	// PriorityClassDefault is the priority class of pods without one.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	PriorityClassDefault string `json:"priorityClassDefault,omitempty"`
	// RuntimeClassForce is the runtime class of all pods.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	RuntimeClassForce string `json:"runtimeClassForce,omitempty"`
	// RuntimeClassDefault is the runtime class of pods without one.
	// +kubebuilder:validation:MaxLength=127
	// +optional
	RuntimeClassDefault string `json:"runtimeClassDefault,omitempty"`
	// Subjects are the subjects that RoleBindings may give roles to, in addition to the
	// service accounts of namespaces: Group:NAME, User:NAME,
	// ServiceAccount:NAMESPACE/NAME, and "*" as a NAME.
	// +kubebuilder:validation:MaxItems=96
	// +kubebuilder:validation:items:MaxLength=340
	// +listType=atomic
	// +required
	Subjects []string `json:"subjects"`

	PolicySettings `json:",inline"`
}

// TenantRulesList is a list of TenantRules.
//
// +kubebuilder:object:root=true
type TenantRulesList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantRules `json:"items"`
}
