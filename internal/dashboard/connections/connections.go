// Package connections evaluates the connections of one namespace, as `croft reach` does, with the
// objects that a member of its tenant may read. Gather reads them; Evaluate does no I/O.
package connections

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/me"
	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/walls/wall/network"
)

// OtherTenants stands for the namespaces of all other tenants. It is no valid name, so that no
// namespace has it.
const OtherTenants = "other tenants"

// Snapshot contains the objects that decide about the connections of one namespace.
type Snapshot struct {
	Namespace string
	Rules     v1alpha1.TenantRulesSpec
	Policies  []networkingv1.NetworkPolicy
	// Labels are the labels of the tenant's namespaces by name; nil if the caller may not list
	// namespaces.
	Labels map[string]map[string]string
}

// Gather reads a Snapshot by three requests. It returns an error if the caller may not read the
// NetworkPolicies.
func Gather(ctx context.Context, c client.Reader, namespace string) (*Snapshot, error) {
	m, err := me.ReadRules(ctx, c, namespace)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Namespace: namespace, Rules: m.Rules}
	var policies networkingv1.NetworkPolicyList
	if err := c.List(ctx, &policies, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	s.Policies = policies.Items
	var namespaces metav1.PartialObjectMetadataList
	namespaces.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	err = c.List(ctx, &namespaces, client.MatchingLabels{v1alpha1.TenantLabel: m.Tenant})
	if apierrors.IsForbidden(err) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	s.Labels = map[string]map[string]string{}
	for i := range namespaces.Items {
		s.Labels[namespaces.Items[i].Name] = namespaces.Items[i].Labels
	}
	return s, nil
}

// Peer is another namespace, or a destination outside of the cluster.
type Peer struct {
	Name string
	// Platform means that the namespace belongs to the platform.
	Platform bool
	// From is the verdict about connections from the peer; nil for a peer outside of the cluster.
	// To is the verdict about connections to the peer.
	From, To *netpol.Verdict
}

// HasWall reports whether the wall is among the policies. A platform may write it in Calico's kinds
// instead, which this package does not evaluate.
func (s *Snapshot) HasWall() bool {
	return slices.ContainsFunc(s.Policies, func(p networkingv1.NetworkPolicy) bool {
		return p.Name == network.IsolationPolicy && IsManaged(&p)
	})
}

// mostSteps is the maximum number of steps of an evaluation, some seconds.
const mostSteps = 10_000_000

// IsTooLarge reports whether the evaluation would take too long: its time grows with the product of the
// selectors, peers and ports of all policies, which tenants write.
func (s *Snapshot) IsTooLarge() bool {
	peers, ports := 1, 1
	for i := range s.Policies {
		spec := &s.Policies[i].Spec
		for j := range spec.Ingress {
			peers, ports = peers+len(spec.Ingress[j].From), ports+len(spec.Ingress[j].Ports)
		}
		for j := range spec.Egress {
			peers, ports = peers+len(spec.Egress[j].To), ports+len(spec.Egress[j].Ports)
		}
	}
	namespaces := len(s.Rules.Namespaces) + len(s.Rules.PlatformNamespaces) + 1
	return float64(peers)*float64(ports)*float64(len(s.Policies)*(len(s.Policies)+1))*float64(namespaces) > mostSteps
}

// IsManaged reports whether a policy belongs to croft. Tenants may not set its label.
func IsManaged(p *networkingv1.NetworkPolicy) bool {
	return p.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedBy
}

// Evaluate evaluates the connections between the namespace and its peers. Only the policies of the
// namespace decide: the policies of a peer must allow the connection, too.
func (s *Snapshot) Evaluate() ([]Peer, error) {
	names := slices.Concat([]string{s.Namespace}, without(s.Rules.Namespaces, s.Namespace), s.Rules.PlatformNamespaces, []string{OtherTenants})
	all := []corev1.Namespace{newNamespace(metav1.NamespaceSystem, "", nil)}
	for _, name := range without(names, metav1.NamespaceSystem) {
		tenant := s.Rules.Tenant
		switch {
		case name == OtherTenants:
			tenant = OtherTenants
		case slices.Contains(s.Rules.PlatformNamespaces, name):
			tenant = ""
		}
		all = append(all, newNamespace(name, tenant, s.Labels[name]))
	}
	policies, err := netpol.New(all, s.Policies)
	if err != nil {
		return nil, err
	}
	var peers []Peer
	for _, name := range names {
		from, err := policies.Connects(name, s.Namespace, 0, string(corev1.ProtocolTCP))
		if err != nil {
			return nil, err
		}
		to, err := policies.Connects(s.Namespace, name, 0, string(corev1.ProtocolTCP))
		if err != nil {
			return nil, err
		}
		peers = append(peers, Peer{name, slices.Contains(s.Rules.PlatformNamespaces, name), &from, &to})
	}
	outside, err := policies.ExplainOutside(s.Namespace)
	for i := range outside {
		last := &peers[len(peers)-1]
		switch {
		case outside[i].Name != last.Name:
			peers = append(peers, Peer{Name: outside[i].Name, To: &outside[i].Verdict})
		case outside[i].Verdict.Allowed: // at another of its addresses
			last.To = &outside[i].Verdict
		}
	}
	return peers, err
}

// newNamespace returns a namespace with its labels, or with the labels that every namespace of a
// tenant has.
func newNamespace(name, tenant string, labels map[string]string) corev1.Namespace {
	if labels == nil {
		labels = map[string]string{corev1.LabelMetadataName: name}
		if tenant != "" {
			labels[v1alpha1.TenantLabel] = tenant
		}
	}
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
