package secretcopy

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/metric"
	"croft.dev/croft/internal/operate/metric/metrictest"
)

// filledStore is a store of a source.
type filledStore struct {
	toolscache.Store
	synced bool
}

func (f filledStore) HasSynced() bool            { return f.synced }
func (f filledStore) GetStore() toolscache.Store { return f.Store }

func newStore(t *testing.T, synced bool, secrets ...*corev1.Secret) filledStore {
	t.Helper()
	all := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, s := range secrets {
		if err := all.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	return filledStore{all, synced}
}

func newSource(kind corev1.SecretType, data string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.SecretsNamespace, Name: "credentials", Labels: map[string]string{"replicate": "yes"}, Annotations: map[string]string{"a": "b"},
		},
		Type: kind, Data: map[string][]byte{"key": []byte(data)},
	}
}

func newBinding(change func(*rbacv1.RoleBinding)) *rbacv1.RoleBinding {
	b := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "croft-secrets-registry", UID: "uid-1",
		Labels:      map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy, v1alpha1.SecretLabel: "registry"},
		Annotations: map[string]string{v1alpha1.SecretSourceAnnotation: "credentials"},
	}}
	if change != nil {
		change(b)
	}
	return b
}

func newNamespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// attempts are the writes of a copier. answers are the answers to its applies, in order.
type attempts struct {
	applied []*coreapply.SecretApplyConfiguration
	deleted []string
	answers []error
}

// newCluster returns a client that records writes, and fails the test at a read of a Secret.
func (a *attempts) newCluster(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(objects...).WithObjects(
		newNamespace("shop", map[string]string{v1alpha1.TenantLabel: "shop"}), newNamespace("outside", nil),
	).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				t.Errorf("the Secret %s was read", key)
			}
			return c.Get(ctx, key, o, opts...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			a.deleted = append(a.deleted, o.GetNamespace()+"/"+o.GetName())
			return nil
		},
		Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
			secret, ok := o.(*coreapply.SecretApplyConfiguration)
			if !ok {
				t.Fatalf("applied %T", o)
			}
			a.applied = append(a.applied, secret)
			if len(a.applied) <= len(a.answers) {
				return a.answers[len(a.applied)-1]
			}
			return nil
		},
	}).Build()
}

