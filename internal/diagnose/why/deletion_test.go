package why_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/why"
)

func makeObjectMeta(name string, finalizers ...string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Finalizers: finalizers}
}

// TestDeletions fails if the object or finalizer that blocks a deletion is not reported.
func TestDeletions(t *testing.T) {
	content := corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{
		{Type: corev1.NamespaceContentRemaining, Status: corev1.ConditionTrue, Message: "Some resources are remaining: widgets.example.org has 1 resource instances"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "Some content in the namespace has finalizers remaining: example.org/x in 1 resource instances"},
	}}
	shop := &corev1.Namespace{ObjectMeta: makeObjectMeta("shop"), Status: content}
	unserved := &corev1.Namespace{ObjectMeta: makeObjectMeta("shop"), Status: corev1.NamespaceStatus{Conditions: []corev1.NamespaceCondition{{
		Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1: unavailable",
	}}}}
	widget := []why.Left{{Object: "widgets.example.org/w1", Deleted: true, Finalizers: []string{"example.org/x"}}}
	deleting := func(reason, message string) v1alpha1.Status {
		return v1alpha1.Status{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: message}}}
	}
	attached := func(node, volume, failure string) storagev1.VolumeAttachment {
		a := storagev1.VolumeAttachment{ObjectMeta: makeObjectMeta("csi-1"), Spec: storagev1.VolumeAttachmentSpec{NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)}}}
		if failure != "" {
			a.Status.DetachError = &storagev1.VolumeError{Message: failure}
		}
		return a
	}
	claimOn := karpenterv1.NodeClaim{ObjectMeta: makeObjectMeta("pool-a-x2x9p", "karpenter.sh/termination"), Status: karpenterv1.NodeClaimStatus{NodeName: "node-1"}}
	web := newPod("web-1", "ReplicaSet", "web", setReady)
	web.Labels = map[string]string{"app": "web"}
	budget := policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: web.Labels}},
		Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1},
	}
	node := corev1.Node{ObjectMeta: makeObjectMeta("node-1", "karpenter.sh/termination")}
	withPDB := func(s *why.Snapshot) {
		s.Nodes, s.Pods, s.Budgets = []corev1.Node{node}, []corev1.Pod{web}, []policyv1.PodDisruptionBudget{budget}
		s.Claims = []karpenterv1.NodeClaim{claimOn}
	}
	pool := &v1alpha1.Pool{ObjectMeta: makeObjectMeta("pool-a", v1alpha1.PoolFinalizer), Status: v1alpha1.PoolStatus{Status: deleting(v1alpha1.ReasonInUse, "namespace dev of tenant shop")}}
	for name, c := range map[string]struct {
		kind     string
		object   client.Object
		edit     func(*why.Snapshot)
		first    string
		wantText string
	}{
		"a namespace with an object that has a finalizer": {"namespace", shop, func(s *why.Snapshot) { s.Around.Remainders = []why.Remainder{{Namespace: shop, Objects: widget}} }, "finalizer-held",
			"deletion widgets.example.org/w1 in shop: finalizer example.org/x: the controller that set it has to remove it"},
		"a namespace whose objects are hidden": {"namespace", shop, func(s *why.Snapshot) { s.Around.Remainders = []why.Remainder{{Namespace: shop}} }, "deletion-waits", "example.org/x in 1 resource instances"},
		"a namespace with a pod that ends": {"namespace", shop, func(s *why.Snapshot) {
			s.Around.Remainders = []why.Remainder{{Namespace: shop, Objects: []why.Left{{Object: "pods/web-1", Deleted: true}}}}
		}, "deletion-waits", "pods/web-1 in shop: it is being deleted"},
		"a namespace that an APIService blocks": {"namespace", unserved, func(s *why.Snapshot) {
			s.Around.Remainders = []why.Remainder{{Namespace: unserved, Unserved: map[string]string{"v1beta1.metrics.k8s.io": "MissingEndpoints: no endpoints"}}}
		}, "api-unavailable", "apiservice/v1beta1.metrics.k8s.io: the namespace controller cannot list its resources, and deletes no namespace until it can: MissingEndpoints: no endpoints"},
		"a namespace with a finalizer": {"namespace", &corev1.Namespace{ObjectMeta: makeObjectMeta("shop", "example.org/y")}, nil, "finalizer-held", "finalizer example.org/y"},
		"a tenant whose namespace is held up": {"tenant", &v1alpha1.Tenant{ObjectMeta: makeObjectMeta("shop", v1alpha1.TenantFinalizer), Status: v1alpha1.TenantStatus{Status: deleting(v1alpha1.ReasonDeleting, "waiting for namespaces to go: shop")}},
			func(s *why.Snapshot) { s.Around.Remainders = []why.Remainder{{Namespace: shop, Objects: widget}} }, "deletion-waits", "widgets.example.org/w1 in shop: finalizer example.org/x"},
		"a pool with a retained namespace":      {"pool", pool, nil, "deletion-waits", "InUse: namespace dev of tenant shop"},
		"a pool whose node a budget blocks":     {"pool", pool, withPDB, "budget-never-allows", "pod shop/web-1: PodDisruptionBudget web"},
		"a NodePool whose node a budget blocks": {"nodepool", &karpenterv1.NodePool{ObjectMeta: makeObjectMeta("pool-a", "foregroundDeletion")}, withPDB, "budget-never-allows", "nodeclaim/pool-a-x2x9p: its NodeClaim still exists"},
		"a node that a budget blocks":           {"node", &node, withPDB, "budget-never-allows", "PodDisruptionBudget web"},
		"a NodeClaim that a budget blocks":      {"nodeclaim", &claimOn, withPDB, "budget-never-allows", "PodDisruptionBudget web"},
		"a NodeClaim whose node is deleted":     {"nodeclaim", &claimOn, nil, "finalizer-held", "when it has drained the node and ended its instance"},
		"a node with a volume": {"node", &node, func(s *why.Snapshot) {
			s.Around.Attachments = []storagev1.VolumeAttachment{attached("node-1", "pv-1", "timed out"), attached("node-2", "pv-2", "")}
		}, "deletion-waits", "volumeattachment/csi-1: volume pv-1 is attached to node node-1, and is not detached: timed out"},
		"a claim that pods use":             {"persistentvolumeclaim", &corev1.PersistentVolumeClaim{ObjectMeta: makeObjectMeta("data", "kubernetes.io/pvc-protection")}, func(s *why.Snapshot) { s.Around.Users = []string{"web-1"} }, "deletion-waits", "pods use it, also pods that have completed: web-1"},
		"a claim that no pod uses":          {"persistentvolumeclaim", &corev1.PersistentVolumeClaim{ObjectMeta: makeObjectMeta("data", "example.org/backup")}, nil, "finalizer-held", "example.org/backup"},
		"a volume that a claim is bound to": {"persistentvolume", &corev1.PersistentVolume{ObjectMeta: makeObjectMeta("pv-1", "kubernetes.io/pv-protection"), Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data"}}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}, nil, "deletion-waits", "persistentvolumeclaim/data in shop is bound to it"},
		"a volume that is attached": {"persistentvolume", &corev1.PersistentVolume{ObjectMeta: makeObjectMeta("pv-1", "external-attacher/ebs-csi-aws-com")}, func(s *why.Snapshot) {
			s.Around.Attachments = []storagev1.VolumeAttachment{attached("node-1", "pv-1", "")}
		}, "deletion-waits", "volume pv-1 is attached to node node-1"},
		"a Deployment": {"deployment", newDeployment(func(d *appsv1.Deployment) { d.Finalizers = []string{"foregroundDeletion"} }), nil, "finalizer-held", "the garbage collector removes it when it has deleted the object's dependents"},
		"any kind":     {"widget.example.org", &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "w1", "finalizers": []any{"example.org/x"}}}}, nil, "finalizer-held", "finalizer example.org/x"},
	} {
		for when, ago := range map[string]time.Duration{"just now": time.Second, "long ago": time.Hour} {
			t.Run(name+" "+when, func(t *testing.T) {
				o, ok := c.object.DeepCopyObject().(client.Object)
				if !ok {
					t.Fatal("no object")
				}
				o.SetDeletionTimestamp(ptr.To(metav1.NewTime(time.Now().Add(-ago))))
				s := &why.Snapshot{Target: why.Target{Kind: c.kind, Namespace: "shop", Name: o.GetName()}, Object: o, Key: key, Hidden: []string{"node"}}
				if c.edit != nil {
					c.edit(s)
				}
				// A deletion that a budget blocks is Bad at once, since a budget does not
				// expire.
				if ago < time.Minute && c.first != "budget-never-allows" {
					compareStory(t, why.ExplainSnapshot(s), why.Waiting, "", c.wantText)
				} else {
					compareStory(t, why.ExplainSnapshot(s), why.Bad, c.first, c.wantText)
				}
			})
		}
	}
}

