package apply_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		{"what stands is not written", standsUnwritten},
		{"a changed value is put back", valuePutBack},
		{"an added rule is taken away", ruleTakenAway},
		{"what kubectl applied is taken over", takenOverFromKubectl},
		{"a label of somebody else's is left", labelLeft},
		{"status is no drift", statusIsNoDrift},
		{"what is wanted no longer goes", abandonedGoes},
		{"a role is changed", roleChanged},
		{"only ours is pruned", prunesOnlyOurs},
		{"a namespace is refused, then adopted, then released", refusedAdoptedReleased},
		{"a release misses nothing that the cache does not show yet", releasedWithoutCache},
		{"another tenant's namespace is refused", othersRefused},
		{"a namespace whose label is gone is the tenant's that had it", unlabelledHealed},
		{"no access without walls", noAccessWithoutWalls},
		{"rules are carried to namespaces that do not have them", rulesCarried},
		{"a diff changes nothing", diffChangesNothing},
		{"a kind that is missing is named", missingKind},
	} {
		for name, applier := range map[string]*apply.Applier{"live": apply.New(croft), "cached": apply.NewCached(croft, somebody)} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				test.run(&bench{
					T: t, client: somebody, applier: applier, writes: writes,
					namespace: fmt.Sprintf("shop-%d-%s", i, name), tenant: fmt.Sprintf("tenant-%d-%s", i, name),
				})
			})
		}
	}
}

// apply fails the test unless every object has the given outcome.
func (b *bench) apply(action apply.Action, objects ...client.Object) []apply.Change {
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

// settled fails the test if Apply writes anything.
func (b *bench) settled(objects ...client.Object) {
	b.Helper()
	before := b.writes.Load()
	b.apply(apply.Unchanged, objects...)
	if n := b.writes.Load() - before; n != 0 {
		b.Errorf("%d writes in a steady state", n)
	}
}

func (b *bench) get(o client.Object) {
	b.Helper()
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) patch(o client.Object, manager, patch string) {
	b.Helper()
	target, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		b.Fatalf("%T", o)
	}
	if err := b.client.Patch(b.Context(), target, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) labels(wall string) map[string]string {
	return map[string]string{
		v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.WallLabel: wall, v1alpha1.TenantLabel: b.tenant,
	}
}

func (b *bench) space() *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: b.namespace, Labels: b.labels("policy")},
	}
}

func (b *bench) deny() *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "deny", Labels: b.labels("network")},
		Spec:       networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}},
	}
}

func (b *bench) quota(hard ...string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "croft", Labels: b.labels("policy")},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}},
	}
	for _, name := range hard {
		q.Spec.Hard[corev1.ResourceName(name)] = resource.MustParse("1000m")
	}
	return q
}

func (b *bench) binding(role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "devs", Labels: b.labels("identity")},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "devs"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func standsUnwritten(b *bench) {
	all := []client.Object{b.space(), b.deny(), b.quota("cpu", "pods"), b.binding("view")}
	b.apply(apply.Created, all...)
	b.settled(all...)
	space := b.space()
	b.get(space)
	if space.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		b.Errorf("annotations = %v, want %s", space.Annotations, v1alpha1.CreatedAnnotation)
	}
}

func valuePutBack(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	b.patch(b.deny(), "kubectl-edit", `{"spec":{"policyTypes":["Egress"]}}`)
	changes := b.apply(apply.Configured, b.deny())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "kubectl-edit" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.settled(b.space(), b.deny())

	b.patch(b.deny(), "curl", `{"metadata":{"labels":{"croft.dev/tenant":"other"}}}`)
	changes = b.apply(apply.Configured, b.deny())
	if len(changes[0].RevertedManagers) != 1 || changes[0].RevertedManagers[0] != "curl" {
		b.Errorf("undid %v", changes[0].RevertedManagers)
	}
	b.settled(b.space(), b.deny())
}

func ruleTakenAway(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	for _, manager := range []string{"kubectl-edit", "croft"} {
		b.patch(b.deny(), manager, `{"metadata":{"annotations":{"note":"mine"}},"spec":{"ingress":[{}]}}`)
		b.apply(apply.Configured, b.deny())
		live := b.deny()
		b.get(live)
		if len(live.Spec.Ingress) != 0 {
			b.Errorf("added as %s, ingress = %v", manager, live.Spec.Ingress)
		}
		if live.Annotations["note"] != "mine" {
			b.Error("somebody's annotation was taken away")
		}
		b.settled(b.deny())
	}
}

