// Package thresholds has the numbers of objects up to which Kubernetes is tested in one cluster. It does no
// I/O.
package thresholds

import "fmt"

// Threshold is the largest number of objects of a kind with which Kubernetes meets its service level
// objectives in its own tests. It is no limit: with more objects, the control plane becomes slower. A small
// control plane becomes slower earlier.
//
// The numbers are from sig-scalability/configs-and-limits/thresholds.md of
// https://github.com/kubernetes/community, as of August 2026.
type Threshold struct {
	// Kind is a kind of the core API group, and Objects its plural in messages.
	Kind, Objects string
	Count         int
}

// Namespaces is the threshold of the objects that tenants declare.
var Namespaces = Threshold{"Namespace", "namespaces", 10_000}

// Cluster lists the thresholds of a whole cluster.
var Cluster = []Threshold{
	Namespaces, {"Node", "nodes", 5_000}, {"Pod", "pods", 150_000}, {"Service", "services", 10_000},
}

// PodsInNamespace is the threshold of one namespace. The controllers of workloads list all pods of a
// namespace.
var PodsInNamespace = Threshold{"Pod", "pods", 3_000}

// Pools is the largest number of pools with which Karpenter's scheduling was measured, by `make bench-karpenter`
// (docs/reference/benchmarks/karpenter.md). Karpenter publishes no such number.
var Pools = Threshold{"NodePool", "pools", 500}

// IsAbove reports whether a number of objects is above some percent of the threshold.
func (t Threshold) IsAbove(objects, percent int) bool { return objects*100 > t.Count*percent }

// Format returns a number of objects in relation to the threshold: 40 of 10000 namespaces.
func (t Threshold) Format(objects int) string {
	return fmt.Sprintf("%d of %d %s", objects, t.Count, t.Objects)
}
