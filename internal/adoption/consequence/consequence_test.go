package consequence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/adoption/consequence"
	"croft.dev/croft/internal/adoption/move"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/manifest"
	"croft.dev/croft/internal/operate/drift"
	"croft.dev/croft/internal/walls/wall"
)

const before = `
platform:
  clusterName: demo
  tenantDomain: tenants.example.org
  nodeClass: {kwok: {}}
  admins: [platform-admins, oncall]
  auditors: [ci]
  proxy: {}
  elevation: {}
pools:
  apps: {instances: {instanceTypes: [t3a.large, t3a.xlarge]}, costCode: org1, consolidation: WhenEmpty}
  spare: {}
tenants:
  shop:
    pool: apps
    namespaces: [shop, shop-test]
    access: [{group: devs, role: operator}, {group: support, role: viewer}, {user: jane, role: viewer}]
  bank: {pool: apps, deletion: Delete, access: [{group: bankers, role: operator}]}
`

func buildEstate(t *testing.T, text string) *estate.Estate {
	t.Helper()
	d, problems := manifest.Parse("croft.yaml", []byte(text))
	e, more := estate.Build(d)
	if e == nil || len(problems)+len(more) > 0 {
		t.Fatalf("%v %v\n%s", problems, more, text)
	}
	return e
}

// findPoolObjects returns the NodePool and the class of a pool.
func findPoolObjects(e *estate.Estate) func(*estate.Pool) drift.Pool {
	return func(p *estate.Pool) drift.Pool { return drift.FindPool(wall.PoolObjects(&e.Platform, p)) }
}

// makeFacts returns two nodes of pool apps, and pods of both tenants on them.
func makeFacts(e *estate.Estate) consequence.Facts {
	f := consequence.Facts{Pools: map[string]consequence.PoolFacts{}, Nodes: move.Nodes{"a": "apps", "b": "apps"}}
	pool := consequence.PoolFacts{Live: findPoolObjects(e)(e.FindPool("apps"))}
	for _, t := range []string{"t3a.large", "t3a.xlarge"} {
		pool.Claims = append(pool.Claims, karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{
			corev1.LabelInstanceTypeStable: t, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", karpenterv1.CapacityTypeLabelKey: "on-demand",
		}}})
	}
	f.Pools["apps"] = pool
	for namespace, tenant := range map[string]string{"shop": "shop", "shop-test": "shop", "bank": "bank"} {
		n := corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{v1alpha1.TenantLabel: tenant}}}
		n.Annotations = map[string]string{v1alpha1.CreatedAnnotation: "true"}
		f.Namespaces = append(f.Namespaces, n)
		for i := range 3 {
			f.Pods = append(f.Pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint(i)}, Spec: corev1.PodSpec{NodeName: "a"}})
		}
	}
	return f
}

