package supportbundle

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestLogs expects only the logs of the operator's pods, also from before a restart, and a
// list of the logs that could not be read. A sandbox's pods have no logs, so an HTTP server
// takes the API server's place.
func TestLogs(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		previous := r.URL.Query().Get("previous") == "true"
		switch {
		case strings.Contains(r.URL.Path, "/croft-1/"):
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"pods is forbidden","code":403}`)
		case previous:
			_, _ = fmt.Fprint(w, "before the restart")
		default:
			_, _ = fmt.Fprint(w, "restored an object")
		}
	}))
	defer server.Close()
	logs, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := func(name, app string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{
			"name": name, "namespace": "croft-system", "labels": map[string]any{"app.kubernetes.io/name": app},
		}}}
	}
	c := &Collector{Logs: logs}
	got, unread := c.readLogs(t.Context(), []*unstructured.Unstructured{
		pod("croft-0", "croft"), pod("croft-1", "croft"), pod("croft-proxy-0", "croft-proxy"),
		{Object: map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "croft"}}},
	})
	if len(got) != 2 || got[0].Name != "croft-0.log" || string(got[0].Content) != "restored an object" ||
		got[1].Name != "croft-0.previous.log" || string(got[1].Content) != "before the restart" {
		t.Errorf("%s", got)
	}
	if len(unread) != 2 || !strings.Contains(unread[0], "croft-1.log") || !strings.Contains(unread[0], "forbidden") {
		t.Errorf("%q", unread)
	}
	for _, path := range asked {
		if strings.Contains(path, "proxy") {
			t.Errorf("the proxy's log has users: %s", path)
		}
	}
}
