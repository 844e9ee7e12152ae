package platform

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall/network"
)

// newServingClient returns a cluster that serves kinds, and has objects.
func newServingClient(kinds []schema.GroupVersionKind, objects ...client.Object) client.Client {
	var versions []schema.GroupVersion
	for _, kind := range kinds {
		versions = append(versions, kind.GroupVersion())
	}
	mapper := meta.NewDefaultRESTMapper(versions)
	for _, kind := range kinds {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithRESTMapper(mapper).WithObjects(objects...).Build()
}

// TestCheckDialect fails if a dialect is accepted whose kind the cluster does not serve, or if one
// is refused that it serves.
func TestCheckDialect(t *testing.T) {
	for _, dialect := range []v1alpha1.NetworkDialect{
		v1alpha1.DialectKubernetes, v1alpha1.DialectCalico, v1alpha1.DialectClusterNetworkPolicy, v1alpha1.DialectAWS,
	} {
		platform := &estate.Platform{}
		platform.Network.Dialect = dialect
		kinds := network.ListKinds(platform)
		if err := (&Controller{client: newServingClient(kinds)}).checkDialect(platform); err != nil {
			t.Errorf("%s, which the cluster serves: %v", dialect, err)
		}
		err := (&Controller{client: newServingClient(nil)}).checkDialect(platform)
		var missing *apply.DialectError
		if len(kinds) == 0 && err != nil || len(kinds) > 0 && (!errors.As(err, &missing) || missing.Dialect != dialect || missing.Kind != kinds[0]) {
			t.Errorf("%s, which the cluster does not serve: %v", dialect, err)
		}
	}
}

// TestListPlacedByOther fails if the previous engine's objects are deleted while it places pods of
// a tenant, or kept for a tenant whose engine is not known yet.
func TestListPlacedByOther(t *testing.T) {
	tenant := func(name string, engine v1alpha1.PlacementEngine) client.Object {
		return &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.TenantStatus{Placement: engine}}
	}
	c := &Controller{client: newServingClient(nil, tenant("bank", v1alpha1.PlacementGatekeeper), tenant("new", ""), tenant("shop", v1alpha1.PlacementNative))}
	for engine, want := range map[v1alpha1.PlacementEngine][]string{
		v1alpha1.PlacementNative: {"bank"}, v1alpha1.PlacementGatekeeper: {"shop"},
	} {
		names, total, err := c.listPlacedByOther(t.Context(), engine)
		if err != nil || total != 3 || !slices.Equal(names, want) {
			t.Errorf("%s: %q of %d tenants, %v; want %q", engine, names, total, err, want)
		}
	}
}