// TestCompare makes one change of an estate, and expects exactly its effects on existing nodes,
// pods and users.
func TestCompare(t *testing.T) {
	const restart = ": their pods restart on new nodes, as the pool's budgets allow"
	const compared = ", which Karpenter compares with each node)"
	for name, test := range map[string]struct {
		was, becomes string
		want         []string
	}{
		"nothing":            {"", "", nil},
		"costCode":           {"costCode: org1", "costCode: org2", []string{"replaces 2 nodes of pool apps (drift: costCode" + compared + restart}},
		"costCode and ttl":   {"costCode: org1", "ttl: 24h", []string{"replaces 2 nodes of pool apps (drift: costCode, ttl" + compared + restart}},
		"tags":               {"costCode: org1", "costCode: org1, tags: {a: b}", []string{"replaces 2 nodes of pool apps (drift: tags" + compared + restart}},
		"a startup taint":    {"costCode: org1", "costCode: org1, startupTaints: [{key: a, effect: NoSchedule}]", []string{"replaces 2 nodes of pool apps (drift: startupTaints" + compared + restart}},
		"nodePoolKey":        {"proxy: {}", "proxy: {}\n  nodePoolKey: node-pool", []string{"replaces 2 nodes of pool apps (drift: nodePoolKey" + compared + restart}},
		"a grace period":     {"costCode: org1", "costCode: org1, terminationGracePeriod: 1h", []string{"replaces 2 nodes of pool apps (drift: terminationGracePeriod" + compared + restart}},
		"an instance type":   {"[t3a.large, t3a.xlarge]", "[t3a.large]", []string{"replaces 1 node of pool apps (drift: they no longer match the pool's requirements)" + restart}},
		"held by a budget":   {"costCode: org1", `costCode: org2, budgets: [{nodes: "0"}]`, []string{"2 nodes of pool apps would be replaced (drift: costCode, which Karpenter compares with each node), but a budget prevents it: only new nodes match the declaration"}},
		"consolidation":      {"consolidation: WhenEmpty", "consolidation: WhenEmptyOrUnderutilized", []string{"pods of pool apps restart as Karpenter moves them to fewer nodes (consolidation)"}},
		"limits":             {"costCode: org1", `costCode: org1, limits: {cpu: "4"}`, nil},
		"a pool without one": {"spare: {}", "spare: {costCode: org1}", nil},
		"another pool": {"shop:\n    pool: apps", "shop:\n    pool: spare",
			[]string{"6 pods of tenant shop stay on nodes of pool apps until re-created: croft move tenant shop"}},
		"a second pool":    {"shop:\n    pool: apps", "shop:\n    pools: [spare, apps]", nil},
		"two lose access":  {"{group: support, role: viewer}, {user: jane, role: viewer}", "{group: others, role: viewer}", []string{"2 users and groups lose the access to tenant shop: group support, user jane"}},
		"one loses access": {", {user: jane, role: viewer}", "", []string{"1 user or group loses the access to tenant shop: user jane"}},
		"fewer rights":     {"{group: devs, role: operator}", "{group: devs, role: viewer}", []string{"group devs has the role viewer of tenant shop from now on, and no longer operator"}},
		"more rights":      {"{group: support, role: viewer}", "{group: support, role: operator}", nil},
		"access that ends": {"{user: jane, role: viewer}", `{user: jane, role: viewer, until: "2001-01-01T00:00:00Z"}`, []string{"1 user or group loses the access to tenant shop: user jane"}},
		"a namespace": {"namespaces: [shop, shop-test]", "namespaces: [shop]",
			[]string{"namespace shop-test stays, with its 3 pods and its walls"}},
		"a namespace with Delete": {"namespaces: [shop, shop-test]", "namespaces: [shop]\n    deletion: Delete",
			[]string{"namespace shop-test is DELETED with all its objects, including its 3 pods and volume claims"}},
		"a tenant": {"  bank: {pool: apps, deletion: Delete, access: [{group: bankers, role: operator}]}\n", "",
			[]string{"1 user or group loses the access to tenant bank: group bankers", "namespace bank is DELETED with all its objects, including its 3 pods and volume claims"}},
		"the proxy":  {"  proxy: {}\n", "", []string{"croft proxy loses its rights: its users lose access to the cluster"}},
		"elevations": {"  elevation: {}\n", "", []string{"elevations can no longer be requested, and running elevations end"}},
		"an admin":   {"[platform-admins, oncall]", "[oncall]", []string{"group platform-admins is no longer among the platform admins: they may no longer declare objects"}},
		"auditors":   {"  auditors: [ci]\n", "", []string{"group ci is no longer among the platform auditors: they may no longer read the platform"}},
	} {
		t.Run(name, func(t *testing.T) {
			was := buildEstate(t, before)
			edited := strings.Replace(before, test.was, test.becomes, 1)
			if edited == before && test.was != "" {
				t.Fatalf("there is no %q", test.was)
			}
			d, problems := manifest.Parse("croft.yaml", []byte(edited))
			d.Now = metav1.Now().Time
			will, more := estate.Build(d)
			if will == nil || len(problems)+len(more) > 0 {
				t.Fatalf("%v %v", problems, more)
			}
			var got []string
			for _, c := range consequence.Compare(was, will, makeFacts(was), findPoolObjects(will)) {
				got = append(got, c.Message)
			}
			slices.Sort(test.want)
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}
