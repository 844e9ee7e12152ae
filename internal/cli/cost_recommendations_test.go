package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// savingsCluster has the objects of docs/how-to/cost.md: by path, the objects of one kind.
func savingsCluster() map[string][]string {
	all := map[string][]string{
		"/api/v1/namespaces": {
			"{metadata: {name: shop, labels: {croft.dev/tenant: shop}}}", "{metadata: {name: bank, labels: {croft.dev/tenant: bank}}}",
		},
		"/api/v1/persistentvolumes": {}, "/api/v1/services": {}, "/apis/karpenter.sh/v1/nodeclaims": {},
		"/apis/croft.dev/v1alpha1/pools": {
			"{metadata: {name: apps}, spec: {emptyTTL: 1h, consolidation: WhenEmpty, instances: {capacityTypes: [on-demand], instanceTypes: [r5.xlarge]}}}",
			"{metadata: {name: data}, spec: {emptyTTL: 1h, consolidation: WhenEmpty, instances: {capacityTypes: [on-demand], instanceTypes: [r5.xlarge]}}}",
			"{metadata: {name: jobs}, spec: {emptyTTL: Never, consolidation: WhenEmpty, instances: {capacityTypes: [on-demand]}}}",
			"{metadata: {name: web}, spec: {emptyTTL: 1h, consolidation: WhenEmpty, instances: {capacityTypes: [on-demand], instanceTypes: [m5.large]}}}",
		},
	}
	add := func(path, format string, args ...any) { all[path] = append(all[path], fmt.Sprintf(format, args...)) }
	for _, n := range []struct{ name, pool, instanceType, capacityType, cpu, memory string }{
		{"apps-1", "apps", "r5.xlarge", "on-demand", "3920m", "30310Mi"}, {"apps-2", "apps", "r5.xlarge", "on-demand", "3920m", "30310Mi"},
		{"data-1", "data", "r5.xlarge", "on-demand", "3920m", "30310Mi"}, {"data-2", "data", "r5.xlarge", "on-demand", "3920m", "30310Mi"},
		{"jobs-1", "jobs", "m5.large", "on-demand", "1930m", "7168Mi"},
		{"web-1", "web", "m5.large", "on-demand", "1930m", "7168Mi"}, {"web-2", "web", "m5.large", "on-demand", "1930m", "7168Mi"},
	} {
		add("/api/v1/nodes", "{metadata: {name: %s, labels: {karpenter.sh/nodepool: %s, node.kubernetes.io/instance-type: %s, karpenter.sh/capacity-type: %s, "+
			"kubernetes.io/arch: amd64, topology.kubernetes.io/zone: us-east-1a, topology.kubernetes.io/region: us-east-1}}, status: {allocatable: {cpu: %s, memory: %s, pods: '29'}}}",
			n.name, n.pool, n.instanceType, n.capacityType, n.cpu, n.memory)
	}
	for _, p := range []struct{ namespace, name, owner, node, cpu, memory, usedCPU, usedMemory string }{
		{"shop", "shop-0", "{kind: StatefulSet, name: shop", "apps-1", "3500m", "4Gi", "2", "3Gi"},
		{"shop", "shop-1", "{kind: StatefulSet, name: shop", "apps-2", "3500m", "4Gi", "2500m", "3Gi"},
		{"bank", "db-0", "{kind: StatefulSet, name: db", "data-1", "3", "20Gi", "420m", "3900Mi"},
		{"bank", "db-1", "{kind: StatefulSet, name: db", "data-2", "3", "20Gi", "180m", "2100Mi"},
		{"shop", "front-0", "{kind: StatefulSet, name: front", "web-1", "1500m", "6Gi", "1400m", "5Gi"},
		{"shop", "front-1", "{kind: StatefulSet, name: front", "web-2", "1500m", "6Gi", "1400m", "5Gi"},
		{"kube-system", "proxy", "{kind: DaemonSet, name: proxy", "jobs-1", "100m", "0", "10m", "20Mi"},
	} {
		add("/api/v1/pods", "{metadata: {namespace: %s, name: %s, ownerReferences: [%s, apiVersion: apps/v1, uid: a, controller: true}]}, spec: {nodeName: %s, "+
			"containers: [{name: main, resources: {requests: {cpu: %s, memory: %s}}}]}, status: {phase: Running}}", p.namespace, p.name, p.owner, p.node, p.cpu, p.memory)
		add("/apis/metrics.k8s.io/v1beta1/pods", "{metadata: {namespace: %s, name: %s}, timestamp: '2026-11-26T20:00:00Z', window: 10s, containers: [{name: main, usage: {cpu: %s, memory: %s}}]}",
			p.namespace, p.name, p.usedCPU, p.usedMemory)
	}
	return all
}

