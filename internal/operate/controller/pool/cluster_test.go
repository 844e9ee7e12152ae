package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// fixture is a cluster with croft installed, and without Karpenter.
type fixture struct{ *operatortest.Fixture }

// TestPool covers pools on one control plane. No subtest depends on another: each has its own
// pool.
func TestPool(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	stop := f.Operate()
	defer func() { stop() }()
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"))
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"a pool is kept while it is used", testPoolInUse},
		{"Karpenter's status is reported", testReportedNodes},
		{"repairs are reported", testReportedRepairs},
		{"launches that the cloud refuses are held", launchesHeld},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&fixture{f.For(t)}) })
	}
	t.Run("Karpenter is installed later", func(t *testing.T) {
		sandbox.EndToEnd(t)
		stop()
		testKarpenterInstalledLater(&fixture{f.For(t)})
	})
}

// declarePool creates a pool, and returns its NodePool.
func (f *fixture) declarePool(name string) (*v1alpha1.Pool, *karpenterv1.NodePool) {
	f.Helper()
	pool := operatortest.NewPool(name)
	f.Create(pool)
	f.AwaitCondition(pool, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
	return pool, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func testPoolInUse(f *fixture) {
	jobs, nodePool := f.declarePool("jobs")
	user := operatortest.NewTenant("user", "jobs")
	f.Create(user)
	f.AwaitReady(user)
	f.Delete(jobs)
	condition := f.AwaitCondition(jobs, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonInUse)
	if !strings.Contains(condition.Message, "user") {
		f.Errorf("the message does not name the tenant: %s", condition.Message)
	}
	f.Patch(user, `{"spec":{"pool":"apps"}}`)
	f.AwaitReady(user)
	f.AwaitDeletion(jobs)
	f.AwaitDeletion(nodePool)
}

// testReportedNodes writes the status of a NodePool as Karpenter does.
func testReportedNodes(f *fixture) {
	pool, nodePool := f.declarePool("reported")
	f.AwaitCondition(pool, v1alpha1.ConditionNodesReady, metav1.ConditionUnknown, v1alpha1.ReasonNodePoolNotReady)
	report := func(nodes int, status, reason string) {
		f.Helper()
		f.PatchStatus(nodePool, fmt.Sprintf(`{"status":{"nodes":%d,"conditions":[{"type":"Ready","status":%q,"reason":%q,"message":"",
			"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`, nodes, status, reason))
	}
	report(2, "True", "Ready")
	f.AwaitReady(pool)
	if pool.Status.Nodes != 2 {
		f.Errorf("%d nodes, want 2", pool.Status.Nodes)
	}
	report(2, "False", "NodeClassNotReady")
	if c := f.AwaitCondition(pool, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNodePoolNotReady); !strings.Contains(c.Message, "NodeClassNotReady") {
		f.Errorf("the message does not name Karpenter's reason: %s", c.Message)
	}
}

// testReportedRepairs changes a NodePool. Its repair must be reported by an event, a log line and a
// metric.
func testReportedRepairs(f *fixture) {
	pool, nodePool := f.declarePool("drifting")
	before := f.CountRepairs("", "NodePool")
	f.Patch(nodePool, `{"spec":{"weight":7,"template":{"spec":{"taints":[]}}}}`)
	f.AwaitRepair(pool, "restored NodePool drifting, which was changed by somebody")
	f.AwaitLog("restored an object", "kind=NodePool namespace=\"\" name=drifting was=changed managers=somebody")
	if n := f.CountRepairs("", "NodePool") - before; n < 1 {
		f.Errorf("croft_repairs_total counts %v of 1", n)
	}
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(nodePool), nodePool); err != nil {
		f.Fatal(err)
	}
	if len(nodePool.Spec.Template.Spec.Taints) == 0 {
		f.Error("the NodePool has no taints")
	}
}

// testKarpenterInstalledLater covers a cluster on which Karpenter is installed after croft.
func testKarpenterInstalledLater(f *fixture) {
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"} {
		kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(kind), kind); err != nil {
			f.Fatal(err)
		}
		f.Delete(kind)
		f.AwaitDeletion(kind.DeepCopy())
		kinds = append(kinds, kind)
	}
	// Discovery drops the kinds a moment later. An operator that still discovers them waits
	// two minutes for objects that are not served.
	served, err := discovery.NewDiscoveryClientForConfig(f.Config)
	if err != nil {
		f.Fatal(err)
	}
	f.Await("discovery to forget NodePools and NodeClaims", func() string {
		ofGroup, err := served.ServerResourcesForGroupVersion("karpenter.sh/v1")
		if err != nil && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		_, all, err := served.ServerGroupsAndResources()
		if err != nil {
			return err.Error()
		}
		for _, list := range append(all, ofGroup) {
			if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
				return r.Kind == "NodePool" || r.Kind == "NodeClaim"
			}) {
				return "it has them"
			}
		}
		return ""
	})

	stop := f.Operate()
	defer stop()
	late, shop := operatortest.NewPool("late"), operatortest.NewTenant("shop", "late")
	f.Create(late, shop)
	condition := f.AwaitCondition(late, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(condition.Message, "NodePool late: this cluster does not know the kind NodePool (karpenter.sh/v1)") {
		f.Errorf("the message does not name what is missing: %s", condition.Message)
	}
	// The other walls do not depend on Karpenter.
	f.AwaitReady(shop)

	for _, kind := range kinds {
		kind.ResourceVersion, kind.UID = "", ""
		f.Create(kind)
	}
	f.AwaitCondition(late, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
