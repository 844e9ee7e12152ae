package admissionpolicy

import "regexp"

// untyped are warnings of the kube-controller-manager that are not about an expression: CEL has
// no type for fields that are a string or a number, such as the quantities in limits. The API
// server evaluates them all the same.
var untyped = regexp.MustCompile(`undefined field 'limits'|error during formatting: string clause .* was given Pod\d+`)

// Untyped reports whether a warning in a policy's status.typeChecking is about a field without
// a type. On every cluster some of croft's policies have such warnings.
func Untyped(warning string) bool { return untyped.MatchString(warning) }
