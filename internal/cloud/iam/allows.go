package iam

import (
	"slices"
	"strings"
)

// Request is an API call, as IAM authorizes it.
type Request struct {
	// Action is the service and the operation, such as ec2:RunInstances.
	Action string
	// Resources are the ARNs that the call affects. Each must be allowed. A call without
	// specific resources has none; a statement about all resources allows it.
	Resources []string
	// Context has the condition keys of the call, such as
	// aws:RequestTag/karpenter.sh/nodepool, and their values. A missing key is not set.
	Context map[string][]string
}

// Allows reports whether statements allow a request. It ignores all other policies that IAM
// would evaluate, too.
func Allows(statements []Statement, r Request) bool {
	resources := r.Resources
	if len(resources) == 0 {
		resources = []string{"*"}
	}
	context := map[string][]string{}
	for key, values := range r.Context {
		context[strings.ToLower(key)] = values
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(statements, func(s Statement) bool { return s.allows(r.Action, resource, context) }) {
			return false
		}
	}
	return true
}

func (s *Statement) allows(action, resource string, context map[string][]string) bool {
	return slices.ContainsFunc(s.Actions, func(a string) bool { return matchesPattern(strings.ToLower(a), strings.ToLower(action)) }) &&
		slices.ContainsFunc(s.Resources, func(r string) bool { return matchesARN(r, resource) }) &&
		s.Conditions.areMet(context)
}

// areMet reports whether all conditions are met. The keys of context must be in lower case,
// because IAM compares keys without regard to case.
func (c Conditions) areMet(context map[string][]string) bool {
	for operator, keys := range c {
		for key, patterns := range keys {
			values, ok := context[strings.ToLower(key)]
			if !evaluateCondition(operator, patterns, values, ok) {
				return false
			}
		}
	}
	return true
}

// evaluateCondition evaluates one condition. A condition with an unknown operator is never met.
func evaluateCondition(operator string, patterns, values []string, exists bool) bool {
	set, name, ofSet := strings.Cut(operator, ":")
	if !ofSet {
		set, name = "", operator
	}
	name, ifExists := strings.CutSuffix(name, "IfExists")
	if name == "Null" {
		return !ofSet && !ifExists && slices.Contains(patterns, formatBool(!exists))
	}
	compare, ok := comparisons[name]
	if !ok {
		return false
	}
	among := func(value string) bool {
		return slices.ContainsFunc(patterns, func(w string) bool { return compare(w, value) })
	}
	switch {
	case set == "ForAllValues":
		return !slices.ContainsFunc(values, func(v string) bool { return !among(v) })
	case !exists && ifExists:
		return true
	case set == "ForAnyValue":
		return slices.ContainsFunc(values, among)
	case set != "":
		return false
	default: // a single value only
		return len(values) == 1 && among(values[0])
	}
}

// comparisons are the operators. They compare the value in a condition with the value in a
// request.
var comparisons = map[string]func(pattern, value string) bool{
	"StringEquals": func(w, v string) bool { return w == v },
	"StringLike":   matchesPattern,
	"ArnEquals":    matchesARN,
	"ArnLike":      matchesARN,
	"Bool":         strings.EqualFold,
}

func formatBool(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
