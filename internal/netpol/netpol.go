// Package netpol judges, from the network policies in a cluster, who can connect to
// whom. The packages below judge Kubernetes' own, Calico's and cluster-wide ones. They are
// written from the specifications and know nothing of croft's walls: a wall must not be its
// own judge.
package netpol

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/netpol/calico"
	"croft.dev/croft/internal/netpol/cluster"
	"croft.dev/croft/internal/netpol/kubernetes"
	"croft.dev/croft/internal/netpol/tier"
)

// Map are the network policies of a cluster at one moment. It allows concurrent use.
type Map struct {
	namespaces map[string]*namespace
	// The following fields are of the whole cluster.
	calicoTiers map[string]tier.Tier
	calicoSets  *calico.Sets
	global      []*calico.Policy
	cluster     []*cluster.Policy
	// byLabel are the cluster's policies that select only namespaces with a label.
	byLabel map[label][]*cluster.Policy
}

type label struct{ key, value string }

// namespace has the policies of one namespace: none of them selects pods of another, so
// two namespaces' policies, and the cluster-wide ones, decide every connection between
// them.
type namespace struct {
	name       string
	labels     map[string]string
	kubernetes []*kubernetes.Policy
	calico     []*calico.Policy
	// tiers are all policies that may select its pods, in the order of their evaluation.
	tiers []tier.Tier
	// pods and peers are the pods that the policies distinguish.
	pods, peers []map[string]string
	// ports are the ports that the policies name.
	ports []port
}

// New makes a Map of namespaces and the NetworkPolicies in them.
func New(namespaces []corev1.Namespace, policies []networkingv1.NetworkPolicy) (*Map, error) {
	all := make([]client.Object, len(policies))
	for i := range policies {
		all[i] = &policies[i]
	}
	return Of(namespaces, all)
}

// settle readies a Map that nothing more is added to.
func (m *Map) settle() {
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
		m.settleOne(n)
	}
}

func (m *Map) settleOne(n *namespace) {
	clusterWide := slices.Clone(m.byLabel[label{}])
	for key, value := range n.labels {
		clusterWide = append(clusterWide, m.byLabel[label{key, value}]...)
	}
	n.tiers = m.tiersOf(n, clusterWide)
	n.tellApart(m.global, clusterWide)
}

// Tenants are the namespaces of every tenant, both sorted.
func (m *Map) Tenants() map[string][]string {
	tenants := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(m.namespaces)) {
		if tenant := m.Tenant(name); tenant != "" {
			tenants[tenant] = append(tenants[tenant], name)
		}
	}
	return tenants
}

// Tenant is the tenant that a namespace belongs to; "" if it is no tenant's.
func (m *Map) Tenant(namespace string) string {
	n, ok := m.namespaces[namespace]
	if !ok {
		return ""
	}
	return n.labels[v1alpha1.TenantLabel]
}

// Has reports whether there is such a namespace.
func (m *Map) Has(namespace string) bool {
	_, ok := m.namespaces[namespace]
	return ok
}

// Verdict says whether a connection is allowed, and by which policies.
type Verdict struct {
	Allowed bool `json:"allowed"`
	// Egress is the decision of the source's policies, Ingress that of the
	// destination's.
	Egress  Direction `json:"egress"`
	Ingress Direction `json:"ingress"`
	// Connection is the judged connection: of several, the first that is allowed.
	Connection string `json:"connection"`
}

// Direction is one half of a verdict. Without any policy that selects the pod,
// everything is allowed.
type Direction struct {
	Allowed bool `json:"allowed"`
	// DecidedBy is the one policy that allowed or denied it, among policies that are
	// evaluated in order.
	DecidedBy string `json:"decidedBy,omitempty"`
	// Allowing are the NetworkPolicies that allow the connection, as namespace/name;
	// Selecting are all evaluated policies that select the pod.
	Allowing  []string `json:"allowing,omitempty"`
	Selecting []string `json:"selecting,omitempty"`
}

// Allows reports whether the policies allow a connection between ordinary pods, without
// labels. It is an error if a namespace of the flow does not exist.
func (m *Map) Allows(f attack.Flow) (bool, error) {
	verdict, err := m.Judge(f)
	return verdict.Allowed, err
}

// Judge is Allows with the reasons.
func (m *Map) Judge(f attack.Flow) (Verdict, error) {
	if len(f.Beside)+len(f.Without) > 0 {
		var err error
		if m, err = m.as(f.Beside, f.Without); err != nil {
			return Verdict{}, err
		}
	}
	c := connection{fromIP: f.FromIP, toIP: f.ToIP, toLabels: f.ToLabels, port: port{number: f.Port, protocol: corev1.Protocol(f.Protocol)}}
	for _, side := range []struct {
		name string
		to   **namespace
	}{{f.FromNamespace, &c.from}, {f.ToNamespace, &c.to}} {
		if side.name == "" {
			continue
		}
		n, ok := m.namespaces[side.name]
		if !ok {
			return Verdict{}, missing(side.name)
		}
		*side.to = n
	}
	return c.verdict(), nil
}

// Connects reports whether any pod of one namespace can connect to any pod of
// another, on the given port or, if that is 0, on any.
func (m *Map) Connects(from, to string, number int, protocol string) (Verdict, error) {
	source, ok := m.namespaces[from]
	if !ok {
		return Verdict{}, missing(from)
	}
	destination, ok := m.namespaces[to]
	if !ok {
		return Verdict{}, missing(to)
	}
	var first *connection
	for _, c := range connections(source, destination, number, corev1.Protocol(protocol)) {
		if c.allowed() {
			return c.verdict(), nil
		}
		if first == nil {
			first = &c
		}
	}
	return first.verdict(), nil
}

func missing(namespace string) error { return fmt.Errorf("there is no namespace %s", namespace) }
