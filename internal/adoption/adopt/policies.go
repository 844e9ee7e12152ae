package adopt

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/observe/netpol"
	"croft.dev/croft/internal/rules/attack"
)

// stranger is a namespace that belongs neither to the tenant nor to the platform.
const stranger = "croft-adopt-stranger"

// compareNetworkPolicy reports whether croft's policies allow every connection that a policy
// allows. Both deny all other connections: croft's policies select every pod, in both
// directions.
func (a *Adoption) compareNetworkPolicy(o *unstructured.Unstructured) (bool, string) {
	var policy networkingv1.NetworkPolicy
	if decodeInto(o, &policy) != nil {
		return false, ""
	}
	c, err := a.newComparison(policy.Namespace)
	if err != nil {
		return false, "cannot be compared: " + err.Error()
	}
	for _, rule := range policy.Spec.Ingress {
		if more := c.findExtra(rule.From, rule.Ports, true); more != "" {
			return false, "allows more ingress than the tenant's walls (" + more + "): stays, and allows it in addition to them"
		}
	}
	for _, rule := range policy.Spec.Egress {
		if more := c.findExtra(rule.To, rule.Ports, false); more != "" {
			return false, "allows more egress than the tenant's walls (" + more + "): stays, and allows it in addition to them"
		}
	}
	return true, "croft's policies allow the same connections, and deny all others"
}

// comparison compares policies of one namespace with the walls.
type comparison struct {
	namespace string
	known     []corev1.Namespace
	walls     []client.Object
	borders
}

// newComparison returns the comparison of a namespace's policies with the tenant's walls.
func (a *Adoption) newComparison(own string) (*comparison, error) {
	namespaces := []corev1.Namespace{newNamespace(metav1.NamespaceSystem)}
	for _, name := range a.estate.Platform.Network.PlatformNamespaces {
		namespaces = append(namespaces, newNamespace(name))
	}
	c := &comparison{namespace: own}
	c.known, c.walls = a.buildWalledNamespaces(namespaces)
	var err error
	c.borders, err = collectBorders(c.walls)
	return c, err
}

func newNamespace(name string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelMetadataName: name}}}
}

// findExtra returns a connection that a rule allows and the walls deny, or "" if there is none.
func (c *comparison) findExtra(peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, ingress bool) string {
	for _, peer := range expandPeers(peers) {
		sides, err := c.listSides(peer)
		if err != nil {
			return err.Error()
		}
		for _, s := range sides {
			more, err := c.findExtraOnSide(s, c.samplePorts(ports), ingress)
			if err != nil {
				return err.Error()
			}
			if more != "" {
				return more
			}
		}
	}
	return ""
}

// findExtraOnSide returns the first connection with one side that the walls do not allow.
func (c *comparison) findExtraOnSide(s side, ports []port, ingress bool) (string, error) {
	namespaces := slices.Clone(c.known)
	if s.namespace != nil {
		namespaces = append(slices.DeleteFunc(namespaces, func(n corev1.Namespace) bool { return n.Name == s.namespace.Name }), *s.namespace)
	}
	judge, err := netpol.NewFromObjects(namespaces, c.walls)
	if err != nil {
		return "", err
	}
	for _, pod := range s.pods {
		for _, p := range ports {
			f := attack.Flow{Port: p.number, Protocol: p.protocol}
			if ingress {
				f.FromNamespace, f.FromIP, f.ToNamespace = s.name(), s.ip, c.namespace
			} else {
				f.FromNamespace, f.ToNamespace, f.ToIP, f.ToLabels = c.namespace, s.name(), s.ip, pod
			}
			v, err := judge.Evaluate(f)
			if err != nil {
				return "", err
			}
			if ingress && !v.Ingress.Allowed || !ingress && !v.Egress.Allowed {
				return fmt.Sprintf("such as %s, port %d/%s", s, p.number, p.protocol), nil
			}
		}
	}
	return "", nil
}

// expandPeers returns the peers of a rule. A rule without peers matches all.
func expandPeers(peers []networkingv1.NetworkPolicyPeer) []networkingv1.NetworkPolicyPeer {
	if len(peers) > 0 {
		return peers
	}
	return []networkingv1.NetworkPolicyPeer{
		{NamespaceSelector: &metav1.LabelSelector{}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
		{IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
	}
}

// side is one end of connections: an address, or pods of a namespace.
type side struct {
	namespace *corev1.Namespace
	ip        string
	pods      []labels.Set
}

func (s side) name() string {
	if s.namespace == nil {
		return ""
	}
	return s.namespace.Name
}

// String describes the side for messages.
func (s side) String() string {
	switch s.name() {
	case "":
		return s.ip
	case stranger:
		return "a namespace with the labels {" + labels.Set(s.namespace.Labels).String() + "}"
	default:
		return "namespace " + s.name()
	}
}

// listSides returns representatives of everything that a peer selects: one address of each part,
// or one namespace of each kind. It returns an error if they cannot be determined, so that no
// decision relies on them.
func (c *comparison) listSides(peer networkingv1.NetworkPolicyPeer) ([]side, error) {
	if peer.IPBlock != nil {
		addresses, err := c.sampleAddresses(peer.IPBlock)
		sides := make([]side, len(addresses))
		for i, address := range addresses {
			sides[i] = side{ip: address.String(), pods: []labels.Set{nil}}
		}
		return sides, err
	}
	pods := []labels.Set{nil}
	if peer.PodSelector != nil {
		var err error
		if pods, err = expandSelector(peer.PodSelector); err != nil {
			return nil, err
		}
	}
	if peer.NamespaceSelector == nil {
		return []side{{namespace: c.buildNamespace(labels.Set{corev1.LabelMetadataName: c.namespace}), pods: pods}}, nil
	}
	chosen, err := expandSelector(peer.NamespaceSelector)
	if err != nil {
		return nil, err
	}
	sides := make([]side, len(chosen))
	for i, set := range chosen {
		sides[i] = side{namespace: c.buildNamespace(set), pods: pods}
	}
	return sides, nil
}

// buildNamespace returns a namespace with these labels: a known one if they name one, and otherwise
// an invented one.
func (c *comparison) buildNamespace(set labels.Set) *corev1.Namespace {
	name, ok := set[corev1.LabelMetadataName]
	if !ok {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: stranger, Labels: set}}
	}
	n := newNamespace(name)
	if i := slices.IndexFunc(c.known, func(k corev1.Namespace) bool { return k.Name == name }); i >= 0 {
		n = c.known[i]
	}
	n.Labels = labels.Merge(set, n.Labels)
	return &n
}
