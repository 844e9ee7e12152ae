package declared

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

func newDeclaration(change func(*manifest.Declaration)) *manifest.Declaration {
	meta := func(name string, age int64) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1, CreationTimestamp: metav1.Unix(1000-age, 0)}
	}
	d := &manifest.Declaration{
		Platforms: []v1alpha1.Platform{{
			ObjectMeta: meta(v1alpha1.PlatformName, 3),
			Spec: v1alpha1.PlatformSpec{
				ClusterName: "demo", TenantDomain: "tenants.example.org", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
			},
		}},
		Pools: []v1alpha1.Pool{{ObjectMeta: meta("apps", 2)}, {ObjectMeta: meta("jobs", 2)}},
		Tenants: []v1alpha1.Tenant{
			{ObjectMeta: meta("first", 2), Spec: v1alpha1.TenantSpec{Pool: "apps"}},
			{ObjectMeta: meta("second", 1), Spec: v1alpha1.TenantSpec{Pools: []string{"apps", "jobs"}, Namespaces: []string{"a", "b"}}},
		},
	}
	if change != nil {
		change(d)
	}
	return d
}

func TestBuild(t *testing.T) {
	s := buildSnapshot(newDeclaration(nil))
	if s.Platform == nil {
		t.Fatalf("no Platform: %v", s.platforms)
	}
	second, ok := s.Tenant("second")
	if !ok || second.Value == nil || len(second.Problems) > 0 {
		t.Errorf("second = %+v", second)
	}
	apps, _ := s.Pool("apps")
	if !slices.Equal(apps.Users, []string{"first", "second"}) {
		t.Errorf("users of apps = %v", apps.Users)
	}
	for namespace, want := range map[string]string{"first": "first", "a": "second", "b": "second", "second": ""} {
		if got := s.Claimant(namespace); got != want {
			t.Errorf("namespace %s is declared by %q, want %q", namespace, got, want)
		}
	}
}

func TestOnlyWhatCameOutDifferentlyIsNew(t *testing.T) {
	bothWant := func(d *manifest.Declaration) {
		d.Tenants[0].Spec.Domains = []string{"www.example.edu"}
		d.Tenants[1].Spec.Domains = []string{"www.example.edu"}
	}
	accepts := func(giver, receiver string) func(*manifest.Declaration) {
		return func(d *manifest.Declaration) {
			d.Tenants[0].Spec.Network.CallersFrom = []string{"second"}
			d.Tenants[1].Spec.Network.Calls = map[string]v1alpha1.Call{"first": {}}
			d.Callers = []v1alpha1.TenantCaller{{
				ObjectMeta: metav1.ObjectMeta{Namespace: "first", Name: "api", UID: "api", Generation: 1},
				Spec:       v1alpha1.TenantCallerSpec{Tenant: "second", Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}, Until: "2999-01-31"},
				Status:     v1alpha1.TenantCallerStatus{Giver: giver, Receiver: receiver},
			}}
		}
	}
	for _, test := range []struct {
		name           string
		before, after  func(*manifest.Declaration)
		tenants, pools []string
	}{
		{"nothing", nil, nil, nil, nil},
		{"a tenant", nil, func(d *manifest.Declaration) { d.Tenants[0].Generation++ }, []string{"first"}, nil},
		{"a tenant created again", nil, func(d *manifest.Declaration) { d.Tenants[0].UID = "other" }, []string{"first"}, nil},
		{"a deleted tenant", nil, func(d *manifest.Declaration) { d.Tenants = d.Tenants[1:] }, []string{"first"}, []string{"apps"}},
		{"a pool, which no wall of a tenant asks about", nil, func(d *manifest.Declaration) { d.Pools[0].Generation++ }, nil, []string{"apps"}},
		{"a deleted pool that both use", nil, func(d *manifest.Declaration) { d.Pools = d.Pools[1:] }, []string{"first", "second"}, []string{"apps"}},
		{
			"the Platform", nil, func(d *manifest.Declaration) { d.Platforms[0].Spec.GroupPrefix = "oidc:" },
			[]string{"first", "second"}, []string{"apps", "jobs"},
		},
		{
			"an object of all tenants", nil, func(d *manifest.Declaration) {
				d.Platforms[0].Spec.TenantDefaults.Objects = newObjects("a")
				d.Platforms[0].Generation++
			},
			[]string{"first", "second"}, nil,
		},
		{
			"what another tenant's domain was in the way of", bothWant,
			func(d *manifest.Declaration) {
				bothWant(d)
				d.Tenants[0].Spec.Domains = nil
				d.Tenants[0].Generation++
			},
			[]string{"first", "second"}, nil,
		},
		{"a consent of a team that is recorded", accepts("", ""), accepts("first", "second"), []string{"first", "second"}, nil},
		{"the same consent of a team", accepts("first", "second"), accepts("first", "second"), nil, nil},
		{"a consent of a team for an earlier tenant", accepts("first", "second"), accepts("first", "earlier"), []string{"first", "second"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			before, after := buildSnapshot(newDeclaration(test.before)), buildSnapshot(newDeclaration(test.after))
			before.updateRevisions(nil, 1)
			changed := after.updateRevisions(before, 2)
			for kind, want := range map[Kind][]string{Tenant: test.tenants, Pool: test.pools} {
				got := changed[kind]
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%ss that changed = %v, want %v", kind, got, want)
				}
			}
			for name, entry := range after.tenants {
				want := uint64(1)
				if slices.Contains(test.tenants, name) {
					want = 2
				}
				if entry.Revision != want {
					t.Errorf("revision of %s = %d, want %d", name, entry.Revision, want)
				}
			}
		})
	}
}

