package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TenantNamespace is a tenant's request for a namespace. The tenant's operators create it
// in a namespace that the Tenant declares. croft creates the namespace of the same name,
// as one of the tenant's, with the same walls and within the tenant's quota. The Tenant's
// selfService limits their number.
//
// It has no spec: the tenant chooses only the name, which begins with the tenant's name
// and a hyphen, and the labels that the Tenant's namespace.choose lists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=croft
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.status.tenant`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="metadata.name is the name of a namespace: at most 63 lower-case letters, digits and '-'"
type TenantNamespace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Status TenantNamespaceStatus `json:"status,omitempty"`
}

// TenantNamespaceStatus is the result of the request.
type TenantNamespaceStatus struct {
	Status `json:",inline"`
	// Tenant is the tenant that the namespace was granted to. It is set once. A granted
	// namespace stays granted when the limit is lowered.
	// +optional
	Tenant string `json:"tenant,omitempty"`
}

// TenantNamespaceList is a list of TenantNamespaces.
//
// +kubebuilder:object:root=true
type TenantNamespaceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantNamespace `json:"items"`
}

// SelfService lets a tenant's operators create namespaces.
type SelfService struct {
	// Namespaces is the maximum number of namespaces that TenantNamespaces add to the
	// declared ones. Defaults to 0. A lower number removes none.
	// +croft:change=kept | granted namespaces stay, also above the new maximum
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`
}