func takenOverFromKubectl(b *bench) {
	b.apply(apply.Created, b.space())
	theirs := b.deny()
	theirs.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
	if err := b.client.Create(b.Context(), theirs, client.FieldOwner("kubectl")); err != nil {
		b.Fatal(err)
	}
	b.apply(apply.Configured, b.deny())
	live := b.deny()
	b.get(live)
	if len(live.Spec.Ingress) != 0 {
		b.Errorf("ingress = %v", live.Spec.Ingress)
	}
	b.settled(b.deny())
}

func labelLeft(b *bench) {
	b.apply(apply.Created, b.space(), b.deny())
	b.patch(b.deny(), "helm", `{"metadata":{"labels":{"team":"a"}}}`)
	b.patch(b.space(), "helm", `{"metadata":{"labels":{"istio-injection":"enabled"},"annotations":{"x":"y"}}}`)
	b.settled(b.space(), b.deny())
}

func statusIsNoDrift(b *bench) {
	b.apply(apply.Created, b.space(), b.quota("cpu"))
	live := b.quota()
	b.get(live)
	live.Status.Hard = live.Spec.Hard
	live.Status.Used = corev1.ResourceList{"cpu": resource.MustParse("500m")}
	if err := b.client.Status().Update(b.Context(), live); err != nil {
		b.Fatal(err)
	}
	b.settled(b.quota("cpu"))
}

func abandonedGoes(b *bench) {
	space := b.space()
	space.Labels[v1alpha1.CostCodeLabel] = "org1"
	b.apply(apply.Created, space, b.quota("cpu", "pods"))
	b.apply(apply.Configured, b.space(), b.quota("cpu"))
	live, quota := b.space(), b.quota()
	b.get(live)
	b.get(quota)
	if _, ok := live.Labels[v1alpha1.CostCodeLabel]; ok {
		b.Error("a label that is wanted no longer is still there")
	}
	if len(quota.Spec.Hard) != 1 {
		b.Errorf("hard = %v", quota.Spec.Hard)
	}
	b.settled(b.space(), b.quota("cpu"))
}

func roleChanged(b *bench) {
	b.apply(apply.Created, b.space(), b.binding("view"))
	b.apply(apply.Recreated, b.binding("edit"))
	b.settled(b.binding("edit"))

	// A binding that croft did not create is not deleted to change its role.
	theirs := b.binding("view")
	theirs.Name, theirs.Labels = "theirs", nil
	if err := b.client.Create(b.Context(), theirs); err != nil {
		b.Fatal(err)
	}
	wanted := b.binding("edit")
	wanted.Name = "theirs"
	if _, err := b.applier.Apply(b.Context(), wanted); !apierrors.IsInvalid(err) {
		b.Errorf("err = %v, want Invalid", err)
	}
}

func prunesOnlyOurs(b *bench) {
	kept, dropped, forged, others := b.deny(), b.deny(), b.deny(), b.deny()
	dropped.Name, forged.Name, others.Name = "dropped", "forged", "others"
	others.Labels[v1alpha1.TenantLabel] = "somebody-else"
	b.apply(apply.Created, b.space(), kept, dropped, others)
	if err := b.client.Create(b.Context(), forged, client.FieldOwner("kubectl")); err != nil {
		b.Fatal(err)
	}
	changes, err := b.applier.Prune(b.Context(), apply.OfTenant(b.tenant), b.namespace, []client.Object{kept}, apply.TenantKinds...)
	if err != nil {
		b.Fatal(err)
	}
	if len(changes) != 1 || changes[0].String() != "networkpolicy.networking.k8s.io/dropped deleted in "+b.namespace {
		b.Errorf("changes = %v, want only dropped", changes)
	}
	for _, o := range []client.Object{kept, forged, others} {
		b.get(o)
	}
}

