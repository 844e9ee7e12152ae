package selfservice_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// selfService is a cluster on which the tenant shop may request two namespaces.
type selfService struct {
	*operatortest.Fixture
	ann        client.Client
	shop, bank *v1alpha1.Tenant
}

func newSelfService(t *testing.T) (s *selfService, stop func()) {
	t.Helper()
	s = &selfService{Fixture: operatortest.Start(t, sandbox.WithControllers), shop: operatortest.NewTenant("shop", "apps"), bank: operatortest.NewTenant("bank", "apps")}
	stop = s.Operate()
	s.shop.Spec.Namespaces = []string{"shop", "shop-db"}
	s.shop.Spec.SelfService.Namespaces = 2
	s.shop.Spec.Deletion = v1alpha1.DeletionDelete
	s.shop.Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("30")}
	s.shop.Spec.Access = append(s.shop.Spec.Access, v1alpha1.Access{Group: "shop-lookers", Role: v1alpha1.RoleViewer})
	s.bank.Spec.Quota = s.shop.Spec.Quota
	offered := operatortest.NewNamespace("shop-offered")
	offered.Annotations = map[string]string{v1alpha1.AdoptAnnotation: "shop"}
	s.Create(operatortest.NewNamespace("shop-old"), offered, operatortest.NewPlatform(), operatortest.NewPool("apps"), s.shop, s.bank, operatortest.NewTenant("shop-ci", "apps"))
	s.AwaitReady(s.shop, s.bank)
	s.ann = s.Impersonate("ann", "shop-devs")
	s.Await("the policy to hold", func() string {
		if err := s.ann.Create(t.Context(), operatortest.NewTenantNamespace("shop", "payments"), client.DryRunAll); err == nil {
			return "asked for any name"
		}
		if err := s.ann.Create(t.Context(), operatortest.NewTenantNamespace("shop", "shop-a"), client.DryRunAll); err != nil {
			return err.Error()
		}
		return ""
	})
	return s, stop
}

// accepted waits until a request is accepted or refused for this reason.
func (s *selfService) accepted(r *v1alpha1.TenantNamespace, reason string) {
	s.Helper()
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonAccepted {
		status = metav1.ConditionTrue
	}
	s.AwaitCondition(r, v1alpha1.ConditionAccepted, status, reason)
}

