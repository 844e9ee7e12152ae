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
		if owner := ReadOwner(&o.Namespaces[i]); owner.Tenant != "" {
			in.Owners = append(in.Owners, ledger.Owner{Namespace: owner.Namespace, Tenant: owner.Tenant, CostCode: owner.CostCode})
		}
	}
	for i := range o.Volumes {
		volume := ReadVolume(&o.Volumes[i])
		volume.Price = prices.FindVolume(volume.Class)
		in.Volumes = append(in.Volumes, volume)
	}
	for i := range o.Services {
		if balancer, is := ReadLoadBalancer(&o.Services[i]); is {
			balancer.Price = prices.FindLoadBalancer()
			in.LoadBalancers = append(in.LoadBalancers, balancer)
		}
	}
	return in
}

// startAt returns the span of an object that still exists.
func startAt(from metav1.Time) ledger.Span { return ledger.Span{From: from.Time} }

// ReadOwner returns the owner of a namespace, from its labels. Its tenant may be empty.
func ReadOwner(n *corev1.Namespace) ledger.Owner {
	return ledger.Owner{Namespace: n.Name, Tenant: n.Labels[v1alpha1.TenantLabel],
		CostCode: n.Labels[v1alpha1.CostCodeLabel], Span: startAt(n.CreationTimestamp)}
}

// ReadLoadBalancer returns the load balancer of a Service, without its price.
func ReadLoadBalancer(s *corev1.Service) (balancer ledger.LoadBalancer, is bool) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return balancer, false
	}
	return ledger.LoadBalancer{Namespace: s.Namespace, Workload: "Service/" + s.Name, Span: startAt(s.CreationTimestamp)}, true
}

// Instance is an instance that costs money, and the capacity that its node gives to pods.
type Instance struct {
	// Name is the name of the node, or NodeClaim/NAME before the node registers.
	Name string
	price.Offering
	// CPU, in thousandths, and Memory, in MiB, are 0 before the node registers.
	CPU, Memory int64
	// From is the launch of the instance.
	From time.Time
}

// ReadInstance returns the instance of a NodeClaim, of a node, or of both. A NodeClaim without an instance
// costs nothing.
func ReadInstance(claim *karpenterv1.NodeClaim, node *corev1.Node) (instance Instance, exists bool) {
	var labels map[string]string
	if claim != nil {
		launched := findLaunch(claim)
		if launched.IsZero() {
			return Instance{}, false
		}
		instance.Name, instance.From, labels = "NodeClaim/"+claim.Name, launched.Time, claim.Labels
	}
	if node != nil {
		instance.Name, labels = node.Name, node.Labels
		instance.CPU = node.Status.Allocatable.Cpu().MilliValue()
		instance.Memory = node.Status.Allocatable.Memory().Value() >> 20
		if claim == nil {
			instance.From = node.CreationTimestamp.Time
		}
	}
	instance.Offering = price.Offering{
		Pool: labels[karpenterv1.NodePoolLabelKey],
		CapacityType: cmp.Or(labels[karpenterv1.CapacityTypeLabelKey],
			nodegroupCapacity[labels["eks.amazonaws.com/capacityType"]]),
		InstanceType: labels[corev1.LabelInstanceTypeStable],
		Zone:         labels[corev1.LabelTopologyZone],
		Region:       labels[corev1.LabelTopologyRegion],
	}
	return instance, true
}

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
		node := byID[claim.Status.ProviderID]
		if node == nil {
			node = byName[claim.Status.NodeName]
		}
		if node != nil && found[node.Name] {
			node = nil
		}
		if instance, exists := ReadInstance(claim, node); exists {
			if node != nil {
				found[node.Name] = true
			}
			all = append(all, instance.toNode(prices, now))
		}
	}
	for i := range o.Nodes {
		if node := &o.Nodes[i]; !found[node.Name] {
			instance, _ := ReadInstance(nil, node)
			all = append(all, instance.toNode(prices, now))
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

func (i Instance) toNode(prices *price.List, now time.Time) ledger.Node {
	return ledger.Node{
		Name: i.Name, Pool: i.Pool, CapacityType: i.CapacityType, InstanceType: i.InstanceType,
		Price: prices.FindInstance(i.Offering), Span: ledger.Span{From: i.From}, Observed: now,
		CPU: i.CPU, Memory: i.Memory,
	}
}

// ReadVolume returns a volume, without its price.
func ReadVolume(v *corev1.PersistentVolume) ledger.Volume {
	volume := ledger.Volume{
		Workload: "PersistentVolume/" + v.Name, Class: v.Spec.StorageClassName,
		Size: roundUp(v.Spec.Capacity.Storage().Value()), Span: startAt(v.CreationTimestamp),
	}
	if claim := v.Spec.ClaimRef; claim != nil && v.Status.Phase == corev1.VolumeBound {
		volume.Namespace, volume.Workload = claim.Namespace, "PersistentVolumeClaim/"+claim.Name
	}
	return volume
}

// roundUp returns bytes in MiB.
func roundUp(bytes int64) int64 { return (max(bytes, 0) + 1<<20 - 1) >> 20 }
