package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Enforcement is the report of Gatekeeper's pods about a mutator, a ConstraintTemplate or a
// constraint.
//
// It is incomplete. A pod that has not reported yet is missing, and the object does not
// record the number of pods: compare Webhooks with the number of pods behind Gatekeeper's
// Service. A template also does not report CEL that fails to compile: such a template denies
// every request.
type Enforcement struct {
	// Webhooks are the pods that serve the relevant webhook and have reported. Other pods,
	// such as the audit's, are ignored.
	Webhooks []string
	// Message explains why not all of them enforce the object. It is empty if they all do.
	Message string
}

// IsEnforced reports whether at least one pod has reported, and all of them enforce the current
// version of the object.
func (e Enforcement) IsEnforced() bool { return e.Message == "" }

// podStatus has the common fields of the three kinds of status.byPod.
type podStatus struct {
	ID                 string    `json:"id"`
	MutatorUID         types.UID `json:"mutatorUID"`
	ConstraintUID      types.UID `json:"constraintUID"`
	TemplateUID        types.UID `json:"templateUID"`
	Operations         []string  `json:"operations"`
	Enforced           bool      `json:"enforced"`
	ObservedGeneration int64     `json:"observedGeneration"`
	Errors             []struct {
		Type    string `json:"type"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// ReadEnforcement reads the status of a Gatekeeper object.
func ReadEnforcement(object *unstructured.Unstructured) Enforcement {
	var read struct {
		Status struct {
			ByPod []podStatus `json:"byPod"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &read); err != nil {
		return Enforcement{Message: fmt.Sprintf("%s: its status cannot be read: %v", formatName(object), err)}
	}
	var e Enforcement
	var wrong []string
	for _, pod := range read.Status.ByPod {
		if !pod.servesWebhook(object) {
			continue
		}
		e.Webhooks = append(e.Webhooks, pod.ID)
		if why := pod.explainNotEnforced(object); why != "" {
			wrong = append(wrong, pod.ID+" "+why)
		}
	}
	switch {
	case len(e.Webhooks) == 0:
		e.Message = formatName(object) + ": no pod of Gatekeeper that answers the webhook has reported it yet"
	case len(wrong) > 0:
		e.Message = fmt.Sprintf("%s: of %d pods of Gatekeeper that have reported it, %s", formatName(object), len(e.Webhooks), strings.Join(wrong, "; "))
	}
	return e
}

// isMutator distinguishes mutators from validating objects.
func isMutator(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == "mutations.gatekeeper.sh"
}

func isTemplate(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().Group == "templates.gatekeeper.sh"
}

// servesWebhook reports whether the pod serves the webhook for objects of this kind. A pod that
// does not list its operations is assumed to serve all.
func (p podStatus) servesWebhook(object *unstructured.Unstructured) bool {
	operation := "webhook"
	if isMutator(object) {
		operation = "mutation-webhook"
	}
	return len(p.Operations) == 0 || slices.Contains(p.Operations, operation)
}

// explainNotEnforced returns the reason why the pod does not enforce the object, or "". Errors come first:
// after an error, Gatekeeper does not update the observed generation.
func (p podStatus) explainNotEnforced(object *unstructured.Unstructured) string {
	switch {
	case !slices.Contains([]types.UID{"", object.GetUID()}, p.uid()):
		return "reports an earlier object of this name"
	case len(p.Errors) > 0 && (isTemplate(object) || !p.Enforced):
		// The errors of an enforced constraint have another cause: Gatekeeper generated no
		// admission policy of the API server from it.
		return "reports: " + p.formatErrors()
	case p.ObservedGeneration != object.GetGeneration():
		return fmt.Sprintf("has observed generation %d, and not yet %d", p.ObservedGeneration, object.GetGeneration())
	case !p.Enforced && !isTemplate(object):
		return "does not enforce it yet"
	default:
		return ""
	}
}

// uid returns the UID of the object that the pod reports on.
func (p podStatus) uid() types.UID { return p.MutatorUID + p.ConstraintUID + p.TemplateUID }

func (p podStatus) formatErrors() string {
	var all []string
	for _, e := range p.Errors {
		text := e.Message
		if kind := e.Type + e.Code; kind != "" {
			text = kind + ": " + text
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func formatName(object *unstructured.Unstructured) string {
	return object.GetKind() + "/" + object.GetName()
}
