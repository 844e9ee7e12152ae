package estate_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// TestCheckAgreesWithServer compares `croft check` with a real API server that has
// Karpenter's CRDs: the server must accept each object of a valid estate, and refuse an estate
// that check refuses for a reason that the server also validates. The reasons for which check
// refuses estates that the server accepts, but that cannot work, are listed.
func TestCheckAgreesWithServer(t *testing.T) {
	sandbox.EndToEnd(t)
	server := newDryRunServer(t)
	for _, c := range agreements {
		t.Run(c.name, func(t *testing.T) {
			if server.compareEstate(t, c.pool, c.tenant, c.broken...) && c.broken != nil {
				t.Errorf("check accepts this; it should report that it %s", c.broken)
			}
		})
	}
	for _, c := range platformAgreements {
		t.Run(c.name, func(t *testing.T) {
			if server.compareAll(t, c.platform, `{}`, `{}`, true, c.broken...) && c.broken != nil {
				t.Errorf("check accepts this; it should report that it %s", c.broken)
			}
		})
	}
	t.Run("random", func(t *testing.T) {
		good, refused, estates := 0, 0, countEstates()
		for seed := range estates {
			from := rand.New(rand.NewPCG(seed, 0))
			pool, tenant := generatePool(from), generateTenant(from)
			if seed%3 == 0 {
				pool, tenant = generateClass(from), "{}"
			}
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				if server.compareEstate(t, pool, tenant, brokenAnyhow...) {
					good++
				} else {
					refused++
				}
			})
		}
		t.Logf("%d estates were good, %d were refused", good, refused)
		if good < int(estates/10) || refused < int(estates/10) {
			t.Errorf("%d good and %d refused estates prove little: change the values that are chosen from", good, refused)
		}
	})
}

