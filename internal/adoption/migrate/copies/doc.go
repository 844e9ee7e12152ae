// Package copies writes the objects that other tools copy into tenants' namespaces into the objects of
// croft.yaml.
package copies