// TestDeletedPods fails if the report lacks the reason why a deleted pod still exists.
func TestDeletedPods(t *testing.T) {
	for name, c := range map[string]struct {
		end        time.Duration
		finalizers []string
		verdict    why.Verdict
		first      string
		wantText   string
	}{
		"that has time":     {time.Minute, nil, why.Waiting, "", "its containers have until"},
		"that is due":       {-time.Second, nil, why.Waiting, "", "its node is about to report it"},
		"that is overdue":   {-time.Hour, nil, why.Bad, "node-unreachable", "node node-1 does not report that they exited"},
		"with a finalizer":  {-time.Second, []string{"example.org/x"}, why.Waiting, "", "finalizer example.org/x"},
		"with an old one":   {-time.Hour, []string{"example.org/x"}, why.Bad, "finalizer-held", "finalizer example.org/x"},
		"that a Job counts": {-time.Hour, []string{"batch.kubernetes.io/job-tracking"}, why.Bad, "finalizer-held", "when it has counted the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod("web-1", "ReplicaSet", "web")
			pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.NewTime(time.Now().Add(c.end))), c.finalizers
			compareStory(t, why.ExplainSnapshot(&why.Snapshot{Target: why.Target{Kind: "pod", Namespace: "shop", Name: "web-1"}, Object: &pod, Pods: []corev1.Pod{pod}, Hidden: []string{"node"}}), c.verdict, c.first, c.wantText)
		})
	}
}