func refusedAdoptedReleased(b *bench) {
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace, Labels: map[string]string{"team": "a"}}}
	if err := b.client.Create(b.Context(), there); err != nil {
		b.Fatal(err)
	}
	all := []client.Object{b.space(), b.deny(), b.binding("view")}
	changes, err := b.applier.Apply(b.Context(), all...)
	var refused *apply.NamespaceNotOwnedError
	if !errors.As(err, &refused) || refused.Namespace != b.namespace || refused.Owner != "" {
		b.Fatalf("err = %v", err)
	}
	if command := "croft adopt tenant " + b.tenant + " -f croft.yaml"; !strings.Contains(err.Error(), command) {
		b.Errorf("%v does not say: %s", err, command)
	}
	if changes[0].Action != apply.Failed || changes[1].Action != apply.Skipped || changes[2].Action != apply.Skipped {
		b.Errorf("changes = %v", changes)
	}

	b.patch(there, "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/adopt":"`+b.tenant+`"}}}`)
	changes, err = b.applier.Apply(b.Context(), all...)
	if err != nil || changes[0].Action != apply.Adopted {
		b.Fatalf("changes = %v, %v", changes, err)
	}
	b.settled(all...)
	b.get(there)
	if _, ok := there.Annotations[v1alpha1.CreatedAnnotation]; ok {
		b.Error("an adopted namespace is marked as created")
	}
	// Marks are removed regardless of who wrote them.
	b.patch(there, "kubectl-edit", `{"metadata":{"annotations":{"croft.dev/rules.pools":"apps"},"labels":{"croft.dev/placement":"Gatekeeper"}}}`)

	if _, err := b.applier.Withdraw(b.Context(), there, b.tenant, v1alpha1.DeletionDelete); err != nil {
		b.Fatal(err)
	}
	released := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	b.get(released)
	if released.DeletionTimestamp != nil || len(released.Annotations) != 0 || len(released.Labels) != 2 || released.Labels["team"] != "a" {
		b.Errorf("released with labels %v and annotations %v", released.Labels, released.Annotations)
	}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.deny()), b.deny()); !apierrors.IsNotFound(err) {
		b.Errorf("the NetworkPolicy: %v, want it gone", err)
	}
}

func othersRefused(b *bench) {
	b.apply(apply.Created, b.space())
	thief := *b
	thief.tenant = "thief"
	_, err := b.applier.Apply(b.Context(), thief.space())
	var refused *apply.NamespaceNotOwnedError
	if !errors.As(err, &refused) || refused.Owner != b.tenant {
		b.Fatalf("err = %v", err)
	}
	b.patch(b.space(), "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/adopt":"thief"}}}`)
	changes, err := b.applier.Apply(b.Context(), thief.space())
	if err != nil || changes[0].Action != apply.Adopted {
		b.Fatalf("changes = %v, %v", changes, err)
	}
	live := b.space()
	b.get(live)
	if _, ok := live.Annotations[v1alpha1.CreatedAnnotation]; ok {
		b.Error("an adopted namespace is still marked as created")
	}
	if _, err := b.applier.Apply(b.Context(), b.space()); !errors.As(err, &refused) || refused.Owner != "thief" {
		b.Errorf("err = %v", err)
	}
}

