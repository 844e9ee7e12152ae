// Package multus reads the definitions by which Multus attaches pods to networks. croft writes
// them itself, from secondaryNetworks.
package multus
