// Package declared reads croft's own API objects, and the objects that croft rendered from
// them.
package declared
