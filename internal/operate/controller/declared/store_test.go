package declared

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
)

// laggingCache is a cache with one informer that lags behind: it returns that kind's objects as of
// its creation, and the current objects of all other kinds.
type laggingCache struct {
	client.Reader
	pools     *v1alpha1.PoolList
	platforms *v1alpha1.PlatformList
}

func (l *laggingCache) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.PoolList:
		if l.pools != nil {
			l.pools.DeepCopyInto(list)
			return nil
		}
	case *v1alpha1.PlatformList:
		if l.platforms != nil {
			l.platforms.DeepCopyInto(list)
			return nil
		}
	}
	return l.Reader.List(ctx, list, opts...)
}

// TestRebuildWithIncompleteCache fails if an object is reported as invalid because the cache
// does not yet have another object that exists.
func TestRebuildWithIncompleteCache(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	live, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), live, install.Options{}); err != nil {
		t.Fatal(err)
	}
	write := func(objects ...client.Object) {
		t.Helper()
		for _, o := range objects {
			if err := live.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	cached := &laggingCache{Reader: live, pools: &v1alpha1.PoolList{}, platforms: &v1alpha1.PlatformList{}}
	store := New(cached, live, clock.RealClock{})
	build := func() *Snapshot {
		t.Helper()
		if err := store.rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		return store.Current()
	}
	d := newDeclaration(nil)
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	write(
		&v1alpha1.Platform{ObjectMeta: meta(v1alpha1.PlatformName), Spec: d.Platforms[0].Spec},
		&v1alpha1.Pool{ObjectMeta: meta("apps")},
		&v1alpha1.Tenant{ObjectMeta: meta("shop"), Spec: v1alpha1.TenantSpec{Pool: "apps"}},
	)
	if s := build(); s != nil {
		t.Errorf("the cache has no Platform yet: HasPlatform = %v was published", s.HasPlatform)
	}
	cached.platforms = nil
	s := build()
	if shop, ok := s.Tenant("shop"); ok {
		t.Errorf("the cache does not show pool apps yet: shop = %+v", shop)
	}
	// A mistake is reported at once, even if the cache is incomplete.
	write(&v1alpha1.Tenant{ObjectMeta: meta("lost"), Spec: v1alpha1.TenantSpec{
		Pool: "apps", Network: v1alpha1.TenantNetwork{AllowCIDRs: []string{"169.254.0.0/16"}},
	}})
	cached.pools = nil
	s = build()
	if shop, ok := s.Tenant("shop"); !ok || shop.Value == nil {
		t.Errorf("shop = %+v, and the cache has everything", shop)
	}
	if lost, ok := s.Tenant("lost"); !ok || len(lost.Problems) != 1 {
		t.Errorf("lost = %+v, want one problem", lost)
	}

	// A problem remains reported while another object is missing in the cache.
	cached.pools = &v1alpha1.PoolList{}
	if err := live.List(t.Context(), cached.pools); err != nil {
		t.Fatal(err)
	}
	write(&v1alpha1.Pool{ObjectMeta: meta("jobs")}, &v1alpha1.Tenant{ObjectMeta: meta("bank"), Spec: v1alpha1.TenantSpec{Pool: "jobs"}})
	s = build()
	if bank, ok := s.Tenant("bank"); ok {
		t.Errorf("the cache does not show pool jobs yet: bank = %+v", bank)
	}
	if lost, ok := s.Tenant("lost"); !ok || len(lost.Problems) != 1 {
		t.Errorf("lost = %+v, want one problem", lost)
	}
	if shop, ok := s.Tenant("shop"); !ok || shop.Value == nil {
		t.Errorf("shop = %+v", shop)
	}
	select {
	case <-store.dirty:
	case <-time.After(time.Minute):
		t.Error("nothing asks for the estate again")
	}
	cached.pools = nil
	if bank, _ := build().Tenant("bank"); bank.Value == nil {
		t.Errorf("bank = %+v, and the cache has everything", bank)
	}
}

// TestRedeclared changes the status of a tenant's budget. Only figures in messages to its people change the estate.
func TestRedeclared(t *testing.T) {
	before := &v1alpha1.Tenant{Status: v1alpha1.TenantStatus{Budget: &v1alpha1.TenantBudgetStatus{
		Monthly: 800, Currency: "EUR", Spent: "100.00", Prices: map[string]string{"apps": "28.45"}}}}
	for name, c := range map[string]struct {
		edit func(*v1alpha1.TenantBudgetStatus)
		want bool
	}{
		"nothing":            {func(*v1alpha1.TenantBudgetStatus) {}, false},
		"the forecast":       {func(s *v1alpha1.TenantBudgetStatus) { s.Forecast = "400.00" }, false},
		"the stage":          {func(s *v1alpha1.TenantBudgetStatus) { s.Stage = v1alpha1.BudgetWarn }, true},
		"a price":            {func(s *v1alpha1.TenantBudgetStatus) { s.Prices = map[string]string{"apps": "30.00"} }, true},
		"the rest":           {func(s *v1alpha1.TenantBudgetStatus) { s.Spent = "108.00" }, true},
		"the end of prices":  {func(s *v1alpha1.TenantBudgetStatus) { s.Prices = nil }, true},
		"the end of figures": {func(s *v1alpha1.TenantBudgetStatus) { s.Spent = "" }, true},
	} {
		after := before.DeepCopy()
		c.edit(after.Status.Budget)
		if got := isRedeclared(before, after); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}
