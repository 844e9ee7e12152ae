package manifest

import structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

// For the tests that need an estate too, which this package must not import.
const Base = base

var (
	Schemas             = schemas
	Kinds               = kinds
	PlainPath           = plainPath
	FieldsOf            = fieldsOf
	Expect              = expect
	Examples            = examples
	Unreadable          = unreadable
	InvalidByThemselves = invalidByThemselves
)

// Structure is the kind's schema.
func (c *compiled) Structure() *structural.Structural { return c.structure }

// Content is the file.
func (b badInput) Content() string { return b.content }