// agreements set one field each. broken lists the messages with which check refuses objects
// that the server accepts.
var agreements = []struct {
	name, pool, tenant string
	broken             []string
}{
	{"nothing special", `{}`, `{}`, nil},
	{"quota of what does not exist", `{}`, `{quota: {cpus: 4}}`, nil},
	{"quota of a plural", `{}`, `{quota: {pod: 4}}`, nil},
	{"quota of half a pod", `{}`, `{quota: {pods: 1500m}}`, nil},
	{"quota of half an object", `{}`, `{quota: {count/deployments.apps: 500m}}`, nil},
	{"quota of everything", `{}`, `{quota: {cpu: 4, requests.memory: 1Gi, limits.ephemeral-storage: 1Gi, pods: 3, count/deployments.apps: 2, requests.nvidia.com/gpu: 1,
		gold.storageclass.storage.k8s.io/requests.storage: 1Gi, services.loadbalancers: 1, hugepages-2Mi: 4Mi, requests.hugepages-1Gi: 1Gi, requests.storage: 1Ti}}`, nil},
	{"quota with a bad name", `{}`, `{quota: {"count/Deployments apps": 1}}`, nil},
	{"quota with a capital prefix", `{}`, `{quota: {"Example.com/gpu": 1}}`, nil},
	{"limits of what does not exist", `{}`, `{limits: {default: {foo: 1}}}`, nil},
	{"limits of pods", `{}`, `{limits: {max: {pods: 1}}}`, nil},
	{"limits of requests", `{}`, `{limits: {max: {requests.cpu: 1}}}`, nil},
	{"limits of requests of a device", `{}`, `{limits: {max: {requests.nvidia.com/gpu: 1}}}`, nil},
	{"limits of a device", `{}`, `{limits: {max: {nvidia.com/gpu: 1}}}`, nil},
	{"default and request of a device differ", `{}`, `{limits: {default: {nvidia.com/gpu: 2}, defaultRequest: {nvidia.com/gpu: 1}}}`, nil},
	{"request and greatest of a device differ", `{}`, `{limits: {max: {nvidia.com/gpu: 2}, defaultRequest: {nvidia.com/gpu: 1}}}`, nil},
	{"limits of huge pages differ", `{}`, `{limits: {max: {hugepages-2Mi: 4Mi}, defaultRequest: {hugepages-2Mi: 2Mi}}}`, nil},
	{"an address with a mask", `{}`, `{network: {egress: Restricted, allowCIDRs: [10.0.0.1/8]}}`, nil},
	{"an IPv6 address with a mask", `{}`, `{network: {egress: Restricted, allowCIDRs: ["fd00::1/64"]}}`, nil},
	{"an IPv6 network in capitals", `{}`, `{network: {egress: Restricted, allowCIDRs: ["FD00:0::/64"]}}`, nil},
	{"an IPv4 address in IPv6", `{}`, `{network: {egress: Restricted, allowCIDRs: ["::ffff:10.0.0.0/104"]}}`, nil},
	{"a schedule in words", `{budgets: [{nodes: "0", schedule: every day, duration: 8h}]}`, `{}`, nil},
	{"a schedule at 25 o'clock", `{budgets: [{nodes: "0", schedule: 0 25 * * *, duration: 8h}]}`, `{}`, []string{"is not a cron schedule"}},
	{"a schedule every day", `{budgets: [{nodes: "0", schedule: "@daily", duration: 8h}]}`, `{}`, nil},
	{"a schedule by intervals", `{budgets: [{nodes: "0", schedule: "@every 1h", duration: 8h}]}`, `{}`, nil},
	{"a schedule with a time zone", `{budgets: [{nodes: "0", schedule: "TZ=Europe/Berlin 0 9 * * *", duration: 8h}]}`, `{}`, []string{"is not a cron schedule"}},
	{"a schedule that never comes", `{budgets: [{nodes: "0", schedule: "0 0 30 2 *", duration: 8h}]}`, `{}`, []string{"never occurs"}},
	{"a budget of no time", `{budgets: [{nodes: "0", schedule: "@daily", duration: 0m}]}`, `{}`, nil},
	{"a budget of hours and minutes", `{budgets: [{nodes: "0", schedule: "@daily", duration: 90m}]}`, `{}`, nil},
	{"limits of a pool in a plural", `{limits: {cpus: 10}}`, `{}`, []string{"limits nothing"}},
	{"limits of a pool as of a quota", `{limits: {requests.cpu: 10}}`, `{}`, []string{"limits nothing"}},
	{"limits of a pool on all that nodes have", `{limits: {cpu: 10, memory: 1Ti, pods: 100, ephemeral-storage: 1Ti, nodes: 5, nvidia.com/gpu: 8, hugepages-2Mi: 1Gi}}`, `{}`, nil},
	{"nodes that expire at once", `{ttl: 0s}`, `{}`, []string{"would be replaced as soon as it is created"}},
	{"nodes that are emptied at once", `{emptyTTL: 0s}`, `{}`, nil},
	{"startup taints", `{startupTaints: [{key: node.cilium.io/agent-not-ready, value: "true", effect: NoExecute}, {key: Agent_1.x, effect: NoSchedule}, {key: Agent_1.x, effect: PreferNoSchedule}]}`, `{}`, nil},
	{"a startup taint without a valid key", `{startupTaints: [{key: A.example.org/agent-, effect: NoSchedule}]}`, `{}`, nil},
	{"a startup taint with a bad value", `{startupTaints: [{key: agent, value: ready-, effect: NoSchedule}]}`, `{}`, nil},
	{"a startup taint of another effect", `{startupTaints: [{key: agent, effect: Never}]}`, `{}`, nil},
	{"a startup taint twice", `{startupTaints: [{key: agent, effect: NoSchedule}, {key: agent, value: b, effect: NoSchedule}]}`, `{}`, []string{"leave one of them out"}},
	{"a startup taint of Karpenter's", `{startupTaints: [{key: karpenter.sh/disrupted, effect: NoSchedule}]}`, `{}`, []string{"reserved for Karpenter"}},
	{"a label of Karpenter's by its ending", `{instances: {requirements: [{key: my-karpenter.sh/size, operator: Exists}]}}`, `{}`, nil},
	{"a number beyond counting", `{instances: {requirements: [{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ["99999999999999999999"]}]}}`, `{}`, nil},
	{"a node class of no group", `{nodeClass: {ref: {group: a/b, kind: K, name: n}}}`, `{}`, nil},
}

