// Package gatekeeper judges a Gatekeeper installation: whether its settings are safe
// for croft, and whether it enforces one of its objects. It reads nothing itself.
//
// A rule is a plain function of an Installation; the rules are a list.
package gatekeeper

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The names of Gatekeeper's webhooks. The names of their configurations can be chosen;
// these cannot.
const (
	MutationWebhook   = "mutation.gatekeeper.sh"
	ValidationWebhook = "validation.gatekeeper.sh"
	// LabelWebhook keeps people from exempting namespaces by IgnoreLabel.
	LabelWebhook = "check-ignore-label.gatekeeper.sh"
)

// IgnoreLabel exempts the namespace that has it, with any value.
const IgnoreLabel = "admission.gatekeeper.sh/ignore"

// Installation is the state of a Gatekeeper, and of the namespaces that it must guard.
type Installation struct {
	// Served are the kinds that the API server serves: Gatekeeper's own, and those
	// of add-ons, such as the Gateway API, whose objects croft constrains. What of
	// an add-on is not in it is not asked for.
	Served []schema.GroupVersionKind
	// Mutating and Validating are its webhook configurations, nil if absent.
	Mutating   *admissionv1.MutatingWebhookConfiguration
	Validating *admissionv1.ValidatingWebhookConfiguration
	// Exclusions are those of its Config; see ExclusionsOf.
	Exclusions []Exclusion
	// Namespaces are the tenants'.
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
	// Unsafe settings let requests bypass Gatekeeper that croft relies on it to judge.
	Unsafe Severity = "Unsafe"
	// Advice is on settings that let nothing bypass it, but refuse people without need,
	// or that a person should review.
	Advice Severity = "Advice"
)

// Reasons of findings.
const (
	// ReasonMutationNotServed: the API server does not serve Gatekeeper's mutators.
	ReasonMutationNotServed = "MutationNotServed"
	// ReasonTemplatesNotServed: it does not serve its ConstraintTemplates.
	ReasonTemplatesNotServed = "TemplatesNotServed"
	// ReasonMutationWebhookMissing: the API server is not told to ask for mutation.
	ReasonMutationWebhookMissing = "MutationWebhookMissing"
	// ReasonValidationWebhookMissing: it is not told to ask for validation.
	ReasonValidationWebhookMissing = "ValidationWebhookMissing"
	// ReasonFailsOpen: what Gatekeeper does not answer for comes in.
	ReasonFailsOpen = "FailsOpen"
	// ReasonRequestsUnseen: requests that croft gives it to hold are not sent to it.
	ReasonRequestsUnseen = "RequestsUnseen"
	// ReasonNamespacesExempt: namespaces of tenants are exempt.
	ReasonNamespacesExempt = "NamespacesExempt"
	// ReasonObjectsExempt: objects are left out by labels, which tenants choose.
	ReasonObjectsExempt = "ObjectsExempt"
	// ReasonConditionsUnknown: there are conditions that croft cannot judge.
	ReasonConditionsUnknown = "ConditionsUnknown"
	// ReasonNamespacesExcluded: Gatekeeper is sent requests and lets them through.
	ReasonNamespacesExcluded = "NamespacesExcluded"
	// ReasonTimeoutShort: a Gatekeeper that is only slow counts as away.
	ReasonTimeoutShort = "TimeoutShort"
	// ReasonNotReinvoked: later changes by other webhooks are not corrected.
	ReasonNotReinvoked = "NotReinvoked"
	// ReasonDebugContainersUnseen: debug containers are not mutated.
	ReasonDebugContainersUnseen = "DebugContainersUnseen"
	// ReasonLabelUnguarded: every user who may label a namespace may exempt it.
	ReasonLabelUnguarded = "LabelUnguarded"
)

// Finding is one thing that is not as croft needs it.
type Finding struct {
	Severity Severity
	Reason   string
	// Object is the kind and name of the object to change, empty if it does not exist.
	// Field is the path in it; webhooks are identified by their names.
	Object, Field string
	// Message is the fault, its consequence, and the remedy, in the object and in the
	// values of Gatekeeper's chart.
	Message string
}

// String says where and what in one line.
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

// ConfigName is the name of the only Config that Gatekeeper looks at.
const ConfigName = "config"

// Kinds are the kinds in Served.
func Kinds() []schema.GroupKind {
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

// Webhooks picks Gatekeeper's among the configurations of a cluster; nil where
// there is none.
func Webhooks(mutating []admissionv1.MutatingWebhookConfiguration, validating []admissionv1.ValidatingWebhookConfiguration) (*admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration) {
	var m *admissionv1.MutatingWebhookConfiguration
	var v *admissionv1.ValidatingWebhookConfiguration
	for i := range mutating {
		if mutation(&mutating[i]) != nil {
			m = &mutating[i]
		}
	}
	for i := range validating {
		if validation(&validating[i], ValidationWebhook) != nil {
			v = &validating[i]
		}
	}
	return m, v
}
