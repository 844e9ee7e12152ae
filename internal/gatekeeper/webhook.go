package gatekeeper

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhook has the common fields of the two kinds of webhooks, with the API server's defaults.
type webhook struct {
	// configuration is the kind and name of the object. value begins the names of the chart's
	// values for it.
	configuration, name, value string
	mutates                    bool

	failurePolicy      admissionv1.FailurePolicyType
	timeoutSeconds     int32
	reinvocationPolicy admissionv1.ReinvocationPolicyType
	exact              bool
	namespaces         *metav1.LabelSelector
	objects            *metav1.LabelSelector
	conditions         []admissionv1.MatchCondition
	rules              []admissionv1.RuleWithOperations
}

// webhooksOf returns the existing webhooks.
func webhooksOf(in Installation) []webhook {
	var all []webhook
	if w := mutation(in.Mutating); w != nil {
		all = append(all, webhook{
			configuration: "MutatingWebhookConfiguration/" + in.Mutating.Name, name: w.Name, value: "mutatingWebhook", mutates: true,
			failurePolicy: or(w.FailurePolicy, admissionv1.Fail), timeoutSeconds: or(w.TimeoutSeconds, defaultTimeout),
			reinvocationPolicy: or(w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy),
			exact:              or(w.MatchPolicy, admissionv1.Equivalent) == admissionv1.Exact,
			namespaces:         w.NamespaceSelector, objects: w.ObjectSelector, conditions: w.MatchConditions, rules: w.Rules,
		})
	}
	if w := validation(in.Validating, ValidationWebhook); w != nil {
		all = append(all, webhook{
			configuration: validatingName(in.Validating), name: w.Name, value: "validatingWebhook",
			failurePolicy: or(w.FailurePolicy, admissionv1.Fail), timeoutSeconds: or(w.TimeoutSeconds, defaultTimeout),
			exact:      or(w.MatchPolicy, admissionv1.Equivalent) == admissionv1.Exact,
			namespaces: w.NamespaceSelector, objects: w.ObjectSelector, conditions: w.MatchConditions, rules: w.Rules,
		})
	}
	return all
}

func mutation(c *admissionv1.MutatingWebhookConfiguration) *admissionv1.MutatingWebhook {
	if c == nil {
		return nil
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == MutationWebhook {
			return &c.Webhooks[i]
		}
	}
	return nil
}

func validation(c *admissionv1.ValidatingWebhookConfiguration, name string) *admissionv1.ValidatingWebhook {
	if c == nil {
		return nil
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].Name == name {
			return &c.Webhooks[i]
		}
	}
	return nil
}

func validatingName(c *admissionv1.ValidatingWebhookConfiguration) string {
	return "ValidatingWebhookConfiguration/" + c.Name
}

// path returns a field's path in the configuration.
func (w webhook) path(field string) string { return fmt.Sprintf("webhooks[%s].%s", w.name, field) }

// chart returns the chart's option for a value.
func (w webhook) chart(value, to string) string {
	return fmt.Sprintf("(chart: --set %s%s=%s)", w.value, value, to)
}

// chartJSON returns the chart's option for a value that is not a word.
func (w webhook) chartJSON(value, to string) string {
	return fmt.Sprintf("(chart: --set-json '%s%s=%s')", w.value, value, to)
}

// meaning returns the consequence for objects that the webhook does not receive. undone
// returns the consequence for objects in a namespace.
func (w webhook) meaning() string {
	if w.mutates {
		return "are not placed"
	}
	return "are not held against the constraints"
}

func (w webhook) undone() string {
	if w.mutates {
		return unplaced
	}
	return unheld
}

func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
