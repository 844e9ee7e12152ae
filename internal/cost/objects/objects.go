// Package objects reads the ledger's input from objects of the API: NodeClaims, Nodes, Pods,
// Namespaces, PersistentVolumes and Services. They only show the present: deleted objects are
// missing, and the labels of namespaces are today's. It does no I/O.
package objects

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

// Objects are the objects of a cluster at one time.
type Objects struct {
	Claims     []karpenterv1.NodeClaim
	Nodes      []corev1.Node
	Pods       []corev1.Pod
	Namespaces []corev1.Namespace
	Volumes    []corev1.PersistentVolume
	Services   []corev1.Service
}

// nodegroupCapacity maps the label of EKS managed node groups to Karpenter's capacity types.
var nodegroupCapacity = map[string]string{
	"ON_DEMAND": karpenterv1.CapacityTypeOnDemand, "SPOT": karpenterv1.CapacityTypeSpot,
}

// Build returns the ledger's input at the given time. All pods of a node are known only from then
// on.
func Build(o Objects, prices *price.List, now time.Time) ledger.Input {
	in := ledger.Input{Nodes: buildNodes(o, prices, now)}
	in.Pods = buildPods(o.Pods, in.Nodes)
	for i := range o.Namespaces {
		n := &o.Namespaces[i]
		if tenant := n.Labels[v1alpha1.TenantLabel]; tenant != "" {
			in.Owners = append(in.Owners,
				ledger.Owner{Namespace: n.Name, Tenant: tenant, CostCode: n.Labels[v1alpha1.CostCodeLabel]})
		}
	}
	for i := range o.Volumes {
		in.Volumes = append(in.Volumes, buildVolume(&o.Volumes[i], prices))
	}
	for i := range o.Services {
		s := &o.Services[i]
		if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			in.LoadBalancers = append(in.LoadBalancers, ledger.LoadBalancer{Namespace: s.Namespace,
				Workload: "Service/" + s.Name, Price: prices.FindLoadBalancer(), Span: startAt(s.CreationTimestamp)})
		}
	}
	return in
}

// startAt returns the span of an object that still exists.
func startAt(from metav1.Time) ledger.Span { return ledger.Span{From: from.Time} }

// buildNodes returns the nodes in the order of their names. An instance costs money from its launch
// on, before its node registers. A NodeClaim without an instance costs nothing.
func buildNodes(o Objects, prices *price.List, now time.Time) []ledger.Node {
	byID, byName := map[string]*corev1.Node{}, map[string]*corev1.Node{}
	for i := range o.Nodes {
		byName[o.Nodes[i].Name] = &o.Nodes[i]
		if id := o.Nodes[i].Spec.ProviderID; id != "" {
			byID[id] = &o.Nodes[i]
		}
	}
	var all []ledger.Node
	found := map[string]bool{}
	for i := range o.Claims {
		claim := &o.Claims[i]
		launched := findLaunch(claim)
		if launched.IsZero() {
			continue
		}
		node := byID[claim.Status.ProviderID]
		if node == nil {
			node = byName[claim.Status.NodeName]
		}
		name, labels, allocatable := "NodeClaim/"+claim.Name, claim.Labels, corev1.ResourceList{}
		if node != nil && !found[node.Name] {
			found[node.Name] = true
			name, labels, allocatable = node.Name, node.Labels, node.Status.Allocatable
		}
		all = append(all, buildNode(name, labels, allocatable, launched, prices, now))
	}
	for i := range o.Nodes {
		if node := &o.Nodes[i]; !found[node.Name] {
			all = append(all,
				buildNode(node.Name, node.Labels, node.Status.Allocatable, node.CreationTimestamp, prices, now))
		}
	}
	slices.SortFunc(all, func(a, b ledger.Node) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func findLaunch(claim *karpenterv1.NodeClaim) metav1.Time {
	for _, c := range claim.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeLaunched && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime
		}
	}
	return metav1.Time{}
}

func buildNode(name string, labels map[string]string, allocatable corev1.ResourceList, from metav1.Time,
	prices *price.List, now time.Time) ledger.Node {
	offering := price.Offering{
		Pool: labels[karpenterv1.NodePoolLabelKey],
		CapacityType: cmp.Or(labels[karpenterv1.CapacityTypeLabelKey],
			nodegroupCapacity[labels["eks.amazonaws.com/capacityType"]]),
		InstanceType: labels[corev1.LabelInstanceTypeStable],
		Zone:         labels[corev1.LabelTopologyZone],
		Region:       labels[corev1.LabelTopologyRegion],
	}
	return ledger.Node{
		Name: name, Pool: offering.Pool, CapacityType: offering.CapacityType, InstanceType: offering.InstanceType,
		Price: prices.FindInstance(offering), Span: startAt(from), Observed: now,
		CPU: allocatable.Cpu().MilliValue(), Memory: allocatable.Memory().Value() >> 20,
	}
}

func buildVolume(v *corev1.PersistentVolume, prices *price.List) ledger.Volume {
	volume := ledger.Volume{
		Workload: "PersistentVolume/" + v.Name, Class: v.Spec.StorageClassName,
		Size:  roundUp(v.Spec.Capacity.Storage().Value()),
		Price: prices.FindVolume(v.Spec.StorageClassName), Span: startAt(v.CreationTimestamp),
	}
	if claim := v.Spec.ClaimRef; claim != nil && v.Status.Phase == corev1.VolumeBound {
		volume.Namespace, volume.Workload = claim.Namespace, "PersistentVolumeClaim/"+claim.Name
	}
	return volume
}

// roundUp returns bytes in MiB.
func roundUp(bytes int64) int64 { return (max(bytes, 0) + 1<<20 - 1) >> 20 }
