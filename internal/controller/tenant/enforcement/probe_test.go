package enforcement

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
)

// server answers every create as told.
type server struct {
	client.Client
	pool string
	err  error
	opts []client.CreateOption
}

func (s *server) Create(_ context.Context, o client.Object, opts ...client.CreateOption) error {
	s.opts = opts
	if pod, ok := o.(*corev1.Pod); ok && s.pool != "" {
		pod.Spec.NodeSelector = map[string]string{"key": s.pool}
	}
	return s.err
}

func TestCheck(t *testing.T) {
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New(why))
	}
	for _, test := range []struct {
		name   string
		server server
		why    string
	}{
		{"placed", server{pool: "apps"}, ""},
		{"placed on the second pool", server{pool: "jobs"}, ""},
		{"not placed", server{}, "was not placed"},
		{"placed elsewhere", server{pool: "others"}, "not the tenant's"},
		{"stopped by quota, and so let through by the policies", server{err: forbidden("exceeded quota: croft, requested: pods=1")}, ""},
		{"refused", server{err: forbidden(`error looking up service account shop/default`)}, "service account"},
	} {
		t.Run(test.name, func(t *testing.T) {
			why := New(&test.server).Check(t.Context(),
				&estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{NodePoolKey: "key"}},
				&estate.Tenant{Pools: []string{"apps", "jobs"}, Namespaces: []string{"shop"}})
			if (test.why == "") != (why == "") || !strings.Contains(why, test.why) {
				t.Errorf("%q, want %q", why, test.why)
			}
			if len(test.server.opts) != 1 || test.server.opts[0] != client.DryRunAll {
				t.Error("a pod was created")
			}
		})
	}
}

func TestResourcesRespectLimits(t *testing.T) {
	least := corev1.ResourceList{
		corev1.ResourceMemory:           resource.MustParse("64Mi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Gi"),
	}
	got := resources(&estate.Tenant{Limits: &v1alpha1.ContainerLimits{Min: least}})
	for name, want := range map[corev1.ResourceName]string{"cpu": "1m", "memory": "64Mi", "ephemeral-storage": "1Gi"} {
		if quantity := got[name]; quantity.String() != want {
			t.Errorf("%s = %s, want %s", name, quantity.String(), want)
		}
	}
}
