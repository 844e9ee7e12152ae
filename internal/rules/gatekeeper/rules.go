package gatekeeper

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/declare/wording"
)

const (
	// defaultTimeout is the API server's default, in seconds.
	defaultTimeout = int32(10)
	// leastTimeout, in seconds, is longer than a pause of a busy Gatekeeper, such as a leader
	// election of etcd that its own reads wait for.
	leastTimeout = int32(3)
)

func checkFailurePolicy(w webhook, _ Installation) (field, message string) {
	if w.failurePolicy == admissionv1.Fail {
		return "", ""
	}
	what := "pods are created as their authors wrote them, on any node"
	if !w.mutates {
		what = "objects that constraints forbid are admitted"
	}
	return "failurePolicy", fmt.Sprintf("is %s: while Gatekeeper does not answer, %s; set it to Fail %s", w.failurePolicy, what, w.formatChartOption("FailurePolicy", "Fail"))
}

func checkTimeout(w webhook, _ Installation) (field, message string) {
	if w.timeoutSeconds >= leastTimeout {
		return "", ""
	}
	what := "refused"
	if w.failurePolicy != admissionv1.Fail {
		what = "admitted unchecked"
	}
	return "timeoutSeconds", fmt.Sprintf("is %d: a request that a busy Gatekeeper does not answer in this time is %s; set it to %d or more %s",
		w.timeoutSeconds, what, leastTimeout, w.formatChartOption("TimeoutSeconds", fmt.Sprint(leastTimeout)))
}

// checkReinvocation is advice only. A webhook after Gatekeeper, such as one that injects sidecars,
// may undo a placement, and croft's own check of the final pod then refuses the pod. If
// Gatekeeper is reinvoked, it corrects the pod: its mutators' set and merge are idempotent.
func checkReinvocation(w webhook, _ Installation) (field, message string) {
	if !w.mutates || w.reinvocationPolicy == admissionv1.IfNeededReinvocationPolicy {
		return "", ""
	}
	return "reinvocationPolicy", fmt.Sprintf("is %s: a pod that another webhook changes afterwards is refused although it could be corrected; set it to IfNeeded %s",
		w.reinvocationPolicy, w.formatChartOption("ReinvocationPolicy", "IfNeeded"))
}

func checkObjectSelector(w webhook, _ Installation) (field, message string) {
	if w.objects == nil || len(w.objects.MatchLabels)+len(w.objects.MatchExpressions) == 0 {
		return "", ""
	}
	return "objectSelector", fmt.Sprintf("selects by labels, which tenants set on their objects: objects that it leaves out %s; empty it %s",
		w.describeEffect(), w.formatChartJSON("ObjectSelector", "{}"))
}

// checkConditions is advice only, since most conditions only exclude requests that do not
// concern Gatekeeper.
func checkConditions(w webhook, _ Installation) (field, message string) {
	if len(w.conditions) == 0 {
		return "", ""
	}
	var names []string
	for _, c := range w.conditions {
		names = append(names, c.Name)
	}
	return "matchConditions", fmt.Sprintf("has %s, which croft cannot evaluate: requests that they leave out %s; make sure that none comes from a tenant, or remove them %s",
		joinNames(names), w.describeEffect(), w.formatChartJSON("MatchConditions", "[]"))
}

func checkRules(w webhook, in Installation) (field, message string) {
	needed := constrained
	if w.mutates {
		needed = mutated
	}
	if unseen := w.findUnmatchedRequests(in, needed); len(unseen) > 0 {
		return "rules", fmt.Sprintf("leave out %s: they %s; take the default rules, which are for all resources %s",
			joinNames(unseen), w.describeEffect(), w.formatChartJSON("CustomRules", "{}"))
	}
	return "", ""
}

// checkDebugContainers is advice only: without it, croft's own check refuses a debug
// container that Gatekeeper could have corrected.
func checkDebugContainers(w webhook, in Installation) (field, message string) {
	if !w.mutates || len(w.findUnmatchedRequests(in, debugged)) == 0 {
		return "", ""
	}
	return "rules", "leave out UPDATE of pods/ephemeralcontainers: debug containers with another pull policy than the tenant's are refused although they could be corrected; " +
		"add it to the resources (the chart's default mutatingWebhookSubResources has it)"
}

// longest is the maximum number of names in a message.
const longest = 5

// joinNames joins the sorted names, and replaces names beyond longest by their number.
func joinNames(names []string) string {
	return wording.FormatFirst(slices.Compact(slices.Sorted(slices.Values(names))), longest)
}