// TestResolve resolves kinds that croft does not know with a cluster's RESTMapper.
func TestResolve(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "example.org", Version: "v1", Kind: "Widget"}, meta.RESTScopeRoot)
	for word, want := range map[string]string{
		"rollout.argoproj.io/web": "rollout.argoproj.io/web shop", "Rollouts.argoproj.io/web": "rollout.argoproj.io/web shop", "configmap/web": "configmap/web shop",
		"widgets.example.org/web": "widget.example.org/web ", "unknown/web": "", "rollout.example.org/web": "", "web": "",
	} {
		target, err := why.Resolve(mapper, []string{word}, "shop")
		if got := target.String() + " " + target.Namespace; err == nil && got != want || err != nil && want != "" {
			t.Errorf("%s: %q, %v", word, got, err)
		}
	}
}

// TestAnyKind expects the conditions of kinds that croft does not know.
func TestAnyKind(t *testing.T) {
	for name, c := range map[string]struct {
		kind, status string
		verdict      why.Verdict
		wantText     string
	}{
		"Ready":      {"Ready", "True", why.Good, "report nothing wrong"},
		"not Ready":  {"Ready", "False", why.Bad, "Ready=False Pending: no DNS"},
		"Stalled":    {"Stalled", "True", why.Bad, "Stalled=True Pending: no DNS"},
		"an HPA":     {"ScalingActive", "False", why.Bad, "ScalingActive=False Pending: no DNS"},
		"of its own": {"Frobnicated", "False", why.Good, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": c.kind, "status": c.status, "reason": "Pending", "message": "no DNS"}}}}}
			compareStory(t, why.ExplainSnapshot(&why.Snapshot{Target: why.Target{Kind: "rollout.argoproj.io", Name: "web"}, Object: o}), c.verdict, "", c.wantText)
		})
	}
}

// TestPool fails if a Pool's own conditions are not reported together with its NodePool's.
func TestPool(t *testing.T) {
	refused := v1alpha1.Status{ObservedGeneration: 1, Conditions: []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: "Conflict", Message: "another manager"}}}
	for name, c := range map[string]struct {
		status   v1alpha1.Status
		hidden   []string
		verdict  why.Verdict
		wantText string
	}{
		"that is Ready":            {v1alpha1.Status{ObservedGeneration: 1}, nil, why.Good, "is Ready"},
		"that is not applied":      {refused, nil, why.Bad, "Applied=False Conflict: another manager"},
		"that is not observed yet": {v1alpha1.Status{}, nil, why.Waiting, "has not observed its latest declaration"},
		"whose NodePool is hidden": {v1alpha1.Status{ObservedGeneration: 1}, []string{"nodepool"}, why.Good, "is Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWaitingStep()
			if s.Target, s.Hidden = (why.Target{Kind: "pool", Name: "pool-a"}), c.hidden; c.hidden != nil {
				s.Pools = nil
			} else {
				writeConditions(&s.Pools[0].Status, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue})
			}
			s.Claims = nil
			s.Object = &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "pool-a", Generation: 1}, Status: v1alpha1.PoolStatus{Status: c.status}}
			compareStory(t, why.ExplainSnapshot(s), c.verdict, "", c.wantText)
		})
	}
}
