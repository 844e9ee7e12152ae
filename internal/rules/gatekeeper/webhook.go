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

// listWebhooks returns the existing webhooks.
func listWebhooks(in Installation) []webhook {
	var all []webhook
	if w := findMutationWebhook(in.Mutating); w != nil {
		all = append(all, webhook{
			configuration: "MutatingWebhookConfiguration/" + in.Mutating.Name, name: w.Name, value: "mutatingWebhook", mutates: true,
			failurePolicy: valueOrDefault(w.FailurePolicy, admissionv1.Fail), timeoutSeconds: valueOrDefault(w.TimeoutSeconds, defaultTimeout),
			reinvocationPolicy: valueOrDefault(w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy),
			exact:              valueOrDefault(w.MatchPolicy, admissionv1.Equivalent) == admissionv1.Exact,
			namespaces:         w.NamespaceSelector, objects: w.ObjectSelector, conditions: w.MatchConditions, rules: w.Rules,
		})
	}
	if w := findValidationWebhook(in.Validating, ValidationWebhook); w != nil {
		all = append(all, webhook{
			configuration: formatValidatingName(in.Validating), name: w.Name, value: "validatingWebhook",
			failurePolicy: valueOrDefault(w.FailurePolicy, admissionv1.Fail), timeoutSeconds: valueOrDefault(w.TimeoutSeconds, defaultTimeout),
			exact:      valueOrDefault(w.MatchPolicy, admissionv1.Equivalent) == admissionv1.Exact,
			namespaces: w.NamespaceSelector, objects: w.ObjectSelector, conditions: w.MatchConditions, rules: w.Rules,
		})
	}
	return all
}

func findMutationWebhook(c *admissionv1.MutatingWebhookConfiguration) *admissionv1.MutatingWebhook {
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

func findValidationWebhook(c *admissionv1.ValidatingWebhookConfiguration, name string) *admissionv1.ValidatingWebhook {
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

func formatValidatingName(c *admissionv1.ValidatingWebhookConfiguration) string {
	return "ValidatingWebhookConfiguration/" + c.Name
}

// fieldPath returns a field's path in the configuration.
func (w webhook) fieldPath(field string) string { return fmt.Sprintf("webhooks[%s].%s", w.name, field) }

// formatChartOption returns the chart's option for a value.
func (w webhook) formatChartOption(value, to string) string {
	return fmt.Sprintf("(chart: --set %s%s=%s)", w.value, value, to)
}

// formatChartJSON returns the chart's option for a value that is not a word.
func (w webhook) formatChartJSON(value, to string) string {
	return fmt.Sprintf("(chart: --set-json '%s%s=%s')", w.value, value, to)
}

// describeEffect returns the consequence for objects that the webhook does not receive. undone
// returns the consequence for objects in a namespace.
func (w webhook) describeEffect() string {
	if w.mutates {
		return "are not placed"
	}
	return "are not checked against the constraints"
}

func (w webhook) describeNamespaceEffect() string {
	if w.mutates {
		return unplaced
	}
	return unheld
}

func valueOrDefault[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}
