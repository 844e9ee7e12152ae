package budgets

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/budget"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/controller/declared"
	"croft.dev/croft/internal/operate/controller/status"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// oneTenant is an estate with the tenant shop and its budget.
type oneTenant struct{ budget *v1alpha1.TenantBudget }

func (o oneTenant) findTenant(string) (declared.Entry[estate.Tenant], bool) {
	return declared.Entry[estate.Tenant]{UID: "1", Generation: 1, Value: &estate.Tenant{Name: "shop", Budget: o.budget}}, true
}

// TestReconcile follows a tenant through a month, and counts the writes and the events.
func TestReconcile(t *testing.T) {
	shop := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: types.UID("1"), Generation: 1}}
	writes := 0
	fakes := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(shop).WithStatusSubresource(shop).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, p client.Patch, options ...client.SubResourcePatchOption) error {
			writes++
			return c.SubResource(name).Patch(ctx, o, p, options...)
		},
	}).Build()
	clock := clocktesting.NewFakeClock(noon)
	recorder := events.NewFakeRecorder(10)
	limit := &v1alpha1.TenantBudget{Monthly: 800, Currency: "EUR", At: map[string]v1alpha1.BudgetStage{"80": v1alpha1.BudgetWarn, "120": v1alpha1.BudgetDenyNewPods}}
	c := &Controller{client: fakes, tenants: oneTenant{limit}, recorder: recorder, clock: clock, status: status.NewWriter(fakes)}
	for _, step := range []struct {
		name   string
		at     time.Time
		spent  int64 // in units; -1 for no answer
		budget *v1alpha1.TenantBudget
		want   v1alpha1.BudgetStage
		writes int
		event  string
	}{
		{"no ledger yet", noon, -1, limit, "", 1, ""},
		{"the first answer", noon.Add(time.Minute), 100, limit, "", 2, ""},
		{"the same percentage", noon.Add(2 * time.Minute), 101, limit, "", 2, ""},
		{"a warning", noon.Add(time.Hour), 650, limit, v1alpha1.BudgetWarn, 3, "Warning BudgetReached tenant shop has spent 650.00 of its 800 EUR for 2026-11, at least 80 %"},
		{"no more pods", noon.Add(2 * time.Hour), 1000, limit, v1alpha1.BudgetDenyNewPods, 4, "Warning BudgetReached tenant shop has spent 1000.00 of its 800 EUR"},
		{"no ledger", noon.Add(240 * time.Hour), -1, limit, v1alpha1.BudgetDenyNewPods, 4, ""},
		{"a new month without a ledger", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), -1, limit, "", 5, "Normal BudgetStageEnded a new month has begun"},
		{"no budget", time.Date(2026, 12, 2, 0, 0, 0, 0, time.UTC), -1, nil, "", 6, ""},
	} {
		clock.SetTime(step.at)
		c.tenants = oneTenant{step.budget}
		if step.spent >= 0 {
			c.answer = &budget.Answer{Month: budget.FormatMonth(step.at), Now: step.at, Currency: "EUR", Complete: true,
				Tenants: map[string]budget.Figures{"shop": {Spent: step.spent * 1_000_000}}}
		}
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: "shop"}})
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var got v1alpha1.Tenant
		if err := fakes.Get(t.Context(), client.ObjectKeyFromObject(shop), &got); err != nil {
			t.Fatal(err)
		}
		var stage v1alpha1.BudgetStage
		if got.Status.Budget != nil {
			stage = got.Status.Budget.Stage
		}
		if stage != step.want || writes != step.writes || (got.Status.Budget == nil) != (step.budget == nil) {
			t.Errorf("%s: got stage %q after %d writes, want %q after %d", step.name, stage, writes, step.want, step.writes)
		}
		if step.budget != nil && !step.at.Add(result.RequeueAfter).Equal(budget.GetEndOfMonth(step.at)) {
			t.Errorf("%s: the next reconcile is in %s, not at the end of the month", step.name, result.RequeueAfter)
		}
		event := ""
		select {
		case event = <-recorder.Events:
		default:
		}
		if !strings.HasPrefix(event, step.event) || (event == "") != (step.event == "") {
			t.Errorf("%s: got event %q, want %q", step.name, event, step.event)
		}
	}
}

// TestLedger expects the answer of a ledger, and an error for other answers.
func TestLedger(t *testing.T) {
	answer := budget.Answer{Month: "2026-11", Now: noon, Currency: "EUR", Tenants: map[string]budget.Figures{"shop": {Spent: 7}}}
	status, body := http.StatusOK, any(answer)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != budget.Path || r.Header.Get("Authorization") != "Bearer first" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Location", "https://elsewhere.example.org")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}))
	defer server.Close()
	folder := t.TempDir()
	token, authority := filepath.Join(folder, "token"), filepath.Join(folder, "ca.crt")
	for file, data := range map[string][]byte{
		token: []byte("first\n"), authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	} {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLedger(LedgerOptions{URL: server.URL, TokenFile: token, AuthorityFile: authority})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.read(t.Context()); err != nil || got.Tenants["shop"].Spent != 7 {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, failing := range map[string]func(){
		"a redirect": func() { status = http.StatusFound }, "an error": func() { status = http.StatusServiceUnavailable },
		"another answer":    func() { status, body = http.StatusOK, "hello" },
		"an empty answer":   func() { body = map[string]string{} },
		"another authority": func() { body = answer; l.options.AuthorityFile = filepath.Join(folder, "absent") },
		"another token":     func() { l.options.AuthorityFile = authority; l.options.TokenFile = authority },
		"no token":          func() { l.options.TokenFile = filepath.Join(folder, "absent") },
	} {
		status, body = http.StatusOK, answer
		l.options = LedgerOptions{TokenFile: token, AuthorityFile: authority}
		failing()
		if got, err := l.read(t.Context()); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
	for _, bad := range []LedgerOptions{{URL: "http://ledger", TokenFile: token}, {URL: "https://ledger"}, {URL: "https://user@ledger", TokenFile: token}} {
		if _, err := newLedger(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if l, err := newLedger(LedgerOptions{}); l != nil || err != nil {
		t.Errorf("without a URL: got %v, %v", l, err)
	}
}
