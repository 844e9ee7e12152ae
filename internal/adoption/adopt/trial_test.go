package adopt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/internal/declare/scheme"
)

// TestWaitSettled fails if the report of rules that do not take effect lacks the reason.
func TestWaitSettled(t *testing.T) {
	for name, test := range map[string]struct {
		refused, pool, wantText string
	}{
		"placed":          {pool: "apps"},
		"not placed":      {wantText: "the test with an ordinary pod failed: croft's placement policy does not select a pool for the pod"},
		"on another pool": {pool: "jobs", wantText: "the test with an ordinary pod failed: the pod is placed on pool jobs, which is not the tenant's"},
		"refused":         {refused: "no service account", wantText: "the test with an ordinary pod failed: no service account"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAdoption(t, "{}", "")
				a.client = fake.NewClientBuilder().WithScheme(scheme.New()).WithInterceptorFuncs(interceptor.Funcs{
					Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
						if test.refused != "" {
							return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, o.GetName(), errors.New(test.refused))
						}
						o.(*corev1.Pod).Spec.NodeSelector = map[string]string{a.estate.Platform.NodePoolKey: test.pool}
						return nil
					},
				}).Build()
				err := a.waitSettled(t.Context(), "scratch")
				if test.wantText == "" && err != nil || test.wantText != "" && (err == nil || !strings.Contains(err.Error(), test.wantText)) {
					t.Errorf("%v, want %q", err, test.wantText)
				}
			})
		})
	}
}
