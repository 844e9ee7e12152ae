package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Caller is this tenant's consent to connections from another tenant. They open if the calls
// of the other tenant name this one.
type Caller struct {
	// Ports are the ports of this tenant's pods that the other tenant may connect to. They
	// are the ports on which containers listen, which may differ from a Service's.
	// +required
	Ports ConsentPorts `json:"ports"`
	// Pods are labels of the pods of this tenant that the other may connect to. Defaults to
	// all of this tenant's pods.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="must be labels of pods, such as {app: api}"
	// +optional
	Pods map[string]LabelValue `json:"pods,omitempty"`
	// Services are Services of this tenant to which routes of the other tenant may send
	// requests, on all ports of the Service: NAME in the tenant's first namespace, or
	// NAMESPACE/NAME. Defaults to none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Services []ConsentReference `json:"services,omitempty"`
	// Gateways are Gateways of this tenant to which routes and ListenerSets of the other
	// tenant may attach: NAME in the tenant's first namespace, or NAMESPACE/NAME. The Gateway
	// has to allow them, too, by a selector for a label of croft. Defaults to none.
	// +kubebuilder:validation:MaxItems=8
	// +listType=set
	// +optional
	Gateways []ConsentReference `json:"gateways,omitempty"`
	// Until is the end of the consent, at which the connections close. Defaults to no end.
	// +optional
	Until ConsentEnd `json:"until,omitempty"`
}

// Call is this tenant's consent to connections to another tenant. They open if the callers of
// the other tenant name this one.
type Call struct {
	// Ports narrow the ports that the other tenant names. Defaults to all of them.
	// +optional
	Ports ConsentPorts `json:"ports,omitempty"`
	// Pods are labels of the pods of this tenant that may connect. Defaults to all of this
	// tenant's pods.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && !format.qualifiedName().validate(k).hasValue())",message="must be labels of pods, such as {app: api}"
	// +optional
	Pods map[string]LabelValue `json:"pods,omitempty"`
	// Until is the end of the consent, at which the connections close. Defaults to no end.
	// +optional
	Until ConsentEnd `json:"until,omitempty"`
}

// ConsentPorts are ports: 443, a range such as 8000-8010, or either with a protocol, such as
// 53/UDP. The protocol is TCP, UDP or SCTP, and defaults to TCP.
//
// +kubebuilder:validation:MinItems=1
// +kubebuilder:validation:MaxItems=16
// +listType=set
type ConsentPorts []intstr.IntOrString

// ConsentReference names an object of a tenant: NAME in its first namespace, or NAMESPACE/NAME.
//
// +kubebuilder:validation:MaxLength=127
// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?/)?[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be NAME or NAMESPACE/NAME, such as api or shop-test/api"
type ConsentReference string

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="!format.labelValue().validate(self).hasValue()",message="must be the value of a label, such as api"
type LabelValue string

// ConsentEnd is a day, such as 2027-01-31, whose end in UTC is meant, or a time, such as
// 2027-01-31T18:00:00Z.
//
// +kubebuilder:validation:MaxLength=25
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[-+][0-9]{2}:[0-9]{2}))?$') && !format.date().validate(self.substring(0, 10)).hasValue() && (size(self) == 10 || !format.datetime().validate(self).hasValue())",message="must be a day, such as 2027-01-31, or a time, such as 2027-01-31T18:00:00Z"
type ConsentEnd string

// Time returns the time at which the consent ends, or the zero time if it has no end. A value
// that is no time is an end in the past, so that nothing stays open because of it.
func (e ConsentEnd) Time() time.Time {
	if e == "" {
		return time.Time{}
	}
	if day, err := time.Parse(time.DateOnly, string(e)); err == nil {
		return day.AddDate(0, 0, 1)
	}
	if at, err := time.Parse(time.RFC3339, string(e)); err == nil {
		return at.UTC()
	}
	return time.Unix(0, 0).UTC()
}
