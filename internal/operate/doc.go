// Package operate contains the processes that write to a cluster: the operator and its
// controllers, the installation, and the only package that applies walls. Metrics and traces
// belong here too.
//
// It may import: declare, rules, observe, network, walls.
package operate
