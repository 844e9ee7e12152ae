package timeline

import (
	"cmp"
	"slices"
	"time"

	"croft.dev/croft/internal/cost/ledger"
)

// Build returns the ledger's input.
func (t *Timeline) Build() ledger.Input {
	var in ledger.Input
	for key, phases := range t.phases {
		for i := range phases {
			t.addPhase(&in, key, &phases[i])
		}
	}
	trimSpans(in.Nodes, func(n *ledger.Node) (string, *ledger.Span) { return n.Name, &n.Span })
	trimSpans(in.Owners, func(o *ledger.Owner) (string, *ledger.Span) { return o.Namespace, &o.Span })
	trimPods(&in)
	return in
}

func makeSpan(from, until int64) ledger.Span {
	span := ledger.Span{From: time.Unix(from, 0).UTC()}
	if until != 0 {
		span.Until = time.Unix(until, 0).UTC()
	}
	return span
}

func (t *Timeline) addPhase(in *ledger.Input, key Key, p *Phase) {
	span, cost := makeSpan(p.From, p.Until), p.Price
	cost.Estimated = cost.Estimated || p.Estimated
	switch key.Kind {
	case Node:
		t.addNode(in, p)
	case Pod:
		in.Pods = append(in.Pods, ledger.Pod{Namespace: p.Namespace, Workload: p.Workload, Node: p.Node, CPU: p.CPU,
			Memory: p.Memory, Span: span, Estimated: p.Estimated, Usage: t.usage[key.UID]})
	case Volume:
		in.Volumes = append(in.Volumes, ledger.Volume{Namespace: p.Namespace, Workload: p.Workload, Class: p.InstanceType,
			Size: p.Memory, Price: cost, Span: span})
	case LoadBalancer:
		in.LoadBalancers = append(in.LoadBalancers, ledger.LoadBalancer{Namespace: p.Namespace, Workload: p.Workload,
			Price: cost, Span: span})
	case Owner:
		in.Owners = append(in.Owners, ledger.Owner{Namespace: p.Namespace, Tenant: p.Tenant, CostCode: p.CostCode,
			Span: span, Estimated: p.Estimated})
	case Pool, Usage: // they cost nothing
	}
}

// addNode adds a node, in parts in and outside of gaps: pods that existed only in a gap are unknown, so
// the idle cost there is estimated.
func (t *Timeline) addNode(in *ledger.Input, p *Phase) {
	node := ledger.Node{Name: p.Name, Pool: p.Pool, CapacityType: p.CapacityType, InstanceType: p.InstanceType,
		Price: p.Price, CPU: p.CPU, Memory: p.Memory}
	node.Price.Estimated = node.Price.Estimated || p.Estimated
	at := p.From
	add := func(until int64, observed time.Time) {
		if until != 0 && until <= at {
			return
		}
		part := node
		part.Span, part.Observed = makeSpan(at, until), observed
		in.Nodes = append(in.Nodes, part)
		at = until
	}
	for _, g := range t.gaps {
		from, until := max(g.From, at), g.Until
		if p.Until != 0 {
			until = min(until, p.Until)
		}
		if from < until {
			add(from, time.Time{})
			add(until, time.Unix(until, 0))
		}
	}
	if p.Until == 0 || at < p.Until {
		add(p.Until, time.Time{})
	}
}

// trimSpans ends each entry where the next one of its name begins: the end of an object may have been
// observed later than its successor.
func trimSpans[T any](all []T, get func(*T) (string, *ledger.Span)) {
	slices.SortFunc(all, func(a, b T) int {
		nameA, spanA := get(&a)
		nameB, spanB := get(&b)
		return cmp.Or(cmp.Compare(nameA, nameB), spanA.From.Compare(spanB.From), compareEnds(spanA, spanB))
	})
	for i := 1; i < len(all); i++ {
		name, span := get(&all[i-1])
		next, after := get(&all[i])
		if name == next && (span.Until.IsZero() || span.Until.After(after.From)) {
			span.Until = after.From
		}
	}
}

// compareEnds orders spans by their ends. Objects that still exist are last.
func compareEnds(a, b *ledger.Span) int {
	if a.Until.IsZero() != b.Until.IsZero() {
		if b.Until.IsZero() {
			return -1
		}
		return 1
	}
	return a.Until.Compare(b.Until)
}

// trimPods limits pods to the time of their node: the kubelet's clock may be behind, and pods are deleted
// after their node.
func trimPods(in *ledger.Input) {
	first, last := map[string]time.Time{}, map[string]time.Time{}
	for i := range in.Nodes { // in the order of names and times
		n := &in.Nodes[i]
		if _, found := first[n.Name]; !found {
			first[n.Name] = n.From
		}
		last[n.Name] = n.Until
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		from, found := first[p.Node]
		if !found {
			continue
		}
		if p.From.Before(from) {
			p.From = from
		}
		if end := last[p.Node]; !end.IsZero() && (p.Until.IsZero() || p.Until.After(end)) {
			p.Until = end
		}
		if !p.Until.IsZero() && p.Until.Before(p.From) {
			p.Until = p.From
		}
	}
}

// ListGaps returns the parts of a period in which no process observed the cluster.
func (t *Timeline) ListGaps(period ledger.Span) []ledger.Span {
	var gaps []ledger.Span
	for _, g := range t.gaps {
		from, until := max(g.From, period.From.Unix()), min(g.Until, period.Until.Unix())
		if from < until {
			gaps = append(gaps, makeSpan(from, until))
		}
	}
	return gaps
}