// newObjects returns a ConfigMap with some data, for all namespaces.
func newObjects(data string) []runtime.RawExtension {
	return []runtime.RawExtension{{Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"ca"},"data":{"a":%q}}`, data)}}
}

// TestRulesRevision changes a declaration in which the first tenant has objects of its own. Only a change
// of nothing but objects keeps the revision of a tenant's rules.
func TestRulesRevision(t *testing.T) {
	objectsOfAll := func(d *manifest.Declaration) {
		d.Platforms[0].Spec.TenantDefaults.Objects = newObjects("b")
		d.Platforms[0].Generation++
	}
	objectsOfOne := func(d *manifest.Declaration) {
		d.Tenants[0].Spec.Objects = newObjects("b")
		d.Tenants[0].Generation++
	}
	for _, test := range []struct {
		name   string
		change func(*manifest.Declaration)
		// revised are the tenants with a new Revision, ruled those with a new RulesRevision.
		revised, ruled []string
	}{
		{"nothing", nil, nil, nil},
		{"the objects of all other tenants", objectsOfAll, []string{"second"}, nil},
		{"a tenant's objects", objectsOfOne, []string{"first"}, nil},
		{"a tenant without objects", func(d *manifest.Declaration) { d.Tenants[0].Spec.Objects = nil }, []string{"first"}, nil},
		{"a tenant's objects and its quota", func(d *manifest.Declaration) {
			objectsOfOne(d)
			d.Tenants[0].Spec.Quota = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("5")}
		}, []string{"first"}, []string{"first"}},
		{"objects and another setting of the Platform", func(d *manifest.Declaration) {
			objectsOfAll(d)
			d.Platforms[0].Spec.GroupPrefix = "oidc:"
		}, []string{"first", "second"}, []string{"first", "second"}},
		{"another setting for all tenants", func(d *manifest.Declaration) {
			d.Platforms[0].Spec.TenantDefaults.PodSecurity = v1alpha1.PodSecurityRestricted
		}, []string{"first", "second"}, []string{"first", "second"}},
		{"a recreated tenant", func(d *manifest.Declaration) { d.Tenants[0].UID = "other" }, []string{"first"}, []string{"first"}},
		{"an invalid tenant", func(d *manifest.Declaration) { d.Tenants[0].Spec.Pool = "none" }, []string{"first"}, []string{"first"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			declare := func(change func(*manifest.Declaration)) *Snapshot {
				return buildSnapshot(newDeclaration(func(d *manifest.Declaration) {
					d.Tenants[0].Spec.Objects = newObjects("a")
					if change != nil {
						change(d)
					}
				}))
			}
			first, second, third := declare(nil), declare(test.change), declare(test.change)
			first.updateRevisions(nil, 1)
			second.updateRevisions(first, 2)
			third.updateRevisions(second, 3)
			for name, entry := range third.tenants {
				revision, rules := uint64(1), uint64(1)
				if slices.Contains(test.revised, name) {
					revision = 2
				}
				if slices.Contains(test.ruled, name) {
					rules = 2
				}
				if entry.Revision != revision || entry.RulesRevision != rules {
					t.Errorf("%s: revision %d and revision of rules %d, want %d and %d", name, entry.Revision, entry.RulesRevision, revision, rules)
				}
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newDeclaration(nil)
			d.Tenants = nil
			for i := range n {
				d.Tenants = append(d.Tenants, v1alpha1.Tenant{
					ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("tenant-%d", i), Generation: 1},
					Spec:       v1alpha1.TenantSpec{Pool: "apps", Domains: []string{fmt.Sprintf("www.tenant-%d.example.edu", i)}},
				})
			}
			before := buildSnapshot(d)
			for b.Loop() {
				buildSnapshot(d).updateRevisions(before, 2)
			}
		})
	}
}
