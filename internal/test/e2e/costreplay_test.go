package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/test/sandbox"
)

// history are the events of a cluster's objects, from plain watches.
type history struct {
	mu     sync.Mutex
	events []event
	// live are the objects that exist.
	live map[string]client.Object
}

type event struct {
	object client.Object
	isEnd  bool
}

// recordHistory records all events from now on.
func recordHistory(t *testing.T, c *cluster) *history {
	t.Helper()
	h := &history{live: map[string]client.Object{}}
	for _, list := range []client.ObjectList{&karpenterv1.NodeClaimList{}, &corev1.NodeList{}, &corev1.PodList{}, &corev1.NamespaceList{}} {
		sandbox.Watch(t, c.Config, list, func(kind watch.EventType, o client.Object) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, event{o, kind == watch.Deleted})
			if h.live[string(o.GetUID())] = o; kind == watch.Deleted {
				delete(h.live, string(o.GetUID()))
			}
		})
	}
	return h
}

// listLive returns the existing objects of a type.
func listLive[T client.Object](h *history) (all []T) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.live {
		if o, is := o.(T); is {
			all = append(all, o)
		}
	}
	return all
}

// The replay adds up the history by the rules in docs/explanation/cost.md, in whole numbers, without the ledger's code. Times are
// seconds since 1970, and amounts are millionths.

// never is the end of objects that still exist.
const never = 1 << 40

// state is an object's state from a time on.
type state[T any] struct {
	at     int64
	object T
}

// life are the states of an object, until its end.
type life[T any] struct {
	states []state[T]
	end    int64
}

func (l *life[T]) findState(at int64) T {
	found := l.states[0].object
	for _, s := range l.states {
		if s.at <= at {
			found = s.object
		}
	}
	return found
}

// lives are the lives of all objects of a type, by UID.
type lives[T any] map[string]*life[T]

func (l lives[T]) add(uid string, at int64, o T, isEnd bool) {
	if l[uid] == nil {
		l[uid] = &life[T]{end: never}
	}
	if isEnd {
		l[uid].end = at
		return
	}
	l[uid].states = append(l[uid].states, state[T]{at, o})
}

// replay is the history as lives.
type replay struct {
	claims     lives[*karpenterv1.NodeClaim]
	nodes      lives[*corev1.Node]
	pods       lives[*corev1.Pod]
	namespaces lives[*corev1.Namespace]
	// prices are the prices of an hour, by instance type and capacity type, since each time.
	prices []state[map[string]map[string]int64]
	pieces []*instanceSpan
	used   map[string][]podOnNode
}

// newReplay returns the replay of events, each with its time.
func newReplay(events []event, findTime func(string) (time.Time, bool), prices []pricedSince) (*replay, error) {
	r := &replay{claims: lives[*karpenterv1.NodeClaim]{}, nodes: lives[*corev1.Node]{}, pods: lives[*corev1.Pod]{},
		namespaces: lives[*corev1.Namespace]{}, used: map[string][]podOnNode{}}
	for _, e := range events {
		when, found := findTime(nameEvent(e.object, e.isEnd))
		if !found {
			return nil, fmt.Errorf("the ledger did not observe %T %s, version %s, end %t", e.object, e.object.GetName(), e.object.GetResourceVersion(), e.isEnd)
		}
		at, uid := when.Unix(), string(e.object.GetUID())
		switch o := e.object.(type) {
		case *karpenterv1.NodeClaim:
			r.claims.add(uid, at, o, e.isEnd)
		case *corev1.Node:
			r.nodes.add(uid, at, o, e.isEnd)
		case *corev1.Pod:
			r.pods.add(uid, at, o, e.isEnd)
		case *corev1.Namespace:
			r.namespaces.add(uid, at, o, e.isEnd)
		}
	}
	for _, p := range prices {
		var file struct {
			Instances map[string]map[string]float64 `json:"instances"`
		}
		if err := yaml.Unmarshal([]byte(p.prices), &file); err != nil {
			return nil, err
		}
		millionths := map[string]map[string]int64{}
		for instanceType, by := range file.Instances {
			millionths[instanceType] = map[string]int64{}
			for capacity, hour := range by {
				millionths[instanceType][capacity] = int64(hour*1e6 + 0.5)
			}
		}
		r.prices = append(r.prices, state[map[string]map[string]int64]{p.at.Unix(), millionths})
	}
	r.readPods()
	return r, r.cutInstances()
}

