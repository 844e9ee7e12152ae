package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// hostilePayloads are the texts that internal/dashboard/server writes into each field.
const hostilePayloads = "internal/dashboard/server/testdata/payloads.yaml"

// testDashboardHostile fails if one of the hostile texts that an API server accepts runs a script
// in a browser, violates the Content Security Policy, or makes a page scroll horizontally.
// bin/browser reports this as problems of the page.
func testDashboardHostile(t *testing.T, d *dashboardCluster) {
	payloads := map[string]string{}
	if err := yaml.UnmarshalStrict([]byte(readRepositoryFile(t, hostilePayloads)), &payloads); err != nil {
		t.Fatal(err)
	}
	payloads["long line"] = strings.Repeat("<b>long</b>\u00a0", 1<<20/13)
	var last string
	for i, name := range slices.Sorted(maps.Keys(payloads)) {
		last = "hostile-" + strconv.Itoa(i)
		d.writeHostile(t, last, payloads[name])
	}
	shown := []string{"<script>globalThis.croftCanary=1</script>", `sh\u200bo\u200c\u200dp`, `shop\u202egnp\u2066`}
	loans := d.awaitPod(t, "bank", "loans")
	d.browsePages(t, "bob", []string{"shop-"}, []visit{
		{Name: "hostile overview", Path: "/namespaces/bank", shows: []string{"Problems in bank", shown[0]}},
		{Name: "hostile workloads", Path: "/namespaces/bank/workloads", shows: shown},
		{Name: "hostile events", Path: "/namespaces/bank/workloads/deployment/loans", shows: shown},
		{Name: "hostile access", Path: "/namespaces/bank/access", shows: shown},
		{Name: "hostile pod", Path: "/namespaces/bank/workloads/pod/" + last, shows: []string{"has failed"}},
		{Name: "hostile command", Path: "/namespaces/bank/workloads/pod/" + loans, Steps: []step{enterText("Command", payloads["end tags"]), pressControl("Run")},
			// kwok simulates the node, and no kubelet answers there.
			shows: []string{"The cluster could not run the command: ", "Run a command", "kubectl exec pod/" + loans}},
		{Name: "hostile search", Path: "/tenants?q=%22%3E%3Cscript%3EcroftCanary%3D1%3C%2Fscript%3E", shows: []string{"There are no such tenants"}},
		{Name: "hostile path", Path: "/namespaces/%3Cscript%3EcroftCanary%3D1%3C%2Fscript%3E", status: 404, shows: []string{"Not found"}},
		{Name: "hostile manifests", Path: "/namespaces/bank/try", Steps: []step{enterText("Manifests in YAML or JSON", payloads["end tags"]), pressControl("Try")}, shows: []string{"Manifests in YAML or JSON"}},
	})
}

// awaitPod waits until a pod with a label app runs, and returns its name.
func (d *dashboardCluster) awaitPod(t *testing.T, namespace, app string) (name string) {
	t.Helper()
	awaitCondition(t, patience, "a pod of "+app, func(ctx context.Context) error {
		var pods corev1.PodList
		if err := d.admin.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app": app}); err != nil {
			return err
		}
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				name = pods.Items[i].Name
				return nil
			}
		}
		return fmt.Errorf("none of %d pods runs", len(pods.Items))
	})
	return name
}

// writeHostile writes a text into a failed pod, into an event and into a RoleBinding of the tenant bank.
func (d *dashboardCluster) writeHostile(t *testing.T, name, text string) {
	t.Helper()
	isLong := len(text) > 100<<10 // a pod of a tenant has at most 48 KiB without its status, and an event at most a megabyte and a half
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: name, Annotations: map[string]string{"note": text[:min(len(text), 20_000)]}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "main", Image: "ledger:1"}},
			// On a node, it would be running soon.
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.org/failed"}},
		},
	}
	now := metav1.Now()
	for _, o := range []client.Object{
		pod,
		&corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "bank", Name: name},
			InvolvedObject: corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "bank", Name: "loans"},
			Type:           text, Reason: text, Message: text, Source: corev1.EventSource{Component: text}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: text}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		},
	} {
		if isLong && o != pod {
			continue
		}
		if err := d.admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	patch := client.MergeFrom(pod.DeepCopy())
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, text, text
	if isLong {
		pod.Status.Reason = "Evicted"
	}
	if err := d.admin.Status().Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
}
