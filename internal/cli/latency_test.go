package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// listing is a server that answers lists with the nodes of docs/latency.md, and
// forbids those of some kinds.
func listing(t *testing.T, forbidden ...string) (kubeconfig string) {
	t.Helper()
	text, err := os.ReadFile("../latency/testdata/nodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Items []map[string]any }
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	answers := map[string]any{
		"/api":                  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis":                 groups(),
		"/api/v1":               resources("v1", "Node", "nodes", "Pod", "pods", "Event", "events"),
		"/apis/karpenter.sh/v1": resources("karpenter.sh/v1", "NodeClaim", "nodeclaims"),
	}
	for path, kind := range map[string]string{
		"/api/v1/nodes": "Node", "/api/v1/pods": "Pod", "/api/v1/events": "Event",
		"/apis/karpenter.sh/v1/nodeclaims": "NodeClaim",
	} {
		items := slices.DeleteFunc(slices.Clone(all.Items), func(o map[string]any) bool { return o["kind"] != kind })
		answers[path] = map[string]any{"apiVersion": items[0]["apiVersion"], "kind": kind + "List", "items": items}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, found := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		for _, kind := range forbidden {
			if strings.HasSuffix(r.URL.Path, "/"+kind) {
				w.WriteHeader(http.StatusForbidden)
				answer, found = metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden,
					Code: http.StatusForbidden}, true
			}
		}
		if !found {
			http.NotFound(w, r)
			return
		}
		want := map[bool]string{true: "reason=Nominated"}[r.URL.Path == "/api/v1/events"]
		if selector := r.URL.Query().Get("fieldSelector"); selector != want {
			t.Errorf("%s: fieldSelector %q, want %q", r.URL.Path, selector, want)
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server.URL)
}

func groups() metav1.APIGroupList {
	version := metav1.GroupVersionForDiscovery{GroupVersion: "karpenter.sh/v1", Version: "v1"}
	return metav1.APIGroupList{Groups: []metav1.APIGroup{
		{Name: "karpenter.sh", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
	}}
}

// resources are pairs of a kind and its resource.
func resources(version string, pairs ...string) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: version}
	for i := 0; i < len(pairs); i += 2 {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: pairs[i], Name: pairs[i+1],
			Namespaced: pairs[i] == "Pod" || pairs[i] == "Event", Verbs: metav1.Verbs{"list"}})
	}
	return list
}

// TestLatency compares the output about example nodes with docs/latency.md.
func TestLatency(t *testing.T) {
	kubeconfig := listing(t)
	docs, err := os.ReadFile("../../docs/latency.md")
	if err != nil {
		t.Fatal(err)
	}
	for format, golden := range map[string]string{
		"table": "testdata/latency.golden.txt", "markdown": "testdata/latency.golden.md",
	} {
		status, stdout, stderr := run(t, "", "latency", "--since", "0", "-o", format, "--kubeconfig", kubeconfig)
		if status != 0 || stderr != "" {
			t.Fatalf("-o %s: exit status %d: %s", format, status, stderr)
		}
		isGolden(t, golden, stdout)
		if format == "table" && !strings.Contains(string(docs), "```\n$ croft latency\n"+stdout+"```\n") {
			t.Error("docs/latency.md does not show testdata/latency.golden.txt")
		}
		first, _, _ := strings.Cut(stdout, "\n\n### ")
		if format == "markdown" && !strings.Contains(string(docs), first) {
			t.Error("docs/latency.md does not show the first node of testdata/latency.golden.md")
		}
	}
	_, stdout, _ := run(t, "", "latency", "--since", "0", "-o", "svg", "--kubeconfig", kubeconfig)
	if picture, err := os.ReadFile("../../docs/latency.svg"); err != nil || stdout != string(picture) {
		t.Errorf("%v: -o svg does not draw docs/latency.svg", err)
	}
	_, stdout, _ = run(t, "", "latency", "--since", "0", "-o", "prometheus", "--kubeconfig", kubeconfig)
	if !strings.Contains(stdout, "# TYPE croft_node_phase_seconds histogram\n") {
		t.Errorf("-o prometheus writes %s", stdout)
	}
	_, stdout, _ = run(t, "", "latency", "--since", "0", "--pool", "telco", "-o", "json", "--kubeconfig", kubeconfig)
	var said struct {
		Nodes []struct {
			NodeClaim string
			Phases    map[string]float64
		}
		Summary []struct{ By string }
	}
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || len(said.Nodes) != 2 ||
		said.Nodes[0].Phases["boot"] != 41 || len(said.Summary) == 0 {
		t.Errorf("-o json: %v: %s", err, stdout)
	}
}

// TestLatencyOfNothing: no nodes are no failure, and are mentioned beside the data.
func TestLatencyOfNothing(t *testing.T) {
	kubeconfig := listing(t)
	for args, says := range map[string]string{
		"--since 1s":                   "no node was asked for in the last 1s; --since looks further back\n",
		"--pool none --since 0":        "no node of pool none is there\n",
		"--pool none --since 0 -o svg": "no node of pool none is there\n",
	} {
		status, stdout, stderr := run(t, "", append(strings.Fields("latency "+args), "--kubeconfig", kubeconfig)...)
		if status != 0 || stderr != says || (stdout != "") != strings.Contains(args, "svg") {
			t.Errorf("%s: exit status %d: %q and %q", args, status, stdout, stderr)
		}
	}
}

// TestLatencyRights: one line says all rights that are missing.
func TestLatencyRights(t *testing.T) {
	all := []string{"nodes", "nodeclaims", "pods", "events"}
	for _, forbidden := range [][]string{{"nodes"}, {"nodeclaims"}, {"pods"}, {"events"}, all} {
		status, stdout, stderr := run(t, "", "latency", "--kubeconfig", listing(t, forbidden...))
		names := strings.Replace(strings.Join(forbidden, ", "), "nodeclaims", "nodeclaims.karpenter.sh", 1)
		says := "croft: you may not read " + names +
			": ask a platform admin for the right to list them in all namespaces\n"
		if status != 1 || stdout != "" || stderr != says {
			t.Errorf("without %s: exit status %d: %s%s", names, status, stdout, stderr)
		}
	}
}
