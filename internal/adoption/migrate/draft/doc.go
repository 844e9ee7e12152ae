// Package draft is the croft.yaml under construction: every reader adds to one Draft, and finds
// the decisions of earlier readers in it.
package draft
