package latency

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/boot"
)

// addNetworks adds the times of a claim's secondary networks, for which croft's operator writes
// events.
func (x *index) addNetworks(t *Timeline, claim *karpenterv1.NodeClaim) {
	t.addEvent(InterfacesAttached, x.findFirstEvent(claim, networksAttached), "secondary networks")
	t.addEvent(NetworksReady, x.findFirstEvent(claim, networksReady), "startup taint removed")
}

// findFirstEvent returns the time of the first event with a reason on a NodeClaim. After a restart the
// operator may write another.
func (x *index) findFirstEvent(claim *karpenterv1.NodeClaim, reason string) time.Time {
	var first time.Time
	for _, e := range x.networks[claim.Name] {
		uid := e.InvolvedObject.UID
		if e.Reason != reason || uid != "" && claim.UID != "" && uid != claim.UID {
			continue
		}
		if at := findObservedTime(e); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// addBoot adds the events of the node's boot from its logs.
func (x *index) addBoot(t *Timeline, node *corev1.Node) {
	times, given := x.boots[node.Name]
	if text := node.Annotations[v1alpha1.BootAnnotation]; !given && text != "" {
		var err error
		if times, err = boot.Decode(text); err != nil {
			t.addNote("its annotation %s cannot be read: %v", v1alpha1.BootAnnotation, err)
		}
	}
	requested, isAsked := t.findTime(ClaimCreated)
	early := 0
	for event, at := range times {
		if isAsked && at.Before(requested.Add(-clockSkew)) {
			early++
			continue
		}
		t.addEvent(string(event), at, "")
	}
	if early > 0 {
		t.addNote("%d events of its logs are older than its NodeClaim, and are omitted", early)
	}
}
