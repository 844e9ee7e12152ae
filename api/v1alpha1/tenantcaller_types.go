package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// TenantCaller is a consent to connections from another tenant that a team gives itself. The
// tenant's operators create it in a namespace of the tenant, and it allows connections to the
// pods of this namespace only. The Tenant's network.callersFrom lists the tenants that it may
// name.
//
// The connection opens only if the calls of the other tenant name this one, and only as far as
// both agree. The condition Agreed is True while it is open. The operator ignores a
// TenantCaller that is not Accepted.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=croft
// +kubebuilder:printcolumn:name="Caller",type=string,JSONPath=`.spec.tenant`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Agreed",type=string,JSONPath=`.status.conditions[?(@.type=="Agreed")].status`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.spec.until`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Agreed")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",message="metadata.name becomes a part of a policy's name: at most 63 lower-case letters, digits and '-'"
type TenantCaller struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec TenantCallerSpec `json:"spec"`
	// +optional
	Status TenantCallerStatus `json:"status,omitempty"`
}

// TenantCallerSpec is the consent.
type TenantCallerSpec struct {
	// Tenant is the tenant that may connect to the pods of this namespace. It cannot be changed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Label().validate(self).hasValue()",message="must be the name of a tenant, such as billing"
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="cannot be changed: delete the TenantCaller, and create another one"
	// +required
	Tenant string `json:"tenant"`
	// Ports are the ports of this namespace's pods that the other tenant may connect to: 443, a
	// range such as 8000-8010, or either with a protocol, such as 53/UDP. They are the ports on
	// which containers listen, which may differ from a Service's.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:XIntOrString
	// +kubebuilder:validation:items:Pattern=`^[1-9][0-9]{0,4}(-[1-9][0-9]{0,4})?(/(TCP|UDP|SCTP))?$`
	// +listType=set
	// +required
	Ports []intstr.IntOrString `json:"ports"`
	// Pods are labels of the pods that the other tenant may connect to. Defaults to all pods of
	// this namespace.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="must be labels of pods, such as {app: api}"
	// +optional
	Pods map[string]LabelValue `json:"pods,omitempty"`
	// Until is the end of the consent, at which the connections close. Defaults to no end.
	// +optional
	Until ConsentEnd `json:"until,omitempty"`
}

// TenantCallerStatus is the operator's decision about the consent.
type TenantCallerStatus struct {
	Status `json:",inline"`
	// Giver is the UID of the Tenant of the namespace. The operator sets Giver and Receiver
	// once, when both Tenants exist, and opens nothing before. The consent does not pass to
	// later Tenants of the same names.
	// +optional
	Giver string `json:"giver,omitempty"`
	// Receiver is the UID of the Tenant in spec.tenant.
	// +optional
	Receiver string `json:"receiver,omitempty"`
}

// TenantCallerList is a list of TenantCallers.
//
// +kubebuilder:object:root=true
type TenantCallerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []TenantCaller `json:"items"`
}
