package iam

import (
	"slices"
	"strings"
)

// Request is a call of an API as it is authorized.
type Request struct {
	// Action is the service and what is asked of it, such as ec2:RunInstances.
	Action string
	// Resources are the ARNs that it is about. Each must be allowed. A call that is
	// about none in particular has none, and is allowed by a statement about all.
	Resources []string
	// Context are what is known of the call, by key, such as
	// aws:RequestTag/karpenter.sh/nodepool. A key that is not there is not known.
	Context map[string][]string
}

// Allows says whether statements allow a request, as IAM would decide if no other
// policy had a say in it.
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
	return slices.ContainsFunc(s.Actions, func(a string) bool { return matches(strings.ToLower(a), strings.ToLower(action)) }) &&
		slices.ContainsFunc(s.Resources, func(r string) bool { return matchesARN(r, resource) }) &&
		s.Conditions.hold(context)
}

// hold says whether every key of every operator has what it wants. The keys of the
// context are in lower case, since case means nothing to keys.
func (c Conditions) hold(context map[string][]string) bool {
	for operator, keys := range c {
		for key, wanted := range keys {
			values, known := context[strings.ToLower(key)]
			if !holds(operator, wanted, values, known) {
				return false
			}
		}
	}
	return true
}

// holds decides one condition. An operator that is not known here never holds.
func holds(operator string, wanted, values []string, known bool) bool {
	set, name, ofSet := strings.Cut(operator, ":")
	if !ofSet {
		set, name = "", operator
	}
	name, ifExists := strings.CutSuffix(name, "IfExists")
	if name == "Null" {
		return !ofSet && !ifExists && slices.Contains(wanted, boolean(!known))
	}
	compare, ok := comparisons[name]
	if !ok {
		return false
	}
	among := func(value string) bool {
		return slices.ContainsFunc(wanted, func(w string) bool { return compare(w, value) })
	}
	switch {
	case set == "ForAllValues":
		return !slices.ContainsFunc(values, func(v string) bool { return !among(v) })
	case !known && ifExists:
		return true
	case set == "ForAnyValue":
		return slices.ContainsFunc(values, among)
	case set != "":
		return false
	default: // of one value alone
		return len(values) == 1 && among(values[0])
	}
}

// comparisons are the operators, with what is wanted before what is there.
var comparisons = map[string]func(wanted, value string) bool{
	"StringEquals": func(w, v string) bool { return w == v },
	"StringLike":   matches,
	"ArnEquals":    matchesARN,
	"ArnLike":      matchesARN,
	"Bool":         strings.EqualFold,
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}
