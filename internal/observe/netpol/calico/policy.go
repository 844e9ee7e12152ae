// Package calico converts policies of Calico's API into the form of package tier.
package calico

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/internal/observe/netpol/tier"
)

const (
	// DefaultTier is the tier of policies that name no tier, and of Kubernetes
	// NetworkPolicies.
	DefaultTier = "default"
	// DefaultTierOrder is the order of DefaultTier.
	DefaultTierOrder = 1_000_000
	// KubernetesOrder is the order that Calico assigns to Kubernetes NetworkPolicies.
	KubernetesOrder = 1000

	// Labels that Calico adds to pods and to namespaces.
	namespaceLabel = "projectcalico.org/namespace"
	nameLabel      = "projectcalico.org/name"
)

// Policy is a NetworkPolicy or a GlobalNetworkPolicy.
type Policy struct {
	*tier.Policy
	// Tier is the name of the policy's tier.
	Tier string
	// Namespace is the policy's namespace. It is empty for a cluster-wide policy.
	Namespace string
	// Pods and Peers are labels of pods that the policy distinguishes, at the near and at the
	// far end. Ports are the ports that it names.
	Pods, Peers []map[string]string
	Ports       []tier.Ports
}

// spec has the fields of both kinds that decide about connections.
type spec struct {
	Order                  *float64 `json:"order"`
	Tier                   string   `json:"tier"`
	Selector               string   `json:"selector"`
	NamespaceSelector      string   `json:"namespaceSelector"`
	ServiceAccountSelector string   `json:"serviceAccountSelector"`
	Types                  []string `json:"types"`
	Ingress                []rule   `json:"ingress"`
	Egress                 []rule   `json:"egress"`
	// These apply to the interfaces of hosts, not of pods.
	DoNotTrack bool `json:"doNotTrack"`
	PreDNAT    bool `json:"preDNAT"`
}

type rule struct {
	Action      string              `json:"action"`
	IPVersion   int                 `json:"ipVersion"`
	Protocol    *intstr.IntOrString `json:"protocol"`
	NotProtocol *intstr.IntOrString `json:"notProtocol"`
	HTTP        map[string]any      `json:"http"`
	Source      entity              `json:"source"`
	Destination entity              `json:"destination"`
}

// FormatName returns the name of a policy for messages.
func FormatName(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return "Calico " + o.GetKind() + " " + o.GetName()
	}
	return "Calico " + o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// NewPolicy reads a policy. It returns nil for a policy that does not apply to pods.
func NewPolicy(o *unstructured.Unstructured, sets *Sets) (*Policy, error) {
	name := FormatName(o)
	var s spec
	data, err := json.Marshal(o.Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if s.DoNotTrack || s.PreDNAT {
		return nil, nil
	}
	p := &Policy{Tier: s.Tier, Namespace: o.GetNamespace(), Policy: &tier.Policy{Name: name, Order: math.Inf(1)}}
	if p.Tier == "" {
		p.Tier = DefaultTier
	}
	if s.Order != nil {
		p.Order = *s.Order
	}
	if err := p.compile(s, sets); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

func (p *Policy) compile(s spec, sets *Sets) error {
	pods, err := Parse(s.Selector)
	if err != nil {
		return err
	}
	namespaces, err := Parse(s.NamespaceSelector)
	if err != nil {
		return err
	}
	p.Pods = pods.Samples()
	if len(s.Types) == 0 {
		s.Types = listDirections(s)
	}
	rules := map[tier.Direction][]compiledRule{}
	for direction, of := range map[tier.Direction][]rule{tier.Ingress: s.Ingress, tier.Egress: s.Egress} {
		for _, r := range of {
			c, err := p.compileRule(r, sets)
			if err != nil {
				return err
			}
			rules[direction] = append(rules[direction], c)
			near, far := c.destination, c.source
			if direction == tier.Egress {
				near, far = far, near
			}
			p.Pods = append(p.Pods, near.sampleLabels()...)
			p.Peers = append(p.Peers, far.sampleLabels()...)
			p.Ports = append(p.Ports, c.listPorts()...)
		}
	}
	p.Evaluate = func(c *tier.Connection, d tier.Direction) (tier.Match, tier.Action) {
		near := c.NearPod(d)
		if near == nil || !slices.Contains(s.Types, strings.ToUpper(string(d[:1]))+string(d[1:])) ||
			p.Namespace != "" && near.Namespace != p.Namespace || !pods.Matches(buildEndpointLabels(near)) {
			return tier.No, ""
		}
		selects := tier.Yes
		if s.NamespaceSelector != "" {
			selects = tier.FromBool(namespaces.Matches(buildNamespaceLabels(near)))
		}
		if s.ServiceAccountSelector != "" {
			selects = tier.MatchAll(selects, tier.Maybe)
		}
		if selects == tier.No {
			return tier.No, ""
		}
		return selects, tier.FirstMatching(rules[d], func(r compiledRule) tier.Action { return r.action }, func(r compiledRule) tier.Match { return r.matches(c) })
	}
	return nil
}

// listDirections returns the directions of a policy without types: those with rules, or ingress if
// it has no rules.
func listDirections(s spec) []string {
	var types []string
	if len(s.Ingress) > 0 || len(s.Egress) == 0 {
		types = append(types, "Ingress")
	}
	if len(s.Egress) > 0 {
		types = append(types, "Egress")
	}
	return types
}

// buildEndpointLabels returns a pod's labels, including labels that Calico adds.
func buildEndpointLabels(pod *tier.Pod) map[string]string {
	all := map[string]string{namespaceLabel: pod.Namespace, "projectcalico.org/orchestrator": "k8s"}
	for key, value := range pod.Labels {
		all[key] = value
	}
	return all
}

func buildNamespaceLabels(pod *tier.Pod) map[string]string {
	all := map[string]string{nameLabel: pod.Namespace, metav1NameLabel: pod.Namespace}
	for key, value := range pod.NamespaceLabels {
		all[key] = value
	}
	return all
}

// metav1NameLabel is the label that Kubernetes adds to every namespace.
const metav1NameLabel = "kubernetes.io/metadata.name"

// NewTier reads a Tier: its name, its order, and whether it denies undecided connections.
func NewTier(o *unstructured.Unstructured) (name string, t tier.Tier) {
	t = tier.Tier{Order: math.Inf(1), Denies: true}
	switch order, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "order"); order := order.(type) {
	case int64:
		t.Order = float64(order)
	case float64:
		t.Order = order
	}
	if action, _, _ := unstructured.NestedString(o.Object, "spec", "defaultAction"); action == "Pass" {
		t.Denies = false
	}
	return o.GetName(), t
}
