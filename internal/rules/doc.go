// Package rules contains the language in which the walls are written, and its readers: requests
// that a tenant may try, admission policies for the API server and for Gatekeeper, and an evaluator
// that needs no cluster.
//
// It may import: declare.
package rules
