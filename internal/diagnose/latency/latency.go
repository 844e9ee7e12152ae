// Package latency computes how long each node took, from the pod that needed it until that pod
// was ready, and the duration of each phase. It reads objects of the API (NodeClaims, Nodes,
// Pods and events), and the events that package boot finds in the logs of nodes. It does no
// I/O.
//
// Most times in the API have a resolution of a second, and some are of the node's clock. Times
// from logs are truncated to seconds, so that both are comparable. Unknown times are absent:
// never 0, and never guessed.
package latency

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/network/boot"
)

// These are the events of a timeline, in addition to the events of package boot.
const (
	PodCreated       = "Pod Created"
	ClaimCreated     = "NodeClaim Created"
	PodNominated     = "Pod Nominated"
	ClaimLaunched    = "NodeClaim Launched"
	NodeCreated      = "Node Created"
	ClaimRegistered  = "NodeClaim Registered"
	NodeReady        = "Node Ready"
	ClaimInitialized = "NodeClaim Initialized"
	PodScheduled     = "Pod Scheduled"
	PodStarted       = "Pod Started"
	PodSandboxReady  = "Pod Sandbox Ready"
	PodReady         = "Pod Ready"

	// InterfacesAttached, LinksUp and NetworksReady are events of nodes with secondary
	// networks.
	InterfacesAttached = "Interfaces Attached"
	LinksUp            = "Links Up"
	NetworksReady      = "Networks Ready"
)

// clockSkew is the maximum lead of a node's clock over Karpenter's. A node whose Ready
// condition changed more than this after it was Initialized had been Ready before.
const clockSkew = 5 * time.Second

// imageLabel is the label with the image of nodes in EKS managed node groups, which have no
// NodeClaim.
const imageLabel = "eks.amazonaws.com/nodegroup-image"

// Objects are the objects that contain the times.
type Objects struct {
	Claims []karpenterv1.NodeClaim
	Nodes  []corev1.Node
	Pods   []corev1.Pod
	// Events are the events with a reason in EventReasons; others are ignored.
	Events []corev1.Event
	// Boots are events in the nodes' logs, by node name. For other nodes, Build reads the
	// annotation that croft's agent writes.
	Boots map[string]boot.Times
}

// These are the reasons of events on NodeClaims that croft's operator writes.
const (
	networksAttached = "NetworksAttached"
	networksReady    = "NetworksReady"
)

// EventReasons returns the reasons of the events that Build uses.
func EventReasons() []string { return []string{Nominated, networksAttached, networksReady} }

// Options select nodes.
type Options struct {
	// Since excludes nodes that were requested earlier, unless it is zero.
	Since time.Time
	// SomePods means that not all pods were read: an absent pod may still exist elsewhere.
	SomePods bool
}

// Timeline has the times of one node.
type Timeline struct {
	// Node is empty until the node has registered.
	Node string `json:"node,omitempty"`
	// Claim is empty for nodes that Karpenter did not create.
	Claim        string `json:"nodeClaim,omitempty"`
	Pool         string `json:"pool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	InstanceID   string `json:"instanceID,omitempty"`
	Address      string `json:"address,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	Zone         string `json:"zone,omitempty"`
	// Image is the machine image, on AWS the AMI.
	Image string `json:"image,omitempty"`
	// Pod is the pod for which the node was created, as namespace/name.
	Pod string `json:"pod,omitempty"`
	// Events are sorted by time.
	Events []Event `json:"events"`
	// Phases are in seconds. A phase is absent unless both of its ends are known.
	Phases map[Phase]float64 `json:"phases"`
	// Notes explain why an expected value is absent.
	Notes []string `json:"notes,omitempty"`
}

// Event is an event of a timeline.
type Event struct {
	Name string    `json:"event"`
	Time time.Time `json:"time"`
	// Seconds is the time since the first event.
	Seconds float64 `json:"seconds"`
	Comment string  `json:"comment,omitempty"`
}

// Title returns the name of the node, or of the NodeClaim if there is no node yet.
func (t *Timeline) Title() string { return cmp.Or(t.Node, t.Claim) }

// findTime returns the time of an event, and false if it is unknown.
func (t *Timeline) findTime(name string) (time.Time, bool) {
	i := slices.IndexFunc(t.Events, func(e Event) bool { return e.Name == name })
	if i < 0 {
		return time.Time{}, false
	}
	return t.Events[i].Time, true
}

// addEvent adds an event, unless its time is zero.
func (t *Timeline) addEvent(name string, at time.Time, comment string) {
	if !at.IsZero() {
		t.Events = append(t.Events, Event{Name: name, Time: at.UTC().Truncate(time.Second), Comment: comment})
	}
}

