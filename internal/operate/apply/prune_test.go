package apply_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/operate/apply"
)

// unlistableClient is a client that cannot list anything.
type unlistableClient struct {
	client.Client
	err error
}

// Scheme implements client.Client.
func (unlistableClient) Scheme() *runtime.Scheme { return runtime.NewScheme() }

// RESTMapper implements client.Client.
func (unlistableClient) RESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

// List implements client.Reader.
func (u unlistableClient) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return u.err
}

// TestPruneWithoutKind fails if kinds that the cluster does not serve, or no longer serves,
// prevent other kinds from being pruned. TestRights found it: a tenant was not deleted
// after the CRDs of Gatekeeper's constraints had been deleted. Default tier.
func TestPruneWithoutKind(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		fails bool
	}{
		"not served":     {err: &meta.NoKindMatchError{}},
		"served no more": {err: apierrors.NewNotFound(schema.GroupResource{}, "")},
		"unreachable":    {err: errors.New("connection refused"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := apply.New(unlistableClient{err: test.err}).Prune(t.Context(), apply.OfTenant("shop"), "", nil, apply.GatekeeperTenantKinds...)
			if len(changes) > 0 || (err != nil) != test.fails {
				t.Errorf("%v, %v", changes, err)
			}
		})
	}
}