func unlabelledHealed(b *bench) {
	b.apply(apply.Created, b.space())
	unlabel := func() { b.patch(b.space(), "kubectl-label", `{"metadata":{"labels":{"croft.dev/tenant":null}}}`) }
	refused := func(by *bench, what string) {
		b.Helper()
		var notOwned *apply.NamespaceNotOwnedError
		if _, err := by.applier.Apply(b.Context(), by.space()); !errors.As(err, &notOwned) {
			b.Errorf("%s: err = %v, want it refused", what, err)
		}
	}
	thief := *b
	thief.tenant = "thief"

	unlabel()
	refused(&thief, "by a tenant that never had it")
	b.apply(apply.Configured, b.space())
	b.settled(b.space())
	live := b.space()
	b.get(live)
	if live.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		b.Error("the namespace is not croft's to delete any more")
	}

	// Another manager's annotation is no proof of ownership, nor is one on a namespace that
	// was recreated.
	unlabel()
	b.patch(b.space(), "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/owner":"thief"}}}`)
	refused(&thief, "by the tenant that a forged annotation names")
	refused(b, "by the tenant that another annotation named before")
	forged := thief
	forged.namespace += "-forged"
	if err := b.client.Create(b.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: forged.namespace, Annotations: map[string]string{v1alpha1.OwnerAnnotation: "thief", v1alpha1.CreatedAnnotation: "true"},
	}}, client.FieldOwner("croft")); err != nil {
		b.Fatal(err)
	}
	refused(&forged, "with every annotation forged")
}

func noAccessWithoutWalls(b *bench) {
	broken := b.deny()
	broken.Spec.PolicyTypes = []networkingv1.PolicyType{"Sideways"}
	changes, err := b.applier.Apply(b.Context(), b.space(), broken, b.quota("cpu"), b.binding("view"))
	if !apierrors.IsInvalid(errors.Unwrap(changes[1].Err)) || !strings.Contains(err.Error(), "NetworkPolicy "+b.namespace+"/deny: ") {
		b.Errorf("err = %v", err)
	}
	for i, want := range []apply.Action{apply.Created, apply.Failed, apply.Created, apply.Skipped} {
		if changes[i].Action != want {
			b.Errorf("%s, want %s", changes[i], want)
		}
	}
}

func diffChangesNothing(b *bench) {
	diff := func(objects ...client.Object) string {
		b.Helper()
		differences, err := b.applier.Diff(b.Context(), objects...)
		if err != nil {
			b.Fatal(err)
		}
		return differences.String()
	}
	if text := diff(b.space(), b.deny()); !strings.Contains(text, "+kind: NetworkPolicy\n") {
		b.Errorf("before anything is there:\n%s", text)
	}
	b.apply(apply.Created, b.space(), b.deny(), b.quota("cpu"))
	if text := diff(b.space(), b.deny(), b.quota("cpu")); text != "" {
		b.Errorf("of what stands:\n%s", text)
	}
	b.patch(b.deny(), "kubectl-edit", `{"spec":{"ingress":[{}]}}`)
	text := diff(b.deny(), b.quota("cpu", "pods"))
	for _, line := range []string{"-  ingress:\n", "-  - {}\n", "+    pods: \"1\"\n"} {
		if !strings.Contains(text, line) {
			b.Errorf("no line %q in:\n%s", line, text)
		}
	}
	live := b.deny()
	b.get(live)
	if len(live.Spec.Ingress) != 1 {
		b.Error("the diff changed something")
	}
}

func missingKind(b *bench) {
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

// rulesCarried fails if the tenants of an older croft, or retained ones, lack rules, if
// existing rules are overwritten, or if a namespace without a tenant gets rules.
func rulesCarried(b *bench) {
	const pools, tenant = v1alpha1.RulesAnnotationPrefix + "pools", v1alpha1.RulesAnnotationPrefix + "tenant"
	free := b.namespace + "-free"
	for name, labels := range map[string]map[string]string{b.namespace: {v1alpha1.TenantLabel: b.tenant}, free: nil} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{pools: "mine"}}}
		rules := &v1alpha1.TenantRules{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: v1alpha1.TenantRulesName, Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}},
			Spec:       v1alpha1.TenantRulesSpec{Tenant: b.tenant, Pools: []string{"theirs"}, Egress: v1alpha1.EgressOpen},
		}
		empty := []string{}
		s := &rules.Spec
		s.Namespaces, s.PlatformNamespaces, s.AllowCIDRs, s.Domains, s.Registries = empty, empty, empty, empty, empty
		s.PriorityClasses, s.RuntimeClasses, s.StorageClasses, s.IngressClasses, s.GatewayClasses, s.CSIDrivers = empty, empty, empty, empty, empty, empty
		s.Issuers, s.IssuerTypes, s.SourceHosts, s.DeviceClasses, s.VolumeAttributesClasses = empty, empty, empty, empty, empty
		s.Subjects, s.CloudIdentities, s.ClusterIPs, s.VolumeTypes = empty, empty, empty, []v1alpha1.VolumeType{}
		s.ServiceTypes, s.ImagePullPolicies = []corev1.ServiceType{}, []corev1.PullPolicy{}
		s.Annotations, s.UnknownAnnotations = empty, v1alpha1.UnknownAllow
		for _, o := range []client.Object{namespace, rules} {
			if err := b.client.Create(b.Context(), o); err != nil {
				b.Fatal(err)
			}
		}
	}
	for range 2 {
		b.writes.Store(0)
		if err := b.applier.CopyRules(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if n := b.writes.Load(); n != 0 {
		b.Errorf("%d writes where all rules are there", n)
	}
	var namespace corev1.Namespace
	for name, want := range map[string]string{b.namespace: b.tenant, free: ""} {
		if err := b.client.Get(b.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
			b.Fatal(err)
		}
		if got := namespace.Annotations; got[tenant] != want || got[pools] != "mine" {
			b.Errorf("namespace %s has %v, want tenant %q and pools mine", name, got, want)
		}
		namespace = corev1.Namespace{}
	}
}
