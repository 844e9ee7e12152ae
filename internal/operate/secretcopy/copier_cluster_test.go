package secretcopy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/operate/secretcopy"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/test/sandbox"
)

// fixture is a cluster with croft and the right to copy some Secrets.
type fixture struct{ *operatortest.Fixture }

// copyConfig returns a configuration with the rights of the copier's service account.
func (f *fixture) copyConfig() *rest.Config {
	cfg := rest.CopyConfig(f.Config)
	cfg.Impersonate = rest.ImpersonationConfig{
		UserName: admissionpolicy.CopierUser,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + v1alpha1.SystemNamespace, "system:authenticated"},
	}
	return cfg
}

// copySecrets runs a copier, and returns a function that stops it.
func (f *fixture) copySecrets(sources ...string) (stop func()) {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- secretcopy.Run(ctx, f.copyConfig(), secretcopy.Options{Sources: sources, HealthAddr: "0", Repeat: time.Second, Log: f.NewLogger()})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			f.Errorf("the copier stopped: %v", err)
		}
	}
}

func newSource(name, data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SecretsNamespace, Name: name}, Data: map[string][]byte{"password": []byte(data)},
	}
}

// awaitCopy waits until a Secret of a namespace has the password. An empty one means that it does not exist.
func (f *fixture) awaitCopy(namespace, name, password string) {
	f.Helper()
	f.Await("the copy "+name+" in "+namespace, func() string {
		secret := &corev1.Secret{}
		switch err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); {
		case apierrors.IsNotFound(err) && password == "":
			return ""
		case err != nil:
			return err.Error()
		case password == "" || string(secret.Data["password"]) != password:
			return fmt.Sprintf("has the password %q of type %s", secret.Data["password"], secret.Type)
		}
		return ""
	})
}

// awaitProblem waits until the copier reports a problem of a source. An empty reason means none.
func (f *fixture) awaitProblem(source, reason string) {
	f.Helper()
	f.Await("the problems of the copier", func() string {
		lease := &coordinationv1.Lease{}
		if err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: secretcopy.LeaseName}, lease); err != nil {
			return err.Error()
		}
		found, err := secretcopy.ReadProblems(lease)
		if err != nil {
			return err.Error()
		}
		i := slices.IndexFunc(found, func(p secretcopy.Problem) bool { return p.Source == source })
		if i < 0 && reason == "" || i >= 0 && reason != "" && strings.Contains(found[i].Reason, reason) {
			return ""
		}
		return fmt.Sprintf("are %+v, want %q", found, reason)
	})
}

// TestCopySecrets runs the operator and the copier with the rights that `croft install --copy-secrets` gives
// them. TestReconcile covers the copier, and TestCopierRights and TestCopierWrites its rights, without a cluster.
func TestCopySecrets(t *testing.T) {
	sandbox.EndToEnd(t)
	f := &fixture{operatortest.StartWith(t, sandbox.Options{Components: sandbox.WithControllers}, install.Options{
		Image: "croft:test", CopySecrets: true, Secrets: []estate.SecretCopy{
			{Name: "registry", Source: "registry-credentials"}, {Name: "ca", Source: "ca"}, {Name: "missing", Source: "missing"},
		},
	})}
	defer f.Operate()()
	defer f.copySecrets("registry-credentials", "ca", "missing")()
	f.Create(newSource("registry-credentials", "first"), newSource("ca", "root"), newSource("others", "hidden"))
	shop, bank := operatortest.NewTenant("shop", "apps"), operatortest.NewTenant("bank", "apps")
	shop.Spec.Namespaces = []string{"shop", "shop-ci"}
	shop.Spec.Secrets = map[string]v1alpha1.SecretCopy{"registry": {From: "registry-credentials"}, "ca": {}}
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop, bank)
	f.AwaitReady(shop, bank)
	for _, namespace := range shop.Spec.Namespaces {
		f.awaitCopy(namespace, "registry", "first")
		f.awaitCopy(namespace, "ca", "root")
	}
	f.awaitCopy("bank", "registry", "")

	for _, test := range []struct {
		name string
		run  func(*fixture)
	}{
		{"a source changes", testChangedSource},
		{"a copy is deleted, and repeated applies write nothing", testRestoredCopy},
		{"a team changes its copies", testProtectedCopies},
		{"a user declares a copy in a namespace of no tenant", testIgnoredNamespace},
		{"the copier's token is stolen", testStolenToken},
		{"a team has a Secret of the same name", testKeptSecret},
		{"a source is missing", testMissingSource},
		{"a copy is declared no longer", testDroppedCopy},
		{"a tenant is deleted and its namespaces are retained", testRetainedCopies},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(&fixture{f.For(t)}) })
	}
}

