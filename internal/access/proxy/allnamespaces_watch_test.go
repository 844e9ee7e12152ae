package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestRefusedNamespaceIsWatchedAgain fails if a watch of all namespaces misses a namespace
// because the API server's authorizer learned of its RoleBinding after the proxy.
func TestRefusedNamespaceIsWatchedAgain(t *testing.T) {
	for _, c := range []struct {
		name     string
		refusals int32
		before   bool // the RoleBinding exists before the watch
	}{{"binding created during the watch", 2, false}, {"binding created before the watch", 2, true}, {"refused once", 1, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var refused atomic.Int32
			upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				namespace := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/")
				if len(namespace) < 2 || namespace[1] == "late" && refused.Add(1) <= c.refusals {
					w.WriteHeader(http.StatusForbidden)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":%q,"resourceVersion":"7"}}}`+"\n", namespace[1])
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			t.Cleanup(upstream.Close)
			cluster := newFakeCluster(t)
			forward, err := newForwarder(&rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
			if err != nil {
				t.Fatal(err)
			}
			proxy := httptest.NewServer(chain{
				authenticator: newRequestAuthenticator(tokenfile.New(map[string]*user.DefaultInfo{"janes": jane}), nil, nil), metrics: newMetrics(),
				next: withVisibleNamespaces(cluster.namespaces, withAllNamespaces(cluster.namespaces, forward)),
			}.buildHandler())
			t.Cleanup(proxy.Close)
			for _, namespace := range []string{"early", "late"} {
				cluster.putNamespace(namespace, nil)
				if namespace == "early" || c.before {
					cluster.bindGroups(namespace, jane.Groups[0])
				}
			}
			events, err := kubernetes.NewForConfigOrDie(&rest.Config{Host: proxy.URL, BearerToken: "janes"}).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(events.Stop)
			if e := awaitEvent(t, events); getNamespace(t, e.Object) != "early" {
				t.Fatalf("the first event is %v", e)
			}
			if !c.before {
				cluster.bindGroups("late", jane.Groups[0])
			}
			if e := awaitEvent(t, events); getNamespace(t, e.Object) != "late" {
				t.Fatalf("the second event is %v", e)
			}
		})
	}
}

func getNamespace(t *testing.T, o any) string {
	t.Helper()
	m, ok := o.(metav1.Object)
	if !ok {
		t.Fatalf("not an object: %v", o)
	}
	return m.GetNamespace()
}
