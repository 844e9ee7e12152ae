package gatekeeper

import "slices"

// Check returns the deviations from croft's requirements, unsafe ones first.
func Check(in Installation) []Finding {
	var all []Finding
	for _, rule := range ofInstallation {
		all = append(all, rule(in)...)
	}
	for _, w := range webhooksOf(in) {
		for _, r := range ofWebhook {
			if field, message := r.violated(w, in); message != "" {
				all = append(all, Finding{r.severity, r.reason, w.configuration, w.path(field), message})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return rank(a) - rank(b) })
	return all
}

func rank(f Finding) int {
	if f.Severity == Unsafe {
		return 0
	}
	return 1
}

// ofInstallation are the rules on the existence of webhooks, and on Gatekeeper's own
// exemptions.
var ofInstallation = []func(Installation) []Finding{
	mutationServed,
	templatesServed,
	mutationAsked,
	validationAsked,
	labelGuarded,
	nobodyExcluded,
}

// rule is a rule on a webhook. violated returns the field that violates it, and a message.
// The message is empty if the webhook complies.
type rule struct {
	reason   string
	severity Severity
	violated func(webhook, Installation) (field, message string)
}

// ofWebhook are the rules on each of the two webhooks. There is none on side effects:
// admissionregistration v1 requires webhooks without side effects on dry runs.
var ofWebhook = []rule{
	{ReasonFailsOpen, Unsafe, failsOpen},
	{ReasonRequestsUnseen, Unsafe, requestsUnseen},
	{ReasonNamespacesExempt, Unsafe, namespacesExempt},
	{ReasonObjectsExempt, Unsafe, objectsExempt},
	{ReasonConditionsUnknown, Advice, conditionsUnknown},
	{ReasonTimeoutShort, Advice, timeoutShort},
	{ReasonNotReinvoked, Advice, notReinvoked},
	{ReasonDebugContainersUnseen, Advice, debugContainersUnseen},
}