func testChangedSource(f *fixture) {
	source := newSource("registry-credentials", "")
	f.Patch(source, `{"stringData":{"password":"second"}}`)
	for _, namespace := range []string{"shop", "shop-ci"} {
		f.awaitCopy(namespace, "registry", "second")
	}
	// The type of a Secret cannot change.
	f.Delete(source)
	again := newSource("registry-credentials", "third")
	again.Type = "example.org/registry"
	f.Create(again)
	f.awaitCopy("shop", "registry", "third")
	f.awaitCopy("shop-ci", "registry", "third")
}

func testRestoredCopy(f *fixture) {
	copied := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "ca"}}
	f.Delete(copied)
	f.awaitCopy("shop", "ca", "root")
	get := func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKeyFromObject(copied), copied); err != nil {
			f.Fatal(err)
		}
		return copied.ResourceVersion
	}
	before := get()
	// The deletion of another copy is repaired by the clock, and so each copy is applied again meanwhile.
	for range 2 {
		f.Delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-ci", Name: "ca"}})
		f.awaitCopy("shop-ci", "ca", "root")
	}
	if after := get(); after != before {
		f.Errorf("an apply without a change wrote the version %s, before %s", after, before)
	}
}

func testProtectedCopies(f *fixture) {
	ann := f.Impersonate("ann", "shop-devs")
	copied := &corev1.Secret{}
	if err := ann.Get(f.Context(), client.ObjectKey{Namespace: "shop", Name: "ca"}, copied); err != nil || string(copied.Data["password"]) != "root" {
		f.Errorf("a member of the team reads %q: %v", copied.Data["password"], err)
	}
	merge := func(patch string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(patch)) }
	const why = "are managed by croft"
	f.AssertRefused("change a copy", ann.Patch(f.Context(), copied.DeepCopy(), merge(`{"stringData":{"password":"forged"}}`)), why)
	f.AssertRefused("take croft's label off a copy", ann.Patch(f.Context(), copied.DeepCopy(), merge(`{"metadata":{"labels":null}}`)), why)
	f.AssertRefused("take the owner of a copy away", ann.Patch(f.Context(), copied.DeepCopy(), merge(`{"metadata":{"ownerReferences":null}}`)), why)
	f.AssertRefused("delete a copy", ann.Delete(f.Context(), copied.DeepCopy()), why)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: rights.Copier + "-ca"}}
	f.AssertRefused("delete the RoleBinding of a copy", ann.Delete(f.Context(), binding), why)
	forged := newDeclaration("shop", "missing")
	forged.Annotations[v1alpha1.SecretSourceAnnotation] = "registry-credentials"
	f.AssertRefused("declare a copy of a Secret", ann.Create(f.Context(), forged), "denied request")
	f.AssertRefused("read a source", ann.Get(f.Context(), client.ObjectKey{Namespace: v1alpha1.SecretsNamespace, Name: "ca"}, &corev1.Secret{}), "forbidden")
}

// testIgnoredNamespace declares a copy where no policy protects croft's label, as a user with all rights in
// the namespace: a user may bind a ClusterRole whose rights it has.
func testIgnoredNamespace(f *fixture) {
	f.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "outside"}}, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "outside", Name: "eve"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "eve"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	forged := newDeclaration("outside", "ca")
	f.Await("the RoleBinding", func() string {
		if err := f.Impersonate("eve").Create(f.Context(), forged); err != nil && !apierrors.IsAlreadyExists(err) {
			return err.Error()
		}
		return ""
	})
	f.awaitProblem("ca", "the namespace belongs to no tenant")
	f.awaitCopy("outside", "ca", "")
	f.Delete(forged)
	f.awaitProblem("ca", "")
}

// newDeclaration returns the RoleBinding of a copy with the name of its source.
func newDeclaration(namespace, name string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: rights.Copier + "-" + name, Annotations: map[string]string{v1alpha1.SecretSourceAnnotation: name},
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.SecretLabel: name},
		},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: v1alpha1.SystemNamespace, Name: rights.Copier}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.Copier},
	}
}

