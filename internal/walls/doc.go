// Package walls contains the four walls as objects: network, nodes, identity and policy, and the
// objects of elevations and of GitOps. Its packages do no I/O.
//
// It may import: declare, rules.
package walls
