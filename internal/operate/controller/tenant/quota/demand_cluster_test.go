package quota_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/metric"
)

// newDeployment returns a Deployment whose pods each request some CPU.
func newDeployment(namespace, name, cpu string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "registry.example.org/pause:3.10",
					Resources: corev1.ResourceRequirements{Requests: makeResourceList("cpu", cpu)},
				}}},
			},
		},
	}
}

// awaitPods waits until a namespace has this number of pods.
func (f *fixture) awaitPods(namespace string, want int) {
	f.Helper()
	f.Await(fmt.Sprintf("%d pods in %s", want, namespace), func() string {
		var pods corev1.PodList
		if err := f.Client.List(f.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err.Error()
		}
		if len(pods.Items) == want {
			return ""
		}
		var events corev1.EventList
		if err := f.Client.List(f.Context(), &events, client.InNamespace(namespace), client.MatchingFields{"reason": "FailedCreate"}); err != nil {
			return err.Error()
		}
		last := "no pod was refused"
		for i := range events.Items {
			last = events.Items[i].Message
		}
		return fmt.Sprintf("%d: %s", len(pods.Items), last)
	})
}

func testLargePod(f *fixture) {
	large := newSharedTenant("large", []string{"large-a", "large-b"}, makeResourceList("requests.cpu", "20", "pods", "40"))
	f.Create(large)
	f.awaitShares(large)
	f.Create(newDeployment("large-b", "twelve", "12", 1))
	f.awaitPods("large-b", 1)

	// 8 CPUs are left, and the other namespace needs more than half of them.
	f.Create(newDeployment("large-a", "seven", "7", 1))
	f.awaitPods("large-a", 1)
}

func testQuotaMinimum(f *fixture) {
	const total, least = 60, 40
	keep := newSharedTenant("keep", []string{"keep-prod", "keep-dev"}, makeResourceList("configmaps", fmt.Sprint(total)))
	f.Create(keep)
	f.Patch(keep, fmt.Sprintf(`{"spec":{"quotaMinimums":{"keep-prod":{"configmaps":"%d"}}}}`, least))
	f.awaitCountedShares(keep)
	census := f.startCensus([]string{"keep-prod", "keep-dev"})

	var clients crowd
	ctx, cancel := context.WithCancel(f.Context())
	f.startClients(ctx, &clients, "keep-dev", 4, 10*time.Millisecond)
	f.Await("keep-dev to use what is not reserved", func() string {
		if n := census.getNamespaceCount("configmaps", "keep-dev"); n < total-least-1 {
			return fmt.Sprintf("%d ConfigMaps, quotas %s", n, formatQuotas(f.listQuotas("keep")))
		}
		return ""
	})
	// Kubernetes creates one ConfigMap itself.
	for i := 1; i < least; {
		err := f.Client.Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "keep-prod", GenerateName: "keep-"}})
		if apierrors.IsConflict(err) {
			continue
		}
		if err != nil {
			f.Fatalf("ConfigMap %d of %d: %v", i+1, least, err)
		}
		i++
	}
	cancel()
	clients.Wait()
	if now, most := census.getCounts("configmaps"); most > total {
		f.Errorf("there were %d ConfigMaps at a time, and are %d, of %d", most, now, total)
	}
}

// testForgedRefusals writes events of refusals that did not happen, as a member of a tenant. They
// must change nothing, not even the division of the tenant's own quota.
func testForgedRefusals(f *fixture) {
	const total, least = 60, 40
	kept := newSharedTenant("kept", []string{"kept-a", "kept-b"}, makeResourceList("configmaps", fmt.Sprint(total)))
	kept.Spec.QuotaMinimums = map[string]corev1.ResourceList{"kept-a": makeResourceList("configmaps", fmt.Sprint(least))}
	open := newSharedTenant("open", []string{"open-a", "open-b"}, makeResourceList("configmaps", fmt.Sprint(total), "pods", "4"))
	f.Create(kept, open)
	f.awaitCountedShares(kept)
	f.awaitCountedShares(open)

	for _, requested := range []string{"24", "58", "5000", "1e18", "1e999999999", "-5"} {
		f.writeForgedRefusal("kept", "kept-b", requested)
	}
	f.writeForgedRefusal("open", "open-b", "44")
	// The operator observes this genuine refusal after the forged ones.
	f.Create(newDeployment("open-b", "web", "10m", 3))
	f.awaitPods("open-b", 3)
	// The genuine refusal divides the rest again, by the use that is counted at that moment: one of
	// untouched's ConfigMaps can be in it. The forged refusal would move 14.
	for namespace, q := range f.awaitShares(open) {
		if hard := q.Status.Hard["configmaps"]; max(hard.Value()-total/2, total/2-hard.Value()) > 1 {
			f.Errorf("%s has %s, want %d", namespace, hard.String(), total/2)
		}
	}
	for namespace, q := range f.awaitShares(kept) {
		want := map[string]int64{"kept-a": least, "kept-b": total - least}[namespace]
		if hard := q.Status.Hard["configmaps"]; hard.Value() != want {
			f.Errorf("%s has %s, want %d", namespace, hard.String(), want)
		}
	}
}

// testCountedRefusals creates a workload whose pods are refused, next to a forged refusal.
func testCountedRefusals(f *fixture) {
	denied := newSharedTenant("denied", []string{"denied-a", "denied-b"}, makeResourceList("pods", "2"))
	f.Create(denied)
	f.awaitShares(denied)
	f.writeForgedRefusal("denied", "denied-b", "44")
	f.Create(newDeployment("denied-a", "web", "10m", 3))
	f.Await("one workload to be counted", func() string {
		got := &v1alpha1.Tenant{}
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(denied), got); err != nil {
			return err.Error()
		}
		refused := got.Status.RefusedPods
		if refused == nil || refused.Workloads != 1 || refused.First.Namespace != "denied-a" || refused.First.Kind != "ReplicaSet" ||
			!strings.HasPrefix(refused.First.Name, "web-") || !strings.HasPrefix(refused.First.Message, "exceeded quota: croft, requested: pods=1") {
			return fmt.Sprint(refused)
		}
		if v, ok := f.ReadMetric(metric.RefusedWorkloads.Name, "tenant=denied"); !ok || v != 1 {
			return fmt.Sprintf("the metric is %v", v)
		}
		return ""
	})
}

// writeForgedRefusal writes a refusal event as a member of a tenant.
func (f *fixture) writeForgedRefusal(tenant, namespace, requested string) {
	f.Helper()
	member := f.Impersonate("mallory", tenant+"-devs")
	if err := member.Create(f.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, GenerateName: "forged-"},
		InvolvedObject: corev1.ObjectReference{Kind: "ReplicaSet", Namespace: namespace, Name: "none", UID: types.UID(requested)},
		Reason:         "FailedCreate", Type: corev1.EventTypeWarning, LastTimestamp: metav1.Now(),
		Message: "exceeded quota: croft, requested: configmaps=" + requested + ", used: configmaps=1, limited: configmaps=1",
	}); err != nil {
		f.Fatal(err)
	}
}
