// Package diagnose contains the answers to questions about a running cluster: why an object fails,
// whether the platform is healthy, how long nodes take to start, and the alerts.
//
// It may import: declare, rules, observe, network, walls, operate, prove, adoption.
package diagnose
