package operator_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

func TestOperator(t *testing.T) {
	f := newField(t, sandbox.Full)
	stop := f.operate()
	defer func() { stop() }()

	early := tenant("early", "apps")
	f.create(early)
	f.condition(early, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonNoPlatform)
	f.create(platform(), pool("apps"), pool("jobs"), tenant("shop", "apps"))
	f.ready(platform(), pool("apps"), pool("jobs"), early, tenant("shop", "apps"))

	for _, test := range []struct {
		name string
		run  func(*field)
	}{
		{"a tenant has what it declares", tenantHas},
		{"what somebody changes is put back", driftPutBack},
		{"the platform's people are bound", peopleBound},
		{"what was put back is reported", repairsReported},
		{"the state is measured", stateMeasured},
		{"a status that was not written is completed", statusCompleted},
		{"an object is rejected", rejectedReported},
		{"a domain is another's, and then is not", domainMended},
		{"a tenant is written that croft check refuses", tenantRefused},
		{"a namespace is refused, and then adopted", namespaceAdopted},
		{"a namespace loses its label", namespaceUnlabelled},
		{"a namespace is declared no longer", namespaceDropped},
		{"a namespace is given to another tenant", namespaceGiven},
		{"a tenant is deleted and its namespaces are retained", tenantRetained},
		{"a tenant is deleted with its namespaces", tenantDeleted},
		{"a pool is kept while it is used", poolInUse},
	} {
		if !t.Run(test.name, func(t *testing.T) {
			inner := *f
			inner.TB = t
			test.run(&inner)
		}) {
			return
		}
	}

	t.Run("an operator that is killed is followed by another", func(t *testing.T) {
		inner := *f
		inner.TB = t
		var tenants []client.Object
		for i := range 20 {
			tenants = append(tenants, tenant(fmt.Sprintf("many-%d", i), "apps"))
		}
		inner.create(tenants...)
		stop()
		stop = inner.operate()
		inner.ready(tenants...)
	})

	t.Run("a file prunes what it does not name", func(t *testing.T) {
		inner := *f
		inner.TB = t
		filePrunes(&inner)
	})

	t.Run("what stands is not written", func(t *testing.T) {
		inner := *f
		inner.TB = t
		stop()
		before := len(f.writes.since(0))
		stop = inner.operate()
		spaces := inner.tenantNamespaces()
		probed := map[string]bool{}
		inner.eventually("every tenant to be gone through", func() string {
			for _, write := range f.writes.since(before) {
				if name, ok := strings.CutSuffix(strings.TrimPrefix(write, "POST /api/v1/namespaces/"), "/pods?dryRun=All"); ok {
					probed[name] = true
				}
			}
			if len(probed) < spaces {
				return fmt.Sprintf("%d of %d", len(probed), spaces)
			}
			return ""
		})
		others := slices.DeleteFunc(f.writes.since(before), func(write string) bool {
			// A new leader reports itself in an event in croft's own namespace.
			return strings.HasSuffix(write, "/pods?dryRun=All") || strings.Contains(write, "/leases") ||
				strings.HasSuffix(write, "/namespaces/"+v1alpha1.SystemNamespace+"/events")
		})
		if len(others) > 0 {
			t.Errorf("wrote %d times:\n%s", len(others), strings.Join(others, "\n"))
		}
	})
}

// tenantNamespaces counts the namespaces of tenants that are Ready.
func (f *field) tenantNamespaces() int {
	f.Helper()
	var tenants v1alpha1.TenantList
	if err := f.client.List(f.Context(), &tenants); err != nil {
		f.Fatal(err)
	}
	n := 0
	for _, t := range tenants.Items {
		n += len(t.Status.Namespaces)
	}
	return n
}
