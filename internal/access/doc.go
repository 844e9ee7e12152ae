// Package access contains the ways to log in to a cluster and to reach it: the proxy, `croft
// login`, and the configuration of Dex and Backstage.
//
// It may import: declare, operate.
package access