// TestReconcile expects the copy of a declared Secret, and a reason where there is none. It needs no control
// plane.
func TestReconcile(t *testing.T) {
	otherType := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "registry",
		field.ErrorList{field.Invalid(field.NewPath("type"), "Opaque", "field is immutable")})
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Secret").GroupKind(), "registry",
		field.ErrorList{field.Required(field.NewPath("data").Key(".dockerconfigjson"), "")})
	denied := apierrors.NewForbidden(corev1.Resource("secrets"), "registry", errors.New("exceeded quota"))
	opaque := newSource(corev1.SecretTypeOpaque, "a")
	for _, test := range []struct {
		name            string
		binding         *rbacv1.RoleBinding
		source          store
		answers         []error
		applies, erased int
		problem         string
	}{
		{name: "a copy", binding: newBinding(nil), source: newStore(t, true, opaque), applies: 1},
		{name: "no source", binding: newBinding(nil), source: newStore(t, true), problem: "it does not exist; create it in the namespace croft-secrets"},
		{name: "a source that is not read yet", binding: newBinding(nil), source: newStore(t, false), problem: "it is not read yet"},
		{name: "a source without a right", problem: "this installation has no right to copy it",
			binding: newBinding(func(b *rbacv1.RoleBinding) { b.Annotations[v1alpha1.SecretSourceAnnotation] = "another" }), source: newStore(t, true, opaque)},
		{name: "a token", binding: newBinding(nil), source: newStore(t, true, newSource(corev1.SecretTypeServiceAccountToken, "a")), problem: "a Secret of type kubernetes.io/service-account-token is not copied"},
		{name: "the largest Secret", binding: newBinding(nil), source: newStore(t, true, newSource(corev1.SecretTypeOpaque, strings.Repeat("a", maxBytes))), applies: 1},
		{name: "a Secret that is too large", binding: newBinding(nil), source: newStore(t, true, newSource(corev1.SecretTypeOpaque, strings.Repeat("a", maxBytes+1))), problem: "has 257 KiB; at most 256 KiB are copied"},
		{name: "another type", binding: newBinding(nil), source: newStore(t, true, opaque), answers: []error{otherType}, applies: 2, erased: 1},
		{name: "an invalid Secret", binding: newBinding(nil), source: newStore(t, true, opaque), answers: []error{invalid}, applies: 1, problem: "Required value"},
		{name: "no quota", binding: newBinding(nil), source: newStore(t, true, opaque), answers: []error{denied}, applies: 1, problem: "exceeded quota"},
		{name: "a RoleBinding of a team's own", source: newStore(t, true, opaque),
			binding: newBinding(func(b *rbacv1.RoleBinding) { delete(b.Labels, v1alpha1.ManagedByLabel) })},
		{name: "a RoleBinding for another copy", source: newStore(t, true, opaque),
			binding: newBinding(func(b *rbacv1.RoleBinding) { b.Labels[v1alpha1.SecretLabel] = "other" })},
		{name: "a RoleBinding without a source", source: newStore(t, true, opaque),
			binding: newBinding(func(b *rbacv1.RoleBinding) { b.Annotations = nil })},
		{name: "a namespace of no tenant", source: newStore(t, true, opaque), problem: "the namespace belongs to no tenant",
			binding: newBinding(func(b *rbacv1.RoleBinding) { b.Namespace = "outside" })},
		{name: "a RoleBinding that is being deleted", source: newStore(t, true, opaque),
			binding: newBinding(func(b *rbacv1.RoleBinding) {
				b.Finalizers, b.DeletionTimestamp = []string{"example.org/a"}, &metav1.Time{Time: time.Unix(1, 0)}
			})},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := &attempts{answers: test.answers}
			c := newCopier(a.newCluster(t, test.binding), Options{Sources: []string{"credentials"}, Log: testr.New(t)})
			c.sources["credentials"] = test.source
			if _, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(test.binding)}); err != nil {
				t.Fatal(err)
			}
			if len(a.applied) != test.applies || len(a.deleted) != test.erased {
				t.Errorf("%d applies and %d deletions, want %d and %d", len(a.applied), len(a.deleted), test.applies, test.erased)
			}
			found := c.problems.listProblems()
			switch {
			case test.problem == "" && len(found) > 0:
				t.Errorf("problems: %+v", found)
			case test.problem != "" && (len(found) != 1 || !strings.Contains(found[0].Reason, test.problem) || found[0].Example != test.binding.Namespace+"/registry"):
				t.Errorf("problems: %+v, want %q", found, test.problem)
			}
			for _, secret := range a.applied {
				expectCopy(t, secret)
			}
		})
	}
}

// expectCopy expects the content of the source without its labels and annotations, with croft's label and the
// RoleBinding as its owner.
func expectCopy(t *testing.T, s *coreapply.SecretApplyConfiguration) {
	t.Helper()
	if *s.Namespace != "shop" || *s.Name != "registry" || *s.Type != corev1.SecretTypeOpaque || len(s.Data["key"]) == 0 {
		t.Errorf("the copy is %s/%s of type %s", *s.Namespace, *s.Name, *s.Type)
	}
	if len(s.Labels) != 2 || s.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy || s.Labels[v1alpha1.SecretLabel] != "registry" || len(s.Annotations) > 0 {
		t.Errorf("the copy has the labels %v and the annotations %v", s.Labels, s.Annotations)
	}
	if len(s.OwnerReferences) != 1 || *s.OwnerReferences[0].UID != types.UID("uid-1") || *s.OwnerReferences[0].Kind != "RoleBinding" || *s.OwnerReferences[0].Name != "croft-secrets-registry" {
		t.Errorf("the copy's owners are %+v", s.OwnerReferences)
	}
}

