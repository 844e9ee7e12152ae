// Package manifest reads declared objects: croft.yaml in its compact form, streams of objects
// as the API server accepts them, and both in one file. In the resulting Declaration, each
// object is valid according to the schema of its kind, and each field has a line number.
// Package estate checks whether the objects fit together.
//
// It does no I/O: the callers read files.
package manifest
