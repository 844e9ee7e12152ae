package recommend

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/ledger"
	"croft.dev/croft/internal/cost/money"
	"croft.dev/croft/internal/cost/objects"
)

// TestPromisedSavings applies each recommendation for random clusters, and computes the cost again: the savings
// must be exact, and each pod must have a node with room for it. CROFT_TEST_ALL=1 checks more clusters.
func TestPromisedSavings(t *testing.T) {
	clusters := 3000
	if os.Getenv("CROFT_TEST_ALL") != "" {
		clusters = 100_000
	}
	count := map[Kind]int{}
	for seed := range uint64(clusters) {
		in := makeRandomCluster(t, rand.New(rand.NewPCG(seed, 41))) //nolint:gosec // a test repeats its numbers
		for _, r := range Build(in).Recommendations {
			checkSavings(t, &in, &r)
			checkChange(t, &in, &r)
			count[r.Kind]++
			if t.Failed() {
				t.Fatalf("seed %d: %s: %s", seed, r.Kind, r.Reason)
			}
		}
	}
	for _, kind := range []Kind{IdleNodes, Consolidation, CapacityType, InstanceType, Requests} {
		if count[kind] < clusters/100 {
			t.Errorf("%s is recommended only %d times in %d clusters", kind, count[kind], clusters)
		}
	}
}

// makeRandomCluster returns one to three pools. Each pod fits on its node.
func makeRandomCluster(t *testing.T, r *rand.Rand) Input {
	t.Helper()
	text := "instances:\n"
	names := []string{"m5.large", "m5.xlarge", "m5.2xlarge", "c5.large", "t3.large", "m6g.large"}
	for _, name := range names {
		text += fmt.Sprintf("  %s: {on-demand: 0.%03d, spot: 0.%03d}\n", name, 50+sizes[name][0]/20+r.Int64N(60), 20+r.Int64N(200))
	}
	in := Input{Prices: parsePrices(t, text), Usage: Usage{}}
	in.Namespaces = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}}}
	for i := range 1 + r.IntN(3) {
		pool := makePool(fmt.Sprint("pool-", i), func(s *v1alpha1.PoolSpec) { changeRandomly(r, s) })
		in.Pools = append(in.Pools, pool)
		usual := names[r.IntN(len(names))]
		for j := range r.IntN(5) {
			name, instanceType := fmt.Sprintf("n-%d-%d", i, j), usual
			if r.IntN(4) == 0 {
				instanceType = names[r.IntN(len(names))]
			}
			in.Nodes = append(in.Nodes, makeNode(name, pool.Name, instanceType, []string{"a", "b"}[r.IntN(2)],
				string(pool.Spec.Instances.CapacityTypes[r.IntN(len(pool.Spec.Instances.CapacityTypes))])))
			if r.IntN(5) > 0 {
				in.addPods(r, &in.Nodes[len(in.Nodes)-1])
			}
		}
	}
	return in
}

func changeRandomly(r *rand.Rand, s *v1alpha1.PoolSpec) {
	if r.IntN(2) == 0 {
		s.EmptyTTL = v1alpha1.Never
	} else if r.IntN(2) == 0 {
		s.Consolidation = v1alpha1.ConsolidateWhenUnderutilized
	}
	if r.IntN(3) == 0 {
		s.Instances.InstanceTypes = []string{"m5.large", "m5.xlarge"}
	}
	if r.IntN(2) == 0 {
		s.Instances.CapacityTypes = append(s.Instances.CapacityTypes, karpenterv1.CapacityTypeSpot)
	}
	if r.IntN(4) == 0 {
		s.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16")}
	}
	if r.IntN(4) == 0 {
		s.Instances.Requirements = []v1alpha1.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"c5.large"}}}
	}
}

