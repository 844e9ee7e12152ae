package selfservice_test

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// testAdmissionRefusals makes requests that the API server refuses.
func (s *selfService) testAdmissionRefusals() {
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

// testStatusRefusals requests names that only croft recognises as not the tenant's. Neither the
// request nor its deletion may change the existing namespaces.
func (s *selfService) testStatusRefusals() {
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
		r := s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop", name), reason)
		if r.Status.Tenant != "" {
			s.Errorf("%s is granted to %s", name, r.Status.Tenant)
		}
		if err := s.ann.Delete(s.Context(), r); err != nil {
			s.Error(err)
		}
	}
	// Two requests for the same name: the first gets the namespace.
	twice := s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-a"), v1alpha1.ReasonNameTaken)
	if err := s.ann.Delete(s.Context(), twice); err != nil {
		s.Error(err)
	}
	// When this later request is decided, the deletions have been observed.
	last := s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop", "shop-ci-y"), v1alpha1.ReasonNameNotAllowed)
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

// testLimit requests many namespaces at once, in two namespaces. Only one more is allowed.
func (s *selfService) testLimit() *v1alpha1.TenantNamespace {
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
	if names := s.listNamespaces("shop"); len(names) != 4 {
		s.Errorf("shop has %v, and may have 2 in addition to its 2", names)
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
