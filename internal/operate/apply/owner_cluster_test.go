package apply_test

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
)

func testPruneOwnOnly(b *bench) {
	kept, dropped, forged, others := b.newDenyPolicy(), b.newDenyPolicy(), b.newDenyPolicy(), b.newDenyPolicy()
	dropped.Name, forged.Name, others.Name = "dropped", "forged", "others"
	others.Labels[v1alpha1.TenantLabel] = "somebody-else"
	b.applyObjects(apply.Created, b.newNamespace(), kept, dropped, others)
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
		b.getObject(o)
	}
}

func testAdoptionAndRelease(b *bench) {
	there := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace, Labels: map[string]string{"team": "a"}}}
	if err := b.client.Create(b.Context(), there); err != nil {
		b.Fatal(err)
	}
	all := []client.Object{b.newNamespace(), b.newDenyPolicy(), b.newBinding("view")}
	changes, err := b.applier.Apply(b.Context(), all...)
	var refused *apply.NamespaceNotOwnedError
	if !errors.As(err, &refused) || refused.Namespace != b.namespace || refused.Owner != "" {
		b.Fatalf("err = %v", err)
	}
	if command := "croft adopt tenant " + b.tenant + " -f croft.yaml"; !strings.Contains(err.Error(), command) {
		b.Errorf("%v does not contain: %s", err, command)
	}
	if changes[0].Action != apply.Failed || changes[1].Action != apply.Skipped || changes[2].Action != apply.Skipped {
		b.Errorf("changes = %v", changes)
	}

	b.patchObject(there, "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/adopt":"`+b.tenant+`"}}}`)
	changes, err = b.applier.Apply(b.Context(), all...)
	if err != nil || changes[0].Action != apply.Adopted {
		b.Fatalf("changes = %v, %v", changes, err)
	}
	b.expectUnchanged(all...)
	b.getObject(there)
	if _, ok := there.Annotations[v1alpha1.CreatedAnnotation]; ok {
		b.Error("an adopted namespace is marked as created")
	}
	// Marks are removed regardless of who wrote them.
	b.patchObject(there, "kubectl-edit", `{"metadata":{"annotations":{"croft.dev/rules.pools":"apps"},"labels":{"croft.dev/placement":"Gatekeeper"}}}`)

	if _, err := b.applier.Withdraw(b.Context(), there, b.tenant, v1alpha1.DeletionDelete); err != nil {
		b.Fatal(err)
	}
	released := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}
	b.getObject(released)
	if released.DeletionTimestamp != nil || len(released.Annotations) != 0 || len(released.Labels) != 2 || released.Labels["team"] != "a" {
		b.Errorf("released with labels %v and annotations %v", released.Labels, released.Annotations)
	}
	if err := b.client.Get(b.Context(), client.ObjectKeyFromObject(b.newDenyPolicy()), b.newDenyPolicy()); !apierrors.IsNotFound(err) {
		b.Errorf("the NetworkPolicy: %v, want it deleted", err)
	}
}

func testOthersRefused(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace())
	thief := *b
	thief.tenant = "thief"
	_, err := b.applier.Apply(b.Context(), thief.newNamespace())
	var refused *apply.NamespaceNotOwnedError
	if !errors.As(err, &refused) || refused.Owner != b.tenant {
		b.Fatalf("err = %v", err)
	}
	b.patchObject(b.newNamespace(), "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/adopt":"thief"}}}`)
	changes, err := b.applier.Apply(b.Context(), thief.newNamespace())
	if err != nil || changes[0].Action != apply.Adopted {
		b.Fatalf("changes = %v, %v", changes, err)
	}
	live := b.newNamespace()
	b.getObject(live)
	if _, ok := live.Annotations[v1alpha1.CreatedAnnotation]; ok {
		b.Error("an adopted namespace is still marked as created")
	}
	if _, err := b.applier.Apply(b.Context(), b.newNamespace()); !errors.As(err, &refused) || refused.Owner != "thief" {
		b.Errorf("err = %v", err)
	}
}

func testUnlabelledNamespace(b *bench) {
	b.applyObjects(apply.Created, b.newNamespace())
	unlabel := func() {
		b.patchObject(b.newNamespace(), "kubectl-label", `{"metadata":{"labels":{"croft.dev/tenant":null}}}`)
	}
	refused := func(by *bench, what string) {
		b.Helper()
		var notOwned *apply.NamespaceNotOwnedError
		if _, err := by.applier.Apply(b.Context(), by.newNamespace()); !errors.As(err, &notOwned) {
			b.Errorf("%s: err = %v, want it refused", what, err)
		}
	}
	thief := *b
	thief.tenant = "thief"

	unlabel()
	refused(&thief, "by a tenant that never had it")
	b.applyObjects(apply.Configured, b.newNamespace())
	b.expectUnchanged(b.newNamespace())
	live := b.newNamespace()
	b.getObject(live)
	if live.Annotations[v1alpha1.CreatedAnnotation] != "true" {
		b.Error("the namespace is not croft's to delete any more")
	}

	// Another manager's annotation is no proof of ownership, nor is one on a namespace that
	// was recreated.
	unlabel()
	b.patchObject(b.newNamespace(), "kubectl-annotate", `{"metadata":{"annotations":{"croft.dev/owner":"thief"}}}`)
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

func testNoAccessWithoutWalls(b *bench) {
	broken := b.newDenyPolicy()
	broken.Spec.PolicyTypes = []networkingv1.PolicyType{"Sideways"}
	changes, err := b.applier.Apply(b.Context(), b.newNamespace(), broken, b.newQuota("cpu"), b.newBinding("view"))
	if !apierrors.IsInvalid(errors.Unwrap(changes[1].Err)) || !strings.Contains(err.Error(), "NetworkPolicy "+b.namespace+"/deny: ") {
		b.Errorf("err = %v", err)
	}
	for i, want := range []apply.Action{apply.Created, apply.Failed, apply.Created, apply.Skipped} {
		if changes[i].Action != want {
			b.Errorf("%s, want %s", changes[i], want)
		}
	}
}

// testCarriedRules fails if the tenants of an older croft, or retained ones, lack rules, if
// existing rules are overwritten, or if a namespace without a tenant gets rules.
func testCarriedRules(b *bench) {
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
		s.Namespaces, s.PlatformNamespaces, s.AllowCIDRs, s.Domains, s.Subjects = empty, empty, empty, empty, empty
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
