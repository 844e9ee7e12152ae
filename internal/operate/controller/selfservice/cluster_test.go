package selfservice_test

import (
	"errors"
	"fmt"
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
	s.shop.Spec.Namespace.Choose = map[string]v1alpha1.LabelValues{"env": {"dev", "prod"}}
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

// awaitDecision waits until a request is accepted or refused for this reason.
func (s *selfService) awaitDecision(r *v1alpha1.TenantNamespace, reason string) {
	s.Helper()
	status := metav1.ConditionFalse
	if reason == v1alpha1.ReasonAccepted {
		status = metav1.ConditionTrue
	}
	s.AwaitCondition(r, v1alpha1.ConditionAccepted, status, reason)
}

// requestNamespace creates a request as a user, and waits for its condition.
func (s *selfService) requestNamespace(by client.Client, r *v1alpha1.TenantNamespace, reason string) *v1alpha1.TenantNamespace {
	s.Helper()
	if err := by.Create(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.awaitDecision(r, reason)
	return r
}

// listNamespaces returns the namespaces with a tenant's label.
func (s *selfService) listNamespaces(tenant string) []string {
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

// sumShares returns the sum of the pods that the ResourceQuotas of namespaces allow.
func (s *selfService) sumShares(namespaces ...string) int64 {
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
// attempts to get more. It runs with make test-all. In make test, TestDecideRequest and
// TestRequested check the decisions, and the attacks and cases of the identity rules check
// admission.
func TestSelfService(t *testing.T) {
	sandbox.Thorough(t)
	s, stop := newSelfService(t)
	defer func() { stop() }()
	first := s.testPermittedRequest()
	s.testAdmissionRefusals()
	s.testStatusRefusals()
	second := s.testLimit()
	s.testSubTenant(first.Name)

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
	s.testDeletion(first)
	s.testRetention()
}

// testPermittedRequest requests a permitted namespace. The request's labels and annotations must
// have no effect, except for the label that the tenant may choose.
func (s *selfService) testPermittedRequest() *v1alpha1.TenantNamespace {
	s.Helper()
	r := operatortest.NewTenantNamespace("shop", "shop-a")
	r.Labels = map[string]string{"pod-security.kubernetes.io/enforce": "privileged", "mine": "yes", "croft.dev/cost-code": "bank", "env": "dev"}
	r.Annotations = map[string]string{"croft.dev/rules.registries": "*", "mine": "yes"}
	s.requestNamespace(s.ann, r, v1alpha1.ReasonAccepted)
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
		live.Annotations[v1alpha1.RequestedAnnotation] != "shop" || live.Labels["env"] != "dev" || live.Labels["mine"]+live.Labels["late"]+live.Annotations["mine"] != "" {
		s.Errorf("the namespace has %v %v", live.Labels, live.Annotations)
	}
	s.chooseLabels(r)
	if len(s.ListPolicies("shop-a")) == 0 {
		s.Error("no network policies stand around the namespace")
	}
	if sum := s.sumShares("shop", "shop-db", "shop-a"); sum > 30 {
		s.Errorf("the shares add up to %d pods, and the quota is 30", sum)
	}
	if err := s.ann.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-a", Name: "mine"}}); err != nil {
		s.Error(err)
	}
	s.AssertRefused("another tenant looks in", s.Impersonate("bob", "bank-devs").List(s.Context(), &corev1.ConfigMapList{}, client.InNamespace("shop-a")), "cannot list")
	return r
}

// chooseLabels changes the label that the tenant may choose: to another value of the list, and to one
// that is not in it.
func (s *selfService) chooseLabels(r *v1alpha1.TenantNamespace) {
	s.Helper()
	for _, step := range []struct{ value, label, message string }{
		{"prod", "prod", ""}, {"staging", "", "the label env=staging has no effect: choose one of [dev, prod]"}, {"dev", "dev", ""},
	} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"env":"`+step.value+`"}}}`))
		if err := s.ann.Patch(s.Context(), r.DeepCopy(), patch); err != nil {
			s.Fatal(err)
		}
		s.Await("the label env="+step.value, func() string {
			live, request := operatortest.NewNamespace(r.Name), r.DeepCopy()
			if err := errors.Join(s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live), s.Client.Get(s.Context(), client.ObjectKeyFromObject(r), request)); err != nil {
				return err.Error()
			}
			accepted := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionAccepted)
			if live.Labels["env"] != step.label || accepted == nil || accepted.Message != step.message {
				return fmt.Sprintf("labels %v, condition %v", live.Labels, accepted)
			}
			return ""
		})
	}
}

// testSubTenant gives people access to one namespace of a tenant, as docs/how-to/self-service.md
// describes: the platform names the group once, and the tenant's operators bind it. The
// group has the operator's rights in that namespace, and no rights elsewhere.
func (s *selfService) testSubTenant(name string) {
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
