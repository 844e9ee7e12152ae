package reach

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/reach/calico"
	"croft.dev/croft/internal/reach/cluster"
)

// The kinds of policies that a cluster may have beside Kubernetes' own. Calico
// keeps in the second of its groups what it serves in the first.
var (
	calicoGroups = []schema.GroupVersion{{Group: "projectcalico.org", Version: "v3"}, {Group: "crd.projectcalico.org", Version: "v1"}}
	clusterKinds = []schema.GroupVersionKind{
		{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"},
		{Group: "networking.k8s.aws", Version: "v1alpha1", Kind: "ClusterNetworkPolicy"},
	}
)

// Read reads every namespace, and every network policy of every kind that the
// cluster serves.
func Read(ctx context.Context, c client.Reader) (*Map, error) {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	var policies networkingv1.NetworkPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("reading network policies: %w", err)
	}
	m := newMap(namespaces.Items, policies.Items)
	for _, group := range calicoGroups {
		served, err := m.readCalico(ctx, c, group)
		if err != nil {
			return nil, err
		}
		if served {
			break
		}
	}
	for _, kind := range clusterKinds {
		all, _, err := list(ctx, c, kind)
		if err != nil {
			return nil, err
		}
		for i := range all {
			if err := m.addCluster(&all[i]); err != nil {
				return nil, err
			}
		}
	}
	m.settle()
	return m, nil
}

// Of makes a Map of namespaces and policies of any kind, NetworkPolicies as Go
// types and all others unstructured.
func Of(namespaces []corev1.Namespace, policies []client.Object) (*Map, error) {
	m := newMap(namespaces, nil)
	var errs []error
	for _, o := range policies {
		switch o := o.(type) {
		case *networkingv1.NetworkPolicy:
			if n, ok := m.namespaces[o.Namespace]; ok {
				n.policies = append(n.policies, o)
			}
		case *unstructured.Unstructured:
			add := m.addCalico
			if o.GetKind() == "ClusterNetworkPolicy" {
				add = m.addCluster
			}
			errs = append(errs, add(o))
		}
	}
	m.settle()
	return m, errors.Join(errs...)
}

func (m *Map) addCluster(o *unstructured.Unstructured) error {
	p, err := cluster.NewPolicy(o)
	if err == nil {
		m.cluster = append(m.cluster, p)
	}
	return err
}

func (m *Map) readCalico(ctx context.Context, c client.Reader, group schema.GroupVersion) (served bool, err error) {
	read := func(kind string, each func(*unstructured.Unstructured) error) {
		if err != nil {
			return
		}
		var all []unstructured.Unstructured
		var has bool
		all, has, err = list(ctx, c, group.WithKind(kind))
		served = served || has
		for i := range all {
			if err == nil {
				err = each(&all[i])
			}
		}
	}
	// Sets and tiers before the policies that speak of them.
	for _, kind := range []string{"GlobalNetworkSet", "NetworkSet"} {
		read(kind, func(o *unstructured.Unstructured) error {
			var labels map[string]string
			if n, ok := m.namespaces[o.GetNamespace()]; ok {
				labels = n.labels
			}
			m.calicoSets.Add(o, labels)
			return nil
		})
	}
	read("Tier", func(o *unstructured.Unstructured) error {
		name, t := calico.NewTier(o)
		m.calicoTiers[name] = t
		return nil
	})
	for _, kind := range []string{"GlobalNetworkPolicy", "NetworkPolicy"} {
		read(kind, m.addCalico)
	}
	return served, err
}

func (m *Map) addCalico(o *unstructured.Unstructured) error {
	p, err := calico.NewPolicy(o, m.calicoSets)
	if err != nil || p == nil {
		return err
	}
	if n, ok := m.namespaces[p.Namespace]; ok {
		n.calico = append(n.calico, p)
	} else if p.Namespace == "" {
		m.global = append(m.global, p)
	}
	return nil
}

// list lists a kind, if the cluster serves it.
func list(ctx context.Context, c client.Reader, kind schema.GroupVersionKind) (items []unstructured.Unstructured, served bool, err error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, all); meta.IsNoMatchError(err) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("reading %s of %s: %w", kind.Kind, kind.Group, err)
	}
	return all.Items, true, nil
}
