package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TenantNamespace is a tenant's request for a namespace. The tenant's operators create it
// in a namespace that the Tenant declares. croft creates the namespace of the same name,
// as one of the tenant's, with the same walls and within the tenant's quota. The Tenant's
// selfService limits their number.
//
// The tenant chooses the name, which begins with the tenant's name and a hyphen, an end, and
// the labels that the Tenant's namespace.choose lists.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=croft
// +kubebuilder:printcolumn:name="Tenant",type=string,JSONPath=`.status.tenant`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.until`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="metadata.name is the name of a namespace: at most 63 lower-case letters, digits and '-'"
type TenantNamespace struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec TenantNamespaceSpec `json:"spec,omitzero"`
	// +optional
	Status TenantNamespaceStatus `json:"status,omitempty"`
}

// TenantNamespaceSpec is the part of the request that the tenant may change at any time.
type TenantNamespaceSpec struct {
	// Until is the end of the namespace, such as 2026-12-01T00:00:00Z. At that time the
	// operator deletes the namespace with everything in it, and the TenantNamespace. The
	// Tenant's selfService.maxLifetime limits it. Defaults to that limit, or to no end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// TenantNamespaceStatus is the result of the request.
type TenantNamespaceStatus struct {
	Status `json:",inline"`
	// Tenant is the tenant that the namespace was granted to. It is set once. A granted
	// namespace stays granted when the limit is lowered.
	// +optional
	Tenant string `json:"tenant,omitempty"`
	// Until is the end of a granted namespace, by spec.until and the Tenant's
	// selfService.maxLifetime. It is absent if the namespace has no end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
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
	// MaxLifetime is the maximum time from the creation of a TenantNamespace to the end of its
	// namespace, such as 720h: at least 1h. Defaults to no limit. After a change, no namespace
	// ends within 24 hours because of it.
	// +croft:change=deleted with their namespace at its end, after events 24 hours and 1 hour before | namespaces that the team created end at the new limit, at the earliest 24 hours after the change
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="must be at least 1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	// +optional
	MaxLifetime *metav1.Duration `json:"maxLifetime,omitempty"`
}

// GetMaxLifetime returns MaxLifetime, or 0 without a limit.
func (s *SelfService) GetMaxLifetime() time.Duration {
	if s.MaxLifetime == nil {
		return 0
	}
	return s.MaxLifetime.Duration
}