// ask creates a request as a user, and waits for its condition.
func (s *selfService) ask(by client.Client, r *v1alpha1.TenantNamespace, reason string) *v1alpha1.TenantNamespace {
	s.Helper()
	if err := by.Create(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.accepted(r, reason)
	return r
}

// names returns the namespaces with a tenant's label.
func (s *selfService) names(tenant string) []string {
	s.Helper()
	var list corev1.NamespaceList
	if err := s.Client.List(s.Context(), &list, client.MatchingLabels{v1alpha1.TenantLabel: tenant}); err != nil {
		s.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// shares returns the sum of the pods that the ResourceQuotas of namespaces allow.
func (s *selfService) shares(namespaces ...string) int64 {
	s.Helper()
	var sum int64
	for _, name := range namespaces {
		quota := &corev1.ResourceQuota{}
		if err := s.Client.Get(s.Context(), client.ObjectKey{Namespace: name, Name: "croft"}, quota); err != nil {
			s.Fatal(err)
		}
		pods := quota.Spec.Hard[corev1.ResourcePods]
		sum += pods.Value()
	}
	return sum
}

// TestSelfService covers the requests for namespaces that a tenant may make, and its
// attempts to get more. It runs with make test-all. In make test, TestJudge and
// TestRequested check the decisions, and the attacks and cases of the identity rules check
// admission.
func TestSelfService(t *testing.T) {
	sandbox.Thorough(t)
	s, stop := newSelfService(t)
	defer func() { stop() }()
	first := s.rightful()
	s.refusedByAdmission()
	s.refusedByStatus()
	second := s.limit()
	s.subTenant(first.Name)

	// The platform lowers the limit, and declares a granted namespace for another tenant.
	// No existing namespace may change, and a restarted operator must not change one
	// either.
	s.Patch(s.shop, `{"spec":{"selfService":{"namespaces":0}}}`)
	s.AwaitReady(s.shop)
	s.Patch(s.bank, `{"spec":{"namespaces":["bank","`+first.Name+`"]}}`)
	s.AwaitCondition(s.bank, v1alpha1.ConditionAccepted, metav1.ConditionFalse, v1alpha1.ReasonInvalid)
	stop()
	stop = s.Operate()
	s.Patch(s.bank, `{"spec":{"namespaces":null}}`)
	s.AwaitReady(s.shop, s.bank, first, second)
	for _, name := range []string{first.Name, second.Name} {
		if err := s.ann.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(name)); err != nil {
			t.Errorf("with a lower limit and a new operator: %v", err)
		}
	}
	s.Await("the policy to know the limit", func() string {
		if err := s.ann.Create(t.Context(), operatortest.NewTenantNamespace("shop", "shop-z"), client.DryRunAll); err == nil {
			return "asked although none are allowed"
		}
		return ""
	})
	s.Patch(s.shop, `{"spec":{"selfService":{"namespaces":2}}}`)
	s.AwaitReady(s.shop)
	s.deletion(first)
	s.retention()
}

// rightful requests a permitted namespace. The request's labels and annotations must have
// no effect.
func (s *selfService) rightful() *v1alpha1.TenantNamespace {
	s.Helper()
	r := operatortest.NewTenantNamespace("shop", "shop-a")
	r.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "privileged", "mine": "yes", "croft.dev/cost-code": "bank"}
	r.Annotations = map[string]string{"croft.dev/rules.registries": "*", "mine": "yes"}
	s.ask(s.ann, r, v1alpha1.ReasonAccepted)
	s.AwaitReady(r)
	if err := s.ann.Patch(s.Context(), r.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"late":"yes"}}}`))); err != nil {
		s.Error(err)
	}
	s.AssertRefused("a forged grant", s.ann.Status().Patch(s.Context(), r.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"status":{"tenant":"bank"}}`))), "cannot patch resource")
	live := operatortest.NewNamespace("shop-a")
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		s.Fatal(err)
	}
	if live.Labels[v1alpha1.TenantLabel] != "shop" || live.Labels["pod-security.kubernetes.io/enforce"] != "baseline" ||
		live.Annotations[v1alpha1.RequestedAnnotation] != "shop" || live.Labels["mine"]+live.Labels["late"]+live.Annotations["mine"] != "" {
		s.Errorf("the namespace has %v %v", live.Labels, live.Annotations)
	}
	if len(s.ListPolicies("shop-a")) == 0 {
		s.Error("no network policies stand around the namespace")
	}
	if sum := s.shares("shop", "shop-db", "shop-a"); sum > 30 {
		s.Errorf("the shares add up to %d pods, and the quota is 30", sum)
	}
	if err := s.ann.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-a", Name: "mine"}}); err != nil {
		s.Error(err)
	}
	s.AssertRefused("another tenant looks in", s.Impersonate("bob", "bank-devs").List(s.Context(), &corev1.ConfigMapList{}, client.InNamespace("shop-a")), "cannot list")
	return r
}

// refusedByAdmission makes requests that the API server refuses.
func (s *selfService) refusedByAdmission() {
	s.Helper()
	viewer, bob := s.Impersonate("eve", "shop-lookers"), s.Impersonate("bob", "bank-devs")
	for _, test := range []struct {
		by           client.Client
		anchor, name string
		why          string
	}{
		{s.ann, "shop", "payments", "[requested-name]"},
		{s.ann, "shop", "kube-system", "[requested-name]"},
		{s.ann, "shop", "croft-system", "[requested-name]"},
		{s.ann, "shop", "bank", "[requested-name]"},
		{s.ann, "shop", "shops", "[requested-name]"},
		{s.ann, "shop", "shop", "[requested-name]"},
		{s.ann, "shop", "shop.a", "the name of a namespace"},
		{s.ann, "shop", "shop-" + strings.Repeat("x", 59), "the name of a namespace"},
		{s.ann, "shop-a", "shop-b", "[self-service]"},
		{s.ann, "bank", "bank-a", "cannot create"},
		{s.ann, "kube-system", "shop-b", "cannot create"},
		{viewer, "shop", "shop-b", "cannot create"},
		{bob, "bank", "bank-a", "[self-service]"},
	} {
		s.AssertRefused(test.anchor+"/"+test.name, test.by.Create(s.Context(), operatortest.NewTenantNamespace(test.anchor, test.name)), test.why)
	}
}

