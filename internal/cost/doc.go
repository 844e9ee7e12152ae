// Package cost contains the cost of tenants: prices of nodes, volumes and load balancers, the exact
// division of their cost, and the ledger, which observes a cluster, stores the cost of each hour, and
// answers users within their rights. Only its packages store, recent, collect, server and service do I/O.
//
// It may import: declare, access, operate.
package cost
