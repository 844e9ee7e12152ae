package enforcement_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/controller/tenant/enforcement"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

const declaration = `
platform: {clusterName: test, nodeClass: {kwok: {}}, tenantDefaults: {podSecurity: restricted}}
pools: {apps: {}, jobs: {}}
tenants:
  shop:
    pools: [apps, jobs]
    namespaces: [shop, shop-test]
    quota: {pods: "0"}
    limits: {min: {cpu: 20m, memory: 8Mi}, max: {cpu: 50m}}
    policy: {registries: [registry.example.org/shop], maxTerminationGracePeriodSeconds: 30}
`

// TestCheck probes a tenant while its policies are deleted and restored. Its limits, quota
// and Pod Security level are as strict as possible for the probe.
func TestCheck(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.WithControllers})
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	d, problems := manifest.Parse("croft.yaml", []byte(declaration))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	e, problems := estate.Build(d)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	tenant, applier := e.Tenants[0], apply.New(admin)
	platform, walls := wall.PlatformObjects(&e.Platform), wall.TenantObjects(&e.Platform, tenant)

	probe := enforcement.New(admin, enforcement.NewServers(admin, cluster.Config, nil, clock.RealClock{}))
	await := func(want string) {
		t.Helper()
		var why string
		err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
			_, why = probe.Check(ctx, &e.Platform, tenant)
			return why == want || want != "" && strings.Contains(why, want), nil
		})
		if err != nil {
			t.Fatalf("want %q, the probe reports %q", want, why)
		}
	}
	set := func(objects ...client.Object) {
		t.Helper()
		if _, err := applier.Apply(t.Context(), objects...); err != nil {
			t.Fatal(err)
		}
	}
	take := func(kind, name string) client.Object {
		t.Helper()
		for _, o := range append(platform, walls...) {
			if o.GetObjectKind().GroupVersionKind().Kind == kind && o.GetName() == name {
				if err := admin.Delete(t.Context(), o.DeepCopyObject().(client.Object)); err != nil {
					t.Fatal(err)
				}
				return o
			}
		}
		t.Fatalf("no wall wants a %s %s", kind, name)
		return nil
	}

	await("namespace shop: a dry-run pod was refused")
	set(walls...)
	set(platform...)
	await("")

	binding := take("MutatingAdmissionPolicyBinding", "croft-pods")
	await("a dry-run pod was refused") // refused by the check, because no engine placed it
	set(binding)
	await("")

	// A full quota hides the effect of a missing policy.
	quota := &corev1.ResourceQuota{}
	if err := admin.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "croft"}, quota); err != nil {
		t.Fatal(err)
	}
	quota.Spec.Hard[corev1.ResourcePods] = resource.MustParse("10")
	if err := admin.Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	binding = take("ValidatingAdmissionPolicyBinding", "croft-pods")
	await("tolerates every taint was admitted")
	mutation := take("MutatingAdmissionPolicyBinding", "croft-pods")
	await("a dry-run pod was not placed")
	set(binding, mutation)
	await("")

	// The cluster lists API servers at addresses that lead nowhere (RFC 5737).
	if err := admin.Create(t.Context(), newUnreachableEndpoints()); err != nil {
		t.Fatal(err)
	}
	probe = enforcement.New(admin, enforcement.NewServers(admin, cluster.Config, nil, clock.RealClock{}))
	await("")
	if caveat := probe.Caveat(); !strings.Contains(caveat, "one API server confirmed the rules") {
		t.Errorf("API servers that cannot be reached are not reported: %q", caveat)
	}
	probe = enforcement.New(admin, enforcement.NewServers(admin, cluster.Config, []string{"192.0.2.1:443", "192.0.2.2:443"}, clock.RealClock{}))
	await("API server 192.0.2.1:443 does not answer")

	probe = enforcement.New(admin, enforcement.NewServers(admin, cluster.Config, nil, clock.RealClock{}))
	unruled := map[string]any{}
	for key := range admissionpolicy.BuildAnnotations(v1alpha1.TenantRulesSpec{}) {
		unruled[key] = nil
	}
	if err := applier.MarkNamespace(t.Context(), "shop", nil, unruled); err != nil {
		t.Fatal(err)
	}
	await("no such key: croft.dev/rules.")
}

// newUnreachableEndpoints returns two API servers that nothing can connect to.
func newUnreachableEndpoints() *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To[int32](443)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}, {Addresses: []string{"192.0.2.2"}}},
	}
}
