package netpol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/cluster"
	"croft.dev/croft/internal/observe/netpol/kubernetes"
	"croft.dev/croft/internal/observe/netpol/tier"
)

// The kinds of policies that a cluster may have in addition to Kubernetes' own. Calico serves
// the objects of its second group in the first, too.
var (
	calicoGroups = []schema.GroupVersion{{Group: "projectcalico.org", Version: "v3"}, {Group: "crd.projectcalico.org", Version: "v1"}}
	calicoKinds  = []string{"GlobalNetworkSet", "NetworkSet", "Tier", "GlobalNetworkPolicy", "NetworkPolicy"}
	clusterKinds = []schema.GroupVersionKind{
		{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"},
		{Group: "networking.k8s.aws", Version: "v1alpha1", Kind: "ClusterNetworkPolicy"},
	}
)

// Snapshot has the namespaces of a cluster and its network policies at one moment.
type Snapshot struct {
	Namespaces []corev1.Namespace
	// Policies are the policies of every kind that the cluster serves, with the sets and
	// tiers that Calico's policies refer to. NetworkPolicies have their Go type, and all
	// other objects are unstructured.
	Policies []client.Object
}

// ReadMap reads every namespace and every network policy, and returns a Map of them.
func ReadMap(ctx context.Context, c client.Reader) (*Map, error) {
	s, err := TakeSnapshot(ctx, c)
	if err != nil {
		return nil, err
	}
	return NewFromObjects(s.Namespaces, s.Policies)
}

// TakeSnapshot reads every namespace and every network policy. Namespaces that are being deleted and
// have no pods are left out: their policies may be deleted already, and no pods remain to
// connect.
func TakeSnapshot(ctx context.Context, c client.Reader) (*Snapshot, error) {
	namespaces, err := listNamespaces(ctx, c)
	if err != nil {
		return nil, err
	}
	var policies networkingv1.NetworkPolicyList
	if err := c.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("read network policies: %w", err)
	}
	s := &Snapshot{}
	for i := range policies.Items {
		// A list leaves the kind out.
		policies.Items[i].SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"))
		s.Policies = append(s.Policies, &policies.Items[i])
	}
	for _, group := range calicoGroups {
		served := false
		for _, kind := range calicoKinds {
			has, err := s.addKind(ctx, c, group.WithKind(kind))
			if err != nil {
				return nil, err
			}
			served = served || has
		}
		if served {
			break
		}
	}
	for _, kind := range clusterKinds {
		if _, err := s.addKind(ctx, c, kind); err != nil {
			return nil, err
		}
	}
	// Policies of namespaces whose deletion has begun since may already be deleted.
	now, err := listNamespaces(ctx, c)
	if err != nil {
		return nil, err
	}
	for name, n := range namespaces {
		live, ok := now[name]
		if ok && (live.DeletionTimestamp == nil || hasPods(ctx, c, name)) {
			s.Namespaces = append(s.Namespaces, n)
		}
	}
	slices.SortFunc(s.Namespaces, func(a, b corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

func listNamespaces(ctx context.Context, c client.Reader) (map[string]corev1.Namespace, error) {
	var all corev1.NamespaceList
	if err := c.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("read namespaces: %w", err)
	}
	byName := make(map[string]corev1.Namespace, len(all.Items))
	for _, n := range all.Items {
		byName[n.Name] = n
	}
	return byName, nil
}

// hasPods reports whether a namespace has pods. If the pods cannot be listed, it returns
// true.
func hasPods(ctx context.Context, c client.Reader, namespace string) bool {
	var pods metav1.PartialObjectMetadataList
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := c.List(ctx, &pods, client.InNamespace(namespace), client.Limit(1))
	return err != nil || len(pods.Items) > 0
}

// addKind adds the objects of a kind, if the cluster serves the kind.
func (s *Snapshot) addKind(ctx context.Context, c client.Reader, kind schema.GroupVersionKind) (served bool, err error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.List(ctx, all); meta.IsNoMatchError(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read %s of %s: %w", kind.Kind, kind.Group, err)
	}
	for i := range all.Items {
		s.Policies = append(s.Policies, &all.Items[i])
	}
	return true, nil
}

// NewFromObjects returns a Map of namespaces and a Snapshot's policies.
func NewFromObjects(namespaces []corev1.Namespace, policies []client.Object) (*Map, error) {
	m := &Map{namespaces: make(map[string]*namespace, len(namespaces)), calicoTiers: map[string]tier.Tier{}, calicoSets: &calico.Sets{}}
	for i := range namespaces {
		m.namespaces[namespaces[i].Name] = &namespace{name: namespaces[i].Name, labels: namespaces[i].Labels}
	}
	var errs []error
	// Sets and tiers are added before the policies that refer to them.
	for _, add := range []func(client.Object) error{m.addTerms, m.addPolicy} {
		for _, o := range policies {
			errs = append(errs, add(o))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	m.complete()
	return m, nil
}

// addTerms adds the sets and tiers that Calico's policies refer to.
func (m *Map) addTerms(object client.Object) error {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	switch o.GetKind() {
	case "GlobalNetworkSet", "NetworkSet":
		var labels map[string]string
		if n, ok := m.namespaces[o.GetNamespace()]; ok {
			labels = n.labels
		}
		m.calicoSets.Add(o, labels)
	case "Tier":
		name, t := calico.NewTier(o)
		m.calicoTiers[name] = t
	}
	return nil
}

func (m *Map) addPolicy(object client.Object) error {
	switch o := object.(type) {
	case *networkingv1.NetworkPolicy:
		return m.addKubernetes(o)
	case *unstructured.Unstructured:
		switch o.GetKind() {
		case "ClusterNetworkPolicy":
			return m.addCluster(o)
		case "GlobalNetworkPolicy", "NetworkPolicy":
			return m.addCalico(o)
		}
	}
	return nil
}

func (m *Map) addKubernetes(o *networkingv1.NetworkPolicy) error {
	n, ok := m.namespaces[o.Namespace]
	if !ok {
		return nil
	}
	p, err := kubernetes.NewPolicy(o)
	if err == nil {
		n.kubernetes = append(n.kubernetes, p)
	}
	return err
}

func (m *Map) addCluster(o *unstructured.Unstructured) error {
	p, err := cluster.NewPolicy(o)
	if err == nil {
		m.cluster = append(m.cluster, p)
	}
	return err
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