// platformAgreements set one field of the platform each. All objects of the platform are
// compared, including the admission policies.
var platformAgreements = []struct {
	name, platform string
	broken         []string
}{
	{"the default", `{}`, nil},
	{"a key without a domain", `{nodePoolKey: node-pool}`, nil},
	{"a key of two dots", `{nodePoolKey: a..b/pool}`, nil},
	{"a key of a domain that ends in a dash", `{nodePoolKey: a-.b/pool}`, nil},
	{"a key of a domain as Karpenter's", `{nodePoolKey: mykarpenter.sh/pool}`, nil},
	{"a key of Kubernetes", `{nodePoolKey: kubernetes.io/hostname}`, nil},
	{"a node class of no group", `{nodeClass: {ref: {group: a/b, kind: K, name: n}}}`, nil},
	{"DNS by IPv6", `{clusterDNS: [10.100.0.10, "FD00::A"]}`, nil},
	{"DNS by IPv4 in IPv6", `{clusterDNS: ["::ffff:10.100.0.10"]}`, nil},
	{"DNS at a metadata address", `{clusterDNS: [169.254.169.254]}`, nil},
	{"DNS pods", `{network: {dnsPods: [{namespace: dns, labels: {app: coredns, example.org/tier: ""}, port: 1053}, {namespace: dns, labels: {app: cache}}]}}`, nil},
	{"DNS pods by no label", `{network: {dnsPods: [{namespace: dns, labels: {"a b": c}}]}}`, nil},
	{"names with quotes", `{admins: ["o'hara \"x\" \\ $(y)"], finalizers: ["a'b\"c\\"], groupPrefix: "o'\"\\:"}`, nil},
	{"services everywhere", `{network: {platformNamespaces: [ingress, monitoring]}, tenantDomain: tenants.example.org}`, nil},
	{"the longest domain", `{tenantDomain: ` + strings.Repeat("a123456789.", 16) + `a1234567.org}`, nil},
	{"a default quota of what does not exist", `{tenantDefaults: {quota: {cpus: 1}}}`, nil},
	{"default limits of what does not exist", `{tenantDefaults: {limits: {max: {foo: 1}}}}`, nil},
	{"no default quota", `{tenantDefaults: {quota: {}, limits: {}}}`, nil},
	{"classes with quotes", `{tenantDefaults: {policy: {priorityClasses: ["a'b\"c\\"], storageClasses: [""]}}}`, nil},
}

// brokenAnyhow lists all messages with which check refuses objects that the server accepts.
var brokenAnyhow = []string{"is not a cron schedule", "never occurs", "limits nothing", "would be replaced as soon as it is created",
	"no instance can become a node", "must not be below zero", "is more than the", "is not a page size",
	"cannot be the value of a label", "cannot be kept on nodes without a cloud", "the tag karpenter.sh/x is reserved for Karpenter"}

// countEstates returns the number of random estates.
func countEstates() uint64 {
	if sandbox.All() {
		return 600
	}
	return 300
}

func generatePool(from *rand.Rand) string {
	return generateFields(from,
		"limits", func() string {
			return generateMapping(from, []string{"cpu", "memory", "pods", "nodes", "nvidia.com/gpu", "cpus", "requests.cpu"}, quantities)
		},
		"ttl", pickOne(from, "0s", "1m", "0h0m", "168h", "Never", "1h30m"),
		"emptyTTL", pickOne(from, "0s", "1m", "1h0m0s", "Never"),
		"terminationGracePeriod", pickOne(from, "0s", "24h", "Never"),
		"weight", pickOne(from, "1", "100"),
		"costCode", pickOne(from, "org1", "a.b_c-D"),
		"budgets", func() string {
			return "[{nodes: " + pickOne(from, `"0"`, `"10%"`, `"100%"`, `"99999"`)() +
				", schedule: " + pickOne(from, `"@daily"`, `"@every 1h"`, `"0 9 * * mon-fri"`, `"0 25 * * *"`, `"every day"`, `"* * * * * *"`, `"0 9 * *"`, `"@weekly 1"`, `"*/5 1,2 1-3 * ?"`, `"@never"`, `"TZ=UTC 0 9 * * *"`, `"a b c d e"`)() +
				", duration: " + pickOne(from, "8h", "90m", "0m", "1h1h", "0h30m", "100h")() + "}]"
		},
		"instances", func() string {
			return "{requirements: [{key: " + pickOne(from, "karpenter.k8s.aws/instance-family", "gpu", "x.karpenter.sh/y", "mykarpenter.sh/y", "mykarpenter.sh", "a..b/c", "A/b", "kubernetes.io/os", "node.kubernetes.io/instance-type", "example.org/a/b", "-a")() +
				pickOne(from, ", operator: Exists", ", operator: DoesNotExist", ", operator: In, values: [a]", ", operator: In, values: [a, b], minValues: 2", ", operator: In, values: [a], minValues: 2",
					`, operator: Gt, values: ["3"]`, `, operator: Lt, values: ["99999999999999999999"]`, ", operator: NotIn, values: [-a]", ", operator: NotIn, values: [a], minValues: 3")() + "}]}"
		},
		"nodeClass", func() string {
			return pickOne(from, "{ref: {group: g, kind: K, name: n}}", "{ref: {group: a/b, kind: K, name: n}}", "{kwok: {}}", "{aws: {role: r}}")()
		},
		"tags", pickOne(from, "{Team: shop}", "{team.name: a b}", `{"a b": c}`, "{karpenter.sh/x: y}"),
	)
}

