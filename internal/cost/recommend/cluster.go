package recommend

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/report"
)

// size is an amount of CPU, in thousandths, of memory, in MiB, and a number of pods.
type size struct{ cpu, memory, pods int64 }

func (s size) add(o size) size { return size{s.cpu + o.cpu, s.memory + o.memory, s.pods + o.pods} }

func (s size) subtract(o size) size { return size{s.cpu - o.cpu, s.memory - o.memory, s.pods - o.pods} }

func (s size) fitsInto(o size) bool {
	return s.cpu <= o.cpu && s.memory <= o.memory && s.pods <= o.pods
}

// cluster is the input in the form that the simulation needs.
type cluster struct {
	prices *price.List
	usage  Usage
	// types are the instance types whose size is known, in the order of their names.
	types []*instanceType
	pools []*pool
	// volumes are by their claims.
	volumes map[types.NamespacedName]*corev1.PersistentVolume
	// replicas is the number of running pods of each workload.
	replicas map[string]int
}

// pool is a Pool with its nodes.
type pool struct {
	*v1alpha1.Pool
	// nodes have pods other than daemons, empty ones have none. types are the instance types of nodes.
	nodes, empty []*node
	types        map[string]bool
	// pods are the pods that need a node, all except daemons.
	pods []*pod
	// daemons are the largest requests of the pods that run on each node, by DaemonSet.
	daemons map[string]size
	// changing is the reason why the nodes are about to change, if they are.
	changing string
	missing  map[string]bool
	limits   []string
}

// node is a registered node with a known price.
type node struct {
	object   *corev1.Node
	offering price.Offering
	hourly   money.Amount
	pods     []*pod
}

// pod is a running pod that needs a node.
type pod struct {
	object *corev1.Pod
	name   types.NamespacedName
	tenant string
	// workload is the namespace, kind and name of the controller.
	workload string
	size     size
	// node is the pod's present node.
	node *node
	// apart selects pods that must not be on the same node, and ports are ports of the host.
	apart []podTerm
	ports []string
}

func readCluster(in Input) *cluster {
	c := &cluster{prices: in.Prices, usage: in.Usage, types: readTypes(in), volumes: map[types.NamespacedName]*corev1.PersistentVolume{},
		replicas: map[string]int{}}
	for i := range in.Volumes {
		if claim := in.Volumes[i].Spec.ClaimRef; claim != nil {
			c.volumes[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = &in.Volumes[i]
		}
	}
	byName := map[string]*pool{}
	for i := range in.Pools {
		p := &pool{Pool: &in.Pools[i], types: map[string]bool{}, daemons: map[string]size{}, missing: map[string]bool{}}
		c.pools, byName[p.Name] = append(c.pools, p), p
	}
	slices.SortFunc(c.pools, func(a, b *pool) int { return strings.Compare(a.Name, b.Name) })
	nodes := c.readNodes(in, byName)
	c.readPods(in, nodes, byName)
	for _, n := range nodes {
		p := byName[n.offering.Pool]
		if len(n.pods) == 0 {
			p.empty = append(p.empty, n)
			continue
		}
		p.nodes = append(p.nodes, n)
		p.types[n.offering.InstanceType] = true
	}
	for _, p := range c.pools {
		for _, list := range [][]*node{p.nodes, p.empty} {
			slices.SortFunc(list, func(a, b *node) int { return strings.Compare(a.object.Name, b.object.Name) })
		}
		slices.SortFunc(p.pods, func(a, b *pod) int { return strings.Compare(a.name.String(), b.name.String()) })
	}
	return c
}

// readNodes returns the nodes of Pools by their names.
func (c *cluster) readNodes(in Input, pools map[string]*pool) map[string]*node {
	nodes := map[string]*node{}
	for i := range in.Nodes {
		object := &in.Nodes[i]
		instance, _ := objects.ReadInstance(nil, object)
		p := pools[instance.Pool]
		if p == nil {
			continue
		}
		found := c.prices.FindInstance(instance.Offering)
		if !found.Known {
			p.missing[report.DescribeMissing(&ledger.Row{Key: ledger.Key{Resource: ledger.NodeResource,
				InstanceType: instance.InstanceType, CapacityType: instance.CapacityType}})] = true
		}
		if object.DeletionTimestamp != nil {
			p.changing = fmt.Sprintf("its nodes are changing: node %s is being deleted", object.Name)
		}
		if !p.allows(instance.Offering) {
			p.changing = fmt.Sprintf("its nodes are changing: the Pool does not allow %s instances of type %s, such as node %s",
				instance.CapacityType, instance.InstanceType, object.Name)
		}
		nodes[object.Name] = &node{object: object, offering: instance.Offering, hourly: found.Amount}
	}
	for i := range in.Claims {
		claim := &in.Claims[i]
		p := pools[claim.Labels[karpenterv1.NodePoolLabelKey]]
		if p == nil {
			continue
		}
		if _, launched := objects.ReadInstance(claim, nil); launched && nodes[claim.Status.NodeName] == nil {
			p.changing = fmt.Sprintf("its nodes are changing: the node of NodeClaim %s has not registered", claim.Name)
		}
	}
	return nodes
}

// allows reports whether the Pool's lists have a type and its capacity type. Karpenter replaces other nodes.
func (p *pool) allows(o price.Offering) bool {
	allowed := &p.Spec.Instances
	return (len(allowed.InstanceTypes) == 0 || slices.Contains(allowed.InstanceTypes, o.InstanceType)) &&
		(len(allowed.CapacityTypes) == 0 || slices.Contains(allowed.CapacityTypes, v1alpha1.CapacityType(o.CapacityType)))
}

// readPods adds the running pods to their nodes and pools.
func (c *cluster) readPods(in Input, nodes map[string]*node, pools map[string]*pool) {
	tenants := map[string]string{}
	for i := range in.Namespaces {
		tenants[in.Namespaces[i].Name] = objects.ReadOwner(&in.Namespaces[i]).Tenant
	}
	for i := range in.Pods {
		object := &in.Pods[i]
		read, scheduled := objects.ReadPod(object)
		if !scheduled || object.DeletionTimestamp != nil || object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed {
			continue
		}
		workload := read.Namespace + "/" + read.Workload
		c.replicas[workload]++
		n := nodes[read.Node]
		if n == nil {
			continue
		}
		p, requests := pools[n.offering.Pool], size{read.CPU, read.Memory, 1}
		if isDaemon(object) {
			key := strings.TrimSuffix(workload, "-"+read.Node) // the kubelet adds its node to names of static pods
			p.daemons[key] = size{max(p.daemons[key].cpu, read.CPU), max(p.daemons[key].memory, read.Memory), 1}
			continue
		}
		found := &pod{object: object, name: types.NamespacedName{Namespace: object.Namespace, Name: object.Name},
			tenant: tenants[object.Namespace], workload: workload, size: requests, node: n}
		n.pods, p.pods = append(n.pods, found), append(p.pods, found)
	}
}

// isDaemon reports whether each node has such a pod, so that the pod needs no other node.
func isDaemon(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && (owner.Kind == "DaemonSet" || owner.Kind == "Node")
}

// sumDaemons returns the requests of the daemons of one node.
func (p *pool) sumDaemons() size {
	var sum size
	for _, requests := range p.daemons {
		sum = sum.add(requests)
	}
	return sum
}

// sumHourly returns the cost of the nodes with pods.
func (p *pool) sumHourly() money.Amount {
	var sum money.Amount
	for _, n := range p.nodes {
		sum += n.hourly
	}
	return sum
}