// savingsMetrics are Karpenter's metrics for this cluster.
func savingsMetrics() string {
	var b strings.Builder
	for _, t := range []struct {
		name            string
		cpu, memory     int
		onDemand, cheap string
	}{{"c5.xlarge", 4, 8, "0.17", "0.19"}, {"r5.xlarge", 4, 32, "0.252", "0.26"}, {"m5.large", 2, 8, "0.096", "0.0361"}} {
		fmt.Fprintf(&b, "karpenter_cloudprovider_instance_type_cpu_cores{instance_type=%q} %d\n", t.name, t.cpu)
		fmt.Fprintf(&b, "karpenter_cloudprovider_instance_type_memory_bytes{instance_type=%q} %d\n", t.name, t.memory<<30)
		for capacityType, price := range map[string]string{"on-demand": t.onDemand, "spot": t.cheap} {
			fmt.Fprintf(&b, "karpenter_cloudprovider_instance_type_offering_price_estimate{capacity_type=%q,instance_type=%q,zone=\"us-east-1a\"} %s\n", capacityType, t.name, price)
		}
	}
	return b.String()
}

// serveKinds serves lists of objects by their paths. A path with a status in refused gets this answer.
func serveKinds(t *testing.T, all map[string][]string, refused map[string]int) (kubeconfig string) {
	t.Helper()
	kinds := map[string][]string{
		"v1":              {"Node", "nodes", "Pod", "pods", "Namespace", "namespaces", "PersistentVolume", "persistentvolumes", "Service", "services"},
		"karpenter.sh/v1": {"NodeClaim", "nodeclaims"}, "croft.dev/v1alpha1": {"Pool", "pools"}, "metrics.k8s.io/v1beta1": {"PodMetrics", "pods"},
	}
	if all["/apis/metrics.k8s.io/v1beta1/pods"] == nil {
		delete(kinds, "metrics.k8s.io/v1beta1")
	}
	answers := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}}
	var groups metav1.APIGroupList
	for version, pairs := range kinds {
		path := "/api/v1"
		if group, name, is := strings.Cut(version, "/"); is {
			path = "/apis/" + version
			served := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: name}
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{served}, PreferredVersion: served})
		}
		answers[path] = makeResourceList(version, pairs...)
		for i := 0; i < len(pairs); i += 2 {
			items := []map[string]any{}
			for _, text := range all[path+"/"+pairs[i+1]] {
				var item map[string]any
				if err := yaml.Unmarshal([]byte(text), &item); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				item["apiVersion"], item["kind"] = version, pairs[i]
				items = append(items, item)
			}
			answers[path+"/"+pairs[i+1]] = map[string]any{"apiVersion": version, "kind": pairs[i] + "List", "items": items}
		}
	}
	answers["/apis"] = groups
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := answers[r.URL.Path]
		if status := refused[r.URL.Path]; status != 0 {
			w.WriteHeader(status)
			answer = metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Message: "unavailable",
				Reason: map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden}[status], Code: int32(status)} //nolint:gosec // a status of HTTP
		} else if answer == nil {
			http.NotFound(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return writeServerKubeconfig(t, server.URL)
}

// TestRecommendations compares the table with docs/how-to/cost.md.
func TestRecommendations(t *testing.T) {
	kubeconfig, metrics := serveKinds(t, savingsCluster(), nil), writeConfig(t, savingsMetrics())
	status, stdout, stderr := runCroft(t, "", "cost", "--recommendations", "--karpenter-metrics", metrics, "--kubeconfig", kubeconfig)
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	assertGolden(t, filepath.Join("testdata", "cost-recommendations.golden.txt"), stdout)
	if !strings.Contains(readDoc(t, "docs/how-to/cost.md"), stdout) {
		t.Error("docs/how-to/cost.md does not show testdata/cost-recommendations.golden.txt")
	}
	for _, format := range []string{"json", "yaml"} {
		status, stdout, stderr := runCroft(t, "", "cost", "--recommendations", "--karpenter-metrics", metrics, "--kubeconfig", kubeconfig, "-o", format)
		var got struct {
			Currency, MonthlySavings string
			Recommendations          []struct {
				Kind, Pool, Change, MonthlySavings string
				Requests                           []struct{ Workload, CPU string }
				Tenants, Assumptions               []string
			}
		}
		if err := yaml.Unmarshal([]byte(stdout), &got); err != nil || status != 0 {
			t.Fatalf("-o %s: exit status %d, %v: %s", format, status, err, stderr)
		}
		if len(got.Recommendations) != 4 || got.Currency != "USD" || got.MonthlySavings == "" {
			t.Fatalf("-o %s: %s", format, stdout)
		}
		first := got.Recommendations[0]
		if first.Kind != "Requests" || first.Pool != "data" || first.MonthlySavings != "183.960000" || len(first.Requests) != 1 ||
			first.Requests[0].Workload != "bank/StatefulSet/db" || first.Requests[0].CPU != "630m" || len(first.Assumptions) == 0 || first.Tenants[0] != "bank" {
			t.Errorf("-o %s: %+v", format, first)
		}
	}
}

// TestNoRecommendations expects one line, and the reasons why usage is unknown.
func TestNoRecommendations(t *testing.T) {
	full := savingsCluster()
	full["/apis/croft.dev/v1alpha1/pools"] = nil
	const path = "/apis/metrics.k8s.io/v1beta1/pods"
	run := func(refused map[string]int) (status int, stdout, stderr string) {
		return runCroft(t, "", "cost", "--recommendations", "--kubeconfig", serveKinds(t, full, refused))
	}
	for want, refused := range map[string]map[string]int{
		"":                                     {},
		"you may not list pods.metrics.k8s.io": {path: http.StatusForbidden},
		"metrics-server does not answer, or its answer cannot be read: ": {path: http.StatusServiceUnavailable},
	} {
		status, stdout, stderr := run(refused)
		if status != 0 || stderr != "no change that saves money is known\n" ||
			(want == "") == strings.Contains(stdout, "~ requests are not compared with usage: ") || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit status %d: %s%s", want, status, stdout, stderr)
		}
	}
	delete(full, path)
	if status, stdout, stderr := run(nil); status != 0 || !strings.Contains(stdout, "~ requests are not compared with usage: the cluster has no metrics-server\n") {
		t.Errorf("without metrics-server: exit status %d: %s%s", status, stdout, stderr)
	}
	status, stdout, stderr := run(map[string]int{"/apis/croft.dev/v1alpha1/pools": http.StatusForbidden, "/api/v1/pods": http.StatusForbidden})
	if want := "croft: you may not read pods, pools.croft.dev: ask a platform admin for the right to list them in all namespaces\n"; status != 1 || stdout != "" || stderr != want {
		t.Errorf("without rights: exit status %d: %s%s", status, stdout, stderr)
	}
	status, stdout, stderr = runCroft(t, "", "cost", "--recommendations", "--ledger", "https://l.example.org")
	if want := "croft: --ledger has no effect here: --recommendations simulates the objects in the cluster\n"; status != 2 || stdout != "" || stderr != want {
		t.Errorf("with a ledger: exit status %d: %s%s", status, stdout, stderr)
	}
}
