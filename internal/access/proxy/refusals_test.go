package proxy

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// TestRefusalIsReadable fails if the proxy's message does not reach the user of a client
// whose first request is a non-resource request. client-go parses no Status there: it
// prints the text of a text/plain body, and otherwise the word "unknown". The test needs no
// cluster, so it runs in make test.
func TestRefusalIsReadable(t *testing.T) {
	const impersonation = "omit --as, --as-group and --as-uid"
	h := newRecordingCluster(t)
	config := &rest.Config{
		Host: h.proxy.URL, BearerToken: "janes", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
		Impersonate: rest.ImpersonationConfig{UserName: "ann"},
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := corev1.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, request := range map[string]func() error{
		"discovery":   func() error { _, _, err := client.ServerGroupsAndResources(); return err },
		"one version": func() error { _, err := client.ServerResourcesForGroupVersion("apps/v1"); return err },
		"/version":    func() error { _, err := client.ServerVersion(); return err },
		"/openapi/v2": func() error { _, err := client.OpenAPISchema(); return err },
		"/openapi/v3": func() error { _, err := client.OpenAPIV3().Paths(); return err },
		"a raw path":  func() error { return client.RESTClient().Get().AbsPath("/healthz").Do(t.Context()).Error() },
		"a resource": func() error {
			_, err := pods.Pods("shop").List(t.Context(), metav1.ListOptions{})
			return err
		},
	} {
		err := request()
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v; want a Forbidden error", name, err)
		} else if !strings.Contains(err.Error(), impersonation) {
			t.Errorf("%s: %v; want a message with %q", name, err, impersonation)
		}
	}
	for _, c := range []struct {
		path, token string
		code        int
		text        bool
		want        string
	}{
		{"/api", "", http.StatusUnauthorized, true, "run croft login"},
		{"/version", "expired", http.StatusUnauthorized, true, "run croft login"},
		{"/api/v1/namespaces/shop/pods", "expired", http.StatusUnauthorized, false, "run croft login"},
	} {
		r := httptest.NewRequest(http.MethodGet, c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		w := httptest.NewRecorder()
		h.proxy.Config.Handler.ServeHTTP(w, r)
		text := strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain")
		if w.Code != c.code || text != c.text || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s %q", c.path, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
}
