package gatekeeper

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const install = "install Gatekeeper 3.10 or later (helm upgrade --install gatekeeper gatekeeper/gatekeeper -n gatekeeper-system --create-namespace)"

func checkMutationServed(in Installation) []Finding {
	for _, kind := range []string{"Assign", "ModifySet"} {
		if !slices.Contains(in.Served, schema.GroupVersionKind{Group: "mutations.gatekeeper.sh", Version: "v1", Kind: kind}) {
			return []Finding{{
				Severity: Unsafe, Reason: ReasonMutationNotServed,
				Message: "the API server does not serve mutations.gatekeeper.sh/v1 " + kind + ", which places pods: " + install,
			}}
		}
	}
	return nil
}

func checkTemplatesServed(in Installation) []Finding {
	if slices.Contains(in.Served, schema.GroupVersionKind{Group: "templates.gatekeeper.sh", Version: "v1", Kind: "ConstraintTemplate"}) {
		return nil
	}
	return []Finding{{
		Severity: Unsafe, Reason: ReasonTemplatesNotServed,
		Message: "the API server does not serve templates.gatekeeper.sh/v1 ConstraintTemplate, which contains the rules: " + install,
	}}
}

func checkMutationWebhook(in Installation) []Finding {
	if findMutationWebhook(in.Mutating) != nil {
		return nil
	}
	return []Finding{{
		Severity: Unsafe, Reason: ReasonMutationWebhookMissing,
		Message: "no MutatingWebhookConfiguration has the webhook " + MutationWebhook + ": pods are created as their authors wrote them; enable mutation (chart: --set disableMutation=false)",
	}}
}

func checkValidationWebhook(in Installation) []Finding {
	if findValidationWebhook(in.Validating, ValidationWebhook) != nil {
		return nil
	}
	return []Finding{{
		Severity: Unsafe, Reason: ReasonValidationWebhookMissing,
		Message: "no ValidatingWebhookConfiguration has the webhook " + ValidationWebhook + ": constraints deny nothing; enable validation (chart: --set disableValidatingWebhook=false)",
	}}
}

// checkLabelWebhook is advice only, because croft's own policy protects the label in tenants'
// namespaces.
func checkLabelWebhook(in Installation) []Finding {
	if in.Validating == nil {
		return nil
	}
	w := findValidationWebhook(in.Validating, LabelWebhook)
	if w != nil && (w.FailurePolicy == nil || *w.FailurePolicy == admissionv1.Fail) {
		return nil
	}
	f := Finding{
		Severity: Advice, Reason: ReasonLabelUnguarded, Object: formatValidatingName(in.Validating), Field: "webhooks",
		Message: "has no " + LabelWebhook + ": every user who may label a namespace can exempt it with " + IgnoreLabel + "; restore the webhook, as in the chart",
	}
	if w != nil {
		f.Field = "webhooks[" + LabelWebhook + "].failurePolicy"
		f.Message = "is Ignore: while Gatekeeper is down, every user who may label a namespace can exempt it with " + IgnoreLabel +
			"; set it to Fail (chart: --set validatingWebhookCheckIgnoreFailurePolicy=Fail)"
	}
	return []Finding{f}
}