// testStolenToken sends the requests of an intruder with the copier's token.
func testStolenToken(f *fixture) {
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Data: map[string][]byte{"password": []byte("team")}}
	f.Create(own)
	thief := f.NewClient(f.copyConfig())
	apply := func(namespace, name string, change func(*coreapply.SecretApplyConfiguration)) error {
		s := coreapply.Secret(name, namespace).WithLabels(map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy})
		if change != nil {
			change(s)
		}
		return thief.Apply(f.Context(), s, client.FieldOwner("thief"), client.ForceOwnership)
	}
	get := func(namespace, name string) error {
		return thief.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Secret{})
	}
	const forbidden = "forbidden"
	for attempt, err := range map[string]error{
		"read a team's Secret":                    get("shop", "own"),
		"read a copy":                             get("shop", "ca"),
		"list a team's Secrets":                   thief.List(f.Context(), &corev1.SecretList{}, client.InNamespace("shop")),
		"list all Secrets":                        thief.List(f.Context(), &corev1.SecretList{}),
		"list the sources":                        thief.List(f.Context(), &corev1.SecretList{}, client.InNamespace(v1alpha1.SecretsNamespace)),
		"list a source that is not declared":      thief.List(f.Context(), &corev1.SecretList{}, client.InNamespace(v1alpha1.SecretsNamespace), client.MatchingFields{"metadata.name": "others"}),
		"list the Secrets of croft":               thief.List(f.Context(), &corev1.SecretList{}, client.InNamespace(v1alpha1.SystemNamespace)),
		"apply to a team's Secret":                apply("shop", "own", nil),
		"write a Secret without a declaration":    apply("bank", "ca", nil),
		"write a Secret of another name":          apply("shop", "croft-forged", nil),
		"write a Secret of Kubernetes":            apply("kube-system", "ca", nil),
		"write a Secret of croft":                 apply(v1alpha1.SystemNamespace, "ca", nil),
		"change a source":                         apply(v1alpha1.SecretsNamespace, "ca", nil),
		"create a Secret with a generated name":   thief.Create(f.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", GenerateName: "ca"}}),
		"delete a team's Secret":                  thief.Delete(f.Context(), own.DeepCopy()),
		"delete all copies":                       thief.DeleteAllOf(f.Context(), &corev1.Secret{}, client.InNamespace("shop")),
		"read ConfigMaps":                         thief.List(f.Context(), &corev1.ConfigMapList{}, client.InNamespace("shop")),
		"let the copier into another namespace":   thief.Create(f.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "a"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: rights.Copier}}),
		"keep the operator from being the leader": thief.Patch(f.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: "croft.croft.dev"}}, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"thief"}}`))),
		"have a token of a service account written": apply("shop", "missing", func(s *coreapply.SecretApplyConfiguration) {
			s.WithType(corev1.SecretTypeServiceAccountToken).WithAnnotations(map[string]string{"kubernetes.io/service-account.name": "default"})
		}),
	} {
		f.AssertRefused(attempt, err, forbidden)
	}
	f.awaitCopy("shop", "own", "team")
}

// testKeptSecret declares a copy with the name of a team's own Secret, which croft neither reads
// nor replaces.
func testKeptSecret(f *fixture) {
	tenant := operatortest.NewTenant("owner", "apps")
	f.Create(tenant)
	f.AwaitReady(tenant)
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "owner", Name: "registry"}, Data: map[string][]byte{"password": []byte("team")}}
	f.Create(own)
	f.Patch(tenant, `{"spec":{"secrets":{"registry":{"from":"registry-credentials"}}}}`)
	f.awaitProblem("registry-credentials", "the namespace has a Secret registry of its own, which croft does not replace")
	f.awaitCopy("owner", "registry", "team")
	f.Delete(own)
	f.awaitCopy("owner", "registry", "third")
	f.awaitProblem("registry-credentials", "")
}

func testMissingSource(f *fixture) {
	tenant := operatortest.NewTenant("early", "apps")
	tenant.Spec.Secrets = map[string]v1alpha1.SecretCopy{"missing": {}}
	f.Create(tenant)
	f.AwaitReady(tenant)
	f.awaitProblem("missing", "it does not exist; create it in the namespace croft-secrets")
	source := newSource("missing", "late")
	f.Create(source)
	f.awaitCopy("early", "missing", "late")
	f.awaitProblem("missing", "")
	f.Delete(source)
	f.awaitProblem("missing", "it does not exist")
	f.awaitCopy("early", "missing", "late")
}

// testDroppedCopy removes a declaration while the copier may no longer write the copy: the garbage
// collector deletes it.
func testDroppedCopy(f *fixture) {
	tenant := operatortest.NewTenant("dropping", "apps")
	tenant.Spec.Secrets = map[string]v1alpha1.SecretCopy{"registry": {From: "registry-credentials"}, "ca": {}}
	f.Create(tenant)
	f.awaitCopy("dropping", "registry", "third")
	f.awaitCopy("dropping", "ca", "root")
	f.Patch(tenant, `{"spec":{"secrets":{"registry":null}}}`)
	f.awaitCopy("dropping", "registry", "")
	f.awaitCopy("dropping", "ca", "root")
	f.Patch(tenant, `{"spec":{"secrets":null}}`)
	f.awaitCopy("dropping", "ca", "")
}

func testRetainedCopies(f *fixture) {
	tenant := operatortest.NewTenant("leaving", "apps")
	tenant.Spec.Secrets = map[string]v1alpha1.SecretCopy{"ca": {}}
	f.Create(tenant)
	f.awaitCopy("leaving", "ca", "root")
	f.AwaitReady(tenant)
	f.Delete(tenant)
	f.AwaitDeletion(tenant)
	if n := f.CountBindings("leaving"); n != 1 {
		f.Errorf("%d RoleBindings, want only the one of the copy", n)
	}
	f.Patch(newSource("ca", ""), `{"stringData":{"password":"renewed"}}`)
	f.awaitCopy("leaving", "ca", "renewed")
}
