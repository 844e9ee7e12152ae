package recommend

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/apis"

	"croft.dev/croft/internal/cost/price"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/secondary"
)

// instanceType is an instance type whose size is known.
type instanceType struct {
	name string
	// allocatable is the size for pods, and capacity the whole size, which a Pool's limits count.
	allocatable, capacity size
	// labels are the labels of its nodes that follow from the type.
	labels map[string]string
	// measured means that the cluster has a node of this type. Otherwise the size is from Karpenter's
	// metrics, and some labels are unknown.
	measured bool
}

// readTypes returns the types of all nodes, and the types in Karpenter's metrics.
func readTypes(in Input) []*instanceType {
	byName := map[string]*instanceType{}
	for i := range in.Nodes {
		n := &in.Nodes[i]
		name := n.Labels[corev1.LabelInstanceTypeStable]
		found := readSize(n.Status.Allocatable)
		if name == "" || found.cpu <= 0 || found.memory <= 0 {
			continue
		}
		t := byName[name]
		if t == nil {
			t = &instanceType{name: name, allocatable: found, labels: map[string]string{}, measured: true}
			byName[name] = t
			for key, value := range n.Labels {
				if isTypeLabel(key) {
					t.labels[key] = value
				}
			}
		}
		// Nodes of one type may reserve different amounts.
		t.allocatable = t.allocatable.min(found)
		whole := readSize(n.Status.Capacity)
		t.capacity = size{max(t.capacity.cpu, whole.cpu, found.cpu), max(t.capacity.memory, whole.memory, found.memory), 0}
	}
	// Karpenter places pods by its own figures, which may be lower than the node's.
	for i := range in.Claims {
		planned := readSize(in.Claims[i].Status.Allocatable)
		if t := byName[in.Claims[i].Labels[corev1.LabelInstanceTypeStable]]; t != nil && planned.cpu > 0 && planned.memory > 0 && planned.pods > 0 {
			t.allocatable = t.allocatable.min(planned)
		}
	}
	var measured []*instanceType
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		measured = append(measured, byName[name])
	}
	sizes := in.Prices.Sizes()
	for name, whole := range sizes {
		if byName[name] != nil {
			continue
		}
		if t := estimateType(name, whole, measured, sizes); t != nil {
			byName[name] = t
		}
	}
	var all []*instanceType
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

func (s size) min(o size) size {
	return size{min(s.cpu, o.cpu), min(s.memory, o.memory), min(s.pods, o.pods)}
}

func readSize(list corev1.ResourceList) size {
	return size{list.Cpu().MilliValue(), list.Memory().Value() >> 20, list.Pods().Value()}
}

// estimateType returns a type of which the cluster has no node. Its nodes reserve at least as much for the
// system, and at least the same part, as each node of the cluster. It returns nil without a node to compare.
func estimateType(name string, whole price.Size, measured []*instanceType, sizes map[string]price.Size) *instanceType {
	limits, known := secondary.LimitsOf(name)
	if !known || whole.CPU <= 0 || whole.Memory <= 0 {
		return nil
	}
	pods := countPods(limits)
	t := &instanceType{name: name, capacity: size{whole.CPU, whole.Memory, 0}, allocatable: size{whole.CPU, whole.Memory, pods}}
	compared := false
	for _, other := range measured {
		otherWhole := sizes[other.name]
		otherLimits, known := secondary.LimitsOf(other.name)
		if !known || otherWhole.CPU <= 0 || otherWhole.Memory <= 0 {
			continue
		}
		compared = true
		t.allocatable.cpu = min(t.allocatable.cpu, whole.CPU-computeReservation(whole.CPU, otherWhole.CPU, other.allocatable.cpu))
		t.allocatable.memory = min(t.allocatable.memory, whole.Memory-computeReservation(whole.Memory, otherWhole.Memory, other.allocatable.memory))
		t.allocatable.pods = min(t.allocatable.pods, other.allocatable.pods, pods*other.allocatable.pods/countPods(otherLimits))
	}
	if !compared || t.allocatable.cpu <= 0 || t.allocatable.memory <= 0 || t.allocatable.pods <= 0 {
		return nil
	}
	t.labels = deriveLabels(name, whole)
	return t
}

// computeReservation returns the larger of a measured reservation, and of the same part of the whole.
func computeReservation(whole, measuredWhole, allocatable int64) int64 {
	reserved := max(measuredWhole-allocatable, 0)
	return max(reserved, (reserved*whole+measuredWhole-1)/measuredWhole)
}

// countPods returns the number of pods that AWS's network plugin has addresses for.
func countPods(l secondary.Limits) int64 { return int64(l.Interfaces*(l.Addresses-1) + 2) }

// awsLabels is the domain of labels that Karpenter's provider for AWS sets, and awsName its division of names.
const awsLabels = "karpenter.k8s.aws/"

var awsName = regexp.MustCompile(`^([a-z]+)(?:-[0-9]+tb)?([0-9]+).*\.`)

// deriveLabels returns the labels that follow from the name and the size of an AWS instance type.
func deriveLabels(name string, whole price.Size) map[string]string {
	family, sizeName, _ := strings.Cut(name, ".")
	labels := map[string]string{corev1.LabelInstanceTypeStable: name, awsLabels + "instance-family": family, awsLabels + "instance-size": sizeName,
		awsLabels + "instance-cpu": strconv.FormatInt(whole.CPU/1000, 10), awsLabels + "instance-memory": strconv.FormatInt(whole.Memory, 10)}
	if architecture := estate.ParseArchitecture(name); architecture != "" {
		labels[corev1.LabelArchStable] = architecture
	}
	if parts := awsName.FindStringSubmatch(name); parts != nil {
		labels[awsLabels+"instance-category"], labels[awsLabels+"instance-generation"] = parts[1], parts[2]
	}
	return labels
}

// isTypeLabel reports whether a label of nodes follows from their instance type.
func isTypeLabel(key string) bool {
	switch key {
	case corev1.LabelInstanceTypeStable, corev1.LabelInstanceType, corev1.LabelArchStable, "beta.kubernetes.io/arch":
		return true
	}
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(domain, "karpenter.") && domain != apis.Group
}

var burstableName = regexp.MustCompile(`^t[0-9]`)

// isBurstable reports whether a type gives its whole CPU only for a limited time.
func isBurstable(name string) bool { return burstableName.MatchString(name) }