// generateClass returns a random node class of AWS.
func generateClass(from *rand.Rand) string {
	ebs := func() string {
		return "{deviceName: " + pickOne(from, "/dev/xvda", "xvda")() + ", ebs: " + generateFields(from,
			"volumeSize", pickOne(from, "20Gi", "1500m", "0.5Gi", "64Ti", "65Ti", "100G", "59001Gi"), "volumeType", pickOne(from, "gp3", "io2", "standard"),
			"iops", pickOne(from, "0", "3000", "1000000"), "throughput", pickOne(from, "125", "1", "5000"), "snapshotID", pickOne(from, "snap-1", "x"),
			"encrypted", pickOne(from, "true", "false"), "kmsKeyID", pickOne(from, "alias/nodes", "a b"), "volumeInitializationRate", pickOne(from, "100", "1", "301")) + "}"
	}
	terms := pickOne(from, "[{id: subnet-1}]", "[{id: sg-1}]", "[{id: x}]", "[{tags: {a: b}}]", `[{tags: {a: ""}}]`, `[{tags: {"": b}}]`, "[{id: subnet-1, tags: {a: b}}]", "[{name: nodes}]", "[{id: sg-1, name: nodes}]", "[{}]")
	class := generateFields(from,
		"amiAlias", pickOne(from, "al2023@latest", "al2023@v20250101", "al2023", "bottlerocket@v1.20.0", "windows2022@latest", "al3@latest", "al2@v20250101"),
		"amiFamily", pickOne(from, "AL2023", "AL2", "Bottlerocket", "Custom", "Windows2022"),
		"amiSelectorTerms", pickOne(from, "[{id: ami-1}]", "[{id: x}]", "[{alias: al2023@latest}]", "[{alias: al2023@latest}, {id: ami-1}]", "[{name: n, owner: self}]", "[{owner: self}]", "[{tags: {a: b}}]", "[{ssmParameter: /a}]", "[{id: ami-1, name: n}]"),
		"subnetSelectorTerms", terms, "securityGroupSelectorTerms", terms,
		"capacityReservationSelectorTerms", pickOne(from, "[{id: cr-1}]", "[{id: x}]", "[{tags: {a: b}, ownerID: \"123456789012\"}]", "[{ownerID: \"12\"}]", "[{instanceMatchCriteria: open}]"),
		"tags", pickOne(from, "{Team: shop}", `{"": a}`, `{a: ""}`, "{kubernetes.io/cluster/demo: owned}", "{karpenter.sh/nodepool: a}", "{eks:eks-cluster-name: a}"),
		"userData", pickOne(from, "echo", `"echo\n"`),
		"blockDeviceMappings", func() string { return "[" + ebs() + pickOne(from, "", ", "+ebs())() + "]" },
		"instanceStorePolicy", pickOne(from, "RAID0", "RAID1"),
		"metadataOptions", pickOne(from, "{httpPutResponseHopLimit: 2}", "{httpPutResponseHopLimit: 65}", "{httpTokens: optional}", "{httpTokens: none}"),
		"kubelet", func() string {
			return generateFields(from, "clusterDNS", pickOne(from, "[10.0.0.2]", "[x]", `["::ffff:10.0.0.2"]`), "maxPods", pickOne(from, "0", "110", "-1"), "podsPerCore", pickOne(from, "0", "10"),
				"systemReserved", pickOne(from, "{cpu: 100m}", "{cpus: 1}", "{cpu: -1}", "{memory: 0}", "{pid: 100}"), "kubeReserved", pickOne(from, "{cpu: 100m}", "{memory: 1e3}", "{memory: -1Gi}"),
				"evictionHard", pickOne(from, "{memory.available: 5%}", "{memory.available: 5}", "{memory: 5%}", "{memory.available: 101%}", "{nodefs.available: 10Gi}", "{nodefs.available: 1.5%}"),
				"evictionSoft", pickOne(from, "{memory.available: 5%}", "{nodefs.available: 1Gi}"), "evictionSoftGracePeriod", pickOne(from, "{memory.available: 1m}", "{memory.available: 90}", "{nodefs.available: 1h30m}"),
				"imageGCHighThresholdPercent", pickOne(from, "80", "101"), "imageGCLowThresholdPercent", pickOne(from, "70", "90"), "cpuCFSQuota", pickOne(from, "true", "false"))
		})
	return "{nodeClass: {aws: {" + pickOne(from, "role: r", "instanceProfile: p", `role: ""`)() + ", " + strings.TrimPrefix(class, "{") + "}}"
}

