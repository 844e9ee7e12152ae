// Package cost contains the prices of nodes, volumes and load balancers, and the exact division of
// their cost among tenants. Its packages do no I/O.
//
// It may import: declare.
package cost
