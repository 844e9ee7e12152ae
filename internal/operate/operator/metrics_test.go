package operator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/operate/metric/metrictest"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// TestMetricsAreRegistered fails if the operator's metrics or their labels differ from the
// declared ones.
func TestMetricsAreRegistered(t *testing.T) {
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatalf("%T", metrics.Registry)
	}
	metrictest.CheckRegistered(t, registry, metric.Operator)
}

// testStateMetrics fails if metrics do not follow the state of the declared objects, or if the
// API server does not count denials under the metric names that the alerts use.
func testStateMetrics(f *fixture) {
	has := func(why, name string, labels ...string) {
		f.Helper()
		f.Await(why, func() string {
			if v, ok := f.ReadMetric(name, labels...); !ok || v == 0 {
				return fmt.Sprintf("%s%v = %v", name, labels, v)
			}
			return ""
		})
	}
	has("a sign of life", metric.Heartbeat.Name)
	has("the version", metric.BuildInfo.Name)
	has("the Platform's condition", metric.PlatformCondition.Name, "condition=Ready", "status=True", "reason=Ready")
	has("a pool's condition", metric.PoolCondition.Name, "pool=apps", "condition=Ready", "status=True")
	has("a tenant's condition", metric.TenantCondition.Name, "tenant=shop", "condition=Enforced", "status=True", "reason=Enforced")
	has("a policy's wall", metric.PolicyInfo.Name, "policy=croft-services", "wall=policy")
	has("use of a quota", metric.QuotaUse.Name, "tenant=shop", "resource=count/rolebindings.rbac.authorization.k8s.io")

	refused := operatortest.NewTenant("unfit", "nowhere")
	f.Create(refused)
	has("a tenant that is refused", metric.TenantCondition.Name, "tenant=unfit", "condition=Ready", "status=False", "reason=Invalid")
	f.Delete(refused)
	f.Await("no series of a deleted tenant", func() string {
		if _, ok := f.ReadMetric(metric.TenantCondition.Name, "tenant=unfit"); ok {
			return "it is still there"
		}
		return ""
	})

	f.PatchStatus(operatortest.NewPlatform(), `{"status":{"verify":{"time":"2026-11-24T12:00:00Z","held":7,"breached":1,"blockedElsewhere":2,"notTried":3}}}`)
	has("when verify ran", metric.VerifyTime.Name)
	has("what verify found", metric.VerifyResults.Name, "result=breached")
	testDenialMetrics(f)
}

// testDenialMetrics creates a pod that is denied, and reads the API server's own metrics.
func testDenialMetrics(f *fixture) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "elsewhere"},
		Spec: corev1.PodSpec{NodeName: "somewhere", Containers: []corev1.Container{{
			Name: "c", Image: "registry.example.org/c",
		}}},
	}
	clients, err := kubernetes.NewForConfig(f.Config)
	if err != nil {
		f.Fatal(err)
	}
	jane := f.Impersonate("jane", "shop-devs")
	if err := jane.Create(f.Context(), pod, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		f.Fatalf("the pod was not refused: %v", err)
	}
	f.Await("the API server to count a refusal", func() string {
		text, err := clients.RESTClient().Get().AbsPath("/metrics").DoRaw(context.WithoutCancel(f.Context()))
		if err != nil {
			return err.Error()
		}
		for _, m := range metric.Others() {
			if m.Process == metric.APIServer && !hasMetric(string(text), m) {
				return m.Name + " is not served with its labels"
			}
		}
		if !strings.Contains(string(text), `enforcement_action="deny"`) {
			return "no denial"
		}
		if strings.Contains(string(text), `error_type="compile_error"`) || strings.Contains(string(text), `error_type="out_of_budget"`) {
			return "a refusal is counted as if the policy could not be evaluated"
		}
		return ""
	})
}

// hasMetric reports whether a text in Prometheus' format contains a metric with all its
// labels.
func hasMetric(text string, m metric.Metric) bool {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, m.Series()[0]+"{") {
			continue
		}
		all := true
		for _, l := range m.LabelNames() {
			all = all && strings.Contains(line, l+`="`)
		}
		if all {
			return true
		}
	}
	return false
}
