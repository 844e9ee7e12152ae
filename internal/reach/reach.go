// Package reach judges, from the network policies in a cluster, who can connect
// to whom. The judgement is that of cyclonus, a conformance suite for network
// policies, and not croft's own: a wall must not be its own judge.
package reach

import (
	"context"
	"fmt"

	"github.com/mattfenwick/cyclonus/pkg/matcher"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/attack"
)

// Map is the network policies of a cluster at one moment.
type Map struct {
	policy     *matcher.Policy
	namespaces map[string]map[string]string
}

// Read reads every namespace and every NetworkPolicy.
func Read(ctx context.Context, c client.Reader) (*Map, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	var policies networkingv1.NetworkPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("reading network policies: %w", err)
	}
	m := &Map{namespaces: make(map[string]map[string]string, len(namespaces.Items))}
	for _, n := range namespaces.Items {
		m.namespaces[n.Name] = n.Labels
	}
	list := make([]*networkingv1.NetworkPolicy, len(policies.Items))
	for i := range policies.Items {
		list[i] = &policies.Items[i]
	}
	m.policy = matcher.BuildNetworkPolicies(false, list)
	return m, nil
}

// Allows reports whether the policies let a connection through. It is an error
// if a namespace that the flow names does not exist: nothing can be said of it.
func (m *Map) Allows(f attack.Flow) (bool, error) {
	source, err := m.pod(f.FromNamespace, nil)
	if err != nil {
		return false, err
	}
	destination := &matcher.TrafficPeer{IP: f.ToIP}
	if f.ToNamespace != "" {
		if destination, err = m.pod(f.ToNamespace, f.ToLabels); err != nil {
			return false, err
		}
	}
	return m.policy.IsTrafficAllowed(&matcher.Traffic{
		Source: source, Destination: destination, ResolvedPort: f.Port, Protocol: corev1.Protocol(f.Protocol),
	}).IsAllowed(), nil
}

// podIP stands for the address of any pod: a private one, as clusters use. A
// policy that lets addresses in by range is judged by it.
const podIP = "10.244.1.1"

func (m *Map) pod(namespace string, labels map[string]string) (*matcher.TrafficPeer, error) {
	namespaceLabels, ok := m.namespaces[namespace]
	if !ok {
		return nil, fmt.Errorf("there is no namespace %s", namespace)
	}
	return &matcher.TrafficPeer{
		IP:       podIP,
		Internal: &matcher.InternalPeer{Namespace: namespace, NamespaceLabels: namespaceLabels, PodLabels: labels},
	}, nil
}
