package boot

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/sandbox/internal/cloud/account"
	"croft.dev/croft/sandbox/internal/cloud/journal"
)

// unregistered is the taint of nodes that Karpenter has not registered yet. It is part of the
// user data.
const unregistered = "karpenter.sh/unregistered"

// reserved is the part of a machine's memory that its node does not report: 7.5 %, as Karpenter
// assumes.
const reserved = 0.075

// kubeletVersion is the version that the nodes report.
const kubeletVersion = "v1.36.3-eks-simulated"

// BuildNode returns the node as which an instance registers, not ready yet, and the system that the
// instance runs.
func BuildNode(i *account.Instance, region string) (*corev1.Node, journal.System, error) {
	kubelet, err := ReadUserData(i.Data.UserData)
	if err != nil {
		return nil, "", err
	}
	arch := map[string]string{"x86_64": "amd64", "arm64": "arm64"}[i.Arch]
	name := i.DNSName(region)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: kubelet.Labels, Annotations: buildAnnotations(i)},
		Spec:       corev1.NodeSpec{ProviderID: i.ProviderID(), Taints: kubelet.Taints},
		Status: corev1.NodeStatus{
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: i.IP},
				{Type: corev1.NodeHostName, Address: name},
				{Type: corev1.NodeInternalDNS, Address: name},
			},
			Capacity: computeCapacity(i, kubelet.MaxPods),
			NodeInfo: corev1.NodeSystemInfo{
				Architecture: arch, OperatingSystem: "linux", KubeletVersion: kubeletVersion, KubeProxyVersion: kubeletVersion,
				ContainerRuntimeVersion: "containerd://2.1.4", KernelVersion: "6.12.0", OSImage: i.Data.ImageID,
			},
			Conditions: buildNotReady(metav1.Now()),
		},
	}
	node.Status.Allocatable = node.Status.Capacity
	for key, value := range map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: arch,
		corev1.LabelInstanceTypeStable: i.Type, corev1.LabelTopologyZone: i.Zone, corev1.LabelTopologyRegion: region,
	} {
		node.Labels[key] = value
	}
	if i.Untainted {
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == unregistered })
	}
	return node, kubelet.System, nil
}

// never is longer than any sandbox runs.
const never = 10 * 365 * 24 * time.Hour

// buildAnnotations returns the annotations by which kwok manages the node, with the time at which
// the node gets ready.
func buildAnnotations(i *account.Instance) map[string]string {
	ready := i.ReadyAt
	if i.Unready {
		ready = ready.Add(never)
	}
	return map[string]string{"kwok.x-k8s.io/node": "fake", "sandbox.croft.dev/ready-at": ready.UTC().Format(time.RFC3339Nano)}
}

func computeCapacity(i *account.Instance, maxPods int64) corev1.ResourceList {
	t := account.FindType(i.Type)
	if maxPods == 0 {
		// One address of each interface is the node's own; two pods share its network.
		maxPods = int64(t.Interfaces*(t.Addresses-1) + 2)
	}
	memory := int64(float64(t.MemoryMiB)*(1-reserved)) << 20
	return corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(t.VCPUs), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(memory, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(maxPods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: resource.MustParse("20Gi"),
	}
}

// buildNotReady returns the condition that a kubelet reports until the network plugin is ready.
func buildNotReady(now metav1.Time) []corev1.NodeCondition {
	return []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionFalse, Reason: "KubeletNotReady", LastHeartbeatTime: now, LastTransitionTime: now,
		Message: "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady " +
			"message:Network plugin returns error: cni plugin not initialized",
	}}
}
