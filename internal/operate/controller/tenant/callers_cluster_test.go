package tenant_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// awaitPolicy waits until a namespace has a policy, or no longer has it.
func (f *fixture) awaitPolicy(namespace, name string, exists bool) {
	f.Helper()
	f.Await(fmt.Sprintf("the policy %s in %s to exist: %t", name, namespace, exists), func() string {
		policies := f.ListPolicies(namespace)
		has := slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool { return p.Name == name })
		if has == exists {
			return ""
		}
		return fmt.Sprintf("it does not, with %d policies", len(policies))
	})
}

// testAcceptedCaller opens a connection by a TenantCaller of a team, and closes it in each way: by
// the platform, at its end, by the team, and by the deletion of the caller.
func testAcceptedCaller(f *fixture) {
	const policy, egress = "croft-accept-api", "croft-call-accepting"
	called, caller := operatortest.NewTenant("accepting", "apps"), operatortest.NewTenant("accepted", "apps")
	called.Spec.Namespaces = []string{"accepting", "accepting-2"}
	called.Spec.Network.CallersFrom = []string{"accepted"}
	called.Spec.Access = append(called.Spec.Access, v1alpha1.Access{Group: "accepting-lookers", Role: v1alpha1.RoleViewer})
	caller.Spec.Network = v1alpha1.TenantNetwork{Egress: v1alpha1.EgressRestricted, Calls: map[string]v1alpha1.Call{"accepting": {}}}
	f.Create(called, caller)
	f.AwaitReady(called, caller)

	consent := operatortest.NewTenantCaller("accepting-2", "api", "accepted")
	for user, group := range map[string]string{"viewer": "accepting-lookers", "stranger": "accepted-devs"} {
		if err := f.Impersonate(user, group).Create(f.Context(), consent.DeepCopy()); !apierrors.IsForbidden(err) {
			f.Errorf("a %s accepts a caller: %v", user, err)
		}
	}
	team := f.Impersonate("ann", "accepting-devs")
	for _, port := range []string{"http", "80/tcp", "0-80", ""} {
		malformed := consent.DeepCopy()
		malformed.Spec.Ports[0] = intstr.FromString(port)
		if err := team.Create(f.Context(), malformed); !apierrors.IsInvalid(err) {
			f.Errorf("the port %q: %v", port, err)
		}
	}
	if err := team.Create(f.Context(), consent); err != nil {
		f.Fatal(err)
	}
	f.AwaitCondition(consent, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed)
	f.AwaitCondition(consent, v1alpha1.ConditionAccepted, metav1.ConditionTrue, v1alpha1.ReasonAccepted)
	f.AwaitCondition(caller, v1alpha1.ConditionAgreed, metav1.ConditionTrue, v1alpha1.ReasonAgreed)
	f.awaitPolicy("accepting-2", policy, true)
	f.awaitPolicy("accepting", policy, false)
	f.awaitPolicy("accepted", egress, true)
	if consent.Status.Giver != string(called.UID) || consent.Status.Receiver != string(caller.UID) {
		f.Errorf("recorded %+v", consent.Status)
	}
	forged := consent.DeepCopy()
	forged.Status.Receiver = "another"
	if err := team.Status().Patch(f.Context(), forged, client.MergeFrom(consent)); !apierrors.IsForbidden(err) {
		f.Errorf("the team writes the status: %v", err)
	}
	if err := team.Patch(f.Context(), consent.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tenant":"called"}}`))); !apierrors.IsInvalid(err) {
		f.Errorf("the tenant was changed: %v", err)
	}

	f.Patch(called, `{"spec":{"network":{"callersFrom":[]}}}`)
	f.awaitPolicy("accepting-2", policy, false)
	f.awaitPolicy("accepted", egress, false)
	f.AwaitCondition(consent, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNotAllowed)
	f.Patch(called, `{"spec":{"network":{"callersFrom":["*"]}}}`)
	f.awaitPolicy("accepting-2", policy, true)

	f.Patch(consent, `{"spec":{"until":"`+time.Now().Add(3*time.Second).UTC().Format(time.RFC3339)+`"}}`)
	f.awaitPolicy("accepting-2", policy, false)
	expired := f.AwaitCondition(consent, v1alpha1.ConditionAgreed, metav1.ConditionFalse, v1alpha1.ReasonConsentPending)
	if !strings.HasPrefix(expired.Message, "expired at ") {
		f.Errorf("after the end: %q", expired.Message)
	}
	f.Patch(consent, `{"spec":{"until":null}}`)
	f.awaitPolicy("accepting-2", policy, true)

	f.Patch(consent, `{"metadata":{"finalizers":["example.org/kept"]}}`)
	if err := team.Delete(f.Context(), consent); err != nil {
		f.Fatal(err)
	}
	f.awaitPolicy("accepting-2", policy, false)
	f.Patch(consent, `{"metadata":{"finalizers":null}}`)
	f.AwaitDeletion(consent)

	consent = operatortest.NewTenantCaller("accepting-2", "api", "accepted")
	f.Create(consent)
	f.awaitPolicy("accepting-2", policy, true)
	f.Delete(caller)
	f.AwaitDeletion(caller)
	f.awaitPolicy("accepting-2", policy, false)
	caller = operatortest.NewTenant("accepted", "apps")
	caller.Spec.Network.Calls = map[string]v1alpha1.Call{"accepting": {}}
	f.Create(caller)
	f.AwaitReady(caller)
	f.AwaitCondition(consent, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonRefused)
	f.awaitPolicy("accepting-2", policy, false)
}
