package nodes

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/diagnose/latency"
)

// mostStarts is the maximum number of nodes in Starts, since each costs a request.
const mostStarts = 20

// mostPending is the maximum number of waiting pods that are read.
const mostPending = 500

// Starts has the times of the nodes that were requested last.
type Starts struct {
	// Pool is the only pool of the nodes; empty for all pools.
	Pool string
	// Timelines are the nodes, the last request first. More is the number of older ones.
	Timelines []latency.Timeline
	More      int
	// Hidden are the kinds that the caller may not list.
	Hidden []string
}

// GatherStarts reads Starts, of one pool if pool is not empty. It returns an error if the caller may not list nodes.
//
// `croft latency` reads all pods, which would be too much for a page of a large cluster. GatherStarts reads the pods
// that wait, and those on the nodes that it returns: a pod for which a node was created is among them, unless it
// waits behind many others, is deleted, or runs elsewhere.
func GatherStarts(ctx context.Context, c client.Reader, pool string) (*Starts, error) {
	s := &Starts{Pool: pool}
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return nil, err
	}
	var claims karpenterv1.NodeClaimList
	if _, err := list(ctx, c, &s.Hidden, "NodeClaims", &claims); err != nil {
		return nil, err
	}
	o := latency.Objects{Claims: claims.Items, Nodes: nodes.Items}
	s.selectLast(latency.Build(o, latency.Options{}))
	if len(s.Timelines) == 0 || len(s.Hidden) > 0 {
		return s, nil // such as a team at croft proxy, which may not list pods of all namespaces either
	}
	if err := s.readEvents(ctx, c, &o); err != nil {
		return nil, err
	}
	if err := s.readPods(ctx, c, &o); err != nil {
		return nil, err
	}
	s.selectLast(latency.Build(o, latency.Options{SomePods: true}))
	return s, nil
}

// selectLast selects the last nodes of the pool from timelines in the order of their requests.
func (s *Starts) selectLast(all []latency.Timeline) {
	all = latency.FilterByPool(all, s.Pool)
	slices.Reverse(all)
	last := min(len(all), mostStarts)
	s.Timelines, s.More = all[:last], len(all)-last
}

func (s *Starts) readEvents(ctx context.Context, c client.Reader, o *latency.Objects) error {
	for _, reason := range latency.EventReasons() {
		var events corev1.EventList
		found, err := list(ctx, c, &s.Hidden, "events", &events, client.MatchingFields{"reason": reason})
		if err != nil || !found {
			return err
		}
		o.Events = append(o.Events, events.Items...)
	}
	return nil
}

// readPods reads the pods that wait, and those on the selected nodes.
func (s *Starts) readPods(ctx context.Context, c client.Reader, o *latency.Objects) error {
	selectors := []client.MatchingFields{{"status.phase": string(corev1.PodPending)}}
	for i := range s.Timelines {
		if node := s.Timelines[i].Node; node != "" {
			selectors = append(selectors, client.MatchingFields{"spec.nodeName": node})
		}
	}
	for _, selector := range selectors {
		var pods corev1.PodList
		found, err := list(ctx, c, &s.Hidden, "pods", &pods, selector, client.Limit(mostPending))
		if err != nil || !found {
			return err
		}
		o.Pods = append(o.Pods, pods.Items...)
	}
	return nil
}
