package operator_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator"
	"croft.dev/croft/internal/test/sandbox"
)

// TestHealth checks that a running operator is healthy, and that it is ready if it can read
// its objects and has all its rights.
func TestHealth(t *testing.T) {
	sandbox.EndToEnd(t)
	f := newField(t, sandbox.WithControllers)
	t.Run("before Karpenter is there", func(t *testing.T) {
		inner := *f
		inner.TB = t
		karpenterLater(&inner)
	})
	t.Run("without one right", func(t *testing.T) {
		inner := *f
		inner.TB = t
		rightTaken(&inner)
	})
	nobody := rest.CopyConfig(f.config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	for _, test := range []struct {
		name   string
		config *rest.Config
		ready  int
	}{
		{"with its rights", f.config, http.StatusOK},
		{"without any", nobody, http.StatusInternalServerError},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := *f
			inner.TB = t
			addr := freeAddress(t)
			done := make(chan error, 1)
			go func() {
				done <- operator.Run(t.Context(), test.config, operator.Options{HealthAddr: addr, MetricsAddr: "0", Log: f.log()})
			}()
			answers := func(path string, want int) {
				inner.eventually(path, func() string {
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

// rightTaken removes a right that no cache needs, and restores it.
func rightTaken(f *field) {
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ManagedBy}}
	if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
		f.Fatal(err)
	}
	whole := role.DeepCopy()
	for i := range role.Rules {
		if slices.Contains(role.Rules[i].Resources, "tenantrules") {
			role.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(role.Rules[i].Verbs), func(verb string) bool { return verb == "patch" })
		}
	}
	if err := f.client.Update(f.Context(), role); err != nil {
		f.Fatal(err)
	}
	addr := freeAddress(f)
	stop := f.operateAt(addr)
	defer stop()
	ready := func(want int) {
		f.Helper()
		f.eventually(fmt.Sprintf("readiness %d", want), func() string {
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
	f.logged("not ready", "the operator may not patch tenantrules.croft.dev: run croft install or helm upgrade again")
	whole.ResourceVersion = role.ResourceVersion
	if err := f.client.Update(f.Context(), whole); err != nil {
		f.Fatal(err)
	}
	ready(http.StatusOK)
}

// freeAddress returns an address that no process listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// karpenterLater covers a cluster on which Karpenter is installed after croft.
func karpenterLater(f *field) {
	var kinds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"} {
		kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := f.client.Get(f.Context(), client.ObjectKeyFromObject(kind), kind); err != nil {
			f.Fatal(err)
		}
		f.delete(kind)
		f.gone(kind.DeepCopy())
		kinds = append(kinds, kind)
	}
	// Discovery drops the kinds a moment later. An operator that still discovers them waits
	// two minutes for objects that are not served.
	served, err := discovery.NewDiscoveryClientForConfig(f.config)
	if err != nil {
		f.Fatal(err)
	}
	f.eventually("discovery to forget NodePools and NodeClaims", func() string {
		ofGroup, err := served.ServerResourcesForGroupVersion("karpenter.sh/v1")
		if err != nil && !apierrors.IsNotFound(err) {
			return err.Error()
		}
		_, all, err := served.ServerGroupsAndResources()
		if err != nil {
			return err.Error()
		}
		for _, list := range append(all, ofGroup) {
			if list != nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool {
				return r.Kind == "NodePool" || r.Kind == "NodeClaim"
			}) {
				return "it has them"
			}
		}
		return ""
	})

	stop := f.operate()
	defer stop()
	apps, shop := pool("apps"), tenant("shop", "apps")
	f.create(platform(), apps, shop)
	condition := f.condition(apps, v1alpha1.ConditionApplied, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(condition.Message, "NodePool apps: this cluster does not know the kind NodePool (karpenter.sh/v1)") {
		f.Errorf("the message does not say what is missing: %s", condition.Message)
	}
	// The other walls do not depend on Karpenter.
	f.ready(shop)

	for _, kind := range kinds {
		kind.ResourceVersion, kind.UID = "", ""
		f.create(kind)
	}
	f.condition(apps, v1alpha1.ConditionApplied, metav1.ConditionTrue, v1alpha1.ReasonApplied)
}
