package admissionpolicy

import "regexp"

// untyped matches warnings of the kube-controller-manager that are caused by fields that may
// be a string or a number, such as the quantities in limits. CEL has no type for them, but
// the API server evaluates the expressions nevertheless.
var untyped = regexp.MustCompile(`undefined field 'limits'|error during formatting: string clause .* was given Pod\d+`)

// IsUntypedWarning reports whether a warning in a policy's status.typeChecking is about a field without
// a type. On every cluster some of croft's policies have such warnings.
func IsUntypedWarning(warning string) bool { return untyped.MatchString(warning) }
