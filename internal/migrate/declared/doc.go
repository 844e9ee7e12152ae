// Package declared reads objects that are declared to croft already, and objects that
// croft rendered from them.
package declared
