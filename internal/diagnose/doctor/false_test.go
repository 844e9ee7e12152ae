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

// going marks an object as deleted some time ago.
func going[O client.Object](ago time.Duration, o O) O {
	at := metav1.NewTime(time.Now().Add(-ago).Truncate(time.Second))
	o.SetDeletionTimestamp(&at)
	o.SetFinalizers([]string{"example.org/held"})
	return o
}

// findings returns the findings of a check on a cluster without any object of the walls.
func findings(t *testing.T, check string, objects ...client.Object) []string {
	t.Helper()
	return findingsIn(t, declared, check, objects...)
}

// findingsIn is like findings, with another file.
func findingsIn(t *testing.T, file, check string, objects ...client.Object) []string {
	t.Helper()
	return said(result(t, doctor.Check(newFakeCluster(t, file, objects...).gather(t, "")), check))
}

func named(found []string, text string) bool {
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
	scratch := namespaceOf("croft-verify-aaaaa-a", "croft-verify-aaaaa-a")
	scratch.CreationTimestamp = metav1.NewTime(time.Now().Add(-24 * time.Hour))

	for _, test := range []struct {
		check, without string
		objects        []client.Object
	}{
		{"walls", "Namespace shop", []client.Object{going(time.Minute, namespaceOf("shop", "shop"))}},
		{"walls", "Tenant/gone", []client.Object{going(time.Minute, tenant.DeepCopy())}},
		{"walls", "Pool/gone", []client.Object{going(time.Minute, pool.DeepCopy())}},
		{"platform", "Tenant/gone", []client.Object{going(time.Minute, tenant.DeepCopy())}},
		{"platform", "Pool/gone", []client.Object{going(time.Minute, pool.DeepCopy())}},
		{"node-pools", "foreign", []client.Object{going(time.Minute, overlapping)}},
		{"taints", "Node/n", []client.Object{going(time.Minute, tainted.DeepCopy()), claim.DeepCopy()}},
		{"taints", "Node/n", []client.Object{tainted.DeepCopy(), going(time.Minute, claim.DeepCopy())}},
		{"launches", "NodeClaim/c", []client.Object{going(time.Minute, claim.DeepCopy())}},
		{"misplaced-pods", "Tenant/shop", []client.Object{tainted.DeepCopy(), going(time.Minute, namespaceOf("shop", "shop")), running.DeepCopy()}},
		{"misplaced-pods", "Tenant/shop", []client.Object{tainted.DeepCopy(), namespaceOf("shop", "shop"), going(time.Minute, running.DeepCopy())}},
		{"scratch", "croft-verify-aaaaa-a", []client.Object{going(time.Minute, scratch)}},
	} {
		if found := findings(t, test.check, test.objects...); named(found, test.without) {
			t.Errorf("%s, with %T %s: it finds %q", test.check, test.objects[0], test.objects[0].GetName(), found)
		}
		for _, o := range test.objects {
			o.SetDeletionTimestamp(nil)
			o.SetResourceVersion("")
		}
		if found := findings(t, test.check, test.objects...); !named(found, test.without) {
			t.Errorf("%s: nothing is being deleted, and it finds %q", test.check, found)
		}
	}

	stuck := going(time.Hour, namespaceOf("shop", "shop"))
	stuck.Finalizers = []string{"example.org/own"}
	stuck.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "example.org/held in 1 resource instances"}}
	if found := findings(t, "deletions", stuck); !named(found, "Problem Namespace/shop: its deletion has taken 60m so far: NamespaceFinalizersRemaining: example.org/held in 1 resource instances; finalizer example.org/own: ") {
		t.Errorf("it does not report a deletion that takes long: %q", found)
	}
	if found := findings(t, "deletions", going(time.Hour, tenant.DeepCopy()), going(time.Hour, pool.DeepCopy())); len(found) != 2 {
		t.Errorf("it does not report declared objects whose deletion takes long: %q", found)
	}
}

// TestEndedAccess fails if the desired walls contain access that has ended.
func TestEndedAccess(t *testing.T) {
	bindings := func(until time.Time) (n int) {
		file := strings.Replace(declared, "shop: {pool: apps}",
			`shop: {pool: apps, access: [{group: eve, role: operator, until: "`+until.UTC().Format(time.RFC3339)+`"}]}`, 1)
		for _, o := range newFakeCluster(t, file).gather(t, "").Walls {
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
		{"of nobody", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, "namespace shop exists and does not belong to croft"},
		{"of another tenant", namespaceOf("shop", "bank"), "namespace shop belongs to tenant bank"},
	} {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: corev1.PodSpec{NodeName: "n"}}
			results := doctor.Check(newFakeCluster(t, declared, test.namespace, node, pod).gather(t, ""))
			r := result(t, results, "walls")
			for _, f := range r.Findings {
				if f.Object == "Tenant/shop" && (!strings.Contains(f.Message, test.want) || strings.Contains(f.Fix, "operator")) {
					t.Errorf("it finds %q, and advises %q", f.Message, f.Fix)
				}
			}
			if !named(said(r), test.want) {
				t.Errorf("it finds %q", said(r))
			}
			if r := result(t, results, "misplaced-pods"); len(r.Findings) > 0 {
				t.Errorf("it finds %q", said(r))
			}
		})
	}
	adopted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AdoptAnnotation: "shop"}}}
	if found := findings(t, "walls", adopted); named(found, "not croft's") {
		t.Errorf("a namespace that may be adopted is called foreign: %q", found)
	}
}
