// Package wording formats values in messages: the type of a value, lists as in a
// sentence, and the most likely intended name.
package wording
