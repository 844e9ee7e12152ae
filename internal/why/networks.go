package why

import (
	"context"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/catalog"
)

// rangeFull is the catalogue's row for pods that get no address because a network has none
// left.
const rangeFull = "network-range-full"

// networksPending is the catalogue's row for nodes that wait for their secondary networks.
const networksPending = "networks-pending"

// networkOf matches the network in Multus' message about a failed plugin. croft's
// NetworkAttachmentDefinitions have the name of their SecondaryNetwork.
var networkOf = regexp.MustCompile(`to network "([^"]+)"`)

// withoutAddress returns the last event about a network without a free address for a pod,
// or nil.
func (s *Snapshot) withoutAddress(pod *corev1.Pod) *corev1.Event {
	for _, e := range s.about("Pod", pod.Name, kubelet) {
		for _, f := range catalog.Match(e.Message) {
			if f.ID == rangeFull {
				return &e
			}
		}
	}
	return nil
}

// networks reads the SecondaryNetworks if a pod waits for an address. A tenant may not read
// them: for a tenant, the event is sufficient to ask an admin.
func (g *gatherer) networks(ctx context.Context) error {
	for i := range g.Pods {
		if pod := &g.Pods[i]; ready(pod) || g.withoutAddress(pod) == nil {
			continue
		}
		var list v1alpha1.SecondaryNetworkList
		err := g.list(ctx, "secondarynetwork", &list)
		g.Networks = list.Items
		return err
	}
	return nil
}

// networksAwaited returns the reason why a node does not accept pods yet, from the
// condition that croft's operator writes. It is Waiting while the node is starting.
func networksAwaited(node *corev1.Node) []Step {
	pending := func(t *corev1.Taint) bool { return t.Key == v1alpha1.NetworksTaint }
	c := find(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == v1alpha1.ConditionPodNetworksReady })
	if c == nil || find(node.Spec.Taints, pending) == nil {
		return nil
	}
	if c.Status == corev1.ConditionTrue {
		return []Step{waiting(LinkNode, "node/"+node.Name, "its secondary networks are ready, and the taint "+v1alpha1.NetworksTaint+
			" is about to go: where its pool has a NodeReadinessRule, the node readiness controller removes it, which must run")}
	}
	text := catalog.Condition(string(c.Type), string(c.Status), c.Reason, c.Message)
	step := judged(LinkNode, "node/"+node.Name, text, networksPending)
	if time.Since(node.CreationTimestamp.Time) < Usual {
		step.Verdict = Waiting
	}
	return []Step{step}
}

// networkSteps reports the usage of the network that an event names.
func networkSteps(s *Snapshot, e *corev1.Event) []Step {
	named := networkOf.FindStringSubmatch(e.Message)
	if named == nil {
		return nil
	}
	n := find(s.Networks, func(n *v1alpha1.SecondaryNetwork) bool { return n.Name == named[1] })
	if n == nil {
		return nil
	}
	object := "secondarynetwork/" + n.Name
	c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
	switch {
	case c == nil:
		return nil
	case c.Status == metav1.ConditionTrue:
		return []Step{waiting(LinkNetwork, object, "it has addresses again: the pod is tried anew within a minute")}
	default:
		return []Step{bad(LinkNetwork, object, catalog.Condition(c.Type, string(c.Status), c.Reason, c.Message))}
	}
}