// addPods adds a daemon and pods to a node, until a pod does not fit.
func (in *Input) addPods(r *rand.Rand, node *corev1.Node) {
	rest := readSize(node.Status.Allocatable).subtract(size{100, 200, 1})
	in.Pods = append(in.Pods, makePod("agent-"+node.Name, "DaemonSet", "agent", node.Name, 50+r.Int64N(51), 100+r.Int64N(101)))
	for i := range 1 + r.IntN(5) {
		cpu, memory := 100*(1+r.Int64N(20)), 256*(1+r.Int64N(24))
		if rest = rest.subtract(size{cpu, memory, 1}); rest.cpu < 0 || rest.memory < 0 {
			return
		}
		name := fmt.Sprintf("pod-%s-%d", node.Name, i)
		workload := fmt.Sprint("w", r.IntN(4))
		p := makePod(name, "StatefulSet", workload, node.Name, cpu, memory)
		switch r.IntN(12) {
		case 0:
			p.Spec.NodeSelector = map[string]string{corev1.LabelInstanceTypeStable: node.Labels[corev1.LabelInstanceTypeStable]}
		case 1:
			p.Spec.NodeSelector = map[string]string{karpenterv1.CapacityTypeLabelKey: node.Labels[karpenterv1.CapacityTypeLabelKey]}
		case 2:
			if i == 0 {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, Protocol: corev1.ProtocolTCP}}
			}
		case 3:
			if i == 0 {
				p.Labels["app"] = "web" // one such pod on each node
				p.Spec.Affinity = onePer(corev1.LabelHostname)
			}
		}
		in.Pods = append(in.Pods, p)
		if r.IntN(8) > 0 {
			in.use(name, r.Int64N(cpu), r.Int64N(memory))
		}
	}
}

// checkSavings builds the objects after a recommendation, and compares their cost by the rules of the ledger. It
// uses none of the package's code.
func checkSavings(t *testing.T, in *Input, r *Recommendation) {
	t.Helper()
	after := objects.Objects{Namespaces: in.Namespaces}
	removed := map[string]bool{}
	for _, n := range r.removed {
		removed[n.object.Name] = true
	}
	zones, buying, architectures := map[string]string{}, map[string]string{}, map[string]string{}
	for _, n := range in.Nodes {
		zones[n.Name], buying[n.Name] = n.Labels[corev1.LabelTopologyZone], n.Labels[karpenterv1.CapacityTypeLabelKey]
		architectures[n.Name] = n.Labels[corev1.LabelArchStable]
		if !removed[n.Name] {
			after.Nodes = append(after.Nodes, n)
		} else if n.Labels[karpenterv1.NodePoolLabelKey] != r.Pool {
			t.Errorf("node %s of another pool would be removed", n.Name)
		}
	}
	moved := map[types.NamespacedName]string{}
	for i, placed := range r.placed {
		n := makeNode(fmt.Sprint("new-", i), r.Pool, placed.offering.InstanceType, placed.offering.Zone, placed.offering.CapacityType)
		after.Nodes = append(after.Nodes, n)
		for _, p := range placed.pods {
			moved[p.name] = n.Name
			if architectures[p.object.Spec.NodeName] != n.Labels[corev1.LabelArchStable] {
				t.Errorf("pod %s would change its architecture", p.name)
			}
			if zones[p.object.Spec.NodeName] != placed.offering.Zone {
				t.Errorf("pod %s would change its zone", p.name)
			}
			if before := buying[p.object.Spec.NodeName]; before != placed.offering.CapacityType && (r.Kind != CapacityType || placed.offering.CapacityType != "spot") {
				t.Errorf("pod %s would move from %s to %s nodes", p.name, before, placed.offering.CapacityType)
			}
		}
	}
	daemons := map[string]corev1.Pod{}
	for i := range in.Pods {
		p := in.Pods[i].DeepCopy()
		name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
		if p.OwnerReferences[0].Kind == "DaemonSet" {
			if removed[p.Spec.NodeName] {
				key := p.OwnerReferences[0].Name
				daemons[key] = largerPod(daemons[key], *p)
				continue
			}
		} else if removed[p.Spec.NodeName] && p.Status.Phase == corev1.PodRunning {
			if p.Spec.NodeName = moved[name]; p.Spec.NodeName == "" {
				t.Errorf("pod %s would have no node", name)
			}
			applyTo(t, p, r.Requests)
		}
		after.Pods = append(after.Pods, *p)
	}
	for i := range r.placed {
		for _, p := range daemons {
			p.Spec.NodeName = fmt.Sprint("new-", i)
			p.Name = "daemon-" + p.Spec.NodeName
			after.Pods = append(after.Pods, p)
		}
	}
	checkNodes(t, &after, r)
	if before, then := computeCost(t, in.Objects, in), computeCost(t, after, in); (before-then)*730 != r.MonthlySavings || r.MonthlySavings <= 0 {
		t.Errorf("%s an hour before, %s after: %s a month is promised", before, then, r.MonthlySavings)
	}
}

