package manifest

import structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// These are for the tests that also need an estate, which this package must not import.
const Base = base

var (
	Schemas             = schemas
	Kinds               = kinds
	PlainPath           = normalizePath
	FieldsOf            = listFields
	Expect              = expectProblems
	Examples            = readExamples
	Unreadable          = listUnreadableFiles
	InvalidByThemselves = invalidByThemselves
)

// GetStructure returns the kind's schema.
func (c *compiledSchema) GetStructure() *structural.Structural { return c.structure }

// GetContent returns the content of the file.
func (b badInput) GetContent() string { return b.content }