func generateTenant(from *rand.Rand) string {
	quotas := []string{"cpu", "memory", "pods", "requests.cpu", "limits.memory", "requests.storage", "services", "count/deployments.apps", "count/x", "requests.nvidia.com/gpu",
		"nvidia.com/gpu", "gold.storageclass.storage.k8s.io/requests.storage", "hugepages-2Mi", "requests.hugepages-2Mi", "cpus", "storage", "deployments", "limits.nvidia.com/gpu", "Example.com/a", "kubernetes.io/batch-cpu", "a/b/c", "requests.ephemeral-storage"}
	containers := []string{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "pods", "storage", "requests.cpu", "foo", "requests.nvidia.com/gpu", "Example.com/a", "kubernetes.io/batch-cpu"}
	amounts := []string{"1", "2", "4", "4Mi", "500m"}
	return generateFields(from,
		"quota", func() string { return generateMapping(from, quotas, quantities) },
		"limits", func() string {
			few := func() string { return generateMapping(from, containers, amounts) }
			return generateFields(from, "default", few, "defaultRequest", few, "max", few, "min", few)
		},
		"network", func() string {
			return "{egress: Restricted, allowCIDRs: [" + pickOne(from, "10.0.0.0/8", "10.0.0.1/8", "0.0.0.0/2", "192.168.1.7/32", `"fd00::/64"`, `"fd00::1/64"`, `"FD00::/64"`, `"::ffff:10.0.0.0/104"`, `"fd00:0:0::/48"`)() + "]}"
		},
		"costCode", pickOne(from, "org1", "a.b_c-D"),
	)
}

var quantities = []string{"0", "1", "4", "1500m", "1Gi", "1e3", "0.0001", "100E", "1n"}

// generateFields returns a mapping with a random subset of the fields, which are given as names and
// values.
func generateFields(from *rand.Rand, nameAndValue ...any) string {
	var some []string
	for i := 0; i < len(nameAndValue); i += 2 {
		if from.IntN(3) == 0 {
			some = append(some, nameAndValue[i].(string)+": "+nameAndValue[i+1].(func() string)())
		}
	}
	return "{" + strings.Join(some, ", ") + "}"
}

