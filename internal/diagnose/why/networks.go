package why

import (
	"context"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/catalog"
)

// rangeFull is the catalogue's row for pods that get no address because a network has none
// left.
const rangeFull = "network-range-full"

// networksPending is the catalogue's row for nodes that wait for their secondary networks.
const networksPending = "networks-pending"

// networkOf matches the network in Multus' message about a failed plugin. croft's
// NetworkAttachmentDefinitions have the name of their SecondaryNetwork.
var networkOf = regexp.MustCompile(`to network "([^"]+)"`)

// findAddressEvent returns the last event about a network without a free address for a pod,
// or nil.
func (s *Snapshot) findAddressEvent(pod *corev1.Pod) *corev1.Event {
	for _, e := range s.findEvents("Pod", pod.Name, kubelet) {
		for _, f := range catalog.FindMatches(e.Message) {
			if f.ID == rangeFull {
				return &e
			}
		}
	}
	return nil
}

// gatherNetworks reads the SecondaryNetworks if a pod waits for an address. A tenant may not read
// them: for a tenant, the event is sufficient to ask an admin.
func (g *gatherer) gatherNetworks(ctx context.Context) {
	for i := range g.Pods {
		if pod := &g.Pods[i]; isPodReady(pod) || g.findAddressEvent(pod) == nil {
			continue
		}
		var list v1alpha1.SecondaryNetworkList
		g.listObjects(ctx, "secondarynetwork", &list)
		g.Networks = list.Items
		return
	}
}

// explainAwaitedNetworks returns the reason why a node does not accept pods yet, from the
// condition that croft's operator writes. It is Waiting while the node is starting.
func explainAwaitedNetworks(node *corev1.Node) []Step {
	pending := func(t *corev1.Taint) bool { return t.Key == v1alpha1.NetworksTaint }
	c := findFirst(node.Status.Conditions, func(c *corev1.NodeCondition) bool { return c.Type == v1alpha1.ConditionPodNetworksReady })
	if c == nil || findFirst(node.Spec.Taints, pending) == nil {
		return nil
	}
	if c.Status == corev1.ConditionTrue {
		return []Step{newWaitingStep(LinkNode, "node/"+node.Name, "its secondary networks are ready, and the taint "+v1alpha1.NetworksTaint+
			" is about to be removed: if its pool has a NodeReadinessRule, the node readiness controller removes it, and must run")}
	}
	text := catalog.FormatCondition(string(c.Type), string(c.Status), c.Reason, c.Message)
	step := newCatalogStep(LinkNode, "node/"+node.Name, text, networksPending)
	if time.Since(node.CreationTimestamp.Time) < Usual {
		step.Verdict = Waiting
	}
	return []Step{step}
}

// evaluateNetwork reports the usage of the network that an event names.
func evaluateNetwork(s *Snapshot, e *corev1.Event) []Step {
	named := networkOf.FindStringSubmatch(e.Message)
	if named == nil {
		return nil
	}
	n := findFirst(s.Networks, func(n *v1alpha1.SecondaryNetwork) bool { return n.Name == named[1] })
	if n == nil {
		return nil
	}
	object := "secondarynetwork/" + n.Name
	c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionAddressesAvailable)
	switch {
	case c == nil:
		return nil
	case c.Status == metav1.ConditionTrue:
		return []Step{newWaitingStep(LinkNetwork, object, "it has addresses again: kubelet tries the pod again within a minute")}
	default:
		return []Step{newBadStep(LinkNetwork, object, catalog.FormatCondition(c.Type, string(c.Status), c.Reason, c.Message))}
	}
}
