package gatekeeper

import "slices"

// Check returns the deviations from croft's requirements, unsafe ones first.
func Check(in Installation) []Finding {
	var all []Finding
	for _, rule := range ofInstallation {
		all = append(all, rule(in)...)
	}
	for _, w := range listWebhooks(in) {
		for _, r := range ofWebhook {
			if field, message := r.violated(w, in); message != "" {
				all = append(all, Finding{r.severity, r.reason, w.configuration, w.fieldPath(field), message})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return rankFinding(a) - rankFinding(b) })
	return all
}

func rankFinding(f Finding) int {
	if f.Severity == Unsafe {
		return 0
	}
	return 1
}

// ofInstallation are the rules on the existence of webhooks, and on Gatekeeper's own
// exemptions.
var ofInstallation = []func(Installation) []Finding{
	checkMutationServed,
	checkTemplatesServed,
	checkMutationWebhook,
	checkValidationWebhook,
	checkLabelWebhook,
	checkExclusions,
}

// rule is a rule on a webhook. violated returns the field that violates it, and a message.
// The message is empty if the webhook complies.
type rule struct {
	reason   string
	severity Severity
	violated func(webhook, Installation) (field, message string)
}

// ofWebhook are the rules on each of the two webhooks. Side effects need no rule:
// admissionregistration v1 requires webhooks without side effects on dry runs.
var ofWebhook = []rule{
	{ReasonFailsOpen, Unsafe, checkFailurePolicy},
	{ReasonRequestsUnseen, Unsafe, checkRules},
	{ReasonNamespacesExempt, Unsafe, checkNamespaceSelector},
	{ReasonObjectsExempt, Unsafe, checkObjectSelector},
	{ReasonConditionsUnknown, Advice, checkConditions},
	{ReasonTimeoutShort, Advice, checkTimeout},
	{ReasonNotReinvoked, Advice, checkReinvocation},
	{ReasonDebugContainersUnseen, Advice, checkDebugContainers},
}
