// Package wording puts values into messages: what a value is, lists as in a sentence, and
// the name that somebody most likely meant.
package wording
