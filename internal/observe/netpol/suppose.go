package netpol

import (
	"fmt"
	"maps"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/kubernetes"
)

// copyWith returns a copy of the Map with additional policies, and without others.
func (m *Map) copyWith(added, without []client.Object) (*Map, error) {
	other := *m
	other.namespaces = maps.Clone(m.namespaces)
	for i, o := range slices.Concat(added, without) {
		n, ok := other.namespaces[o.GetNamespace()]
		if !ok {
			return nil, newMissingError(o.GetNamespace())
		}
		copied := *n
		change := copied.add
		if i >= len(added) {
			change = copied.remove
		}
		if err := change(o, m.calicoSets); err != nil {
			return nil, err
		}
		other.namespaces[n.name] = &copied
		other.completeNamespace(&copied)
	}
	return &other, nil
}

func (n *namespace) add(o client.Object, sets *calico.Sets) error {
	switch o := o.(type) {
	case *networkingv1.NetworkPolicy:
		p, err := kubernetes.NewPolicy(o)
		if err != nil {
			return err
		}
		n.kubernetes = append(slices.Clone(n.kubernetes), p)
	case *unstructured.Unstructured:
		p, err := calico.NewPolicy(o, sets)
		if err != nil {
			return err
		}
		n.calico = append(slices.Clone(n.calico), p)
	default:
		return fmt.Errorf("%T is not a policy of a namespace", o)
	}
	return nil
}

func (n *namespace) remove(o client.Object, _ *calico.Sets) error {
	switch o := o.(type) {
	case *networkingv1.NetworkPolicy:
		name := kubernetes.FormatName(o)
		n.kubernetes = slices.DeleteFunc(slices.Clone(n.kubernetes), func(p *kubernetes.Policy) bool { return p.Name == name })
	case *unstructured.Unstructured:
		name := calico.FormatName(o)
		n.calico = slices.DeleteFunc(slices.Clone(n.calico), func(p *calico.Policy) bool { return p.Name == name })
	default:
		return fmt.Errorf("%T is not a policy of a namespace", o)
	}
	return nil
}
