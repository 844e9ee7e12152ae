package verify

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// TestAwait expects the attacks to wait until the API server enforces new policies: without the
// wait, they would all be breaches.
func TestAwait(t *testing.T) {
	for name, c := range map[string]struct {
		admitted int // number of tries until the policies are enforced
		want     int // 0 if the number depends on which of two timers ends first
	}{
		"enforced at once": {admitted: 0, want: 1},
		"enforced late":    {admitted: 5, want: 6},
		"never enforced":   {admitted: 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := attack.NewPod("own", "a")
				a := attack.Attack{Name: "a", Kind: attack.Breach, Attacker: "own", StoppedBy: attack.ByPolicy("croft-a", "rule"), Request: &attack.Request{Verb: attack.Create, Object: pod}}
				second := a
				second.Name = "b"
				tries := 0
				answering := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), interceptor.Funcs{
					Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
						if tries++; tries <= c.admitted {
							return nil
						}
						return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(
							"ValidatingAdmissionPolicy 'croft-a' with binding 'croft-a' denied request: "+admissionpolicy.RefusalPrefix("rule")))
					},
				})
				r := &Runner{members: map[string]map[v1alpha1.Role]*member{"own": {v1alpha1.RoleOperator: {client: answering}}}}
				if err := awaitRefusals(t.Context(), r, pickOnePerPolicy([]attack.Attack{a, second})); err != nil {
					t.Fatal(err)
				}
				if c.want > 0 && tries != c.want {
					t.Errorf("%d tries, want %d", tries, c.want)
				}
			})
		})
	}
}