// facts are the properties of an instance on which its cost depends.
type facts struct {
	node, pool, capacity, instanceType, zone, region string
	cpu, memory, price                               int64
}

// instanceSpan is an instance while its facts do not change.
type instanceSpan struct {
	facts
	from, until int64
}

// cutInstances cuts the life of each instance into pieces.
func (r *replay) cutInstances() error {
	nodes := map[string]*life[*corev1.Node]{}
	for _, n := range r.nodes {
		nodes[n.findState(never).Spec.ProviderID] = n
	}
	for uid, claim := range r.claims {
		launch := int64(never)
		cuts := []int64{claim.end}
		for _, s := range claim.states {
			launched := slices.ContainsFunc(s.object.Status.Conditions, func(c status.Condition) bool { return c.Type == "Launched" && c.Status == "True" })
			if launched && launch == never {
				launch = s.at
			}
			cuts = append(cuts, s.at)
		}
		if launch == never {
			continue
		}
		node := nodes[claim.findState(never).Status.ProviderID]
		if node == nil {
			return fmt.Errorf("NodeClaim %s was launched, and has no node", uid)
		}
		delete(nodes, claim.findState(never).Status.ProviderID)
		cuts = append(cuts, launch, node.end)
		for _, s := range node.states {
			cuts = append(cuts, s.at)
		}
		for _, p := range r.prices {
			cuts = append(cuts, p.at)
		}
		slices.Sort(cuts)
		var last *instanceSpan
		for i, from := range cuts {
			if from < launch || from >= claim.end || i+1 == len(cuts) || cuts[i+1] == from {
				continue
			}
			if f := r.readFacts(claim, node, from); last == nil || last.facts != f {
				last = &instanceSpan{facts: f, from: from}
				r.pieces = append(r.pieces, last)
			}
			last.until = cuts[i+1]
		}
	}
	for id := range nodes {
		return fmt.Errorf("node %s has no NodeClaim", id)
	}
	return nil
}

// readFacts returns the facts of an instance. Until its node registers, it has the node's first ones.
func (r *replay) readFacts(claim *life[*karpenterv1.NodeClaim], node *life[*corev1.Node], at int64) facts {
	labels := claim.findState(at).Labels
	f := facts{node: "none"}
	if at < node.end {
		n := node.findState(at)
		labels = n.Labels
		f.node, f.cpu, f.memory = n.Name, n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Memory().Value()/(1<<20)
	}
	f.pool, f.capacity, f.instanceType = labels["karpenter.sh/nodepool"], labels["karpenter.sh/capacity-type"], labels["node.kubernetes.io/instance-type"]
	f.zone, f.region = labels["topology.kubernetes.io/zone"], labels["topology.kubernetes.io/region"]
	for _, p := range r.prices {
		if p.at <= at {
			f.price = p.object[f.instanceType][f.capacity]
		}
	}
	return f
}

// podOnNode is a pod from its scheduling until its end.
type podOnNode struct {
	namespace, workload string
	cpu, memory         int64
	from, until         int64
}

func (r *replay) readPods() {
	for _, l := range r.pods {
		p := podOnNode{from: never, until: l.end}
		var node string
		for _, s := range l.states {
			pod := s.object
			if pod.Spec.NodeName == "" {
				continue
			}
			if p.from == never {
				p.from, node = s.at, pod.Spec.NodeName
				p.namespace, p.workload = pod.Namespace, "Pod/"+pod.Name
				for _, o := range pod.OwnerReferences {
					p.workload = strings.Replace(o.Kind, "ReplicaSet", "Deployment", 1) + "/" + strings.TrimSuffix(o.Name, "-"+pod.Labels["pod-template-hash"])
				}
				for _, c := range pod.Spec.Containers {
					p.cpu += c.Resources.Requests.Cpu().MilliValue()
					p.memory += c.Resources.Requests.Memory().Value()
				}
				p.memory = (p.memory + 1<<20 - 1) / (1 << 20)
			}
			if ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed; ended {
				p.until = min(p.until, s.at)
			}
		}
		if p.from != never {
			r.used[node] = append(r.used[node], p)
		}
	}
}

// ownedSpan is a part of a time in which a namespace has one owner.
type ownedSpan struct {
	kind, tenant, code string
	seconds            int64
}

