// Package netpol computes which connections the network policies of a cluster allow. Its
// subpackages evaluate Kubernetes NetworkPolicies, Calico's policies and cluster-wide
// policies. They are written from the specifications and have no knowledge of croft's walls:
// a wall must not verify itself.
package netpol

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/observe/netpol/calico"
	"croft.dev/croft/internal/observe/netpol/cluster"
	"croft.dev/croft/internal/observe/netpol/kubernetes"
	"croft.dev/croft/internal/observe/netpol/tier"
	"croft.dev/croft/internal/rules/attack"
)

// Map has the network policies of a cluster at one moment. It is safe for concurrent use.
type Map struct {
	namespaces map[string]*namespace
	// The following fields apply to the whole cluster.
	calicoTiers map[string]tier.Tier
	calicoSets  *calico.Sets
	global      []*calico.Policy
	cluster     []*cluster.Policy
	// byLabel are the cluster-wide policies that select only namespaces with a label.
	byLabel map[label][]*cluster.Policy
}

type label struct{ key, value string }

// namespace has the policies of one namespace. None of them selects pods of another
// namespace, so the policies of two namespaces and the cluster-wide ones decide every
// connection between them.
type namespace struct {
	name       string
	labels     map[string]string
	kubernetes []*kubernetes.Policy
	calico     []*calico.Policy
	// tiers are all policies that may select the namespace's pods, in the order of their
	// evaluation.
	tiers []tier.Tier
	// pods and peers are the pods that the policies distinguish.
	pods, peers []map[string]string
	// ports are the ports that the policies name.
	ports []port
}

// New returns a Map of namespaces and the NetworkPolicies in them.
func New(namespaces []corev1.Namespace, policies []networkingv1.NetworkPolicy) (*Map, error) {
	all := make([]client.Object, len(policies))
	for i := range policies {
		all[i] = &policies[i]
	}
	return NewFromObjects(namespaces, all)
}

// complete completes a Map after the last policy has been added.
func (m *Map) complete() {
	m.byLabel = map[label][]*cluster.Policy{}
	for _, p := range m.cluster {
		first := label{}
		for _, key := range slices.Sorted(maps.Keys(p.Namespaces)) {
			first = label{key, p.Namespaces[key]}
			break
		}
		m.byLabel[first] = append(m.byLabel[first], p)
	}
	for _, n := range m.namespaces {
		m.completeNamespace(n)
	}
}

func (m *Map) completeNamespace(n *namespace) {
	clusterWide := slices.Clone(m.byLabel[label{}])
	for key, value := range n.labels {
		clusterWide = append(clusterWide, m.byLabel[label{key, value}]...)
	}
	n.tiers = m.listTiers(n, clusterWide)
	n.collectSamples(m.global, clusterWide)
}

// Tenants returns the namespaces of every tenant, both sorted.
func (m *Map) Tenants() map[string][]string {
	tenants := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(m.namespaces)) {
		if tenant := m.Tenant(name); tenant != "" {
			tenants[tenant] = append(tenants[tenant], name)
		}
	}
	return tenants
}

// Tenant returns the tenant of a namespace, or "" if the namespace has none.
func (m *Map) Tenant(namespace string) string {
	n, ok := m.namespaces[namespace]
	if !ok {
		return ""
	}
	return n.labels[v1alpha1.TenantLabel]
}

// Has reports whether the namespace exists.
func (m *Map) Has(namespace string) bool {
	_, ok := m.namespaces[namespace]
	return ok
}

// Verdict reports whether a connection is allowed, and by which policies.
type Verdict struct {
	Allowed bool `json:"allowed"`
	// Egress is the decision of the source's policies, and Ingress the decision of the
	// destination's.
	Egress  Direction `json:"egress"`
	Ingress Direction `json:"ingress"`
	// Connection is the evaluated connection. Of several, it is the first that is allowed.
	Connection string `json:"connection"`
}

// Direction is the decision for one end of the connection. If no policy selects the pod, all
// connections are allowed.
type Direction struct {
	Allowed bool `json:"allowed"`
	// DecidedBy is the policy that allowed or denied the connection, among policies that are
	// evaluated in order.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Allowing are the NetworkPolicies that allow the connection, as namespace/name.
	// Selecting are all evaluated policies that select the pod.
	Allowing  []string `json:"allowing,omitempty"`
	Selecting []string `json:"selecting,omitempty"`
}

// Describe returns the verdict in words.
func (v Verdict) Describe() string {
	if v.Allowed {
		return "can connect"
	}
	return "cannot connect"
}

// Describe returns the decision and the deciding policies in words.
func (d Direction) Describe() string {
	switch {
	case d.DecidedBy != "" && d.Allowed:
		return "allowed by " + d.DecidedBy
	case d.DecidedBy != "":
		return "denied by " + d.DecidedBy
	case len(d.Selecting) == 0:
		return "allowed, since no policy selects the pod"
	case d.Allowed && len(d.Allowing) == 0:
		return "allowed, since no rule applies of " + strings.Join(d.Selecting, ", ")
	case d.Allowed:
		return "allowed by " + strings.Join(d.Allowing, ", ")
	default:
		return "denied, since no rule allows it of " + strings.Join(d.Selecting, ", ")
	}
}

// Allows reports whether the policies allow a connection between pods without labels. It
// returns an error if a namespace of the flow does not exist.
func (m *Map) Allows(f attack.Flow) (bool, error) {
	verdict, err := m.Evaluate(f)
	return verdict.Allowed, err
}

// Evaluate evaluates a connection like Allows, and returns the reasons.
func (m *Map) Evaluate(f attack.Flow) (Verdict, error) {
	if len(f.AddedPolicies)+len(f.OmittedPolicies) > 0 {
		var err error
		if m, err = m.copyWith(f.AddedPolicies, f.OmittedPolicies); err != nil {
			return Verdict{}, err
		}
	}
	c := connection{fromIP: f.FromIP, toIP: f.ToIP, fromLabels: f.FromLabels, toLabels: f.ToLabels, port: port{number: f.Port, protocol: corev1.Protocol(f.Protocol)}}
	for _, side := range []struct {
		name string
		to   **namespace
	}{{f.FromNamespace, &c.from}, {f.ToNamespace, &c.to}} {
		if side.name == "" {
			continue
		}
		n, ok := m.namespaces[side.name]
		if !ok {
			return Verdict{}, newMissingError(side.name)
		}
		*side.to = n
	}
	return c.buildVerdict(), nil
}

// Connects reports whether any pod of one namespace can connect to any pod of another, on the
// given port or, if it is 0, on any port. Connections of agreements between the two tenants are
// left out.
func (m *Map) Connects(from, to string, number int, protocol string, agreed ...attack.Agreement) (Verdict, error) {
	source, ok := m.namespaces[from]
	if !ok {
		return Verdict{}, newMissingError(from)
	}
	destination, ok := m.namespaces[to]
	if !ok {
		return Verdict{}, newMissingError(to)
	}
	var first *connection
	for _, c := range listConnections(source, destination, number, corev1.Protocol(protocol)) {
		if c.isAllowed() && !c.isAgreed(agreed) {
			return c.buildVerdict(), nil
		}
		if first == nil {
			first = &c
		}
	}
	v := first.buildVerdict()
	v.Allowed = v.Allowed && !first.isAgreed(agreed)
	return v, nil
}

func newMissingError(namespace string) error {
	return fmt.Errorf("there is no namespace %s", namespace)
}
