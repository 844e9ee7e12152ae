package gatekeeper

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// defaultTimeout is the API server's default, in seconds.
	defaultTimeout = int32(10)
	// leastTimeout, in seconds, is longer than a pause of a busy Gatekeeper, such as a leader
	// election of etcd that its own reads wait for.
	leastTimeout = int32(3)
)

func failsOpen(w webhook, _ Installation) (field, message string) {
	if w.failurePolicy == admissionv1.Fail {
		return "", ""
	}
	what := "pods come in as their authors wrote them, on any node"
	if !w.mutates {
		what = "what constraints forbid comes in"
	}
	return "failurePolicy", fmt.Sprintf("is %s: while Gatekeeper does not answer, %s; set it to Fail %s", w.failurePolicy, what, w.chart("FailurePolicy", "Fail"))
}

func timeoutShort(w webhook, _ Installation) (field, message string) {
	if w.timeoutSeconds >= leastTimeout {
		return "", ""
	}
	what := "refused"
	if w.failurePolicy != admissionv1.Fail {
		what = "let in unseen"
	}
	return "timeoutSeconds", fmt.Sprintf("is %d: what a busy Gatekeeper does not answer for by then is %s; give it %d or more %s",
		w.timeoutSeconds, what, leastTimeout, w.chart("TimeoutSeconds", fmt.Sprint(leastTimeout)))
}

// notReinvoked is advice only. A webhook after Gatekeeper, such as one that injects sidecars,
// may undo a placement, and croft's own check of the final pod then refuses the pod. If
// Gatekeeper is reinvoked, it corrects the pod: its mutators' set and merge are idempotent.
func notReinvoked(w webhook, _ Installation) (field, message string) {
	if !w.mutates || w.reinvocationPolicy == admissionv1.IfNeededReinvocationPolicy {
		return "", ""
	}
	return "reinvocationPolicy", fmt.Sprintf("is %s: a pod that another webhook changes afterwards is refused where it could be put right; set it to IfNeeded %s",
		w.reinvocationPolicy, w.chart("ReinvocationPolicy", "IfNeeded"))
}

func objectsExempt(w webhook, _ Installation) (field, message string) {
	if w.objects == nil || len(w.objects.MatchLabels)+len(w.objects.MatchExpressions) == 0 {
		return "", ""
	}
	return "objectSelector", fmt.Sprintf("selects by labels, which tenants give their objects themselves: those that it leaves out %s; empty it %s",
		w.meaning(), w.chartJSON("ObjectSelector", "{}"))
}

// conditionsUnknown is advice only, since most conditions only exclude requests that do not
// concern Gatekeeper.
func conditionsUnknown(w webhook, _ Installation) (field, message string) {
	if len(w.conditions) == 0 {
		return "", ""
	}
	var names []string
	for _, c := range w.conditions {
		names = append(names, c.Name)
	}
	return "matchConditions", fmt.Sprintf("has %s, which croft cannot judge: requests that they leave out %s; see that none is a tenant's, or drop them %s",
		list(names), w.meaning(), w.chartJSON("MatchConditions", "[]"))
}

func requestsUnseen(w webhook, in Installation) (field, message string) {
	needed := constrained
	if w.mutates {
		needed = mutated
	}
	if unseen := w.unseen(in, needed); len(unseen) > 0 {
		return "rules", fmt.Sprintf("leave out %s: they %s; take the default rules, which are for all resources %s",
			list(unseen), w.meaning(), w.chartJSON("CustomRules", "{}"))
	}
	return "", ""
}

// debugContainersUnseen is advice only: without it, croft's own check refuses a debug
// container that Gatekeeper could have corrected.
func debugContainersUnseen(w webhook, in Installation) (field, message string) {
	if !w.mutates || len(w.unseen(in, debugged)) == 0 {
		return "", ""
	}
	return "rules", "leave out UPDATE of pods/ephemeralcontainers: debug containers with another pull policy than the tenant's are refused where they could be put right; " +
		"add it to the resources (the chart's default mutatingWebhookSubResources has it)"
}

// longest is the maximum number of names in a message.
const longest = 5

// list joins the sorted names, and replaces names beyond longest by their number.
func list(names []string) string {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	rest := ""
	if len(names) > longest {
		rest = fmt.Sprintf(" and %d more", len(names)-longest)
		names = names[:longest]
	}
	return strings.Join(names, ", ") + rest
}
