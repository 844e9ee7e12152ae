// Package gatekeeper checks a Gatekeeper installation: whether its settings are safe for
// croft, and whether it enforces a given object. It does not read the cluster itself.
//
// A rule is a function of an Installation. The rules are a list.
package gatekeeper

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of Gatekeeper's webhooks. They are fixed, while the names of the webhook
// configurations can be chosen.
const (
	MutationWebhook   = "mutation.gatekeeper.sh"
	ValidationWebhook = "validation.gatekeeper.sh"
	// LabelWebhook prevents users from exempting namespaces by IgnoreLabel.
	LabelWebhook = "check-ignore-label.gatekeeper.sh"
)

// IgnoreLabel exempts a namespace that has it, with any value.
const IgnoreLabel = "admission.gatekeeper.sh/ignore"

// Installation is the state of a Gatekeeper, and of the namespaces that it must protect.
type Installation struct {
	// Served are the kinds that the API server serves: Gatekeeper's own, and the kinds of
	// add-ons with a constraint of croft, such as the Gateway API. Kinds of add-ons that are
	// not in it are not checked.
	Served []schema.GroupVersionKind
	// Mutating and Validating are Gatekeeper's webhook configurations, or nil.
	Mutating   *admissionv1.MutatingWebhookConfiguration
	Validating *admissionv1.ValidatingWebhookConfiguration
	// Exclusions are the exclusions in Gatekeeper's Config: see ParseExclusions.
	Exclusions []Exclusion
	// Namespaces are the tenants' namespaces.
	Namespaces []Namespace
}

// Namespace is a namespace of a tenant.
type Namespace struct {
	Name   string
	Labels map[string]string
}

// Severity is the importance of a finding.
type Severity string

const (
	// Unsafe settings let requests bypass Gatekeeper although croft depends on it for them.
	Unsafe Severity = "Unsafe"
	// Advice is about settings that let no request bypass Gatekeeper, but that cause
	// unnecessary refusals or should be reviewed.
	Advice Severity = "Advice"
)

// Reasons of findings.
const (
	// ReasonMutationNotServed: the API server does not serve Gatekeeper's mutators.
	ReasonMutationNotServed = "MutationNotServed"
	// ReasonTemplatesNotServed: the API server does not serve Gatekeeper's
	// ConstraintTemplates.
	ReasonTemplatesNotServed = "TemplatesNotServed"
	// ReasonMutationWebhookMissing: no webhook configuration sends requests to Gatekeeper for
	// mutation.
	ReasonMutationWebhookMissing = "MutationWebhookMissing"
	// ReasonValidationWebhookMissing: no webhook configuration sends requests to Gatekeeper
	// for validation.
	ReasonValidationWebhookMissing = "ValidationWebhookMissing"
	// ReasonFailsOpen: requests are allowed while Gatekeeper does not answer.
	ReasonFailsOpen = "FailsOpen"
	// ReasonRequestsUnseen: Gatekeeper does not receive requests for which croft depends on
	// it.
	ReasonRequestsUnseen = "RequestsUnseen"
	// ReasonNamespacesExempt: namespaces of tenants are exempt.
	ReasonNamespacesExempt = "NamespacesExempt"
	// ReasonObjectsExempt: objects are exempt by their labels, which tenants choose.
	ReasonObjectsExempt = "ObjectsExempt"
	// ReasonConditionsUnknown: the webhook has match conditions that croft cannot evaluate.
	ReasonConditionsUnknown = "ConditionsUnknown"
	// ReasonNamespacesExcluded: Gatekeeper receives requests of some namespaces and allows
	// them unchecked.
	ReasonNamespacesExcluded = "NamespacesExcluded"
	// ReasonTimeoutShort: requests time out when Gatekeeper is only slow.
	ReasonTimeoutShort = "TimeoutShort"
	// ReasonNotReinvoked: later changes by other webhooks are not corrected.
	ReasonNotReinvoked = "NotReinvoked"
	// ReasonDebugContainersUnseen: debug containers are not mutated.
	ReasonDebugContainersUnseen = "DebugContainersUnseen"
	// ReasonLabelUnguarded: every user who may label a namespace may exempt it.
	ReasonLabelUnguarded = "LabelUnguarded"
)

// Finding is a deviation from croft's requirements.
type Finding struct {
	Severity Severity
	Reason   string
	// Object is the kind and name of the object to change. It is empty if the object does not
	// exist. Field is the path in it, in which webhooks are identified by their names.
	Object, Field string
	// Message has the fault, its consequence and the remedy, for the object and for the
	// values of Gatekeeper's chart.
	Message string
}

// String returns the object, the field and the message in one line.
func (f Finding) String() string {
	switch {
	case f.Object == "":
		return f.Message
	case f.Field == "":
		return fmt.Sprintf("%s: %s", f.Object, f.Message)
	default:
		return fmt.Sprintf("%s: %s %s", f.Object, f.Field, f.Message)
	}
}

// ConfigName is the name of the only Config that Gatekeeper reads.
const ConfigName = "config"

// ListKinds returns the kinds that Served must cover.
func ListKinds() []schema.GroupKind {
	all := []schema.GroupKind{
		{Group: "mutations.gatekeeper.sh", Kind: "Assign"},
		{Group: "mutations.gatekeeper.sh", Kind: "ModifySet"},
		{Group: "templates.gatekeeper.sh", Kind: "ConstraintTemplate"},
	}
	for _, n := range constrained {
		if n.version == "" {
			all = append(all, schema.GroupKind{Group: n.group, Kind: n.kind})
		}
	}
	return all
}

// FindWebhooks returns Gatekeeper's webhook configurations among a cluster's configurations, or nil.
func FindWebhooks(mutating []admissionv1.MutatingWebhookConfiguration, validating []admissionv1.ValidatingWebhookConfiguration) (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration) {
	var m *admissionv1.MutatingWebhookConfiguration
	var v *admissionv1.ValidatingWebhookConfiguration
	for i := range mutating {
		if findMutationWebhook(&mutating[i]) != nil {
			m = &mutating[i]
		}
	}
	for i := range validating {
		if findValidationWebhook(&validating[i], ValidationWebhook) != nil {
			v = &validating[i]
		}
	}
	return m, v
}
