package objects

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/price"
)

var now = time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)

// readCluster reads the objects of testdata/cluster.yaml.
func readCluster(t *testing.T) Objects {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	byKind := map[string][]json.RawMessage{}
	for _, item := range list.Items {
		var meta metav1.TypeMeta
		if err := json.Unmarshal(item, &meta); err != nil {
			t.Fatal(err)
		}
		byKind[meta.Kind] = append(byKind[meta.Kind], item)
	}
	var o Objects
	for kind, into := range map[string]any{
		"NodeClaim": &o.Claims, "Node": &o.Nodes, "Pod": &o.Pods, "Namespace": &o.Namespaces, "PersistentVolume": &o.Volumes,
		"Service": &o.Services,
	} {
		all, err := json.Marshal(byKind[kind])
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(all, into); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

func formatSpan(s ledger.Span) string {
	if s.Until.IsZero() {
		return s.From.UTC().Format("15:04:05") + "-"
	}
	return s.From.UTC().Format("15:04:05") + "-" + s.Until.UTC().Format("15:04:05")
}

// TestBuild reads all kinds of objects, in the form of the ledger.
func TestBuild(t *testing.T) {
	in := Build(readCluster(t), price.New(), now)
	var got []string
	for _, n := range in.Nodes {
		got = append(got, fmt.Sprint(n.Name, " ", n.Pool, " ", n.CapacityType, " ", n.InstanceType, " ", n.Price.Amount, " ",
			n.Price.Known, " ", n.CPU, " ", n.Memory, " ", formatSpan(n.Span), " ", n.Observed.Equal(now)))
	}
	for _, p := range in.Pods {
		got = append(got, fmt.Sprint(p.Namespace, " ", p.Workload, " ", p.CPU, " ", p.Memory, " ", formatSpan(p.Span)))
	}
	for _, v := range in.Volumes {
		got = append(got, fmt.Sprint(v.Namespace, " ", v.Workload, " ", v.Class, " ", v.Size, " ", formatSpan(v.Span)))
	}
	for _, b := range in.LoadBalancers {
		got = append(got, fmt.Sprint(b.Namespace, " ", b.Workload, " ", formatSpan(b.Span)))
	}
	for _, o := range in.Owners {
		got = append(got, fmt.Sprint(o.Namespace, " ", o.Tenant, " ", o.CostCode))
	}
	want := []string{
		// A node costs money from the launch of its instance.
		"ip-10-0-2-110.ec2.internal apps on-demand m5.large 0.096000 true 1930 7168 10:00:05- true",
		"ip-10-0-3-117.ec2.internal jobs spot c6i.large 0.000000 false 1930 3072 10:01:06- true",
		"shop Deployment/web 500 1024 10:00:35-",
		"shop Job/migrate 500 512 10:05:00-10:05:02",
		"bank StatefulSet/api 250 2048 10:00:35-",
		"bank CronJob/report 1000 1024 10:02:00-",
		"kube-system DaemonSet/kube-proxy 100 0 10:00:05-",
		"bank PersistentVolumeClaim/data-api-0 gp3 102400 10:00:00-",
		" PersistentVolume/pvc-2 gp3 10240 10:00:00-",
		"shop Service/web 10:00:00-",
		"shop shop org1",
		"bank bank org2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestBuildNodes covers nodes without a NodeClaim and NodeClaims without a node.
func TestBuildNodes(t *testing.T) {
	o := readCluster(t)
	o.Nodes = o.Nodes[:1]
	o.Claims = append(o.Claims[:0:0], o.Claims[1]) // the other claim has lost its node
	o.Nodes[0].Labels = map[string]string{"eks.amazonaws.com/capacityType": "ON_DEMAND",
		corev1.LabelInstanceTypeStable: "m5.large", corev1.LabelTopologyRegion: "us-east-1"}
	nodes := buildNodes(o, price.New(), now)
	if len(nodes) != 2 {
		t.Fatalf("%d nodes, want 2", len(nodes))
	}
	if n := nodes[0]; n.Name != "NodeClaim/jobs-m9q4d" || n.CPU != 0 || n.Pool != "jobs" {
		t.Errorf("a NodeClaim without a node: %+v", n)
	}
	if n := nodes[1]; !n.Price.Known || n.Price.Amount != 96_000 || formatSpan(n.Span) != "10:00:23-" {
		t.Errorf("a node of a managed node group: %+v", n)
	}
}

// TestFindEnd covers pods that ended without a terminated container.
func TestFindEnd(t *testing.T) {
	at := func(second int) metav1.Time { return metav1.NewTime(now.Add(time.Duration(second) * time.Second)) }
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at(0)}
	evicted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: at(9)}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   time.Time
	}{
		"runs":    {corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{scheduled}}, time.Time{}},
		"evicted": {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{scheduled, evicted}}, at(9).Time},
		"refused": {corev1.PodStatus{Phase: corev1.PodFailed, Conditions: []corev1.PodCondition{scheduled}}, at(0).Time},
	} {
		if got := findEnd(&corev1.Pod{Status: c.status}); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
