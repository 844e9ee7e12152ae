package estate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/manifest"
)

const minimal = base + "pools: {jobs: {emptyTTL: 10m}, apps: }\n"

// TestGroups expects the groups with which croft proxy may act: the members', the platform's,
// and the groups with which tenants share, without the star, which is not a group.
func TestGroups(t *testing.T) {
	_, e := parseValid(t, base+`pools: {jobs: }
tenants:
  shop:
    pool: jobs
    access: [{group: devs, role: operator}, {user: ann, role: viewer}]
    policy: {shareWith: [{group: contractors}, {group: "*"}, {user: eve}]}
  bank: {pool: jobs, access: [{group: devs, role: viewer}]}
`)
	if want := []string{"contractors", "devs"}; !slices.Equal(e.Platform.Groups, want) {
		t.Errorf("groups %v, want %v", e.Platform.Groups, want)
	}
}

func TestResolve(t *testing.T) {
	_, e := parseValid(t, `platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  groupPrefix: "oidc:"
  nodeClass: {kwok: {}}
  tenantDefaults:
    egress: Restricted
    podSecurity: restricted
    quota: {requests.cpu: 4}
    limits: {max: {cpu: 2}}
pools:
  jobs: {costCode: x}
  apps: {nodeClass: {aws: {role: nodes}}}
tenants:
  shop:
    pool: jobs
    access: [{group: devs, role: operator}, {user: ann, role: viewer}]
    domains: [shop.example.org, shop.tenants.example.org]
  bank:
    pools: [apps, jobs]
    namespaces: [bank-web, bank-db]
    network: {egress: Open, allowCIDRs: [10.0.0.0/8]}
    policy: {podSecurity: baseline}
    quota: {}
    limits: {max: {cpu: 8}}
    deletion: Delete
    costCode: c1
`)
	quantity := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	want := []*Tenant{{
		Name: "bank", Pools: []string{"apps", "jobs"}, Namespaces: []string{"bank-web", "bank-db"},
		Domains: []string{"bank.tenants.example.org", "*.bank.tenants.example.org"},
		Quota:   corev1.ResourceList{}, Limits: &v1alpha1.ContainerLimits{Max: quantity("8")},
		Egress: v1alpha1.EgressOpen, AllowCIDRs: []string{"10.0.0.0/8"},
		PodSecurity: v1alpha1.PodSecurityBaseline, Allowances: builtinAllowances(), CostCode: "c1", Deletion: v1alpha1.DeletionDelete,
	}, {
		Name: "shop", Pools: []string{"jobs"}, Namespaces: []string{"shop"},
		Access:  []v1alpha1.Access{{Group: "oidc:devs", Role: v1alpha1.RoleOperator}, {User: "ann", Role: v1alpha1.RoleViewer}},
		Domains: []string{"shop.tenants.example.org", "*.shop.tenants.example.org", "shop.example.org"},
		Quota:   corev1.ResourceList{"requests.cpu": resource.MustParse("4")}, Limits: &v1alpha1.ContainerLimits{Max: quantity("2")},
		Shares: map[string]corev1.ResourceList{"shop": {"requests.cpu": resource.MustParse("4")}},
		Egress: v1alpha1.EgressRestricted, PodSecurity: v1alpha1.PodSecurityRestricted, Allowances: builtinAllowances(), Deletion: v1alpha1.DeletionRetain,
	}}
	if diff := cmp.Diff(want, e.Tenants); diff != "" {
		t.Errorf("tenants (-want +got):\n%s", diff)
	}
	jobs, apps := e.FindPool("jobs"), e.FindPool("apps")
	if jobs.Class.Kwok == nil || jobs.EmptyTTL != "1h" || jobs.TTL != v1alpha1.Never || jobs.Instances.CapacityTypes[0] != "on-demand" {
		t.Errorf("pool jobs: %+v", jobs)
	}
	if apps.Class.AWS == nil || apps.Class.AWS.AMISelectorTerms[0].Alias != "al2023@latest" || apps.Class.Kwok != nil {
		t.Errorf("pool apps: %+v", apps)
	}
	if e.FindTenant("shop") == nil || e.FindTenant("none") != nil {
		t.Error("Tenant does not find shop, or finds none")
	}
}

