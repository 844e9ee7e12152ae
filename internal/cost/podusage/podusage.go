// Package podusage parses the usage of pods that metrics-server serves. It does no I/O.
package podusage

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Path is the path of the list of all pods with their usage.
const Path = "/apis/metrics.k8s.io/v1beta1/pods"

// PodMetrics has the fields of metrics-server's PodMetrics that croft reads.
type PodMetrics struct {
	metav1.ObjectMeta `json:"metadata"`
	Containers        []struct {
		Name  string              `json:"name"`
		Usage corev1.ResourceList `json:"usage"`
	} `json:"containers"`
}

// Pod is the usage of a pod: CPU in millionths, and memory in MiB.
type Pod struct {
	Namespace, Name string
	CPU, Memory     int64
}

// UnmarshalJSON adds up the usage of a pod's containers. A list of all pods then needs little memory.
func (p *Pod) UnmarshalJSON(text []byte) error {
	var m PodMetrics
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	var cpu, memory resource.Quantity
	for i := range m.Containers {
		cpu.Add(*m.Containers[i].Usage.Cpu())
		memory.Add(*m.Containers[i].Usage.Memory())
	}
	*p = Pod{Namespace: m.Namespace, Name: m.Name, CPU: max(cpu.ScaledValue(resource.Micro), 0), Memory: max((memory.Value()+1<<20-1)>>20, 0)}
	return nil
}

// Parse parses a list of PodMetrics.
func Parse(list []byte) ([]Pod, error) {
	var l struct {
		Items []Pod `json:"items"`
	}
	err := json.Unmarshal(list, &l)
	return l.Items, err
}
