// Package manifest reads declared objects: croft.yaml in its compact form, streams of
// objects as the API server takes them, and both in one file. The result, a Declaration,
// is valid object by object, by the schemas of the kinds, and knows the line of each
// field; package estate decides whether the objects fit together.
//
// It does no I/O: the callers read files.
package manifest
