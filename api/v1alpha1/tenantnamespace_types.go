package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TenantNamespace is a namespace that a tenant asks for itself. Its operators create it in
// a namespace that the Tenant declares; croft creates the namespace of the same name as one
// of the tenant's, behind the same walls and within the tenant's quota. The Tenant's
// selfService limits how many there are.
//
// It has no specification: nothing of the namespace is the tenant's to choose but its name,
// which begins with the tenant's name and a hyphen.
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

// TenantNamespaceStatus is what became of the request.
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

// SelfService is what a tenant's operators may make for the tenant themselves.
type SelfService struct {
	// Namespaces is how many namespaces the tenant may have beside those that it
	// declares, by TenantNamespaces; none by default. A lower number takes none away.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=63
	// +optional
	Namespaces int32 `json:"namespaces,omitempty"`
}
