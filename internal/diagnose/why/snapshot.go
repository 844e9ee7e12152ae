package why

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/events"
)

// Snapshot contains the objects about one Target. Kinds that the caller may not read are in
// Hidden. All other missing objects do not exist.
type Snapshot struct {
	Target Target
	// Object is the Target itself.
	Object client.Object
	// Around contains further objects about a Target that is neither a pod, a workload nor
	// a node.
	Around Around
	// Key is the label and taint key that assigns nodes to pools.
	Key string
	// Rules are the TenantRules of the namespace; nil if it belongs to no tenant.
	Rules *v1alpha1.TenantRules
	// Makers create the pods of a workload. For a Deployment they are the ReplicaSets of
	// its current revision.
	Makers []Maker
	// Pods contains the Target, the workload's pods, or the pods on the node.
	Pods []corev1.Pod
	// Events are the events about all objects in the Snapshot.
	Events []corev1.Event
	// Pools are the NodePools that the pods may run on, and Classes their node classes by
	// the NodePool's name.
	Pools   []karpenterv1.NodePool
	Classes map[string]*unstructured.Unstructured
	Claims  []karpenterv1.NodeClaim
	// Unlaunched are NodeClaims of any pool without an instance. While one exists,
	// Karpenter decides about no other node (state.Cluster.Synced in v1.14).
	Unlaunched []karpenterv1.NodeClaim
	Nodes      []corev1.Node
	Budgets    []policyv1.PodDisruptionBudget
	// Repellents are pods whose anti-affinity keeps one of Pods away.
	Repellents []corev1.Pod
	// Neighbours are the numbers of other tenants' pods that wait for the same pool, by namespace. Tenants
	// maps namespaces to their tenants, for callers who may read NodePools.
	Neighbours map[string]int
	Tenants    map[string]string
	// Quotas are croft's ResourceQuotas by namespace, in all of the tenant's namespaces.
	// They are read only if the quota refused an object. Minimums are the Tenant's minimums
	// by namespace.
	Quotas   map[string]corev1.ResourceQuota
	Minimums map[string]corev1.ResourceList
	// Networks are the SecondaryNetworks, if a pod waits for an address.
	Networks []v1alpha1.SecondaryNetwork
	// Hidden are kinds that the caller may not read.
	Hidden []string
}

// Maker is a creator of pods, with its kind as in events about it.
type Maker struct{ Kind, Name string }

func (s *Snapshot) isHidden(kind string) bool { return slices.Contains(s.Hidden, kind) }

// selectedPool returns the pool that a pod selects.
func (s *Snapshot) selectedPool(pod *corev1.Pod) string { return pod.Spec.NodeSelector[s.Key] }

// toleratesPool reports whether the pod may run on the pool's nodes.
func (s *Snapshot) toleratesPool(pod *corev1.Pod, pool string) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == s.Key || t.Key == "" && t.Operator == corev1.TolerationOpExists) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == pool)
	})
}

func (s *Snapshot) findPool(name string) *karpenterv1.NodePool {
	return findFirst(s.Pools, func(p *karpenterv1.NodePool) bool { return p.Name == name })
}

func (s *Snapshot) findNode(name string) *corev1.Node {
	return findFirst(s.Nodes, func(n *corev1.Node) bool { return n.Name == name })
}

// findClaim returns the NodeClaim of a node.
func (s *Snapshot) findClaim(node string) *karpenterv1.NodeClaim {
	return findFirst(s.Claims, func(c *karpenterv1.NodeClaim) bool { return c.Status.NodeName == node })
}

func findFirst[T any](all []T, matches func(*T) bool) *T {
	for i := range all {
		if matches(&all[i]) {
			return &all[i]
		}
	}
	return nil
}

// controllers maps kinds that create pods to the component name in their controllers'
// events.
var controllers = map[string]string{
	"ReplicaSet": "replicaset-controller", "ReplicationController": "replication-controller", "StatefulSet": "statefulset-controller",
	"DaemonSet": "daemonset-controller", "Job": "job-controller", "CronJob": "cronjob-controller",
}

// findEvents returns the events about an object by these components, the newest first. Events of
// other components are not trusted: any user of a namespace may write them.
func (s *Snapshot) findEvents(kind, name string, components ...string) []corev1.Event {
	return slices.DeleteFunc(s.findUnprovenEvents(kind, name), func(e corev1.Event) bool { return !events.IsWrittenBy(&e, components...) })
}

// findUnprovenEvents returns the events about an object by any component, the newest first.
func (s *Snapshot) findUnprovenEvents(kind, name string) []corev1.Event {
	var all []corev1.Event
	for _, e := range s.Events {
		if strings.EqualFold(e.InvolvedObject.Kind, kind) && e.InvolvedObject.Name == name {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b corev1.Event) int { return events.LastObserved(&b).Compare(events.LastObserved(&a)) })
	return all
}
