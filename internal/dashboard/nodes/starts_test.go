package nodes_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/dashboard/nodes"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/diagnose/latency"
)

// TestGatherStarts expects the last nodes with the phases that `croft latency` computes from all pods, although
// only waiting pods and the pods on these nodes are read.
func TestGatherStarts(t *testing.T) {
	start := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) metav1.Time {
		return metav1.Time{Time: start.Add(time.Duration(minutes) * time.Minute)}
	}
	newNode := func(name, pool string, minutes int) []client.Object {
		labels := map[string]string{karpenterv1.NodePoolLabelKey: pool}
		return []client.Object{
			&karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: at(minutes)}, Status: karpenterv1.NodeClaimStatus{NodeName: name}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: at(minutes + 1)}},
		}
	}
	newPod := func(name, node string, minutes int, phase corev1.PodPhase) client.Object {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "1", CreationTimestamp: at(minutes)}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
		if node != "" {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(minutes + 3)}}
		}
		return p
	}
	newNomination := func(pod, claim string) client.Object {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}, Reason: latency.Nominated, Message: "Pod should schedule on: nodeclaim/" + claim, FirstTimestamp: at(50),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: pod, UID: "1"}, ReportingController: "karpenter", Source: corev1.EventSource{Component: "karpenter"},
		}
	}
	objects := []client.Object{newPod("runs", "node-39", 38, corev1.PodRunning), newPod("waits", "", 40, corev1.PodPending), newPod("elsewhere", "old", 1, corev1.PodRunning)}
	objects = append(objects, newNomination("waits", "new"), newNomination("elsewhere", "node-38"))
	objects = append(objects, &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: at(41)}})
	for i := range 40 {
		objects = append(objects, newNode(fmt.Sprintf("node-%02d", i), map[bool]string{true: "apps", false: "jobs"}[i%8 == 0], i)...)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	for name, c := range map[string]struct {
		pool     string
		errs     map[string]error
		requests int
		want     string
	}{
		"an admin":            {"", nil, 25, "20 nodes from new to node-21, 21 more; shop/waits 60s, shop/runs 60s; hidden []"},
		"a pool":              {"apps", nil, 11, "5 nodes from node-32 to node-00, 0 more; ; hidden []"},
		"an unknown pool":     {"other", nil, 2, "0 nodes, 0 more; ; hidden []"},
		"a team at the proxy": {"", map[string]error{"*v1.NodeClaimList": forbidden}, 2, "20 nodes from node-39 to node-20, 20 more; ; hidden [NodeClaims]"},
		"no events":           {"apps", map[string]error{"*v1.EventList": forbidden}, 9, "5 nodes from node-32 to node-00, 0 more; ; hidden [events]"},
		"no pods":             {"apps", map[string]error{"*v1.PodList": forbidden}, 6, "5 nodes from node-32 to node-00, 0 more; ; hidden [pods]"},
		"no nodes":            {"", map[string]error{"*v1.NodeList": forbidden}, 1, ""},
		"a broken server":     {"", map[string]error{"*v1.PodList": apierrors.NewInternalError(fmt.Errorf("broken"))}, 6, ""},
	} {
		t.Run(name, func(t *testing.T) {
			requests := 0
			on := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).
				WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} }).
				WithIndex(&corev1.Pod{}, "status.phase", func(o client.Object) []string { return []string{string(o.(*corev1.Pod).Status.Phase)} }).
				WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
				WithInterceptorFuncs(interceptor.Funcs{
					List: func(ctx context.Context, under client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						requests++
						if err := c.errs[fmt.Sprintf("%T", list)]; err != nil {
							return err
						}
						return under.List(ctx, list, opts...)
					},
				}).Build()
			s, err := nodes.GatherStarts(t.Context(), on, c.pool)
			if requests != c.requests {
				t.Errorf("%d requests, want %d", requests, c.requests)
			}
			if c.want == "" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("%d nodes", len(s.Timelines))
			if n := len(s.Timelines); n > 0 {
				got += fmt.Sprintf(" from %s to %s", s.Timelines[0].Title(), s.Timelines[n-1].Title())
			}
			var decisions []string
			for _, line := range s.Timelines {
				if seconds, known := line.Phases[latency.Decision]; known {
					decisions = append(decisions, line.Pod+" "+latency.FormatSeconds(seconds))
				}
				for _, note := range line.Notes {
					if strings.Contains(note, "is deleted") != strings.Contains(note, "does not run there") {
						t.Errorf("a pod that was not read is deleted: %s", note)
					}
				}
			}
			got += fmt.Sprintf(", %d more; %s; hidden %v", s.More, strings.Join(decisions, ", "), s.Hidden)
			if got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