// refusedByStatus requests names that only croft recognises as not the tenant's. Neither the
// request nor its deletion may change the existing namespaces.
func (s *selfService) refusedByStatus() {
	s.Helper()
	before := map[string]string{}
	for _, name := range []string{"shop-old", "shop-offered", "shop-ci"} {
		live := operatortest.NewNamespace(name)
		if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			s.Fatal(err)
		}
		before[name] = string(live.UID) + fmt.Sprint(live.Labels, live.Annotations)
	}
	for name, reason := range map[string]string{
		"shop-ci":      v1alpha1.ReasonNameNotAllowed,
		"shop-ci-x":    v1alpha1.ReasonNameNotAllowed,
		"shop-old":     v1alpha1.ReasonNameTaken,
		"shop-offered": v1alpha1.ReasonNameTaken,
		"shop-db":      v1alpha1.ReasonNameTaken,
	} {
		r := s.ask(s.ann, operatortest.NewTenantNamespace("shop", name), reason)
		if r.Status.Tenant != "" {
			s.Errorf("%s is granted to %s", name, r.Status.Tenant)
		}
		if err := s.ann.Delete(s.Context(), r); err != nil {
			s.Error(err)
		}
	}
	// Two requests for the same name: the first gets the namespace.
	twice := s.ask(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-a"), v1alpha1.ReasonNameTaken)
	if err := s.ann.Delete(s.Context(), twice); err != nil {
		s.Error(err)
	}
	// When this later request is decided, the deletions have been observed.
	last := s.ask(s.ann, operatortest.NewTenantNamespace("shop", "shop-ci-y"), v1alpha1.ReasonNameNotAllowed)
	if err := s.ann.Delete(s.Context(), last); err != nil {
		s.Error(err)
	}
	for name, was := range before {
		live := operatortest.NewNamespace(name)
		if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
			s.Errorf("%s: %v", name, err)
		} else if now := string(live.UID) + fmt.Sprint(live.Labels, live.Annotations); now != was {
			s.Errorf("%s was %s, and is %s", name, was, now)
		}
	}
	s.AwaitReady(operatortest.NewTenantNamespace("shop", "shop-a"))
}

// limit requests many namespaces at once, in two namespaces. Only one more is allowed.
func (s *selfService) limit() *v1alpha1.TenantNamespace {
	s.Helper()
	var group sync.WaitGroup
	all := make([]*v1alpha1.TenantNamespace, 8)
	for i := range all {
		all[i] = operatortest.NewTenantNamespace([]string{"shop", "shop-db"}[i%2], fmt.Sprintf("shop-c%d", i))
		group.Go(func() {
			if err := s.ann.Create(s.Context(), all[i]); err != nil {
				s.Error(err)
			}
		})
	}
	group.Wait()
	var granted *v1alpha1.TenantNamespace
	for _, r := range all {
		s.Await("a verdict on "+r.Name, func() string {
			if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(r), r); err != nil {
				return err.Error()
			}
			if c := meta.FindStatusCondition(r.Status.Conditions, v1alpha1.ConditionAccepted); c != nil &&
				(c.Reason == v1alpha1.ReasonLimitReached || c.Status == metav1.ConditionTrue) {
				return ""
			}
			return fmt.Sprint(r.Status)
		})
		if r.Status.Tenant == "" {
			continue
		}
		if granted != nil {
			s.Errorf("%s and %s are granted, and one was left", granted.Name, r.Name)
		}
		granted = r
	}
	if granted == nil {
		s.Fatal("none is granted, and one was left")
	}
	s.AwaitReady(granted)
	if names := s.names("shop"); len(names) != 4 {
		s.Errorf("shop has %v, and may have 2 beside its 2", names)
	}
	for _, r := range all {
		if r != granted {
			if err := s.ann.Delete(s.Context(), r); err != nil {
				s.Error(err)
			}
		}
	}
	return granted
}

