// Package cloud contains the resources of cloud providers' accounts that an estate needs.
//
// It may import: declare, network, diagnose.
package cloud
