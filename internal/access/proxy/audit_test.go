package proxy

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
)

// recordAuditEvents sends requests to a proxy with an audit policy, and returns the recorded
// events.
func recordAuditEvents(t *testing.T, policy string, sent ...*http.Request) ([]auditv1.Event, *metrics) {
	t.Helper()
	authenticator := newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{"janes": jane}), nil, nil)
	var out bytes.Buffer
	a := Audit{Out: &out}
	if policy != "" {
		a.PolicyFile = filepath.Join(t.TempDir(), "policy.yaml")
		if err := os.WriteFile(a.PolicyFile, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := chain{authenticator: authenticator, metrics: newMetrics(), next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })}
	var err error
	if c.sink, c.policy, err = a.newSink(); err != nil {
		t.Fatal(err)
	}
	h := c.buildHandler()
	for _, r := range sent {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	var events []auditv1.Event
	for line := range strings.Lines(out.String()) {
		var e auditv1.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		events = append(events, e)
	}
	return events, c.metrics
}

func newJanesRequest(header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodDelete, "/api/v1/namespaces/shop/pods/web", nil)
	r.Header.Set("Authorization", "Bearer janes")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// TestAudit fails if an event lacks the user, the request or the response status.
func TestAudit(t *testing.T) {
	events, m := recordAuditEvents(t, "", newJanesRequest(), newJanesRequest("Impersonate-User", "admin"), newJanesRequest("Authorization", "Bearer eves"))
	want := []struct {
		user string
		code int32
	}{{"jane", http.StatusTeapot}, {"jane", http.StatusForbidden}, {"", http.StatusUnauthorized}}
	if len(events) != len(want) {
		t.Fatalf("got %d events for %d requests: %+v", len(events), len(want), events)
	}
	for i, w := range want {
		e := events[i]
		if e.User.Username != w.user || e.ResponseStatus == nil || e.ResponseStatus.Code != w.code || e.Verb != "delete" || e.ObjectRef == nil || e.ObjectRef.Name != "web" || e.AuditID == "" {
			t.Errorf("request %d: got event %+v, want user %q and status %d", i, e, w.user, w.code)
		}
	}
	if got := readCounter(t, m.unauthenticated); got != 1 {
		t.Errorf("got %v unauthenticated requests, want 1", got)
	}
	if got := readCounter(t, m.requests.WithLabelValues("delete", "418")); got != 1 {
		t.Errorf("got %v requests by jane, want 1", got)
	}
}

func readCounter(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// TestAuditPolicy fails if the audit policy file is not applied.
func TestAuditPolicy(t *testing.T) {
	events, _ := recordAuditEvents(t, "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, resources: [{group: \"\", resources: [pods]}]}, {level: Metadata}]\n", newJanesRequest())
	if len(events) > 0 {
		t.Errorf("the policy excludes pods, got events %+v", events)
	}
}