// subTenant gives people access to one namespace of a tenant, as docs/how-to/self-service.md
// describes: the platform names the group once, and the tenant's operators bind it. The
// group has the operator's rights in that namespace, and no rights elsewhere.
func (s *selfService) subTenant(name string) {
	s.Helper()
	binding := func(group string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: group},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-operator"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
		}
	}
	const contractors = "shop-contractors"
	s.AssertRefused("people that the platform did not name", s.ann.Create(s.Context(), binding(contractors)), "[strangers]")
	s.Patch(s.shop, `{"spec":{"policy":{"shareWith":[{"group":"`+contractors+`"}]}}}`)
	s.Await("the tenant to share", func() string {
		if err := s.ann.Create(s.Context(), binding(contractors)); err != nil {
			return err.Error()
		}
		return ""
	})
	cat := s.Impersonate("cat", contractors)
	note := func(namespace string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "note"}}
	}
	s.Await("cat to work", func() string {
		if err := cat.Create(s.Context(), note(name)); err != nil {
			return err.Error()
		}
		return ""
	})
	for _, elsewhere := range []string{"shop", "shop-db", "bank"} {
		s.AssertRefused("cat writes in "+elsewhere, cat.Create(s.Context(), note(elsewhere)), "cannot create")
		s.AssertRefused("cat reads in "+elsewhere, cat.List(s.Context(), &corev1.SecretList{}, client.InNamespace(elsewhere)), "cannot list")
		s.AssertRefused("cat asks in "+elsewhere, cat.Create(s.Context(), operatortest.NewTenantNamespace(elsewhere, "shop-cat")), "cannot create")
	}
	s.AssertRefused("cat asks in her namespace", cat.Create(s.Context(), operatortest.NewTenantNamespace(name, "shop-cat")), "[self-service]")
	s.AssertRefused("cat lets another tenant in", cat.Create(s.Context(), binding("bank-devs")), "[strangers]")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "croft"}}
	s.AssertRefused("cat raises her share", cat.Delete(s.Context(), quota), "cannot delete")
	if err := s.ann.Delete(s.Context(), binding(contractors)); err != nil {
		s.Fatal(err)
	}
	s.Await("cat to be out", func() string {
		if err := cat.List(s.Context(), &corev1.ConfigMapList{}, client.InNamespace(name)); err == nil {
			return "she lists ConfigMaps"
		}
		return ""
	})
	s.Patch(s.shop, `{"spec":{"policy":{"shareWith":null}}}`)
	s.AwaitReady(s.shop)
}

// deletion deletes a request that has another controller's finalizer. The namespace is
// deleted, and the tenant may request another one.
func (s *selfService) deletion(r *v1alpha1.TenantNamespace) {
	s.Helper()
	s.Patch(r, `{"metadata":{"finalizers":["example.com/stuck"]}}`)
	if err := s.ann.Delete(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.AwaitDeletion(operatortest.NewNamespace(r.Name))
	s.AwaitReady(s.ask(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-next"), v1alpha1.ReasonAccepted))
	s.Patch(r, `{"metadata":{"finalizers":null}}`)
	s.AwaitDeletion(r)
}

// retention deletes a request of a tenant with deletion: Retain. The namespace still counts
// towards the limit, however often the tenant tries, and all access is removed. The same
// request restores access.
func (s *selfService) retention() {
	s.Helper()
	s.Patch(s.shop, `{"spec":{"deletion":"Retain"}}`)
	s.AwaitReady(s.shop)
	next := operatortest.NewTenantNamespace("shop-db", "shop-next")
	if err := s.ann.Delete(s.Context(), next); err != nil {
		s.Fatal(err)
	}
	s.Await("access to go", func() string {
		if n := s.CountBindings("shop-next"); n > 0 {
			return fmt.Sprintf("%d RoleBindings", n)
		}
		return ""
	})
	for _, name := range []string{"shop-more-1", "shop-more-2"} {
		s.ask(s.ann, operatortest.NewTenantNamespace("shop", name), v1alpha1.ReasonLimitReached)
	}
	if names := s.names("shop"); len(names) != 4 {
		s.Errorf("shop has %v, and may have 2 beside its 2", names)
	}
	live := operatortest.NewNamespace("shop-next")
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		s.Fatal(err)
	}
	kept := maps.Clone(live.Labels)
	s.ask(s.ann, operatortest.NewTenantNamespace("shop", "shop-next"), v1alpha1.ReasonNameTaken)
	again := s.ask(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-next"), v1alpha1.ReasonAccepted)
	s.AwaitReady(again)
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil || !maps.Equal(kept, live.Labels) {
		s.Errorf("had again, the namespace has %v, and had %v: %v", live.Labels, kept, err)
	}
}
