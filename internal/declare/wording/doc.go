// Package wording formats values for messages: the type of a value, lists as in a sentence,
// and suggestions for unknown names.
package wording
