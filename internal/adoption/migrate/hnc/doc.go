// Package hnc reads the objects of the Hierarchical Namespace Controller (hnc.x-k8s.io), which copies objects from
// a namespace into its descendants.
package hnc
