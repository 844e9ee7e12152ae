// Package test contains the control planes and the OpenID provider that tests start, and the
// end-to-end tests of the built binaries. Only tests and programs of hack import it.
//
// It may import: declare.
package test
