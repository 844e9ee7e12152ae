package doctor

import (
	"strings"
	"testing"

	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// TestThresholds expects a warning above 80 % of a threshold, and the numbers in the summary.
func TestThresholds(t *testing.T) {
	for _, test := range []struct {
		counts, pods map[string]int
		want         string
	}{
		{nil, nil, ""},
		{map[string]int{"Namespace": 8_000, "Node": 4_000, "Pod": 120_000, "Service": 8_000}, map[string]int{"shop": 2_400}, ""},
		{map[string]int{"Namespace": 8_001}, nil, ": the cluster has 8001 of 10000 namespaces"},
		{map[string]int{"Node": 6_000}, nil, ": the cluster has 6000 of 5000 nodes"},
		{map[string]int{"Pod": 120_001}, nil, ": the cluster has 120001 of 150000 pods"},
		{map[string]int{"Service": 8_001}, nil, ": the cluster has 8001 of 10000 services"},
		{nil, map[string]int{"bank": 2_400, "shop": 2_401}, "Namespace/shop: it has 2401 of 3000 pods"},
	} {
		found := checkThresholds(&Snapshot{Counts: test.counts, PodCounts: test.pods})
		switch {
		case test.want == "" && len(found) > 0:
			t.Errorf("%v, %v: %+v", test.counts, test.pods, found)
		case test.want == "":
		case len(found) != 1 || found[0].Severity != Warning || found[0].Fix == "" || !strings.Contains(found[0].Object+": "+found[0].Message, test.want):
			t.Errorf("%v, %v: %+v, want %q", test.counts, test.pods, found, test.want)
		}
	}
	const want = "the cluster has 40 of 10000 namespaces, 3 of 5000 nodes that Kubernetes is tested with, and 2 of 500 pools that Karpenter was measured with"
	s := &Snapshot{Counts: map[string]int{"Namespace": 40, "Node": 3}, NodePools: make([]karpenterv1.NodePool, 2)}
	if got := summarizeThresholds(s); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Unreadable = map[string]string{readNodePools: "forbidden"}
	if got := summarizeThresholds(s); strings.Contains(got, "pools") {
		t.Errorf("pools that were not read are counted: %s", got)
	}
}

// TestPoolThreshold expects a warning above the number of pools that Karpenter was measured with.
func TestPoolThreshold(t *testing.T) {
	for count, want := range map[int]string{500: "", 501: "the cluster has 501 of 500 pools that Karpenter was measured with"} {
		found := checkThresholds(&Snapshot{NodePools: make([]karpenterv1.NodePool, count)})
		if (want == "") != (len(found) == 0) || want != "" && (len(found) != 1 || found[0].Severity != Warning || found[0].Message != want) {
			t.Errorf("%d pools: %+v", count, found)
		}
	}
}
