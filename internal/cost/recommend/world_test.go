package recommend

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/cost/price"
)

// sizes are the CPU, in thousandths, and the memory, in MiB, of instance types. The nodes of a type give
// 100m and 500 MiB less to pods.
var sizes = map[string][2]int64{
	"m5.large": {2000, 8192}, "m5.xlarge": {4000, 16384}, "m5.2xlarge": {8000, 32768}, "c5.large": {2000, 4096},
	"t3.large": {2000, 8192}, "m6g.large": {2000, 8192},
}

const testPrices = `instances:
  m5.large: {on-demand: 0.1, spot: 0.04}
  m5.xlarge: {on-demand: 0.2, spot: 0.08}
  m5.2xlarge: {on-demand: 0.4}
  c5.large: {on-demand: 0.085}
  t3.large: {on-demand: 0.05}
  m6g.large: {on-demand: 0.05}
`

func parsePrices(t *testing.T, text string) *price.List {
	t.Helper()
	prices, err := price.Parse("prices.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return prices
}

func makePool(name string, change func(*v1alpha1.PoolSpec)) v1alpha1.Pool {
	p := v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PoolSpec{EmptyTTL: "1h", Consolidation: v1alpha1.ConsolidateWhenEmpty,
		Instances: v1alpha1.Instances{CapacityTypes: []v1alpha1.CapacityType{karpenterv1.CapacityTypeOnDemand}}}}
	if change != nil {
		change(&p.Spec)
	}
	return p
}

func makeNode(name, pool, instanceType, zone, capacityType string) corev1.Node {
	architecture := "amd64"
	if instanceType == "m6g.large" {
		architecture = "arm64"
	}
	whole := sizes[instanceType]
	return corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			karpenterv1.NodePoolLabelKey: pool, karpenterv1.CapacityTypeLabelKey: capacityType, corev1.LabelInstanceTypeStable: instanceType,
			corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "us-east-1", corev1.LabelArchStable: architecture,
			corev1.LabelHostname: name,
		}},
		Status: corev1.NodeStatus{
			Capacity:    makeResources(whole[0], whole[1], "29"),
			Allocatable: makeResources(whole[0]-100, whole[1]-500, "29"),
		},
	}
}

func makeResources(cpu, memory int64, pods string) corev1.ResourceList {
	list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI)}
	if pods != "" {
		list[corev1.ResourcePods] = resource.MustParse(pods)
	}
	return list
}

// makePod returns a running pod of a controller, whose kind and name are in the form Deployment/web.
func makePod(name, kind, controller, node string, cpu, memory int64) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": controller},
			OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: controller, Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "main",
			Resources: corev1.ResourceRequirements{Requests: makeResources(cpu, memory, "")}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// makeCluster returns a pool apps with nodes of one type, and pods of one StatefulSet on each, with the same requests.
func makeCluster(t *testing.T, instanceType string, nodes, podsPerNode int, cpu, memory int64) Input {
	t.Helper()
	in := Input{Prices: parsePrices(t, testPrices), Usage: Usage{}, Pools: []v1alpha1.Pool{makePool("apps", nil)}}
	in.Namespaces = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.TenantLabel: "shop"}}}}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		in.Nodes = append(in.Nodes, makeNode(name, "apps", instanceType, "a", karpenterv1.CapacityTypeOnDemand))
		for j := range podsPerNode {
			in.Pods = append(in.Pods, makePod(fmt.Sprintf("web-%d-%d", i, j), "StatefulSet", "web", name, cpu, memory))
		}
	}
	return in
}

// addType adds a node of another pool without a Pool, so that the size of its type is known.
func (in *Input) addType(instanceType string) {
	in.Nodes = append(in.Nodes, makeNode("other-"+instanceType, "", instanceType, "b", karpenterv1.CapacityTypeOnDemand))
}

func (in *Input) use(pod string, cpu, memory int64) {
	in.Usage[types.NamespacedName{Namespace: "shop", Name: pod}] = map[string]corev1.ResourceList{"main": makeResources(cpu, memory, "")}
}
