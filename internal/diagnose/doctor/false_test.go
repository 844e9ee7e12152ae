package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/diagnose/doctor"
)

// markDeleted marks an object as deleted some time ago.
func markDeleted[O client.Object](ago time.Duration, o O) O {
	at := metav1.NewTime(time.Now().Add(-ago).Truncate(time.Second))
	o.SetDeletionTimestamp(&at)
	o.SetFinalizers([]string{"example.org/held"})
	return o
}

// listFindings returns the findings of a check on a cluster without any object of the walls.
func listFindings(t *testing.T, check string, objects ...client.Object) []string {
	t.Helper()
	return listFindingsIn(t, declared, check, objects...)
}

// listFindingsIn is like listFindings, with another file.
func listFindingsIn(t *testing.T, file, check string, objects ...client.Object) []string {
	t.Helper()
	return formatFindings(findResult(t, doctor.Check(newFakeCluster(t, file, objects...).gatherWithout(t, "")), check))
}

func hasFinding(found []string, text string) bool {
	return slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, text) })
}

// TestGoing fails if doctor reports objects that are being deleted before their deletion
// takes long.
func TestGoing(t *testing.T) {
	key := v1alpha1.DefaultNodePoolKey
	overlapping := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}}
	overlapping.Spec.Template.Labels = map[string]string{key: "apps"}
	tainted := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "apps"}}}
	tainted.Spec.Taints = []corev1.Taint{{Key: "stray", Effect: corev1.TaintEffectNoSchedule}}
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}, Status: karpenterv1.NodeClaimStatus{NodeName: "n"}}
	running := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: "n"}}
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "gone", Generation: 2}, Spec: v1alpha1.TenantSpec{Pool: "apps"}}
	pool := &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: "gone", Generation: 2}}
	scratch := newNamespace("croft-verify-aaaaa-a", "croft-verify-aaaaa-a")
	scratch.CreationTimestamp = metav1.NewTime(time.Now().Add(-24 * time.Hour))

	for _, test := range []struct {
		check, without string
		objects        []client.Object
	}{
		{"walls", "Namespace shop", []client.Object{markDeleted(time.Minute, newNamespace("shop", "shop"))}},
		{"walls", "Tenant/gone", []client.Object{markDeleted(time.Minute, tenant.DeepCopy())}},
		{"walls", "Pool/gone", []client.Object{markDeleted(time.Minute, pool.DeepCopy())}},
		{"platform", "Tenant/gone", []client.Object{markDeleted(time.Minute, tenant.DeepCopy())}},
		{"platform", "Pool/gone", []client.Object{markDeleted(time.Minute, pool.DeepCopy())}},
		{"node-pools", "foreign", []client.Object{markDeleted(time.Minute, overlapping)}},
		{"taints", "Node/n", []client.Object{markDeleted(time.Minute, tainted.DeepCopy()), claim.DeepCopy()}},
		{"taints", "Node/n", []client.Object{tainted.DeepCopy(), markDeleted(time.Minute, claim.DeepCopy())}},
		{"launches", "NodeClaim/c", []client.Object{markDeleted(time.Minute, claim.DeepCopy())}},
		{"misplaced-pods", "Tenant/shop", []client.Object{tainted.DeepCopy(), markDeleted(time.Minute, newNamespace("shop", "shop")), running.DeepCopy()}},
		{"misplaced-pods", "Tenant/shop", []client.Object{tainted.DeepCopy(), newNamespace("shop", "shop"), markDeleted(time.Minute, running.DeepCopy())}},
		{"scratch", "croft-verify-aaaaa-a", []client.Object{markDeleted(time.Minute, scratch)}},
	} {
		if found := listFindings(t, test.check, test.objects...); hasFinding(found, test.without) {
			t.Errorf("%s, with %T %s: it finds %q", test.check, test.objects[0], test.objects[0].GetName(), found)
		}
		for _, o := range test.objects {
			o.SetDeletionTimestamp(nil)
			o.SetResourceVersion("")
		}
		if found := listFindings(t, test.check, test.objects...); !hasFinding(found, test.without) {
			t.Errorf("%s: nothing is being deleted, and it finds %q", test.check, found)
		}
	}

	stuck := markDeleted(time.Hour, newNamespace("shop", "shop"))
	stuck.Finalizers = []string{"example.org/own"}
	stuck.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "example.org/held in 1 resource instances"}}
	if found := listFindings(t, "deletions", stuck); !hasFinding(found, "Problem Namespace/shop: its deletion has taken 60m so far: NamespaceFinalizersRemaining: example.org/held in 1 resource instances; finalizer example.org/own: ") {
		t.Errorf("it does not report a deletion that takes long: %q", found)
	}
	if found := listFindings(t, "deletions", markDeleted(time.Hour, tenant.DeepCopy()), markDeleted(time.Hour, pool.DeepCopy())); len(found) != 2 {
		t.Errorf("it does not report declared objects whose deletion takes long: %q", found)
	}
}

// TestEndedAccess fails if the desired walls contain access that has ended.
func TestEndedAccess(t *testing.T) {
	bindings := func(until time.Time) (n int) {
		file := strings.Replace(declared, "shop: {pool: apps}",
			`shop: {pool: apps, access: [{group: eve, role: operator, until: "`+until.UTC().Format(time.RFC3339)+`"}]}`, 1)
		for _, o := range newFakeCluster(t, file).gatherWithout(t, "").Walls {
			if o.Kind == "RoleBinding" {
				n++
			}
		}
		return n
	}
	before, after := bindings(time.Now().Add(time.Hour)), bindings(time.Now().Add(-time.Hour))
	if after >= before {
		t.Errorf("%d RoleBindings are expected before the end, and %d after it", before, after)
	}
}

// TestForeignNamespace fails if doctor's fix is that the operator builds walls in a
// namespace that croft does not own, or if it reports pods there as misplaced.
func TestForeignNamespace(t *testing.T) {
	for _, test := range []struct {
		name      string
		namespace *corev1.Namespace
		want      string
	}{
		{"of no tenant", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "namespace shop exists and does not belong to croft"},
		{"of another tenant", newNamespace("shop", "bank"), "namespace shop belongs to tenant bank"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: "n"}}
			results := doctor.Check(newFakeCluster(t, declared, test.namespace, node, pod).gatherWithout(t, ""))
			r := findResult(t, results, "walls")
			for _, f := range r.Findings {
				if f.Object == "Tenant/shop" && (!strings.Contains(f.Message, test.want) || strings.Contains(f.Fix, "operator")) {
					t.Errorf("it finds %q, and advises %q", f.Message, f.Fix)
				}
			}
			if !hasFinding(formatFindings(r), test.want) {
				t.Errorf("it finds %q", formatFindings(r))
			}
			if r := findResult(t, results, "misplaced-pods"); len(r.Findings) > 0 {
				t.Errorf("it finds %q", formatFindings(r))
			}
		})
	}
	adopted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AdoptAnnotation: "shop"}}}
	if found := listFindings(t, "walls", adopted); hasFinding(found, "not croft's") {
		t.Errorf("a namespace that may be adopted is called foreign: %q", found)
	}
}