func largerPod(a, b corev1.Pod) corev1.Pod {
	if a.Name == "" {
		return b
	}
	x, y := a.Spec.Containers[0].Resources.Requests, b.Spec.Containers[0].Resources.Requests
	for name, quantity := range x {
		if quantity.Cmp(y[name]) > 0 {
			y[name] = quantity
		}
	}
	return b
}

// applyTo sets the recommended requests of a pod.
func applyTo(t *testing.T, p *corev1.Pod, requests []Request) {
	t.Helper()
	for _, r := range requests {
		if r.Workload != p.Namespace+"/"+p.OwnerReferences[0].Kind+"/"+p.OwnerReferences[0].Name {
			continue
		}
		list := p.Spec.Containers[0].Resources.Requests
		for name, text := range map[corev1.ResourceName]string{corev1.ResourceCPU: r.CPU, corev1.ResourceMemory: r.Memory} {
			quantity, err := resource.ParseQuantity(text)
			if now := list[name]; err == nil && quantity.Cmp(now) < 0 {
				list[name] = quantity
			} else if text != "" && err != nil {
				t.Error(err)
			}
		}
	}
}

// checkNodes expects the pods of each node to fit on it, and to be allowed there.
func checkNodes(t *testing.T, o *objects.Objects, r *Recommendation) {
	t.Helper()
	for i := range o.Nodes {
		node := &o.Nodes[i]
		var cpu, memory, pods int64
		var names []string
		for j := range o.Pods {
			p := &o.Pods[j]
			if p.Spec.NodeName != node.Name || p.Status.Phase != corev1.PodRunning {
				continue
			}
			requests := p.Spec.Containers[0].Resources.Requests
			cpu, memory, pods = cpu+requests.Cpu().MilliValue(), memory+requests.Memory().Value(), pods+1
			for key, value := range p.Spec.NodeSelector {
				if node.Labels[key] != value {
					t.Errorf("pod %s selects %s: %s, and %s has %s", p.Name, key, value, node.Name, node.Labels[key])
				}
			}
			if len(p.Spec.Containers[0].Ports) > 0 {
				names = append(names, "port 80")
			}
			if p.Spec.Affinity != nil {
				names = append(names, "app web")
			}
		}
		all := node.Status.Allocatable
		if cpu > all.Cpu().MilliValue() || memory > all.Memory().Value() || pods > all.Pods().Value() {
			t.Errorf("%s: %d pods request %dm and %d bytes of %s", r.Kind, pods, cpu, memory, node.Name)
		}
		if slices.Sort(names); len(slices.Compact(slices.Clone(names))) != len(names) {
			t.Errorf("%s: pods on %s share %s", r.Kind, node.Name, strings.Join(names, ", "))
		}
	}
}

// computeCost returns the cost of all nodes in an hour.
func computeCost(t *testing.T, o objects.Objects, in *Input) money.Amount {
	t.Helper()
	now := time.Date(2026, 11, 26, 20, 0, 0, 0, time.UTC)
	l, err := ledger.New(objects.Build(o, in.Prices, now))
	if err != nil {
		t.Fatal(err)
	}
	return l.Compute(ledger.Span{From: now, Until: now.Add(time.Hour)}).Nodes
}
