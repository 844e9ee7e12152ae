package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/walls/wall/network"
)

// awaitConnection waits until a namespace has the policy for a caller, or no longer has it.
func (f *fixture) awaitConnection(namespace, caller string, open bool) {
	f.Helper()
	f.Await(fmt.Sprintf("the connection from %s to %s to be open: %t", caller, namespace, open), func() string {
		policies := f.ListPolicies(namespace)
		has := slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool { return p.Name == "croft-caller-"+caller })
		if has == open {
			return ""
		}
		return fmt.Sprintf("it is not, with %d policies", len(policies))
	})
}

// testAgreedConnection opens a connection by the consents of two tenants, and closes it in each
// way: by either of the two, at its end, by the deletion of each, and by the withdrawal of a
// namespace.
func testAgreedConnection(f *fixture) {
	const calls, silent = `{"spec":{"network":{"calls":{"called":{}}}}}`, `{"spec":{"network":{"calls":null}}}`
	const callers = `{"spec":{"network":{"callers":{"caller":{"ports":[443],"pods":{"app":"api"},"until":%s}}}}}`
	called, caller := operatortest.NewTenant("called", "apps"), operatortest.NewTenant("caller", "apps")
	called.Spec.Namespaces = []string{"called", "called-2"}
	f.Create(called, caller)
	f.AwaitReady(called, caller)

	f.Patch(called, fmt.Sprintf(callers, "null"))
	waiting := f.AwaitCondition(called, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending)
	if !strings.Contains(waiting.Message, "waits for tenant caller, whose network.calls does not name called") {
		f.Errorf("the condition is %q", waiting.Message)
	}
	f.awaitConnection("called", "caller", false)
	f.Patch(caller, calls)
	f.awaitConnection("called", "caller", true)
	f.awaitConnection("called-2", "caller", true)
	f.AwaitCondition(called, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed)
	f.AwaitCondition(caller, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed)

	f.Patch(caller, silent)
	f.awaitConnection("called", "caller", false)
	f.Patch(caller, calls)
	f.awaitConnection("called", "caller", true)

	f.Patch(called, fmt.Sprintf(callers, `"`+time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)+`"`))
	f.awaitConnection("called", "caller", false)
	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.awaitConnection("called-2", "caller", true)

	f.Patch(called, `{"spec":{"namespaces":["called"]}}`)
	f.awaitConnection("called-2", "caller", false)
	if len(f.ListPolicies("called-2")) == 0 {
		f.Error("the retained namespace has lost its walls")
	}

	f.Delete(caller)
	f.AwaitDeletion(caller)
	f.awaitConnection("called", "caller", false)
	caller = operatortest.NewTenant("caller", "apps")
	caller.Spec.Network.Calls = map[string]v1alpha1.Call{"called": {}}
	f.Create(caller)
	f.AwaitReady(caller)
	later := f.AwaitCondition(caller, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending)
	if !strings.Contains(later.Message, "earlier tenant caller") {
		f.Errorf("a later tenant of the same name: %q", later.Message)
	}
	f.awaitConnection("called", "caller", false)
	f.Patch(called, `{"spec":{"network":{"callers":null}}}`)
	f.Await("the consent to be withdrawn", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(called), called); err != nil {
			return err.Error()
		}
		if len(called.Status.Consents) > 0 {
			return fmt.Sprintf("status.consents is %v", called.Status.Consents)
		}
		return ""
	})
	f.Patch(called, fmt.Sprintf(callers, "null"))
	f.awaitConnection("called", "caller", true)

	f.Delete(called)
	f.AwaitDeletion(called)
	f.awaitConnection("called", "caller", false)
	if len(f.ListPolicies("called")) == 0 {
		f.Error("the namespace of the deleted tenant has lost its walls")
	}
}

// laterClock is the system's clock, moved into the future.
type laterClock struct {
	clock.RealClock
	by time.Duration
}

func (c laterClock) Now() time.Time                   { return c.RealClock.Now().Add(c.by) }
func (c laterClock) Since(at time.Time) time.Duration { return c.Now().Sub(at) }

// testEndedConnections stops the operator before two connections end: one by `callers`, and one by
// a TenantCaller. The next operator starts after the end, and has to close both within the time
// that docs/how-to/connections.md promises.
func testEndedConnections(f *fixture, stop *func()) {
	const policy = "croft-accept-api"
	end := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	until := v1alpha1.ConsentEnd(end.Format(time.RFC3339))
	called, caller := operatortest.NewTenant("overdue", "apps"), operatortest.NewTenant("guest", "apps")
	called.Spec.Namespaces = []string{"overdue", "overdue-2"}
	called.Spec.Network.Callers = map[string]v1alpha1.Caller{"guest": {Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}, Until: until}}
	called.Spec.Network.CallersFrom = []string{"guest"}
	caller.Spec.Network.Calls = map[string]v1alpha1.Call{"overdue": {}}
	f.Create(called, caller)
	f.AwaitReady(called, caller)
	accepted := operatortest.NewTenantCaller("overdue-2", "api", "guest")
	accepted.Spec.Until = until
	f.Create(accepted)
	f.awaitConnection("overdue", "guest", true)
	f.awaitPolicy("overdue-2", policy, true)
	f.awaitEnd(end)

	(*stop)()
	f.Clock = laterClock{by: 2 * time.Hour}
	started := time.Now()
	*stop = f.Operate()
	f.awaitConnection("overdue", "guest", false)
	f.awaitConnection("overdue-2", "guest", false)
	f.awaitPolicy("overdue-2", policy, false)
	if took := time.Since(started); took > network.ClosingTime {
		f.Errorf("the operator closed the connections %s after its start", took)
	}
	f.awaitEnd(time.Time{})

	(*stop)()
	f.Clock = nil
	*stop = f.Operate()
	f.awaitConnection("overdue", "guest", true)
}

// awaitEnd waits until the metrics have the end of the connection from guest to overdue, or no longer
// have the connection.
func (f *fixture) awaitEnd(end time.Time) {
	f.Helper()
	f.Await("the metric of the connection's end", func() string {
		got, ok := f.ReadMetric(metric.ConnectionEnd.Name, "tenant=overdue", "caller=guest")
		if ok == end.IsZero() || ok && got != float64(end.Unix()) {
			return fmt.Sprintf("it is %v (%t)", got, ok)
		}
		return ""
	})
}