func (t *Timeline) addNote(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// Build returns a timeline for each node, and for each NodeClaim without a node yet, in the
// order of their requests.
func Build(o Objects, opts Options) []Timeline {
	x := newIndex(o)
	all := []Timeline{}
	found := map[string]bool{}
	for i := range o.Claims {
		node := x.findNode(&o.Claims[i])
		if node != nil {
			found[node.Name] = true
		}
		all = append(all, x.buildTimeline(&o.Claims[i], node, opts))
	}
	for i := range o.Nodes {
		if !found[o.Nodes[i].Name] {
			all = append(all, x.buildTimeline(nil, &o.Nodes[i], opts))
		}
	}
	findStart := func(t *Timeline) time.Time {
		at, ok := t.findTime(ClaimCreated)
		if !ok {
			at, _ = t.findTime(NodeCreated)
		}
		return at
	}
	all = slices.DeleteFunc(all, func(t Timeline) bool {
		return findStart(&t).Before(opts.Since)
	})
	slices.SortStableFunc(all, func(a, b Timeline) int {
		return cmp.Or(findStart(&a).Compare(findStart(&b)), strings.Compare(a.Title(), b.Title()))
	})
	return all
}

// buildTimeline collects the times of a node. claim or node may be nil.
func (x *index) buildTimeline(claim *karpenterv1.NodeClaim, node *corev1.Node, opts Options) Timeline {
	t := Timeline{Events: []Event{}}
	if claim != nil {
		t.setClaim(claim)
		t.addClaim(claim)
		t.addPod(x.findNeed(claim, node), node, opts)
	}
	if claim != nil {
		x.addNetworks(&t, claim)
	}
	if node != nil {
		t.setNode(node)
		t.addNode(node, claim)
		x.addBoot(&t, node)
	}
	t.sortEvents()
	t.measurePhases()
	return t
}

// sortEvents sorts the events by time, and sets their seconds since the first.
func (t *Timeline) sortEvents() {
	slices.SortFunc(t.Events, func(a, b Event) int {
		return cmp.Or(a.Time.Compare(b.Time), slices.Index(usual, a.Name)-slices.Index(usual, b.Name))
	})
	for i := range t.Events {
		t.Events[i].Seconds = t.Events[i].Time.Sub(t.Events[0].Time).Seconds()
	}
}

func (t *Timeline) setClaim(claim *karpenterv1.NodeClaim) {
	t.Claim, t.Node, t.Image = claim.Name, claim.Status.NodeName, claim.Status.ImageID
	t.setLabels(claim.Labels, claim.Status.ProviderID)
}

func (t *Timeline) setNode(node *corev1.Node) {
	t.Node = node.Name
	t.setLabels(node.Labels, node.Spec.ProviderID)
	t.Image = cmp.Or(t.Image, node.Labels[imageLabel])
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			t.Address = cmp.Or(t.Address, address.Address)
		}
	}
}

func (t *Timeline) setLabels(labels map[string]string, providerID string) {
	t.Pool = cmp.Or(t.Pool, labels[karpenterv1.NodePoolLabelKey])
	t.InstanceType = cmp.Or(t.InstanceType, labels[corev1.LabelInstanceTypeStable])
	t.Zone = cmp.Or(t.Zone, labels[corev1.LabelTopologyZone])
	t.Architecture = cmp.Or(t.Architecture, labels[corev1.LabelArchStable])
	t.InstanceID = cmp.Or(t.InstanceID, providerID[strings.LastIndexByte(providerID, '/')+1:])
}

func (t *Timeline) addClaim(claim *karpenterv1.NodeClaim) {
	t.addEvent(ClaimCreated, claim.CreationTimestamp.Time, "")
	taints := ""
	if len(claim.Spec.StartupTaints) > 0 {
		taints = "startup taints were removed: " + formatKeys(claim.Spec.StartupTaints)
	}
	for _, c := range claim.Status.Conditions {
		if c.Status != metav1.ConditionTrue {
			continue
		}
		switch c.Type {
		case karpenterv1.ConditionTypeLaunched:
			t.addEvent(ClaimLaunched, c.LastTransitionTime.Time, "")
		case karpenterv1.ConditionTypeRegistered:
			t.addEvent(ClaimRegistered, c.LastTransitionTime.Time, "")
		case karpenterv1.ConditionTypeInitialized:
			t.addEvent(ClaimInitialized, c.LastTransitionTime.Time, taints)
		}
	}
}

func (t *Timeline) addNode(node *corev1.Node, claim *karpenterv1.NodeClaim) {
	t.addEvent(NodeCreated, node.CreationTimestamp.Time, "kubelet registered")
	initialized, isInitialized := t.findTime(ClaimInitialized)
	for _, c := range node.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != corev1.NodeReady && c.Type != v1alpha1.ConditionNetworksReady {
			continue
		}
		event, turned, comment := NodeReady, "became Ready again", ""
		if c.Type != corev1.NodeReady {
			event, turned, comment = LinksUp, "reported its links of secondary networks as up again", c.Message
		}
		at := c.LastTransitionTime.Time
		if isInitialized && at.After(initialized.Add(clockSkew)) {
			t.addNote("%s at %s: the first time is unknown", turned, at.UTC().Format(time.RFC3339))
			continue
		}
		t.addEvent(event, at, comment)
	}
	if claim == nil || isInitialized {
		return
	}
	left := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(taint corev1.Taint) bool {
		return !slices.ContainsFunc(claim.Spec.StartupTaints,
			func(s corev1.Taint) bool { return s.MatchTaint(&taint) })
	})
	if len(left) > 0 {
		t.addNote("still has startup taints: %s", formatKeys(left))
	}
}

func formatKeys(taints []corev1.Taint) string {
	keys := make([]string, len(taints))
	for i := range taints {
		keys[i] = taints[i].Key
	}
	return strings.Join(keys, ", ")
}
