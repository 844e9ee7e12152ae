package operator_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// TestHealth checks that a running operator is healthy, and that it is ready if it can read
// its objects and has all its rights.
func TestHealth(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	t.Run("without one right", func(t *testing.T) { testRemovedRight(&fixture{f.For(t)}) })
	rightless := rest.CopyConfig(f.Config)
	rightless.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	for _, test := range []struct {
		name   string
		config *rest.Config
		ready  int
	}{
		{"with its rights", f.Config, http.StatusOK},
		{"without any", rightless, http.StatusInternalServerError},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := f.For(t)
			addr := findFreeAddress(t)
			done := make(chan error, 1)
			go func() {
				done <- operator.Run(t.Context(), test.config, operator.Options{HealthAddr: addr, MetricsAddr: "0", Log: f.NewLogger()})
			}()
			answers := func(path string, want int) {
				inner.Await(path, func() string {
					select {
					case err := <-done:
						return fmt.Sprintf("the operator stopped: %v", err)
					default:
					}
					response, err := http.Get("http://" + addr + path)
					if err != nil {
						return err.Error()
					}
					defer func() { _ = response.Body.Close() }()
					if response.StatusCode != want {
						return response.Status
					}
					return ""
				})
			}
			answers("/healthz", http.StatusOK)
			answers("/readyz", test.ready)
		})
	}
}

// testRemovedRight removes a right that no cache needs, and restores it.
func testRemovedRight(f *fixture) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ManagedBy}}
	if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		f.Fatal(err)
	}
	whole := role.DeepCopy()
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "tenantrules") {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "patch" })
		}
	}
	if err := f.Client.Update(f.Context(), role); err != nil {
		f.Fatal(err)
	}
	addr := findFreeAddress(f)
	stop := f.OperateAt(addr)
	defer stop()
	ready := func(want int) {
		f.Helper()
		f.Await(fmt.Sprintf("readiness %d", want), func() string {
			response, err := http.Get("http://" + addr + "/readyz")
			if err != nil {
				return err.Error()
			}
			defer func() { _ = response.Body.Close() }()
			if response.StatusCode != want {
				return response.Status
			}
			return ""
		})
	}
	ready(http.StatusInternalServerError)
	f.AwaitLog("not ready", "the operator may not patch tenantrules.croft.dev: run croft install or helm upgrade again")
	whole.ResourceVersion = role.ResourceVersion
	if err := f.Client.Update(f.Context(), whole); err != nil {
		f.Fatal(err)
	}
	ready(http.StatusOK)
}

// findFreeAddress returns an address that no process listens on.
func findFreeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}
