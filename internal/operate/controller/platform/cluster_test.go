package platform_test

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// fixture is a cluster with croft installed.
type fixture struct{ *operatortest.Fixture }

// TestPlatform covers the Platform on one control plane. Each subtest leaves the Platform as it
// found it, but for its administrators.
func TestPlatform(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.WithControllers)
	defer f.Operate()()
	shop := operatortest.NewTenant("shop", "apps")
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop)
	f.AwaitReady(operatortest.NewPlatform(), shop)
	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"the platform's people are bound", testPeopleBindings},
		{"repairs are reported", testReportedRepairs},
		{"a role of tenants is put back", testRestoredRole},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&fixture{f.For(t)}) })
	}
}

// testReportedRepairs deletes a policy and its binding. Each repair must be reported by an event
// and a metric.
func testReportedRepairs(f *fixture) {
	whole := operatortest.NewPlatform()
	f.AwaitReady(whole)
	before := f.CountRepairs("", "MutatingAdmissionPolicy") + f.CountRepairs("", "MutatingAdmissionPolicyBinding")
	var policies admissionv1.MutatingAdmissionPolicyList
	if err := f.Client.List(f.Context(), &policies); err != nil {
		f.Fatal(err)
	}
	var bindings admissionv1.MutatingAdmissionPolicyBindingList
	if err := f.Client.List(f.Context(), &bindings); err != nil {
		f.Fatal(err)
	}
	if len(policies.Items) == 0 || len(bindings.Items) == 0 {
		f.Fatalf("%d policies and %d bindings: nothing to delete", len(policies.Items), len(bindings.Items))
	}
	f.Delete(&bindings.Items[0])
	f.Delete(&policies.Items[0])
	f.AwaitRepair(whole, "MutatingAdmissionPolicy "+policies.Items[0].Name)
	f.AwaitRepair(whole, "MutatingAdmissionPolicyBinding "+bindings.Items[0].Name)
	f.AwaitLog("restored an object", "kind=MutatingAdmissionPolicy namespace=\"\" name="+policies.Items[0].Name+" was=deleted")
	if n := f.CountRepairs("", "MutatingAdmissionPolicy") + f.CountRepairs("", "MutatingAdmissionPolicyBinding") - before; n < 2 {
		f.Errorf("croft_repairs_total counts %v of 2", n)
	}
	f.AwaitReady(whole)
}

// testRestoredRole gives a role of tenants all rights.
func testRestoredRole(f *fixture) {
	whole := operatortest.NewPlatform()
	f.AwaitReady(whole)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "croft-viewer"}}
	f.Patch(role, `{"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	f.Await("the role to be put back", func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err.Error()
		}
		if len(role.Rules) == 1 {
			return "still everything"
		}
		return ""
	})
	f.AwaitRepair(whole, "ClusterRole croft-viewer, which was changed by somebody")
	f.AwaitReady(whole)
}
