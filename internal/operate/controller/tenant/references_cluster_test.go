package tenant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/rules/attack"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall/network"
)

// TestReferences opens references of the Gateway API between two tenants by their consents, and closes
// them in each way: by either tenant, at the end, and by the deletion of each tenant.
func TestReferences(t *testing.T) {
	sandbox.EndToEnd(t)
	f := &fixture{operatortest.Start(t, sandbox.WithControllers)}
	defer f.Operate()()
	const calls, silent = `{"spec":{"network":{"calls":{"called":{}}}}}`, `{"spec":{"network":{"calls":null}}}`
	const callers = `{"spec":{"network":{"callers":{"caller":{"ports":[443],"services":["api"],"gateways":["web"],"until":%s}}}}}`
	called, caller := operatortest.NewTenant("called", "apps"), operatortest.NewTenant("caller", "apps")
	third := operatortest.NewTenant("third", "apps")
	for _, tenant := range []*v1alpha1.Tenant{called, caller, third} {
		tenant.Spec.Access = []v1alpha1.Access{{Group: tenant.Name + "-devs", Role: v1alpha1.RoleOperator}}
		// kube-controller-manager takes up to five minutes to count kinds that were installed
		// later. Until then a quota refuses their objects.
		tenant.Spec.Quota = corev1.ResourceList{}
	}
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), called, caller, third)
	f.AwaitReady(called, caller, third)

	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.Patch(caller, calls)
	missing := f.AwaitCondition(called, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(missing.Message, "install the Gateway API") {
		t.Errorf("without the Gateway API the condition is %q", missing.Message)
	}
	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.GatewayAPI); err != nil {
		t.Fatal(err)
	}
	f.AwaitReady(called, caller)
	f.awaitReferences(true)
	f.tryReferences(true)

	f.Patch(caller, silent)
	f.awaitReferences(false)
	f.tryReferences(false)
	f.Patch(caller, calls)
	f.awaitReferences(true)
	f.Patch(called, `{"spec":{"network":{"callers":null}}}`)
	f.awaitReferences(false)
	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.awaitReferences(true)
	f.Patch(called, fmt.Sprintf(callers, `"`+time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)+`"`))
	f.awaitReferences(false)
	f.tryReferences(false)
	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.awaitReferences(true)

	f.Delete(caller)
	f.AwaitDeletion(caller)
	f.awaitReferences(false)
	caller = operatortest.NewTenant("caller", "apps")
	caller.Spec.Access = []v1alpha1.Access{{Group: "caller-devs", Role: v1alpha1.RoleOperator}}
	caller.Spec.Network.Calls = map[string]v1alpha1.Call{"called": {}}
	f.Create(caller)
	f.AwaitReady(caller)
	f.AwaitCondition(caller, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending)
	f.awaitReferences(false)
	f.tryReferences(false)

	f.Patch(called, `{"spec":{"network":{"callers":null}}}`)
	f.Await("the consent to be withdrawn", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(called), called); err != nil || len(called.Status.Consents) > 0 {
			return fmt.Sprintf("status.consents is %v, %v", called.Status.Consents, err)
		}
		return ""
	})
	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.awaitReferences(true)
	f.Delete(called)
	f.AwaitDeletion(called)
	f.awaitReferences(false)
}

// awaitReferences waits until the ReferenceGrant of the callee and a label of the caller's namespace
// exist, or no longer exist.
func (f *fixture) awaitReferences(open bool) {
	f.Helper()
	f.Await(fmt.Sprintf("references from caller to called to be open: %t", open), func() string {
		grant := &unstructured.Unstructured{}
		grant.SetGroupVersionKind(network.GrantKind)
		err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: "called", Name: "croft-caller-caller"}, grant)
		if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == open {
			return fmt.Sprintf("the ReferenceGrant: %v", err)
		}
		namespace := &corev1.Namespace{}
		if err := f.Client.Get(f.Context(), client.ObjectKey{Name: "caller"}, namespace); err != nil {
			return err.Error()
		}
		if _, has := namespace.Labels["croft.dev/gateway.called.web"]; has != open {
			return fmt.Sprintf("the labels of the namespace are %v", namespace.Labels)
		}
		return ""
	})
}

// tryReferences tries references that the consents open, and others that they never open.
func (f *fixture) tryReferences(open bool) {
	f.Helper()
	route := func(parent, backend map[string]any) map[string]any {
		return map[string]any{"parentRefs": []any{parent}, "rules": []any{map[string]any{"backendRefs": []any{backend}}}}
	}
	own := map[string]any{"name": "web"}
	backend := map[string]any{"name": "web", "port": int64(80)}
	for _, try := range []struct {
		namespace, kind string
		spec            map[string]any
		allowed         bool
	}{
		{"caller", "HTTPRoute", route(own, map[string]any{"name": "api", "namespace": "called", "port": int64(80)}), open},
		{"caller", "HTTPRoute", route(own, map[string]any{"name": "pay", "namespace": "called", "port": int64(80)}), false},
		{"caller", "HTTPRoute", route(map[string]any{"name": "web", "namespace": "called"}, backend), open},
		{"caller", "HTTPRoute", route(map[string]any{"name": "other", "namespace": "called"}, backend), false},
		{"called", "HTTPRoute", route(map[string]any{"name": "web", "namespace": "caller"}, backend), false},
		{"third", "HTTPRoute", route(own, map[string]any{"name": "api", "namespace": "called", "port": int64(80)}), false},
		{"third", "HTTPRoute", route(map[string]any{"name": "web", "namespace": "called"}, backend), false},
		{"called", "ReferenceGrant", map[string]any{
			"from": []any{map[string]any{"group": network.GrantKind.Group, "kind": "HTTPRoute", "namespace": "caller"}},
			"to":   []any{map[string]any{"group": "", "kind": "Service"}},
		}, false},
	} {
		o := attack.NewCustomObject(network.GrantKind.Group+"/v1", try.kind, try.namespace, "trial", try.spec)
		f.Await(fmt.Sprintf("a %s in %s to be allowed: %t (%v)", try.kind, try.namespace, try.allowed, try.spec), func() string {
			person := f.Impersonate("ann", try.namespace+"-devs", "system:authenticated")
			err := person.Create(f.Context(), o.DeepCopy(), client.DryRunAll)
			if err == nil == try.allowed && (err == nil || apierrors.IsForbidden(err)) {
				return ""
			}
			return fmt.Sprintf("the answer is %v", err)
		})
	}
}
