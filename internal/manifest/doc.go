// Package manifest reads what people declare: croft.yaml in its compact form, streams of
// objects as the API server takes them, and both in one file. What it returns, a
// Declaration, is valid object by object, by the schemas of the kinds, and knows the line
// that each field was written on; whether the objects fit one another, package estate
// decides.
//
// It does no I/O: the callers read files.
package manifest