func (r *replay) divideByOwner(namespace string, from, until int64) (parts []ownedSpan) {
	rest := until - from
	for _, l := range r.namespaces {
		if l.states[0].object.Name != namespace {
			continue
		}
		for i, s := range l.states {
			end := l.end
			if i+1 < len(l.states) {
				end = l.states[i+1].at
			}
			if part := min(end, until) - max(s.at, from); part > 0 {
				o := ownedSpan{"tenant", s.object.Labels["croft.dev/tenant"], s.object.Labels["croft.dev/cost-code"], part}
				if o.tenant == "" {
					o.kind, o.code = "platform", s.object.Labels["croft.dev/cost-code"]
				}
				parts = append(parts, o)
				rest -= part
			}
		}
	}
	if rest > 0 {
		parts = append(parts, ownedSpan{kind: "platform", seconds: rest})
	}
	return parts
}

// row identifies a part of the cost of an hour. Its fields are in the order in which rows get the last millionths.
type row struct{ pool, capacity, instanceType, kind, tenant, code, namespace, workload string }

func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.capacity, b.capacity), cmp.Compare(a.instanceType, b.instanceType), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.tenant, b.tenant), cmp.Compare(a.code, b.code), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.workload, b.workload))
}

// rowCost is a row's own cost, and its share of the idle cost.
type rowCost struct{ cost, idle int64 }

// divide divides an amount in proportion to weights: the parts with the largest remainders get the rest.
func divide(amount int64, weights map[row]int64) map[row]int64 {
	var sum int64
	for _, w := range weights {
		sum += w
	}
	parts, rest, remainders := map[row]int64{}, amount, map[row]*big.Int{}
	for key, w := range weights {
		product := new(big.Int).Mul(big.NewInt(amount), big.NewInt(w))
		quotient, remainder := new(big.Int).QuoRem(product, big.NewInt(sum), new(big.Int))
		parts[key], remainders[key] = quotient.Int64(), remainder
		rest -= parts[key]
	}
	order := slices.SortedFunc(maps.Keys(weights), func(a, b row) int { return cmp.Or(remainders[b].Cmp(remainders[a]), compareRows(a, b)) })
	for _, key := range order[:rest] {
		parts[key]++
	}
	return parts
}

// computeHour returns the cost of an hour, by rows.
func (r *replay) computeHour(from int64) map[row]rowCost {
	until := from + 3600
	rows, weights := map[row]rowCost{}, map[row]int64{}
	for _, p := range r.pieces {
		seconds := min(p.until, until) - max(p.from, from)
		if seconds <= 0 {
			continue
		}
		base := row{pool: p.pool, capacity: p.capacity, instanceType: p.instanceType}
		own := map[row]int64{}
		free := (p.cpu*9*1024 + p.memory*1000) * seconds
		for _, pod := range r.used[p.node] {
			begin, end := max(p.from, from, pod.from), min(p.until, until, pod.until)
			if begin >= end {
				continue
			}
			for _, o := range r.divideByOwner(pod.namespace, begin, end) {
				key := base
				key.kind, key.tenant, key.code, key.namespace, key.workload = o.kind, o.tenant, o.code, pod.namespace, pod.workload
				weight := (pod.cpu*9*1024 + pod.memory*1000) * o.seconds
				own[key] += weight
				weights[key] += weight
				free -= weight
			}
		}
		base.kind = "idle"
		if p.cpu == 0 {
			base.kind, free = "unallocated", 1
		}
		if free > 0 {
			own[base] = free
		}
		for key, amount := range divide((p.price*seconds*2+3600)/7200, own) {
			rows[key] = rowCost{rows[key].cost + amount, 0}
		}
	}
	for pool, idle := range sumIdle(rows) {
		shares := map[row]int64{}
		for key, weight := range weights {
			if key.pool == pool && weight > 0 {
				shares[key] = weight
			}
		}
		if len(shares) > 0 {
			for key, amount := range divide(idle, shares) {
				rows[key] = rowCost{rows[key].cost, amount}
			}
			continue
		}
		for key, s := range rows {
			if key.pool == pool && key.kind == "idle" {
				rows[key] = rowCost{s.cost, s.cost}
			}
		}
	}
	return rows
}

// sumIdle returns the idle cost of each pool.
func sumIdle(rows map[row]rowCost) map[string]int64 {
	idle := map[string]int64{}
	for key, s := range rows {
		if key.kind == "idle" {
			idle[key.pool] += s.cost
		}
	}
	return idle
}
