package cli_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// serveNodes serves the nodes of docs/how-to/latency.md, and forbids lists of the given kinds.
func serveNodes(t *testing.T, forbidden ...string) (kubeconfig string) {
	t.Helper()
	return serveLists(t, "../diagnose/latency/testdata/nodes.yaml", forbidden, "Node", "nodes", "Pod", "pods", "Event", "events")
}

// serveLists starts a server that lists the NodeClaims of a file, and objects of the API group v1,
// given as pairs of a kind and its resource. It forbids lists of some resources, and accepts only
// lists of events that select a reason.
func serveLists(t *testing.T, file string, forbidden []string, pairs ...string) (kubeconfig string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all struct{ Items []map[string]any }
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	answers := map[string]any{
		"/api":                  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis":                 makeGroupList(),
		"/api/v1":               makeResourceList("v1", pairs...),
		"/apis/karpenter.sh/v1": makeResourceList("karpenter.sh/v1", "NodeClaim", "nodeclaims"),
	}
	addList := func(path, kind string) {
		items := slices.DeleteFunc(slices.Clone(all.Items), func(o map[string]any) bool { return o["kind"] != kind })
		answers[path] = map[string]any{"apiVersion": items[0]["apiVersion"], "kind": kind + "List", "items": items}
	}
	addList("/apis/karpenter.sh/v1/nodeclaims", "NodeClaim")
	for pair := range slices.Chunk(pairs, 2) {
		addList("/api/v1/"+pair[1], pair[0])
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
		selector := r.URL.Query().Get("fieldSelector")
		reason, selects := strings.CutPrefix(selector, "reason=")
		if selects != (r.URL.Path == "/api/v1/events") {
			t.Errorf("%s: fieldSelector %q", r.URL.Path, selector)
		}
		if list, is := answer.(map[string]any); is && selects {
			list = maps.Clone(list)
			list["items"] = slices.DeleteFunc(slices.Clone(list["items"].([]map[string]any)),
				func(o map[string]any) bool { return o["reason"] != reason })
			answer = list
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(server.Close)
	return writeServerKubeconfig(t, server.URL)
}

func makeGroupList() metav1.APIGroupList {
	version := metav1.GroupVersionForDiscovery{GroupVersion: "karpenter.sh/v1", Version: "v1"}
	return metav1.APIGroupList{Groups: []metav1.APIGroup{
		{Name: "karpenter.sh", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
	}}
}

// makeResourceList returns a resource list of pairs of a kind and its resource.
func makeResourceList(version string, pairs ...string) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: version}
	for i := 0; i < len(pairs); i += 2 {
		list.APIResources = append(list.APIResources, metav1.APIResource{Kind: pairs[i], Name: pairs[i+1],
			Namespaced: pairs[i] == "Pod" || pairs[i] == "Event", Verbs: metav1.Verbs{"list"}})
	}
	return list
}

// TestLatency compares the output for the example nodes with docs/how-to/latency.md and
// docs/reference/latency.md.
func TestLatency(t *testing.T) {
	kubeconfig := serveNodes(t)
	docs := readDoc(t, "docs/how-to/latency.md") + readDoc(t, "docs/reference/latency.md")
	for format, golden := range map[string]string{
		"table": "testdata/latency.golden.txt", "wide": "testdata/latency-wide.golden.txt",
		"markdown": "testdata/latency.golden.md",
	} {
		status, stdout, stderr := runCroft(t, "", "latency", "--since", "0", "-o", format, "--kubeconfig", kubeconfig)
		if status != 0 || stderr != "" {
			t.Fatalf("-o %s: exit status %d: %s", format, status, stderr)
		}
		assertGolden(t, golden, stdout)
		if format == "table" && !strings.Contains(docs, "```\n$ croft latency\n"+stdout+"```\n") {
			t.Error("docs/how-to/latency.md does not show testdata/latency.golden.txt")
		}
		if format != "markdown" {
			continue
		}
		if nodes := strings.Split(stdout, "\n\n### "); !strings.Contains(docs, "### "+nodes[1]) {
			t.Error("docs/reference/latency.md does not show the second node of testdata/latency.golden.md")
		}
	}
	_, stdout, _ := runCroft(t, "", "latency", "--since", "0", "-o", "svg", "--kubeconfig", kubeconfig)
	if picture, err := os.ReadFile("../../docs/reference/latency.svg"); err != nil || stdout != string(picture) {
		t.Errorf("%v: -o svg does not draw docs/reference/latency.svg", err)
	}
	_, stdout, _ = runCroft(t, "", "latency", "--since", "0", "-o", "prometheus", "--kubeconfig", kubeconfig)
	if !strings.Contains(stdout, "# TYPE croft_node_phase_seconds histogram\n") {
		t.Errorf("-o prometheus writes %s", stdout)
	}
	_, stdout, _ = runCroft(t, "", "latency", "--since", "0", "--pool", "telco", "-o", "json", "--kubeconfig", kubeconfig)
	var report struct {
		Nodes []struct {
			NodeClaim string
			Phases    map[string]float64
		}
		Summary []struct{ By string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Nodes) != 2 ||
		report.Nodes[0].Phases["boot"] != 41 || len(report.Summary) == 0 {
		t.Errorf("-o json: %v: %s", err, stdout)
	}
}

// TestLatencyWithoutNodes expects success without nodes, and a message on standard error.
func TestLatencyWithoutNodes(t *testing.T) {
	kubeconfig := serveNodes(t)
	for args, message := range map[string]string{
		"--since 1s":                   "there is no node that was requested in the last 1s; set a longer --since\n",
		"--pool none --since 0":        "there is no node of pool none\n",
		"--pool none --since 0 -o svg": "there is no node of pool none\n",
	} {
		status, stdout, stderr := runCroft(t, "", append(strings.Fields("latency "+args), "--kubeconfig", kubeconfig)...)
		if status != 0 || stderr != message || (stdout != "") != strings.Contains(args, "svg") {
			t.Errorf("%s: exit status %d: %q and %q", args, status, stdout, stderr)
		}
	}
}

// TestLatencyRights expects one line that names all missing rights.
func TestLatencyRights(t *testing.T) {
	all := []string{"nodes", "nodeclaims", "pods", "events"}
	for _, forbidden := range [][]string{{"nodes"}, {"nodeclaims"}, {"pods"}, {"events"}, all} {
		status, stdout, stderr := runCroft(t, "", "latency", "--kubeconfig", serveNodes(t, forbidden...))
		names := strings.Replace(strings.Join(forbidden, ", "), "nodeclaims", "nodeclaims.karpenter.sh", 1)
		message := "croft: you may not read " + names +
			": ask a platform admin for the right to list them in all namespaces\n"
		if status != 1 || stdout != "" || stderr != message {
			t.Errorf("without %s: exit status %d: %s%s", names, status, stdout, stderr)
		}
	}
}

// TestLatencyCompared compares saved nodes with the cluster's nodes, and two pools.
func TestLatencyCompared(t *testing.T) {
	kubeconfig := serveNodes(t)
	_, saved, _ := runCroft(t, "", "latency", "--since", "0", "-o", "json", "--kubeconfig", kubeconfig)
	saved = strings.ReplaceAll(saved, `"boot": 41`, `"boot": 20.5`)
	compare := func(args string) (int, string, string) {
		return runCroft(t, saved, append(strings.Fields("latency --since 0 --kubeconfig "+kubeconfig), strings.Fields(args)...)...)
	}
	docs := readDoc(t, "docs/how-to/latency.md")
	status, stdout, stderr := compare("--pool telco --against-pool apps")
	if status != 0 || stderr != "" {
		t.Fatalf("exit status %d: %s", status, stderr)
	}
	assertGolden(t, "testdata/latency-pools.golden.txt", stdout)
	if !strings.Contains(docs, "```\n$ croft latency --pool telco --against-pool apps\n"+stdout+"```\n") {
		t.Error("docs/how-to/latency.md does not show testdata/latency-pools.golden.txt")
	}
	status, stdout, stderr = compare("--against - --pool telco")
	const sides = "before: 2 nodes of pool telco in -; after: 2 nodes of pool telco\n\n"
	if status != 0 || stderr != "" || !strings.HasPrefix(stdout, sides) {
		t.Errorf("exit status %d: %s%s", status, stdout, stderr)
	}
	for phase, want := range map[string]string{
		"boot": "1/1 20.5s 41s +20.5s 2x 20.5s 41s +20.5s 2x", "decision": "2/2 2s 2s 0s 1x 2s 2s 0s 1x",
		"user data": "1/1 22s 22s 0s 1x 22s 22s 0s 1x",
	} {
		if !strings.Contains(strings.Join(strings.Fields(stdout), " "), phase+" "+want) {
			t.Errorf("%s is not %s in\n%s", phase, want, stdout)
		}
	}
	status, stdout, _ = compare("--against - --against-pool apps --pool telco -o json")
	var data struct {
		Before, After struct {
			Nodes      int
			Pool, File string
		}
		Phases []struct {
			Phase string
			P50   struct{ Seconds, Ratio float64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &data); err != nil || status != 0 || data.Before.Pool != "apps" ||
		data.Before.File != "-" || data.Before.Nodes != 2 || data.After.Pool != "telco" || len(data.Phases) == 0 {
		t.Errorf("-o json: exit status %d, %v: %s", status, err, stdout)
	}
	if status, stdout, _ = compare("--against - -o markdown"); status != 0 || !strings.Contains(stdout, "\n| PHASE ") {
		t.Errorf("-o markdown: exit status %d: %s", status, stdout)
	}
}

// TestLatencyRefuses expects one line for each mistake in files and flags.
func TestLatencyRefuses(t *testing.T) {
	kubeconfig := serveNodes(t)
	log := writeConfig(t, "Nov 23 10:00:10 host systemd[1]: Reached target Timers.\n")
	late := writeConfig(t, "Nov 23 10:30:00 host kernel: Linux version 6.1\n")
	noTime := writeConfig(t, "nothing\n")
	const (
		node    = "ip-10-0-2-110.ec2.internal"
		nothing = "--journal " + node + ": the logs have no events of a boot before 2026-11-23T10:00:23Z, when the node " +
			"registered; on the node, journalctl -o short-iso-precise prints all logs"
	)
	for args, message := range map[string]string{
		"--against nowhere.json":             "--against nowhere.json: there is no such file",
		"--against " + noTime:                "--against " + noTime + ": the file is not an output of croft latency -o json",
		"--against - -o svg":                 "-o svg: not supported for comparisons: write table, markdown or json",
		"--pool a --against-pool b -o wide":  "-o wide: not supported for comparisons: write table, markdown or json",
		"--against-pool apps":                "--against-pool apps: add --pool, the pool to compare with it",
		"--pool apps --against-pool apps":    "--against-pool apps: the pool is the one of --pool; name another",
		"--pool apps --against-pool none":    "there is nothing to compare: no node of pool none",
		"--pool none --against-pool apps":    "there is nothing to compare: no node of pool none",
		"--journal " + node:                  "--journal " + node + ": write NODE=FILE, a node's name and a file of its logs",
		"--journal =" + log:                  "--journal =" + log + ": write NODE=FILE, a node's name and a file of its logs",
		"--journal " + node + "=nowhere.txt": "--journal nowhere.txt: there is no such file",
		"--journal other=" + log:             "--journal other: the cluster has no such node",
		"--journal " + node + "=" + noTime: "--journal " + noTime + ": no line of the file has a time: use output of journalctl -o short-iso-precise, " +
			"/var/log/messages or cloud-init's logs",
		"--journal " + node + "=" + log:  nothing,
		"--journal " + node + "=" + late: nothing,
	} {
		args := append(strings.Fields("latency --since 0 --kubeconfig "+kubeconfig), strings.Fields(args)...)
		status, stdout, stderr := runCroft(t, `{}`, args...)
		want := 2
		if strings.HasPrefix(message, "there is nothing") {
			want = 1
		}
		if status != want || stdout != "" || stderr != "croft: "+message+"\n" {
			t.Errorf("%s: exit status %d: %s%s", args, status, stdout, stderr)
		}
	}
}

// TestLatencyJournal reads a node's logs from several files, and from a journal file.
func TestLatencyJournal(t *testing.T) {
	kubeconfig := serveNodes(t)
	const node = "ip-10-0-2-110.ec2.internal"
	messages := writeConfig(t, "Nov 23 10:00:11 host kernel: Linux version 6.1\nNov 23 10:00:20 host systemd[1]: Starting Kubelet...\n")
	cloudInit := writeConfig(t, "2026-11-23 10:00:13,100 - util.py[DEBUG]: Cloud-init v. 22.2.2 running 'modules:final' at\n"+
		"2026-11-23 10:00:18,100 - util.py[DEBUG]: Cloud-init v. 22.2.2 finished at\n")
	status, stdout, stderr := runCroft(t, "", "latency", "--since", "0", "--kubeconfig", kubeconfig, "-o", "json",
		"--journal", node+"="+messages, "--journal", node+"="+cloudInit)
	var report struct {
		Nodes []struct {
			Node   string
			Phases map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || status != 0 {
		t.Fatalf("exit status %d, %v: %s", status, err, stderr)
	}
	packed, err := os.Open("../network/journal/testdata/regular.journal.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	status, old, stderr := runCroft(t, "", "latency", "--since", "0", "--kubeconfig", kubeconfig,
		"--journal", node+"="+writeConfig(t, string(content)))
	const note = node + ": 19 events of its logs are older than its NodeClaim, and are omitted\n"
	if status != 0 || !strings.Contains(old, note) {
		t.Errorf("a journal file of another time: exit status %d: %s%s", status, old, stderr)
	}
	for phase, want := range map[string]float64{"vm_start": 6, "system": 2, "user_data": 5, "kubelet": 3} {
		if n := report.Nodes[0]; n.Node != node || n.Phases[phase] != want {
			t.Errorf("%s of %s is %v, want %v", phase, n.Node, n.Phases[phase], want)
		}
	}
}
