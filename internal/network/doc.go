// Package network contains secondary networks on nodes: the plan of interfaces and reservations,
// the agent that configures a node, and the logs of a node's boot.
//
// It may import: declare.
package network
