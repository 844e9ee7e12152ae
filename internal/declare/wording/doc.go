// Package wording formats values for messages and pages: the type of a value, lists as in a
// sentence, suggestions for unknown names, and text without control characters.
package wording
