package selfservice_test

import (
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
)

// testDeletion deletes a request that has another controller's finalizer. The namespace is
// deleted, and the tenant may request another one.
func (s *selfService) testDeletion(r *v1alpha1.TenantNamespace) {
	s.Helper()
	s.Patch(r, `{"metadata":{"finalizers":["example.com/stuck"]}}`)
	if err := s.ann.Delete(s.Context(), r); err != nil {
		s.Fatal(err)
	}
	s.AwaitDeletion(operatortest.NewNamespace(r.Name))
	s.AwaitReady(s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-next"), v1alpha1.ReasonAccepted))
	s.Patch(r, `{"metadata":{"finalizers":null}}`)
	s.AwaitDeletion(r)
}

// testRetention deletes a request of a tenant with deletion: Retain. The namespace still counts
// towards the limit, however often the tenant tries, and all access is removed. The same
// request restores access.
func (s *selfService) testRetention() {
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
		s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop", name), v1alpha1.ReasonLimitReached)
	}
	if names := s.listNamespaces("shop"); len(names) != 4 {
		s.Errorf("shop has %v, and may have 2 in addition to its 2", names)
	}
	live := operatortest.NewNamespace("shop-next")
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil {
		s.Fatal(err)
	}
	kept := maps.Clone(live.Labels)
	s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop", "shop-next"), v1alpha1.ReasonNameTaken)
	again := s.requestNamespace(s.ann, operatortest.NewTenantNamespace("shop-db", "shop-next"), v1alpha1.ReasonAccepted)
	s.AwaitReady(again)
	if err := s.Client.Get(s.Context(), client.ObjectKeyFromObject(live), live); err != nil || !maps.Equal(kept, live.Labels) {
		s.Errorf("had again, the namespace has %v, and had %v: %v", live.Labels, kept, err)
	}
}
