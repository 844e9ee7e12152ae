package budgets_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/operate/controller/budgets"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// startLedger starts a ledger that answers with the present cost of shop, in units, or fails below 0.
func startLedger(t *testing.T, spent *atomic.Int64) budgets.LedgerOptions {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		amount, now := spent.Load(), time.Now()
		if amount < 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_ = json.NewEncoder(w).Encode(budget.Answer{Month: budget.FormatMonth(now), Now: now, Currency: "EUR", Complete: true,
			Tenants: map[string]budget.Figures{"shop": {Spent: amount * 1_000_000, Prices: map[string]int64{"apps": 28_270_000}}}})
	}))
	t.Cleanup(server.Close)
	folder := t.TempDir()
	o := budgets.LedgerOptions{URL: server.URL, TokenFile: filepath.Join(folder, "token"), AuthorityFile: filepath.Join(folder, "ca.crt"), Interval: 200 * time.Millisecond}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for file, data := range map[string][]byte{o.TokenFile: []byte("token"), o.AuthorityFile: authority} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "registry.example.org/shop/app"}}}}
}

// findNode returns an explanation if a pod is on no node.
func findNode(f *operatortest.Fixture, name string) string {
	pod := newPod(name)
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
		return err.Error()
	}
	if pod.Spec.NodeName == "" {
		return "the pod is on no node"
	}
	return ""
}

// awaitPrice waits until a new Deployment gets a warning with its price.
func awaitPrice(f *operatortest.Fixture, text string) {
	var warnings strings.Builder
	config := rest.CopyConfig(f.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "ann", Groups: []string{"shop-devs", "system:authenticated"}}
	config.WarningHandler = rest.NewWarningWriter(&warnings, rest.WarningWriterOptions{})
	ann := f.NewClient(config)
	f.Await("a price in the response", func() string {
		pod := newPod("web")
		pod.Labels = map[string]string{"app": "web"}
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4608Mi")}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}, Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec}}}
		warnings.Reset()
		if err := ann.Create(f.Context(), d, client.DryRunAll); err != nil {
			return err.Error()
		}
		if !strings.Contains(warnings.String(), text) {
			return "got: " + warnings.String()
		}
		return ""
	})
}

// TestBudget follows a tenant through the stages of its budget, with a real API server, scheduler and Karpenter. The
// stage is enforced while croft is stopped, and existing pods can be changed, evicted and deleted. A pod that
// selects existing nodes runs there, and Karpenter launches no node for it. Within the budget, a workload gets its price.
func TestBudget(t *testing.T) {
	sandbox.EndToEnd(t)
	var spent atomic.Int64
	spent.Store(100)
	f := operatortest.Start(t, sandbox.Full)
	f.Ledger = startLedger(t, &spent)
	stop := f.Operate()
	defer func() { stop() }()
	shop := operatortest.NewTenant("shop", "apps")
	shop.Spec.Contact = "#shop-oncall"
	shop.Spec.Budget = &v1alpha1.TenantBudget{Monthly: 800, Currency: "EUR", PriceInResponse: true, At: map[string]v1alpha1.BudgetStage{
		"80": v1alpha1.BudgetWarn, "100": v1alpha1.BudgetDenyNewNodes, "120": v1alpha1.BudgetDenyNewPods}}
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop)
	f.AwaitReady(shop)
	ann := f.Impersonate("ann", "shop-devs")
	create := func(selector map[string]string) string {
		pod := newPod("probe")
		pod.Spec.NodeSelector = selector
		if err := ann.Create(t.Context(), pod, client.DryRunAll); err != nil {
			return err.Error()
		}
		return ""
	}
	refusedWith := func(text string, selector map[string]string) func() string {
		return func() string {
			if got := create(selector); !strings.Contains(got, text) {
				return "got: " + got
			}
			return ""
		}
	}
	existing := map[string]string{"karpenter.sh/initialized": "true"}

	f.Await("a pod within the budget", func() string { return create(nil) })
	awaitPrice(f, "about 212 EUR per month with 3 replicas; 700 of 800 EUR left")
	for _, name := range []string{"web", "api", "db"} {
		if err := ann.Create(t.Context(), newPod(name)); err != nil {
			t.Fatal(err)
		}
	}

	spent.Store(810)
	f.Await("no new nodes", refusedWith("tenant shop has spent 810.00 of its 800 EUR for ", nil))
	f.Await("a node", func() string { return findNode(f, "web") })
	fits, large := newPod("fits"), newPod("large")
	for pod, cpu := range map[*corev1.Pod]string{fits: "1m", large: "500"} {
		pod.Spec.NodeSelector = existing
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Mi")}
		if err := ann.Create(t.Context(), pod); err != nil {
			t.Fatalf("a pod for existing nodes is refused: %v", err)
		}
	}
	f.Await("a pod on an existing node", func() string { return findNode(f, "fits") })
	f.AwaitEvent(large, "FailedScheduling", "karpenter.sh/initialized")
	spent.Store(1000)
	const text = "tenant shop has spent 1000.00 of its 800 EUR for "
	f.Await("no new pods", refusedWith(text, existing))

	stop()
	if got := create(nil); !strings.Contains(got, text) || !strings.Contains(got, "contact: #shop-oncall") {
		t.Errorf("while croft is stopped: %s", got)
	}
	web := newPod("web")
	if err := ann.Patch(t.Context(), web, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))); err != nil {
		t.Errorf("change an existing pod: %v", err)
	}
	if err := ann.Delete(t.Context(), newPod("api")); err != nil {
		t.Errorf("delete an existing pod: %v", err)
	}
	if err := f.Client.SubResource("eviction").Create(t.Context(), newPod("db"), &policyv1.Eviction{}); err != nil {
		t.Errorf("evict an existing pod: %v", err)
	}

	// The ledger fails, and the operator starts again: the stage stays, until the budget is raised.
	spent.Store(-1)
	stop = f.Operate()
	f.AwaitReady(shop)
	if got := create(nil); !strings.Contains(got, text) {
		t.Errorf("without a ledger: %s", got)
	}
	f.Patch(shop, `{"spec":{"budget":{"monthly":2000}}}`)
	f.Await("a pod within the higher budget", func() string { return create(nil) })
	var got v1alpha1.Tenant
	if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(shop), &got); err != nil {
		t.Fatal(err)
	}
	if b := got.Status.Budget; b == nil || b.Stage != "" || b.Spent != "1000.00" || b.Percent != 50 {
		t.Errorf("got %+v", b)
	}
	f.AwaitEvent(shop, v1alpha1.ReasonBudgetReached, "at least 100 %")
	f.AwaitEvent(shop, v1alpha1.ReasonBudgetReached, "at least 120 %")
	f.AwaitEvent(shop, v1alpha1.ReasonBudgetStageEnded, "the stage DenyNewPods has ended")
}
