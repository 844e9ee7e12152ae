package controller_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/walls/wall"
)

// TestEveryKindIsPruned compares the lists of kinds with the walls' objects: objects of a
// kind that is not pruned would stay for ever.
func TestEveryKindIsPruned(t *testing.T) {
	platform := &estate.Platform{PlatformSpec: v1alpha1.PlatformSpec{
		NodePoolKey: v1alpha1.DefaultNodePoolKey, Network: v1alpha1.PlatformNetwork{PlatformNamespaces: []string{"ingress"}},
	}}
	gatekeeper := &estate.Platform{PlatformSpec: *platform.DeepCopy()}
	gatekeeper.Placement = v1alpha1.PlacementGatekeeper
	one := resource.MustParse("1")
	some := corev1.ResourceList{"cpu": one}
	tenant := &estate.Tenant{
		Name: "shop", Pools: []string{"apps"}, Namespaces: []string{"shop"},
		Access: []v1alpha1.Access{{Group: "devs", Role: v1alpha1.RoleOperator}},
		Sources: []estate.Source{
			{Name: "git", Source: v1alpha1.Source{Git: "https://git.example.org/a", Namespace: "shop", Webhook: &v1alpha1.SourceWebhook{Type: "generic"}}},
			{Name: "oci", Source: v1alpha1.Source{OCI: "oci://registry.example.org/a", Namespace: "shop"}},
		},
		Quota: some, Limits: &v1alpha1.ContainerLimits{Max: some},
		Allowances: v1alpha1.Allowances{MaxObjectBytes: ptr.To[int64](1), MaxHelmReleaseBytes: ptr.To[int64](1), MaxOtherObjectBytes: ptr.To[int64](1)},
	}
	var pools []client.Object
	for _, class := range []v1alpha1.NodeClass{
		{Kwok: &v1alpha1.KwokNodeClass{}},
		{AWS: &v1alpha1.AWSNodeClass{Role: "nodes", AMIAlias: "al2023@latest"}},
	} {
		pools = append(pools, wall.PoolObjects(platform, &estate.Pool{Name: "apps", Class: class})...)
	}
	pools = append(pools, wall.ReadinessObjects(&estate.Pool{Name: "apps", PoolSpec: v1alpha1.PoolSpec{WaitForNetworks: true}})...)
	tenants := wall.TenantObjects(platform, tenant)
	for _, n := range []v1alpha1.PlatformNetwork{
		{Dialect: v1alpha1.DialectCalico},
		{Dialect: v1alpha1.DialectCalico, Calico: &v1alpha1.CalicoNetwork{APIGroup: v1alpha1.CalicoStorageGroup}},
		{Dialect: v1alpha1.DialectClusterNetworkPolicy},
		{Dialect: v1alpha1.DialectAWS},
	} {
		other := *platform
		other.Network = n
		tenants = append(tenants, wall.TenantObjects(&other, tenant)...)
	}
	for _, test := range []struct {
		scope   string
		objects []client.Object
		kinds   []schema.GroupVersionKind
	}{
		{"platform", append(wall.PlatformObjects(platform), wall.PlatformObjects(gatekeeper)...), slices.Concat(apply.PlatformKinds, apply.NativePlatformKinds, apply.GatekeeperPlatformKinds)},
		{"pool", pools, slices.Concat(apply.PoolKinds, apply.ReadinessKinds)},
		{
			"tenant", append(tenants, wall.TenantObjects(gatekeeper, tenant)...),
			slices.Concat(apply.TenantKinds, apply.OptionalKinds, apply.DialectKinds, apply.ClusterDialectKinds, apply.GatekeeperTenantKinds),
		},
	} {
		if len(test.objects) == 0 {
			t.Errorf("%s: no objects", test.scope)
		}
		for _, o := range test.objects {
			kind := o.GetObjectKind().GroupVersionKind()
			if kind.Kind != "Namespace" && !slices.Contains(test.kinds, kind) {
				t.Errorf("%s: the walls make a %s, which is not among the kinds to prune", test.scope, kind)
			}
		}
	}
}