func generateMapping(from *rand.Rand, keys, values []string) string {
	entries := map[string]string{}
	for range 1 + from.IntN(2) {
		entries[pickOne(from, keys...)()] = pickOne(from, values...)()
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		all = append(all, fmt.Sprintf("%q: %q", key, entries[key]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func pickOne(from *rand.Rand, values ...string) func() string {
	return func() string { return values[from.IntN(len(values))] }
}

// dryRunServer sends objects to an API server in dry runs. It remembers accepted objects.
type dryRunServer struct {
	client   client.Client
	accepted map[string]bool
}

func newDryRunServer(t *testing.T) *dryRunServer {
	t.Helper()
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	if err := cluster.InstallCRDs(t.Context(), sandbox.KarpenterAWS); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	return &dryRunServer{c, map[string]bool{}}
}

// compareEstate reports whether check accepts an estate, and fails the test if the server
// disagrees.
func (j *dryRunServer) compareEstate(t *testing.T, pool, tenant string, broken ...string) bool {
	t.Helper()
	return j.compareAll(t, `{}`, pool, tenant, false, broken...)
}

// compareAll is like compareEstate, with the given platform and, if all is set, all of its objects.
func (j *dryRunServer) compareAll(t *testing.T, platform, pool, tenant string, all bool, broken ...string) bool {
	t.Helper()
	objectsOf := func(e *estate.Estate) []client.Object {
		if all {
			return wall.Objects(e)
		}
		return append(wall.PoolObjects(&e.Platform, e.Pools[0]), wall.TenantObjects(&e.Platform, e.Tenants[0])...)
	}
	if !strings.Contains(platform, "nodeClass:") {
		platform = "{nodeClass: {kwok: {}}, " + strings.TrimPrefix(platform, "{")
	}
	file := "platform: {clusterName: demo, " + strings.TrimPrefix(platform, "{") + "\npools: {jobs: " + pool + "}\ntenants: {shop: {pool: jobs, " + strings.ReplaceAll(strings.TrimPrefix(tenant, "{"), "\t", " ") + "}\n"
	declared, problems := manifest.Parse("croft.yaml", []byte(file))
	if len(problems) > 0 {
		return false // refused by croft's CRDs, which the server has, too
	}
	e, problems := estate.Build(declared)
	if len(problems) == 0 {
		for _, o := range objectsOf(e) {
			if err := j.dryRun(t, o); err != nil {
				t.Errorf("check calls this good, and the server refuses it: %v\n%s", err, file)
			}
		}
		return true
	}
	for _, o := range objectsOf(buildUnchecked(t, declared)) {
		if j.dryRun(t, o) != nil {
			return false
		}
	}
	for _, p := range problems {
		if slices.ContainsFunc(broken, func(why string) bool { return strings.Contains(p.Message, why) }) {
			return false
		}
	}
	t.Errorf("check refuses what the server accepts, and there is no reason listed:\n%v\n%s", problems, file)
	return false
}

// buildUnchecked returns the estate that a declaration would result in without most of the checks.
func buildUnchecked(t *testing.T, d *manifest.Declaration) *estate.Estate {
	t.Helper()
	good, _ := manifest.Parse("croft.yaml", []byte("platform: {clusterName: demo, nodeClass: {kwok: {}}}\npools: {jobs: {}}\ntenants: {shop: {pool: jobs}}\n"))
	e, problems := estate.Build(good)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	pool, tenant, spec := e.FindPool("jobs"), e.FindTenant("shop"), d.Tenants[0].Spec
	e.Platform.PlatformSpec = d.Platforms[0].Spec
	pool.Class = e.Platform.NodeClass
	if quota := e.Platform.TenantDefaults.Quota; quota != nil {
		tenant.Quota, tenant.Shares = quota, map[string]corev1.ResourceList{"shop": quota}
	}
	if limits := e.Platform.TenantDefaults.Limits; limits != nil {
		tenant.Limits = limits
	}
	pool.PoolSpec = d.Pools[0].Spec
	if class := pool.NodeClass; class != nil {
		pool.Class = *class
	}
	if spec.Quota != nil {
		tenant.Quota, tenant.Shares = spec.Quota, map[string]corev1.ResourceList{"shop": spec.Quota}
	}
	if spec.Limits != nil {
		tenant.Limits = spec.Limits
	}
	tenant.Egress, tenant.AllowCIDRs = spec.Network.Egress, spec.Network.AllowCIDRs
	return e
}

func (j *dryRunServer) dryRun(t *testing.T, o client.Object) error {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if j.accepted[string(text)] {
		return nil
	}
	u := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(content, "status")
	err = j.client.Patch(t.Context(), u, client.Apply, client.DryRunAll, client.FieldOwner("croft"), client.FieldValidation("Strict")) //nolint:staticcheck // of a dry run nothing is to be had back
	if err == nil {
		j.accepted[string(text)] = true
	}
	return err
}
