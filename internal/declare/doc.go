// Package declare contains the declared objects and everything that follows from them without a
// cluster: parsing, defaults, the rules between objects, quota shares, secondary networks, roles,
// the catalogue of add-ons, and the conventions that all of croft shares (kinds, logs, messages,
// the version).
//
// It imports no other group.
package declare
