package manifest

import structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// These are for the tests that also need an estate, which this package must not import.
const Base = base

var (
	Schemas             = schemas
	Kinds               = kinds
	PlainPath           = normalizePath
	FieldsOf            = listFields
	Expect              = expect
	Examples            = examples
	Unreadable          = unreadable
	InvalidByThemselves = invalidByThemselves
)

// Structure returns the kind's schema.
func (c *compiledSchema) Structure() *structural.Structural { return c.structure }

// Content returns the content of the file.
func (b badInput) Content() string { return b.content }
