package collect

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/objects"
	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/cost/timeline"
)

// tracker records objects of the API in a timeline. It does no I/O.
type tracker struct {
	timeline *timeline.Timeline
	prices   *price.List
	claims   map[types.UID]*karpenterv1.NodeClaim
	nodes    map[types.UID]*corev1.Node
	// pods are the UIDs of pods.
	pods map[types.NamespacedName]types.UID
	// pools are the pools of tenants.
	pools map[string][]string
	// started means that all objects have been read.
	started bool
}

func newTracker(t *timeline.Timeline, prices *price.List) *tracker {
	return &tracker{timeline: t, prices: prices, claims: map[types.UID]*karpenterv1.NodeClaim{},
		nodes: map[types.UID]*corev1.Node{}, pods: map[types.NamespacedName]types.UID{}, pools: map[string][]string{}}
}

// finish ends the first read of all objects.
func (t *tracker) finish(now time.Time) {
	t.started = true
	t.updateInstances(now)
	t.updatePools(now)
	t.timeline.Finish()
}

// set records an object. old is its earlier state, or nil.
func (t *tracker) set(old, object any, now time.Time) {
	switch o := object.(type) {
	case *karpenterv1.NodeClaim:
		t.claims[o.UID] = o
		t.updateInstances(now)
	case *corev1.Node:
		t.nodes[o.UID] = o
		if before, ok := old.(*corev1.Node); !ok || !isSameInstance(before, o) {
			t.updateInstances(now)
		}
	case *corev1.Pod:
		t.pods[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = o.UID
		if p, scheduled := objects.ReadPod(o); scheduled {
			facts := timeline.Facts{Namespace: p.Namespace, Workload: p.Workload, Node: p.Node, CPU: p.CPU, Memory: p.Memory}
			t.observe(timeline.Pod, o.UID, facts, p.Span, now)
		}
	case *corev1.PersistentVolume:
		v := objects.ReadVolume(o)
		t.observe(timeline.Volume, o.UID, timeline.Facts{Namespace: v.Namespace, Workload: v.Workload, InstanceType: v.Class,
			Memory: v.Size, Price: t.prices.FindVolume(v.Class)}, v.Span, now)
	case *corev1.Service:
		t.setService(old, o, now)
	case *corev1.Namespace:
		owner := objects.ReadOwner(o)
		t.observe(timeline.Owner, o.UID, timeline.Facts{Namespace: owner.Namespace, Tenant: owner.Tenant,
			CostCode: owner.CostCode}, owner.Span, now)
	case *v1alpha1.Tenant:
		t.pools[o.Name] = o.Spec.Pools
		if o.Spec.Pool != "" {
			t.pools[o.Name] = []string{o.Spec.Pool}
		}
		t.updatePools(now)
	}
}

// remove records the end of an object. unseen means that the end was not observed, but noticed later.
func (t *tracker) remove(object any, unseen bool, now time.Time) {
	end := func(kind timeline.Kind, uid types.UID) {
		if key := (timeline.Key{Kind: kind, UID: string(uid)}); unseen {
			t.timeline.EndUnseen(key, now.Unix())
		} else {
			t.timeline.End(key, now.Unix())
		}
	}
	switch o := object.(type) {
	case *karpenterv1.NodeClaim:
		delete(t.claims, o.UID)
		end(timeline.Node, o.UID)
		t.updateInstances(now)
	case *corev1.Node:
		delete(t.nodes, o.UID)
		end(timeline.Node, o.UID)
		t.updateInstances(now)
	case *corev1.Pod:
		delete(t.pods, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		end(timeline.Pod, o.UID)
	case *corev1.PersistentVolume:
		end(timeline.Volume, o.UID)
	case *corev1.Service:
		end(timeline.LoadBalancer, o.UID)
	case *corev1.Namespace:
		end(timeline.Owner, o.UID)
	case *v1alpha1.Tenant:
		delete(t.pools, o.Name)
		t.updatePools(now)
	}
}

func (t *tracker) observe(kind timeline.Kind, uid types.UID, facts timeline.Facts, span ledger.Span, now time.Time) {
	until := int64(0)
	if !span.Until.IsZero() {
		until = span.Until.Unix()
	}
	t.timeline.Observe(timeline.Key{Kind: kind, UID: string(uid)}, facts, span.From.Unix(), until, now.Unix())
}

// setService records a load balancer. A Service that becomes one is older than its load balancer.
func (t *tracker) setService(old any, s *corev1.Service, now time.Time) {
	balancer, is := objects.ReadLoadBalancer(s)
	if !is {
		t.timeline.End(timeline.Key{Kind: timeline.LoadBalancer, UID: string(s.UID)}, now.Unix())
		return
	}
	if before, ok := old.(*corev1.Service); ok && before.Spec.Type != s.Spec.Type {
		balancer.From = now
	}
	t.observe(timeline.LoadBalancer, s.UID, timeline.Facts{Namespace: balancer.Namespace, Workload: balancer.Workload,
		Price: t.prices.FindLoadBalancer()}, balancer.Span, now)
}

// isSameInstance reports whether two states of a node cost the same. Nodes report their status every few
// minutes.
func isSameInstance(a, b *corev1.Node) bool {
	x, _ := objects.ReadInstance(nil, a)
	y, _ := objects.ReadInstance(nil, b)
	return x == y && a.Spec.ProviderID == b.Spec.ProviderID
}

// updateInstances records all instances. An instance has the UID of its NodeClaim, if it has one. While
// the objects are first read, a node may be known before its NodeClaim, so that nothing is recorded.
func (t *tracker) updateInstances(now time.Time) {
	if !t.started {
		return
	}
	byID, byName := map[string]*corev1.Node{}, map[string]*corev1.Node{}
	for _, node := range t.nodes {
		byName[node.Name] = node
		if id := node.Spec.ProviderID; id != "" {
			byID[id] = node
		}
	}
	claimed := map[types.UID]bool{}
	for _, claim := range slices.SortedFunc(maps.Values(t.claims), compareClaims) {
		node := byID[claim.Status.ProviderID]
		if node == nil {
			node = byName[claim.Status.NodeName]
		}
		if node != nil && claimed[node.UID] {
			node = nil
		}
		if node != nil {
			claimed[node.UID] = true
			// Its instance costs since its launch, as the NodeClaim's.
			t.timeline.Drop(timeline.Key{Kind: timeline.Node, UID: string(node.UID)})
		}
		t.observeInstance(claim.UID, claim, node, now)
	}
	for uid, node := range t.nodes {
		if !claimed[uid] {
			t.observeInstance(uid, nil, node, now)
		}
	}
}

func compareClaims(a, b *karpenterv1.NodeClaim) int { return strings.Compare(a.Name, b.Name) }

func (t *tracker) observeInstance(uid types.UID, claim *karpenterv1.NodeClaim, node *corev1.Node, now time.Time) {
	i, exists := objects.ReadInstance(claim, node)
	if !exists {
		return
	}
	t.observe(timeline.Node, uid, timeline.Facts{Name: i.Name, Pool: i.Pool, CapacityType: i.CapacityType,
		InstanceType: i.InstanceType, Zone: i.Zone, Region: i.Region, CPU: i.CPU, Memory: i.Memory,
		Price: t.prices.FindInstance(i.Offering)}, ledger.Span{From: i.From}, now)
}

// updatePools records the pools that only one tenant is declared to use.
func (t *tracker) updatePools(now time.Time) {
	if !t.started {
		return
	}
	users := map[string][]string{}
	for tenant, pools := range t.pools {
		for _, pool := range pools {
			users[pool] = append(users[pool], tenant)
		}
	}
	for pool, tenants := range users {
		if len(tenants) == 1 {
			t.observe(timeline.Pool, types.UID(pool), timeline.Facts{Pool: pool, Tenant: tenants[0]}, ledger.Span{From: now}, now)
		}
	}
	for _, pool := range t.timeline.ListPools() {
		if len(users[pool]) != 1 {
			t.timeline.End(timeline.Key{Kind: timeline.Pool, UID: pool}, now.Unix())
		}
	}
}

// setPrices applies other prices from now on.
func (t *tracker) setPrices(prices *price.List, now time.Time) {
	t.prices = prices
	t.timeline.Reprice(prices.Currency, func(kind timeline.Kind, f timeline.Facts) price.Price {
		switch kind {
		case timeline.Node:
			return prices.FindInstance(price.Offering{Pool: f.Pool, CapacityType: f.CapacityType, InstanceType: f.InstanceType,
				Zone: f.Zone, Region: f.Region})
		case timeline.Volume:
			return prices.FindVolume(f.InstanceType)
		case timeline.LoadBalancer:
			return prices.FindLoadBalancer()
		default:
			return f.Price
		}
	}, now.Unix())
}