// TestListCopies expects the RoleBindings of one source only.
func TestListCopies(t *testing.T) {
	c := newCopier((&attempts{}).newCluster(t, newBinding(nil),
		newBinding(func(b *rbacv1.RoleBinding) { b.Namespace = "bank" }),
		newBinding(func(b *rbacv1.RoleBinding) {
			b.Name, b.Labels[v1alpha1.SecretLabel], b.Annotations[v1alpha1.SecretSourceAnnotation] = "croft-secrets-ca", "ca", "company-ca"
		})), Options{Log: testr.New(t)})
	found := c.listCopies(t.Context(), newSource(corev1.SecretTypeOpaque, "a"))
	if len(found) != 2 || found[0].Namespace != "bank" || found[1].Namespace != "shop" || found[0].Name != "croft-secrets-registry" {
		t.Errorf("found %v", found)
	}
}

// TestProblems expects one problem for all copies with the same source and reason, and no text that a Lease
// cannot store.
func TestProblems(t *testing.T) {
	p := newProblems()
	at := func(namespace string) (types.NamespacedName, declaredCopy) {
		return types.NamespacedName{Namespace: namespace, Name: "croft-secrets-registry"}, declaredCopy{namespace: namespace, name: "registry", source: "credentials"}
	}
	for _, namespace := range []string{"shop", "bank"} {
		key, w := at(namespace)
		if n, isNew := p.recordProblem(key, w, "it does not exist"); n != 1 || !isNew {
			t.Errorf("%s: attempt %d, new: %t", namespace, n, isNew)
		}
		if n, isNew := p.recordProblem(key, w, "it does not exist"); n != 2 || isNew {
			t.Errorf("%s: attempt %d, new: %t", namespace, n, isNew)
		}
	}
	if got, want := p.encodeProblems(), `[{"source":"credentials","reason":"it does not exist","copies":2,"example":"bank/registry"}]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	key, w := at("bank")
	p.recordProblem(key, w, strings.Repeat("ü", 5000))
	for _, problem := range p.listProblems() {
		if n := len([]rune(problem.Reason)); problem.Example == "bank/registry" && n != maxReason+1 {
			t.Errorf("a reason of %d characters", n)
		}
	}
	p.clearProblem(key)
	key, _ = at("shop")
	p.clearProblem(key)
	if got := p.encodeProblems(); got != "[]" {
		t.Errorf("got %s", got)
	}
}

// TestListFailed expects the number of failed copies of each source, and 0 for a source without problems.
func TestListFailed(t *testing.T) {
	c := newCopier((&attempts{}).newCluster(t), Options{Sources: []string{"credentials", "ca"}, Log: testr.New(t)})
	for _, namespace := range []string{"shop", "bank"} {
		w := declaredCopy{namespace: namespace, name: "registry", source: "credentials"}
		c.problems.recordProblem(types.NamespacedName{Namespace: namespace, Name: "croft-secrets-registry"}, w, "it does not exist")
	}
	got := map[string]float64{}
	c.listFailed(func(value float64, labels ...string) { got[labels[0]] = value })
	if want := map[string]float64{"credentials": 2, "ca": 0}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metric.CopiesFailed.StateGauge(c.listFailed))
	metrictest.CheckRegistered(t, registry, metric.Copier)
}

func TestComputeRetry(t *testing.T) {
	for attempts, want := range map[int]time.Duration{1: firstRetry, 2: 2 * firstRetry, 4: 8 * firstRetry, 9: lastRetry, 1000: lastRetry} {
		if got := computeRetry(attempts); got != want {
			t.Errorf("after %d attempts: %s, want %s", attempts, got, want)
		}
	}
}