// TestBuildLiterals builds an estate like the controllers: from objects without files, some of
// which lack defaults.
func TestBuildLiterals(t *testing.T) {
	tenant := func(name, pool string, age time.Duration, domains ...string) v1alpha1.Tenant {
		return v1alpha1.Tenant{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
			Spec:       v1alpha1.TenantSpec{Pool: pool, Domains: domains},
		}
	}
	d := &manifest.Declaration{
		Platforms: []v1alpha1.Platform{{
			ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec:       v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}},
		}},
		Pools: []v1alpha1.Pool{{ObjectMeta: metav1.ObjectMeta{Name: "jobs"}}},
		Tenants: []v1alpha1.Tenant{
			tenant("young", "jobs", time.Minute, "x.example.org"),
			tenant("old", "jobs", time.Hour, "*.example.org"),
			tenant("lost", "jbos", 0),
		},
	}
	before := d.Tenants[1].DeepCopy()
	e, problems := Build(d)
	expectProblems(t, problems,
		"Tenant/lost: spec.pool: there is no pool jbos; did you mean jobs?",
		"Tenant/young: spec.domains[0]: x.example.org overlaps with *.example.org of tenant old; a domain belongs to one tenant",
	)
	if got := problems.ForObject("Tenant", "lost"); len(got) != 1 || got[0].Field != "spec.pool" {
		t.Errorf("problems of lost: %v", got)
	}
	if len(e.Tenants) != 1 || len(e.Pools) != 1 {
		t.Fatalf("got %d tenants and %d pools, not the valid ones", len(e.Tenants), len(e.Pools))
	}
	want := &Tenant{
		Name: "old", Pools: []string{"jobs"}, Namespaces: []string{"old"}, Domains: []string{"*.example.org"},
		Quota: BuiltinQuota(&v1alpha1.PlatformSpec{}), Shares: map[string]corev1.ResourceList{"old": BuiltinQuota(&v1alpha1.PlatformSpec{})},
		Limits: BuiltinLimits(), Egress: v1alpha1.EgressOpen, PodSecurity: v1alpha1.PodSecurityBaseline, Allowances: builtinAllowances(), Deletion: v1alpha1.DeletionRetain,
	}
	if diff := cmp.Diff(want, e.Tenants[0]); diff != "" {
		t.Errorf("tenant (-want +got):\n%s", diff)
	}
	if e.Platform.NodePoolKey != v1alpha1.DefaultNodePoolKey || e.Platform.Placement != v1alpha1.PlacementNative || e.Platform.Network.Dialect != v1alpha1.DialectKubernetes {
		t.Errorf("platform is not defaulted: %+v", e.Platform)
	}
	if diff := cmp.Diff(before, &d.Tenants[1]); diff != "" {
		t.Errorf("Build changed its input:\n%s", diff)
	}
}

