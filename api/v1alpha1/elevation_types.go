package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Elevation is one person's request for more rights in a tenant for a limited time, and
// the record of it. It is created in one of the tenant's namespaces and applies to all of
// them. People create it with `croft elevate`.
//
// When it is granted, croft requests a token for a dedicated service account, encrypts it
// for the key in the request, and binds the role to that service account. The API server
// stops accepting the token at the end, whether croft runs or not.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories=croft
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.requestedBy`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="For",type=string,JSONPath=`.spec.duration`
// +kubebuilder:printcolumn:name="Approved by",type=string,JSONPath=`.spec.approvedBy`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Until",type=string,JSONPath=`.status.until`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.spec.reason`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$')",message="metadata.name: at most 40 lower-case letters, digits and '-'"
type Elevation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ElevationSpec `json:"spec"`
	// +optional
	Status ElevationStatus `json:"status,omitempty"`
}

// ElevationSpec is the request and its approval. It is immutable, except that an approver
// adds their name.
//
// +kubebuilder:validation:XValidation:rule="self.requestedBy == oldSelf.requestedBy && self.role == oldSelf.role && self.duration == oldSelf.duration && self.reason == oldSelf.reason && self.publicKey == oldSelf.publicKey",message="a request cannot be changed: create a new one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.approvedBy) || has(self.approvedBy) && self.approvedBy == oldSelf.approvedBy",message="approvedBy cannot be changed: create a new request"
type ElevationSpec struct {
	// RequestedBy is the name of the requesting user, as the API server sees it.
	// Admission refuses any other name, except from the Platform's admins.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +required
	RequestedBy string `json:"requestedBy"`
	// Role is the requested role.
	// +required
	Role ElevationRole `json:"role"`
	// Duration is the time from the grant to the end of the elevation, such as 1h: from
	// 15m up to the Platform's elevation.maxDuration.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="must be between 15m and 24h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	// +required
	Duration metav1.Duration `json:"duration"`
	// Reason is the purpose, for approvers and for readers of the record.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]')",message="write the reason in one line"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="write the reason in one line, without invisible characters, such as zero-width characters or marks of text direction"
	// +required
	Reason string `json:"reason"`
	// PublicKey is the X25519 key, in base64, that croft encrypts the token for (RFC
	// 9180, HKDF-SHA256, AES-128-GCM). `croft elevate` creates one for each request.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9+/]{43}=$`
	// +required
	PublicKey string `json:"publicKey"`
	// ApprovedBy is the name of the user who approved the request. Admission accepts only
	// an approver's own name, and not the requester's.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +optional
	ApprovedBy string `json:"approvedBy,omitempty"`
}

// ElevationRole is a role that people can be elevated to.
//
// +kubebuilder:validation:Enum=operator
type ElevationRole string

// ElevationOperator gives the rights of the role operator, except rights by which access
// could outlive the elevation: writing Roles, RoleBindings and ServiceAccounts, and
// requesting tokens.
const ElevationOperator ElevationRole = "operator"

// ElevationPhase is the state of an elevation.
type ElevationPhase string

// The phases of an elevation.
const (
	// ElevationPending waits for an approval.
	ElevationPending ElevationPhase = "Pending"
	// ElevationActive is granted, and has not ended.
	ElevationActive ElevationPhase = "Active"
	// ElevationEnded was granted, and has ended.
	ElevationEnded ElevationPhase = "Ended"
	// ElevationRefused was not granted: status.message has the reason.
	ElevationRefused ElevationPhase = "Refused"
)

// ElevationStatus is the result of the request.
type ElevationStatus struct {
	Status `json:",inline"`
	// Phase is Pending, Active, Ended or Refused.
	// +optional
	Phase ElevationPhase `json:"phase,omitempty"`
	// Message explains the phase.
	// +optional
	Message string `json:"message,omitempty"`
	// Granted is the time at which the token was issued.
	// +optional
	Granted *metav1.Time `json:"granted,omitempty"`
	// Until is the time at which the API server stops accepting the token.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
	// User is the name that the requester acts as during the elevation, as in audit logs.
	// +optional
	User string `json:"user,omitempty"`
	// Token is the token, encrypted for spec.publicKey. It is removed at the end.
	// +optional
	Token []byte `json:"token,omitempty"`
}

// ElevationList is a list of Elevations.
//
// +kubebuilder:object:root=true
type ElevationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Elevation `json:"items"`
}

// PlatformElevation lets people of tenants request more rights for a limited time.
type PlatformElevation struct {
	// MaxDuration is the maximum duration of an elevation, such as 4h, between 15m and
	// 24h.
	// +croft:change=kept | new elevations; current elevations keep their end. Without `elevation` they end
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(h|m|s))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('15m') && duration(self) <= duration('24h')",message="must be between 15m and 24h"
	// +optional
	MaxDuration metav1.Duration `json:"maxDuration,omitzero"`
	// Approvers are groups, as the API server sees them. One of their members, other than
	// the requester, must approve each request. If empty, requests are granted without
	// approval and only recorded.
	// +croft:change=kept | new elevations; current elevations keep their end. Without `elevation` they end
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('system:')",message="groups that begin with system: belong to Kubernetes: name a group of your identity provider"
	// +kubebuilder:validation:items:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}\\\\x{034F}\\\\x{115F}\\\\x{1160}\\\\x{17B4}\\\\x{17B5}\\\\x{180B}-\\\\x{180F}\\\\x{2800}\\\\x{3164}\\\\x{FE00}-\\\\x{FE0F}\\\\x{FFA0}\\\\x{E0100}-\\\\x{E01EF}]')",message="must not contain invisible characters, such as zero-width characters"
	// +listType=set
	// +optional
	Approvers []string `json:"approvers,omitempty"`
}
