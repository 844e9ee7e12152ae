package migrate_test

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/adoption/migrate/source"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/walls/wall"
)

// TestRoundTrip renders estates, migrates the output, and expects the same estate. Only fields
// that the rendered objects do not contain may be lost: the options below name them and
// docs/reference/migrate.md lists them.
func TestRoundTrip(t *testing.T) {
	samples, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	estates := map[string][]byte{}
	for _, path := range append(samples, "../../cli/testdata/every-field.yaml") {
		if estates[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, dialect := range dialects {
		estates[name] = buildDialectEstate(dialect)
	}
	for name, data := range estates {
		t.Run(name, func(t *testing.T) {
			want := buildEstate(t, data)
			r := renderAndMigrate(t, want)
			for _, f := range r.Findings {
				if (f.Outcome == source.NotKept || f.Outcome == source.Changed) && (f.Field != "" && !strings.HasPrefix(f.Object, "ValidatingAdmission")) {
					t.Errorf("%s %s = %s: %s", f.Object, f.Field, f.Value, f.Message)
				}
			}
			file, err := r.File.YAML()
			if err != nil {
				t.Fatal(err)
			}
			got := buildEstate(t, file)
			if diff := gocmp.Diff(want, got, isSameJSON...); diff != "" {
				t.Errorf("another estate came back (-rendered +migrated):\n%s", diff)
			}
			for _, tenant := range want.Tenants {
				for _, namespace := range tenant.Namespaces {
					if diff := gocmp.Diff(tenant.BuildObjects(namespace), got.FindTenant(tenant.Name).BuildObjects(namespace)); diff != "" {
						t.Errorf("other objects in %s came back (-rendered +migrated):\n%s", namespace, diff)
					}
				}
			}
		})
	}
}

// dialects are fields of platform.network that select how croft writes its policies.
var dialects = map[string]string{
	"Calico":               "dialect: Calico",
	"Calico's storage":     "dialect: Calico, calico: {apiGroup: crd.projectcalico.org, tenantPolicies: true}",
	"ClusterNetworkPolicy": "dialect: ClusterNetworkPolicy",
	"AWS":                  "dialect: AWS",
}

// buildDialectEstate returns an estate in a dialect.
func buildDialectEstate(dialect string) []byte {
	return []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}, clusterDNS: [10.100.0.10, "fd00::10"], network: {platformNamespaces: [ingress], ` + dialect + `}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, namespaces: [shop, shop-ci], access: [{group: shoppers, role: operator}]}
  bank: {pool: apps, network: {egress: Restricted, allowCIDRs: [10.20.0.0/16]}}
`)
}

// same compares the fields that the rendered objects contain.
var isSameJSON = gocmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreFields(document.Problem{}, "Line"), // of warnings: in the result, defaults are explicit
	gocmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
	cmpopts.SortSlices(func(a, b v1alpha1.Access) bool {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Group, b.Group), cmp.Compare(a.User, b.User)) < 0
	}),
	// These are in the platform's policies only, as expressions that migrate does not parse.
	cmpopts.IgnoreFields(v1alpha1.PlatformSpec{}, "Admins", "Auditors", "ClassReaders", "Addons", "Roles", "Finalizers", "Proxy"),
	cmpopts.IgnoreFields(estate.Platform{}, "Groups"), // these follow from Admins, Auditors and ClassReaders
	cmpopts.IgnoreFields(v1alpha1.PlatformNetwork{}, "MetadataAddresses", "DNSPods"),
	// These are in each tenant and each pool instead.
	cmpopts.IgnoreFields(v1alpha1.PlatformSpec{}, "TenantDefaults", "NodeClass"),
	cmpopts.IgnoreFields(v1alpha1.PoolSpec{}, "NodeClass"),
	// No object contains these fields.
	cmpopts.IgnoreFields(estate.Tenant{}, "Deletion", "Choose", "MaxLifetime", "Budget"),
	// Their parameters are replaced: the test compares the objects.
	cmpopts.IgnoreFields(estate.Tenant{}, "Objects"),
	// A freeze is temporary.
	cmpopts.IgnoreFields(estate.Tenant{}, "Freeze", "FreezeChange", "FreezeNotice"),
	// These are in Flux's objects, which migrate leaves unchanged.
	cmpopts.IgnoreFields(estate.Tenant{}, "Sources"),
	cmpopts.IgnoreFields(v1alpha1.PoolSpec{}, "SecondaryNetworks"),
	cmpopts.IgnoreFields(estate.Tenant{}, "Networks"),
	cmpopts.IgnoreFields(estate.Estate{}, "Networks"),
	gocmp.FilterPath(func(p gocmp.Path) bool { return p.String() == "Platform.PlatformSpec.GroupPrefix" }, gocmp.Comparer(func(_, _ string) bool { return true })),
}

// TestAcceptedConnections expects that the policy for a TenantCaller does not become one of the callers of
// croft.yaml, which are for all namespaces of the tenant.
func TestAcceptedConnections(t *testing.T) {
	d, problems := manifest.Parse("croft.yaml", []byte(`
platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools: {apps: {}}
tenants:
  shop: {pool: apps, namespaces: [shop, shop-ci], network: {callersFrom: [bank]}}
  bank: {pool: apps, network: {calls: {shop: {pods: {app: web}}}}}
`))
	caller := v1alpha1.TenantCaller{
		Spec:   v1alpha1.TenantCallerSpec{Tenant: "bank", Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}},
		Status: v1alpha1.TenantCallerStatus{Giver: "1", Receiver: "2"},
	}
	caller.Namespace, caller.Name = "shop-ci", "api"
	d.Callers = append(d.Callers, caller)
	e, more := estate.Build(d)
	if err := slices.Concat(problems, more).Err(); err != nil {
		t.Fatal(err)
	}
	if len(e.Platform.Connections) != 1 {
		t.Fatalf("connections: %+v", e.Platform.Connections)
	}
	file, err := renderAndMigrate(t, e).File.YAML()
	if err != nil {
		t.Fatal(err)
	}
	back, problems := manifest.Parse("croft.yaml", file)
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range back.Tenants {
		got := back.Tenants[i].Spec.Network
		switch name := back.Tenants[i].Name; {
		case len(got.Callers) > 0:
			t.Errorf("%s: callers %+v", name, got.Callers)
		case name == "shop" && !slices.Equal(got.CallersFrom, []string{"bank"}):
			t.Errorf("%s: callersFrom %q", name, got.CallersFrom)
		case name == "bank" && got.Calls["shop"].Pods["app"] != "web":
			t.Errorf("%s: calls %+v", name, got.Calls)
		}
	}
}

func buildEstate(t testing.TB, data []byte) *estate.Estate {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", data)
	e, more := estate.Build(d)
	if err := slices.Concat(problems, more).Err(); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	for _, p := range e.Pools {
		// This is the default, which rendered objects contain explicitly.
		if p.Instances.Architectures == nil && p.Instances.InstanceTypes == nil {
			p.Instances.Architectures = []v1alpha1.Architecture{"amd64"}
		}
		if p.Class.AWS != nil {
			p.Tags = nil // the class has all tags of instances, of any origin
		}
	}
	return e
}

// renderAndMigrate renders an estate as croft render does, and migrates the output.
func renderAndMigrate(t testing.TB, e *estate.Estate) *migrate.Result {
	t.Helper()
	var stream strings.Builder
	for _, o := range wall.Objects(e) {
		data, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		stream.WriteString("---\n" + string(data))
	}
	objects, problems := source.Parse("rendered.yaml", []byte(stream.String()))
	r := migrate.Migrate(objects, problems, draft.Options{ClusterName: e.Platform.ClusterName})
	expectAccounted(t, objects, r)
	if err := r.Problems.Err(); err != nil {
		t.Error(err)
	}
	return r
}
