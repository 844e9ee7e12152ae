package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
)

// bench is a cluster with an Applier, and the number of the Applier's writes.
type bench struct {
	*testing.T
	client  client.Client // another manager's client
	applier *apply.Applier
	writes  *atomic.Int64
	// namespace and tenant are unique to the test.
	namespace, tenant string
}

type counter struct {
	next   http.RoundTripper
	writes *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		c.writes.Add(1)
	}
	return c.next.RoundTrip(r)
}

func TestCluster(t *testing.T) {
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	newClient := func(cfg *rest.Config) client.Client {
		c, err := client.New(cfg, client.Options{Scheme: scheme.New()})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	writes := &atomic.Int64{}
	counted := rest.CopyConfig(cluster.Config)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, writes} })
	somebody, croft := newClient(cluster.Config), newClient(counted)

	for i, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"unchanged objects are not written", testNoWriteWhenUnchanged},
		{"a changed value is put back", testChangedValue},
		{"an added rule is taken away", testAddedRule},
		{"what kubectl applied is taken over", testKubectlTakeover},
		{"a label of somebody else's is left", testKeptLabel},
		{"status is no drift", testStatusWithoutDrift},
		{"a field that is no longer desired is removed", testAbandonedFields},
		{"a role is changed", testChangedRole},
		{"maps become empty", testEmptiedMaps},
		{"only ours is pruned", testPruneOwnOnly},
		{"a namespace is refused, then adopted, then released", testAdoptionAndRelease},
		{"a release misses nothing that the cache does not show yet", testReleaseWithoutCache},
		{"another tenant's namespace is refused", testOthersRefused},
		{"a namespace without its label belongs to its former tenant", testUnlabelledNamespace},
		{"no access without walls", testNoAccessWithoutWalls},
		{"rules are carried to namespaces that do not have them", testCarriedRules},
		{"a diff changes nothing", testDiffWritesNothing},
		{"a kind that is missing is named", testMissingKind},
		{"an object that a watching cache has is read once", testReadsOfWatchedObjects},
		{"an object that a watching cache lacks is not read", testWritesOfUncachedObjects},
	} {
		for name, applier := range map[string]*apply.Applier{
			"live": apply.New(croft), "cached": apply.NewCached(croft, somebody), "watching": apply.NewWatching(croft, somebody),
		} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				test.run(&bench{
					T: t, client: somebody, applier: applier, writes: writes,
					namespace: fmt.Sprintf("shop-%d-%s", i, name), tenant: fmt.Sprintf("tenant-%d-%s", i, name),
				})
			})
		}
	}
}

// applyObjects fails the test unless every object has the given outcome.
func (b *bench) applyObjects(action apply.Action, objects ...client.Object) []apply.Change {
	b.Helper()
	changes, err := b.applier.Apply(b.Context(), objects...)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range changes {
		if c.Action != action {
			b.Errorf("%s, want %s", c, action)
		}
	}
	return changes
}

// expectUnchanged fails the test if Apply writes anything.
func (b *bench) expectUnchanged(objects ...client.Object) {
	b.Helper()
	before := b.writes.Load()
	b.applyObjects(apply.Unchanged, objects...)
	if n := b.writes.Load() - before; n != 0 {
		b.Errorf("%d writes in a steady state", n)
	}
}

func (b *bench) getObject(o client.Object) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) patchObject(o client.Object, manager, patch string) {
	b.Helper()
	target, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		b.Fatalf("%T", o)
	}
	if err := b.client.Patch(b.Context(), target, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) makeLabels(wall string) map[string]string {
	return map[string]string{
		v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.WallLabel: wall, v1alpha1.TenantLabel: b.tenant,
	}
}

func (b *bench) newNamespace() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace, Labels: b.makeLabels("policy")},
	}
}

func (b *bench) newDenyPolicy() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "deny", Labels: b.makeLabels("network")},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}

func (b *bench) newQuota(hard ...string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "croft", Labels: b.makeLabels("policy")},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}},
	}
	for _, name := range hard {
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse("1000m")
	}
	return q
}

func (b *bench) newBinding(role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "devs", Labels: b.makeLabels("identity")},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "devs"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func testMissingKind(b *bench) {
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": map[string]any{"name": "p"},
	}}
	_, err := b.applier.Apply(b.Context(), class)
	if err == nil || !strings.Contains(err.Error(), "EC2NodeClass p: this cluster does not know the kind EC2NodeClass (karpenter.k8s.aws/v1)") {
		b.Errorf("err = %v", err)
	}
	if changes, err := b.applier.Prune(b.Context(), apply.OfPool("p"), "", nil, apply.PoolKinds...); err != nil || len(changes) != 0 {
		b.Errorf("prune: %v, %v", changes, err)
	}
}

// testEmptiedMaps fails if the API server refuses the removal of the last entry of a map, as of a
// tenant's last consent.
func testEmptiedMaps(b *bench) {
	declare := func(network map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Tenant", "metadata": map[string]any{"name": b.tenant},
			"spec": map[string]any{"pool": "apps", "network": network},
		}}
	}
	b.applyObjects(apply.Created, declare(map[string]any{
		"callers": map[string]any{"billing": map[string]any{"ports": []any{int64(443)}}},
		"calls":   map[string]any{"mail": map[string]any{"ports": []any{int64(25)}}},
	}))
	emptied := declare(map[string]any{"callers": map[string]any{}, "calls": map[string]any{"mail": map[string]any{}}})
	differences, err := b.applier.Diff(b.Context(), emptied)
	if err != nil || len(differences) != 1 {
		b.Errorf("%d differences: %v", len(differences), err)
	}
	b.applyObjects(apply.Configured, emptied)
	b.expectUnchanged(emptied)
	tenant := &v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: b.tenant}}
	b.getObject(tenant)
	call, calls := tenant.Spec.Network.Calls["mail"]
	if len(tenant.Spec.Network.Callers) > 0 || !calls || len(call.Ports) > 0 {
		b.Errorf("the network is %+v", tenant.Spec.Network)
	}
}