func TestByAge(t *testing.T) {
	born := func(name string, second int64) v1alpha1.Tenant {
		tenant := v1alpha1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if second > 0 {
			tenant.CreationTimestamp = metav1.Unix(second, 0)
		}
		return tenant
	}
	list := []v1alpha1.Tenant{born("new-b", 0), born("c", 2), born("b", 2), born("new-a", 0), born("z", 1)}
	if got, want := sortByAge(list), []int{4, 2, 1, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestNoPlatformNoEstate(t *testing.T) {
	e, problems := Build(&manifest.Declaration{})
	expectProblems(t, problems, "Platform/default: is missing; declare the cluster's platform with its clusterName and nodeClass")
	if e != nil {
		t.Error("an estate without a platform asks to remove everything")
	}
}

func TestCompactAndStreamAreEqual(t *testing.T) {
	stream := `apiVersion: croft.dev/v1alpha1
kind: Tenant
metadata:
  name: shop
  creationTimestamp: "2024-01-01T00:00:00Z"
  resourceVersion: "5"
spec:
  pool: jobs
  domains: [shop.example.org]
status: {pool: jobs}
---
# compact in between
pools: {jobs: {emptyTTL: 10m, secondaryNetworks: [data]}}
---
{"apiVersion": "croft.dev/v1alpha1", "kind": "Platform", "metadata": {"name": "default"}, "spec": {"clusterName": "demo", "nodeClass": {"kwok": {}}}}
---
apiVersion: croft.dev/v1alpha1
kind: SecondaryNetwork
metadata: {name: data}
spec: {zones: [{zone: a, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.128/25}]}
`
	compact := `platform: {clusterName: demo, nodeClass: {kwok: {}}}
secondaryNetworks:
  data: {zones: [{zone: a, subnet: s, cidr: 10.0.0.0/24, podCIDR: 10.0.0.128/25}]}
pools: {jobs: {emptyTTL: 10m, secondaryNetworks: [data]}}
tenants: {shop: {pool: jobs, domains: [shop.example.org]}}
`
	dStream, eStream := parseValid(t, stream)
	dCompact, eCompact := parseValid(t, compact)
	if diff := cmp.Diff(eCompact, eStream); diff != "" {
		t.Errorf("estates (-compact +stream):\n%s", diff)
	}
	if diff := cmp.Diff(dCompact.Objects(), dStream.Objects()); diff != "" {
		t.Errorf("objects (-compact +stream):\n%s", diff)
	}
	objects := dStream.Objects()
	ids := make([]string, 0, len(objects))
	for _, o := range objects {
		ids = append(ids, o.GetObjectKind().GroupVersionKind().Kind+"/"+o.GetName())
	}
	if want := []string{"Platform/default", "SecondaryNetwork/data", "Pool/jobs", "Tenant/shop"}; !slices.Equal(ids, want) {
		t.Errorf("objects are %v, not %v", ids, want)
	}

	literal := &manifest.Declaration{Platforms: dStream.Platforms, Networks: dStream.Networks, Pools: dStream.Pools, Tenants: dStream.Tenants}
	e, problems := Build(literal)
	expectProblems(t, problems)
	if diff := cmp.Diff(eStream, e, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("estates (-stream +literal):\n%s", diff)
	}
	if kind := literal.Objects()[3].GetObjectKind().GroupVersionKind(); kind != v1alpha1.GroupVersion.WithKind(manifest.KindTenant) {
		t.Errorf("a literal's object is a %v", kind)
	}
}

func TestAdd(t *testing.T) {
	files := map[string]string{
		"1.yaml": minimal + "tenants:\n  shop: {pool: jobs, domains: [a.example.com]}\n",
		"2.yaml": "pools:\n  jobs: {}\n  batch: {ttl: 1}\ntenants:\n  bank: {pool: job, domains: [\"*.example.com\"]}\n  risk: {pool: batch}\n  people: {pool: apps}\n",
		"3.yaml": "platform: {clusterName: other, nodeClass: {kwok: {}}}\n",
	}
	d, problems := manifest.Parse("1.yaml", []byte(files["1.yaml"]))
	for _, name := range []string{"2.yaml", "3.yaml"} {
		more, found := manifest.Parse(name, []byte(files[name]))
		d.Add(more)
		problems = append(problems, found...)
	}
	_, found := Build(d)
	expectProblems(t, append(problems, found...).Sorted(),
		"2.yaml:2: pools.jobs: pool jobs is declared twice (1.yaml:7); keep one of them",
		"2.yaml:3: pools.batch.ttl: the number 1 is not allowed; write a duration with its unit, such as 30s, 10m or 168h, or Never",
		"2.yaml:5: tenants.bank.domains[0]: *.example.com overlaps with a.example.com of tenant shop (1.yaml:9); a domain belongs to one tenant",
		"2.yaml:5: tenants.bank.pool: there is no pool job; did you mean jobs?",
		"2.yaml:6: tenants.risk.pool: pool batch (2.yaml:3) is refused itself; correct that first",
		"3.yaml:1: platform: a cluster has one platform, and it is declared already (1.yaml:1); keep one of them",
	)
	if got := len(d.Objects()); got != 9 {
		t.Errorf("%d objects, want 9", got)
	}
}

// TestAllowances expects the tenant's own list to replace the platform's, the platform's list
// to replace croft's, and an empty list to count as set.
func TestAllowances(t *testing.T) {
	_, e := parseValid(t, `platform:
  clusterName: demo
  nodeClass: {kwok: {}}
  tenantDefaults:
    policy: {serviceTypes: [ClusterIP, LoadBalancer], priorityClasses: [batch], priorityClass: {default: batch}, maxTerminationGracePeriodSeconds: 60, doNotDisrupt: true,
      images: {latest: Forbidden}, runtimeClass: {force: gvisor}, seccomp: RuntimeDefault, hostUsers: Forbidden,
      serviceAccountToken: OnRequest, trial: [images]}
pools: {apps: {}}
tenants:
  plain: {pool: apps}
  special:
    pool: apps
    policy: {serviceTypes: [NodePort], priorityClasses: [], priorityClass: {}, registries: [ghcr.io/special], doNotDisrupt: false,
      images: {digest: Required}, runtimeClass: {}, seccomp: Any, hostUsers: Allowed,
      serviceAccountToken: Automatic, trial: []}
`)
	plain := builtinAllowances()
	plain.ServiceTypes = []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeLoadBalancer}
	plain.PriorityClasses, plain.PriorityClass = []string{"batch"}, &v1alpha1.PodPriorityClass{Default: "batch"}
	plain.MaxTerminationGracePeriodSeconds, plain.DoNotDisrupt = ptr.To[int64](60), ptr.To(true)
	plain.Images, plain.RuntimeClass = &v1alpha1.Images{Latest: "Forbidden"}, &v1alpha1.PodRuntimeClass{Force: "gvisor"}
	plain.Seccomp, plain.HostUsers, plain.ServiceAccountToken = "RuntimeDefault", "Forbidden", "OnRequest"
	plain.Trial = []string{"images"}
	special := plain
	special.Images, special.RuntimeClass = &v1alpha1.Images{Digest: "Required"}, &v1alpha1.PodRuntimeClass{}
	special.Seccomp, special.HostUsers, special.ServiceAccountToken = "Any", "Allowed", "Automatic"
	special.Trial, special.PriorityClass = []string{}, &v1alpha1.PodPriorityClass{}
	special.ServiceTypes = []corev1.ServiceType{corev1.ServiceTypeNodePort}
	special.PriorityClasses, special.Registries, special.DoNotDisrupt = []string{}, []string{"ghcr.io/special"}, ptr.To(false)
	for name, want := range map[string]v1alpha1.Allowances{"plain": plain, "special": special} {
		if diff := cmp.Diff(want, e.FindTenant(name).Allowances); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestBuiltinQuota expects a limit on every kind that could fill the control plane, and none
// that requires a setting in every pod.
func TestBuiltinQuota(t *testing.T) {
	quota := BuiltinQuota(&v1alpha1.PlatformSpec{})
	for _, name := range []corev1.ResourceName{"pods", "secrets", "configmaps", "count/jobs.batch", "count/cronjobs.batch", "count/deployments.apps"} {
		if q := quota[name]; q.Sign() <= 0 {
			t.Errorf("any number of %s", name)
		}
	}
	for _, name := range listWritableKinds(&v1alpha1.PlatformSpec{Addons: []v1alpha1.Addon{
		{APIGroup: "argoproj.io", Resources: []string{"rollouts", "rollouts/scale"}}, {APIGroup: "monitoring.coreos.com", Resources: []string{"podmonitors"}, ReadOnly: true},
	}}) {
		if _, known := quota[name]; !known && name != "count/rollouts.argoproj.io" {
			t.Errorf("any number of %s", name)
		}
		if strings.Contains(string(name), "monitors") || strings.Contains(string(name), "events") {
			t.Errorf("%s is not for tenants to write, or for quotas to count", name)
		}
	}
	for _, name := range []corev1.ResourceName{"count/pods", "count/leases.coordination.k8s.io", "count/certificates.cert-manager.io", "count/resourceclaimtemplates.resource.k8s.io"} {
		if q := quota[name]; q.Sign() <= 0 {
			t.Errorf("any number of %s", name)
		}
	}
	for name := range quota {
		if strings.Contains(string(name), "cpu") || strings.Contains(string(name), "memory") {
			t.Errorf("every container would need %s", name)
		}
	}
	for _, test := range []struct {
		name, defaults, own string
		want                int
	}{
		{"neither sets a quota", "", "", len(quota)},
		{"the platform's", "quota: {pods: 7}", "", 1},
		{"the tenant's", "quota: {pods: 7}", "quota: {pods: 1, services: 1}", 2},
		{"the platform lifts it", "quota: {}", "", 0},
		{"the tenant lifts it", "", "quota: {}", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, e := parseValid(t, "platform: {clusterName: demo, nodeClass: {kwok: {}}, tenantDefaults: {"+test.defaults+"}}\n"+
				"pools: {a: {}}\ntenants: {shop: {pool: a, namespaces: [x, y], "+test.own+"}}\n")
			shop := e.FindTenant("shop")
			if len(shop.Quota) != test.want || len(shop.Shares["x"]) != test.want || len(shop.Shares["y"]) != test.want {
				t.Errorf("quota %v, shares %v", shop.Quota, shop.Shares)
			}
		})
	}
}

func TestParseReportsEverythingAtOnce(t *testing.T) {
	_, _, problems := parseAndBuild(`platform: {clusterName: demo, nodeClass: {kwok: {}}}
pools:
  jobs: {emptyTTL: 10, colour: red}
  apps: {}
tenants:
  kube-shop: {pool: apps}
  build: {pool: jobs}
  web: {pool: aps}
---
apiVersion: croft.dev/v1alpha1
kind: Tenant
metadata: {name: web}
spec: {pool: apps}
`)
	expectProblems(t, problems,
		"croft.yaml:3: pools.jobs.colour: there is no such field; the fields are budgets, consolidation, costCode, emptyTTL, instances, limits, nodeClass, secondaryNetworks, startupTaints, tags, terminationGracePeriod, ttl, waitForNetworks and weight",
		"croft.yaml:3: pools.jobs.emptyTTL: the number 10 is not allowed; write a duration with its unit, such as 30s, 10m or 168h, or Never",
		"croft.yaml:6: tenants.kube-shop: kube-shop is the name of a namespace of Kubernetes; choose another name for the tenant",
		"croft.yaml:7: tenants.build.pool: pool jobs (croft.yaml:3) is refused itself; correct that first",
		"croft.yaml:8: tenants.web.pool: there is no pool aps; did you mean apps?",
		"croft.yaml:10: Tenant/web: tenant web is declared twice (croft.yaml:8); keep one of them",
	)
}

func TestNothingIsMissingFromAFileThatCannotBeRead(t *testing.T) {
	_, _, problems := parseAndBuild("tenants:\n  shop: {pool: jobs}\n---\npools: [\n")
	expectProblems(t, problems, "croft.yaml:4: not YAML: did not find expected node content")
}

func TestAliasesAndMergeKeys(t *testing.T) {
	_, e := parseValid(t, base+`
pools:
  apps: &apps
    emptyTTL: 10m
    instances: &instances {instanceTypes: [t3a.large]}
  jobs:
    <<: *apps
    emptyTTL: 5m
  more:
    <<: [{emptyTTL: 3m}, *apps]
    instances: *instances
`)
	for name, want := range map[string]string{"apps": "10m", "jobs": "5m", "more": "3m"} {
		p := e.FindPool(name)
		if string(p.EmptyTTL) != want || len(p.Instances.InstanceTypes) != 1 {
			t.Errorf("pool %s: emptyTTL %s, instances %v", name, p.EmptyTTL, p.Instances)
		}
	}
}

func TestJSON(t *testing.T) {
	_, e := parseValid(t, "{\n\t\"platform\": {\"clusterName\": \"demo\", \"nodeClass\": {\"kwok\": {}}},\n\t\"pools\": {\"jobs\": null}\n}\n")
	if e.FindPool("jobs") == nil {
		t.Error("no pool jobs")
	}
}
