// Package draft is croft.yaml as it comes about while objects are read: every reader adds to
// one Draft, and finds in it what those before it have decided.
package draft
