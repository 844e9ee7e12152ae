// Package source is the input of migrate: objects and values files, field by field, with the
// outcome of each field. A field without an outcome is reported as unknown.
package source
