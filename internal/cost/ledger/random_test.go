package ledger

import (
	"fmt"
	"math/rand/v2"
	"time"

	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/price"
)

// makeInput returns the objects of a random hour. Few names and numbers make collisions and ties
// frequent.
func makeInput(r *rand.Rand) Input {
	var in Input
	for i := range r.IntN(5) {
		in.Nodes = append(in.Nodes, makeNodes(r, fmt.Sprintf("node-%d", i))...)
	}
	for range r.IntN(12) {
		in.Pods = append(in.Pods, Pod{
			Namespace: fmt.Sprintf("ns-%d", r.IntN(4)), Workload: fmt.Sprintf("w-%d", r.IntN(3)),
			Node: fmt.Sprintf("node-%d", r.IntN(5)), CPU: int64(r.IntN(4)) * 500, Memory: int64(r.IntN(5)) * 1000,
			Span: makeSpan(r), Estimated: r.IntN(8) == 0,
		})
	}
	for i := range 4 {
		in.Owners = append(in.Owners, makeOwners(r, fmt.Sprintf("ns-%d", i))...)
	}
	for i := range r.IntN(4) {
		v := Volume{Workload: fmt.Sprintf("v-%d", i), Class: fmt.Sprintf("class-%d", r.IntN(2)), Size: 1 + r.Int64N(1<<20),
			Price: makePrice(r, 200_000), Span: makeSpan(r)}
		if r.IntN(3) > 0 {
			v.Namespace = fmt.Sprintf("ns-%d", r.IntN(4))
		}
		in.Volumes = append(in.Volumes, v)
	}
	for i := range r.IntN(3) {
		in.LoadBalancers = append(in.LoadBalancers, LoadBalancer{fmt.Sprintf("ns-%d", r.IntN(4)), fmt.Sprintf("lb-%d", i),
			makePrice(r, 50_000), makeSpan(r)})
	}
	return in
}

// makeSpan returns a random span, which may exceed the hour, or last for two seconds.
func makeSpan(r *rand.Rand) Span {
	from := r.IntN(5000) - 1000
	switch r.IntN(4) {
	case 0:
		return Span{From: makeSpanWithin(from, 0).From}
	case 1:
		return makeSpanWithin(from, from+2)
	default:
		return makeSpanWithin(from, from+r.IntN(4000))
	}
}

func makePrice(r *rand.Rand, limit int64) price.Price {
	if r.IntN(6) == 0 {
		return price.Price{}
	}
	return price.Price{Amount: money.Amount(r.Int64N(limit)), Known: true, Estimated: r.IntN(4) == 0,
		Source: fmt.Sprintf("source-%d", r.IntN(2))}
}

// makeNodes returns a node, or a node that changes its pool and its price.
func makeNodes(r *rand.Rand, name string) []Node {
	span := makeSpan(r)
	first := Node{Name: name, Pool: fmt.Sprintf("pool-%d", r.IntN(2)), CapacityType: "spot", InstanceType: "m5.large",
		Price: makePrice(r, 1_000_000), Span: span, CPU: 1930, Memory: 7000}
	if r.IntN(8) == 0 {
		first.CPU, first.Memory = 0, 0
	}
	if r.IntN(3) == 0 {
		first.Observed = makeSpanWithin(r.IntN(3600), 0).From
	}
	if span.Until.IsZero() || r.IntN(3) > 0 {
		return []Node{first}
	}
	second := first
	second.Pool, second.Price = fmt.Sprintf("pool-%d", r.IntN(2)), makePrice(r, 1_000_000)
	second.Span = Span{From: span.Until, Until: span.Until.Add(time.Duration(r.IntN(2000)) * time.Second)}
	return []Node{first, second}
}

// makeOwners returns no owner of a namespace, or one or two in succession.
func makeOwners(r *rand.Rand, namespace string) []Owner {
	first := Owner{namespace, fmt.Sprintf("t-%d", r.IntN(2)), "org1", makeSpan(r), r.IntN(4) == 0}
	second := Owner{namespace, fmt.Sprintf("t-%d", r.IntN(2)), "org2", Span{From: first.Until}, false}
	switch {
	case r.IntN(4) == 0:
		return nil
	case first.Until.IsZero() || r.IntN(2) == 0:
		return []Owner{first}
	default:
		return []Owner{first, second}
	}
}

func shuffleInput(r *rand.Rand, in *Input) {
	r.Shuffle(len(in.Nodes), func(i, j int) { in.Nodes[i], in.Nodes[j] = in.Nodes[j], in.Nodes[i] })
	r.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
	r.Shuffle(len(in.Volumes), func(i, j int) { in.Volumes[i], in.Volumes[j] = in.Volumes[j], in.Volumes[i] })
	r.Shuffle(len(in.LoadBalancers), func(i, j int) {
		in.LoadBalancers[i], in.LoadBalancers[j] = in.LoadBalancers[j], in.LoadBalancers[i]
	})
	r.Shuffle(len(in.Owners), func(i, j int) { in.Owners[i], in.Owners[j] = in.Owners[j], in.Owners[i] })
}
