package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// fixture is a cluster with croft installed.
type fixture struct{ *operatortest.Fixture }

// TestOperator covers the operator as a whole, with all components; the tests of a controller are
// next to it. The order of the subtests matters only for "a file prunes the objects that it does not name",
// which deletes the tenants of the subtests before it.
func TestOperator(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.Start(t, sandbox.Full)
	stop := f.Operate()
	defer func() { stop() }()

	early, apps := operatortest.NewTenant("early", "apps"), operatortest.NewPool("apps")
	f.Create(early)
	f.AwaitCondition(early, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform)
	f.Create(operatortest.NewPlatform(), apps, operatortest.NewTenant("shop", "apps"))
	f.AwaitReady(operatortest.NewPlatform(), apps, early, operatortest.NewTenant("shop", "apps"))
	if apps.Status.Tenants != 2 {
		f.Errorf("pool apps has %d tenants, want 2", apps.Status.Tenants)
	}

	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"changes by others are reverted", testDriftRepair},
		{"the state is measured", testStateMetrics},
		{"an operator that is killed is followed by another", func(f *fixture) { testRestartDuringCreation(f, &stop) }},
		{"a file prunes the objects that it does not name", testPruneByFile},
		{"unchanged objects are not written", func(f *fixture) { testNoWriteAfterRestart(f, &stop) }},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&fixture{f.For(t)}) })
	}
}

// testRestartDuringCreation stops the operator while it creates the objects of many tenants.
func testRestartDuringCreation(f *fixture, stop *func()) {
	var tenants []client.Object
	for i := range 20 {
		tenants = append(tenants, operatortest.NewTenant(fmt.Sprintf("many-%d", i), "apps"))
	}
	f.Create(tenants...)
	(*stop)()
	*stop = f.Operate()
	f.AwaitReady(tenants...)
}

// testNoWriteAfterRestart fails if a restarted operator writes objects that are in place.
func testNoWriteAfterRestart(f *fixture, stop *func()) {
	(*stop)()
	before := f.Writes.Count()
	*stop = f.Operate()
	spaces := f.countTenantNamespaces()
	probed := map[string]bool{}
	f.Await("every tenant to be reconciled", func() string {
		for _, write := range f.Writes.ListSince(before) {
			if name, ok := strings.CutSuffix(strings.TrimPrefix(write, "POST /api/v1/namespaces/"), "/pods?dryRun=All"); ok {
				probed[name] = true
			}
		}
		if len(probed) < spaces {
			return fmt.Sprintf("%d of %d", len(probed), spaces)
		}
		return ""
	})
	others := slices.DeleteFunc(f.Writes.ListSince(before), func(write string) bool {
		// A new leader reports itself in an event in croft's own namespace.
		return strings.HasSuffix(write, "/pods?dryRun=All") || strings.Contains(write, "/leases") ||
			strings.HasSuffix(write, "/namespaces/"+v1alpha1.SystemNamespace+"/events")
	})
	if len(others) > 0 {
		f.Errorf("wrote %d times:\n%s", len(others), strings.Join(others, "\n"))
	}
}

// countTenantNamespaces counts the namespaces of tenants that are Ready.
func (f *fixture) countTenantNamespaces() int {
	f.Helper()
	var tenants v1alpha1.TenantList
	if err := f.Client.List(f.Context(), &tenants); err != nil {
		f.Fatal(err)
	}
	n := 0
	for _, t := range tenants.Items {
		n += len(t.Status.Namespaces)
	}
	return n
}
