// Package rules contains the language in which the walls are written, and its readers: requests
// that a tenant may try, admission policies for the API server and for Gatekeeper, an evaluator
// that needs no cluster, and the catalogue of add-ons.
//
// It may import: declare.
package rules
