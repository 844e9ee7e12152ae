package pool

import (
	"errors"
	"strings"
	"testing"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/controller/declared"
)

// newNodePool returns a NodePool with conditions, each as its type, status, reason and message.
func newNodePool(conditions ...[4]string) *karpenterv1.NodePool {
	n := &karpenterv1.NodePool{}
	for _, c := range conditions {
		n.Status.Conditions = append(n.Status.Conditions, status.Condition{Type: c[0], Status: metav1.ConditionStatus(c[1]), Reason: c[2], Message: c[3]})
	}
	return n
}

// TestComputeStatus fails if a condition of a Pool differs from the observation, or if a second
// reconcile changes one.
func TestComputeStatus(t *testing.T) {
	const accepted, applied, nodes, ready = v1alpha1.ConditionAccepted, v1alpha1.ConditionApplied, v1alpha1.ConditionNodesReady, v1alpha1.ConditionReady
	const reconciling, stalled = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	type conditions map[string]string
	for _, test := range []struct {
		name string
		// change is the difference to a pool that is ready.
		change func(*observation)
		// want are the conditions, each as its status, its reason and a part of its message.
		want conditions
		// progress is the condition that accompanies Ready, if it is not True.
		progress string
	}{
		{"ready", nil, conditions{accepted: "True Accepted", applied: "True Applied", nodes: "True NodePoolReady", ready: "True Ready"}, ""},
		{
			"no Platform", func(s *observation) { s.hasPlatform, s.applied = false, false },
			conditions{accepted: "False NoPlatform", applied: "", nodes: "", ready: "False NoPlatform"}, reconciling,
		},
		{
			"invalid", func(s *observation) {
				s.applied, s.entry.Problems = false, document.Problems{{Field: "spec.limits", Message: "too low"}}
			},
			conditions{accepted: "False Invalid spec.limits: too low", applied: "", ready: "False Invalid spec.limits: too low"}, stalled,
		},
		{
			"an object is rejected", func(s *observation) {
				s.err = apierrors.NewInvalid(schema.GroupKind{Kind: "NodePool"}, "apps", nil)
			},
			conditions{applied: "False Rejected NodePool", nodes: "", ready: "False Rejected"}, stalled,
		},
		{
			"an object cannot be written", func(s *observation) { s.err = errors.New("connection refused") },
			conditions{applied: "False ApplyFailed connection refused", nodes: "", ready: "False ApplyFailed"}, reconciling,
		},
		{
			"the cluster lacks Karpenter", func(s *observation) {
				s.err = &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "NodePool"}}
			},
			conditions{applied: "False ApplyFailed NodePool", nodes: "", ready: "False ApplyFailed"}, stalled,
		},
		{
			"not applied yet", func(s *observation) { s.applied = false },
			conditions{accepted: "True Accepted", applied: "", ready: "Unknown Pending " + applied}, reconciling,
		},
		{
			"the cache has no NodePool", func(s *observation) { s.nodePool = nil },
			conditions{applied: "True Applied", nodes: "Unknown NodePoolNotReady", ready: "Unknown NodePoolNotReady"}, reconciling,
		},
		{
			"Karpenter has set no condition", func(s *observation) { s.nodePool = newNodePool() },
			conditions{nodes: "Unknown NodePoolNotReady", ready: "Unknown NodePoolNotReady"}, reconciling,
		},
		{
			"Karpenter does not know yet", func(s *observation) {
				s.nodePool = newNodePool([4]string{"Ready", "Unknown", "AwaitingReconciliation", "soon"})
			},
			conditions{nodes: "Unknown NodePoolNotReady AwaitingReconciliation: soon", ready: "Unknown NodePoolNotReady"}, reconciling,
		},
		{
			"Karpenter reports failed conditions", func(s *observation) {
				s.nodePool = newNodePool([4]string{"NodeClassReady", "False", "NodeClassNotFound", "no class"}, [4]string{"ValidationSucceeded", "True", "", "fine"}, [4]string{"Ready", "False", "UnhealthyDependents", ""})
			},
			conditions{nodes: "False NodePoolNotReady UnhealthyDependents; NodeClassReady: no class", ready: "False NodePoolNotReady"}, reconciling,
		},
		{
			"being deleted while tenants use it", func(s *observation) { s.deleting, s.entry.Users = true, []string{"bank", "shop"} },
			conditions{applied: "True Applied", ready: "False InUse bank, shop"}, stalled,
		},
		{
			"being deleted, with retained namespaces", func(s *observation) {
				s.deleting, s.retained = true, []string{"shop-dev (of tenant shop)"}
			},
			conditions{ready: "False InUse shop-dev (of tenant shop)"}, stalled,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &observation{
				entry: declared.Entry[estate.Pool]{Users: []string{"shop"}}, hasPlatform: true, applied: true,
				nodePool: newNodePool([4]string{"Ready", "True", "Ready", ""}),
			}
			if test.change != nil {
				test.change(s)
			}
			pool := &v1alpha1.Pool{}
			pool.Generation = 3
			s.computeStatus(pool)
			for name, want := range test.want {
				is := meta.FindStatusCondition(pool.Status.Conditions, name)
				if want == "" && is == nil {
					continue
				}
				parts := append(strings.SplitN(want, " ", 3), "", "")
				if want == "" || is == nil || string(is.Status) != parts[0] || is.Reason != parts[1] || !strings.Contains(is.Message, parts[2]) || is.ObservedGeneration != 3 {
					t.Errorf("%s is %+v, want %q", name, is, want)
				}
			}
			if pool.Status.Tenants != int64(len(s.entry.Users)) || pool.Status.ObservedGeneration != 3 {
				t.Errorf("%d tenants, observed generation %d", pool.Status.Tenants, pool.Status.ObservedGeneration)
			}
			for _, name := range []string{v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
				if c := meta.FindStatusCondition(pool.Status.Conditions, name); (c != nil) != (name == test.progress) {
					t.Errorf("%s is %+v, want %q", name, c, test.progress)
				}
			}
			again := pool.DeepCopy()
			s.computeStatus(again)
			if !equality.Semantic.DeepEqual(pool, again) {
				t.Errorf("a second reconcile changes the status from %+v to %+v", pool.Status, again.Status)
			}
		})
	}
}

// TestReportNodes fails if Karpenter's numbers do not reach the Pool's status.
func TestReportNodes(t *testing.T) {
	n := newNodePool([4]string{"Ready", "True", "", ""})
	n.Status.Nodes = ptr.To[int64](4)
	n.Status.Resources = corev1.ResourceList{"cpu": resource.MustParse("16"), "nvidia.com/gpu": resource.MustParse("0")}
	pool := &v1alpha1.Pool{}
	(&observation{nodePool: n}).reportNodes(pool)
	if cpu := pool.Status.Resources["cpu"]; pool.Status.Nodes != 4 || len(pool.Status.Resources) != 1 || cpu.String() != "16" {
		t.Errorf("%d nodes with %v", pool.Status.Nodes, pool.Status.Resources)
	}
}
