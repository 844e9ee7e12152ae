package page

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/diagnose/doctor"
	"croft.dev/croft/internal/diagnose/why"
)

// mostNodes is the maximum number of rows.
const mostNodes = 200

// NewPools returns the page of the pools and nodes: launches that fail first.
func NewPools(s *nodes.Snapshot, now time.Time) Page {
	body := Sections{listLaunchProblems(s, now), listPools(s.Pools, now)}
	if len(s.Nodes) > 0 {
		body = append(body, listNodes(s.Nodes, now))
	} else {
		body = append(body, listClaims(s.Claims, now))
	}
	body = append(body, linkStarts())
	if len(s.Hidden) > 0 {
		body[0].Note = describeHidden(s.Hidden)
		body[0].Empty = T("Ask a platform admin for failed launches: croft doctor.")
	}
	return Page{
		Title: T("Pools and nodes"), Heading: T("Pools and nodes"), Body: body,
		Commands: []string{"croft status", "croft doctor", "kubectl get pools,nodeclaims,nodes"},
	}
}

// linkStarts links the page with the times of all nodes. The pools link their own.
func linkStarts() Section {
	return Section{
		Heading: T("Duration of starts"), Head: listHeads("Page", "Shows"),
		Rows: [][]Cell{{{PageText: T("Starts of nodes"), Link: "/nodes"}, {PageText: T("how long the last nodes took to become ready, and where the time went")}}},
	}
}

// listLaunchProblems has the findings of `croft doctor`.
func listLaunchProblems(s *nodes.Snapshot, now time.Time) Section {
	t := Section{
		Heading: T("Failed launches"), Head: listHeads("Object", "State", "Cause", "Fix"),
		Empty: T("No launch has failed in the last minutes. If a pod waits for a node, open the pod."),
	}
	for _, f := range doctor.FindLaunchProblems(s.Claims, s.Refusals, now) {
		t.Rows = append(t.Rows, []Cell{{Text: f.Object}, {Text: f.Message, Verdict: why.Bad}, {Text: cmp.Or(f.Cause, "-")}, {Text: cmp.Or(f.Fix, "-")}})
	}
	return t
}

func listPools(pools []v1alpha1.Pool, now time.Time) Section {
	t := Section{
		Heading: T("Pools"), Head: listHeads("Pool", "Ready", "Reason", "Message", "Nodes", "CPU", "Memory", "Tenants", "Age"),
		Empty: T("There are no pools: declare them in croft.yaml, and run croft apply."),
	}
	for i := range pools {
		p := &pools[i]
		c := findReady(p.Generation, p.Status.Status)
		ready := Cell{Text: string(c.Status), Verdict: evaluateCondition(c.Status)}
		message := c.Message
		if c.Status == metav1.ConditionTrue {
			message = ""
		}
		t.Rows = append(t.Rows, []Cell{
			{Text: p.Name, Link: Link("pools", p.Name)}, ready, {Text: c.Reason}, {Text: message}, {Text: strconv.FormatInt(p.Status.Nodes, 10)},
			{Text: p.Status.Resources.Cpu().String()}, {Text: p.Status.Resources.Memory().String()}, {Text: strconv.FormatInt(p.Status.Tenants, 10)},
			newAgeCell(p.CreationTimestamp.Time, now),
		})
	}
	return t
}

func evaluateCondition(status metav1.ConditionStatus) why.Verdict {
	switch status {
	case metav1.ConditionTrue:
		return why.Good
	case metav1.ConditionFalse:
		return why.Bad
	default:
		return why.Waiting
	}
}

// nodeHead is the head of the tables of nodes.
var nodeHead = listHeads("Node", "Pool", "State", "Instance", "Zone", "Age")

var noNodes = T("There are no nodes: Karpenter creates one when a pod of a pool needs it.")

// listClaims lists NodeClaims, which have the state of a node from its launch.
func listClaims(claims []karpenterv1.NodeClaim, now time.Time) Section {
	t := Section{Heading: T("Nodes"), Head: nodeHead, Empty: noNodes}
	for i := range claims {
		c := &claims[i]
		name := cmp.Or(c.Status.NodeName, "nodeclaim/"+c.Name)
		t.Rows = append(t.Rows, makeNodeRow(name, describeClaim(c), c.Labels, c.CreationTimestamp, now))
	}
	return sortNodes(t)
}

// describeClaim returns the first condition that is missing.
func describeClaim(c *karpenterv1.NodeClaim) Cell {
	if c.DeletionTimestamp != nil {
		return Cell{PageText: T("is being deleted"), Verdict: why.Waiting}
	}
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered, karpenterv1.ConditionTypeInitialized} {
		if !c.StatusConditions().IsTrue(kind) {
			return Cell{PageText: T("not %s yet", kind), Verdict: why.Waiting}
		}
	}
	return Cell{Text: karpenterv1.ConditionTypeInitialized, Verdict: why.Good}
}

// listNodes lists Nodes, for users who may not list NodeClaims.
func listNodes(all []corev1.Node, now time.Time) Section {
	t := Section{Heading: T("Nodes"), Head: nodeHead, Empty: noNodes}
	for i := range all {
		n := &all[i]
		state := Cell{PageText: T("not Ready"), Verdict: why.Waiting}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				state = Cell{PageText: T("Ready"), Verdict: why.Good}
			}
		}
		if n.Spec.Unschedulable {
			state = Cell{PageText: T("%s, accepts no new pods", state.PageText), Verdict: why.Waiting}
		}
		t.Rows = append(t.Rows, makeNodeRow(n.Name, state, n.Labels, n.CreationTimestamp, now))
	}
	return sortNodes(t)
}

func makeNodeRow(name string, state Cell, labels map[string]string, created metav1.Time, now time.Time) []Cell {
	pool := cmp.Or(labels[karpenterv1.NodePoolLabelKey], labels[v1alpha1.DefaultNodePoolKey], "-")
	return []Cell{
		{Text: name}, {Text: pool}, state, {Text: cmp.Or(labels[corev1.LabelInstanceTypeStable], "-")},
		{Text: cmp.Or(labels[corev1.LabelTopologyZone], "-")}, newAgeCell(created.Time, now),
	}
}

// sortNodes sorts a table of nodes: nodes that are not ready first.
func sortNodes(t Section) Section {
	slices.SortStableFunc(t.Rows, func(a, b []Cell) int {
		ready := func(row []Cell) int { return map[bool]int{false: 0, true: 1}[row[2].Verdict == why.Good] }
		return cmp.Or(cmp.Compare(ready(a), ready(b)), cmp.Compare(a[1].Text, b[1].Text), cmp.Compare(a[0].Text, b[0].Text))
	})
	if more := len(t.Rows) - mostNodes; more > 0 {
		t.Note = T("%d more nodes are not shown.", more)
		t.Rows = t.Rows[:mostNodes]
	}
	return t
}
