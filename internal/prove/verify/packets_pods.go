package verify

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/prove/dial"
)

const (
	// serverName is the name of the server's pod and Service, and of its label.
	serverName = "croft-packets"
	// firstDuration and fullDuration are the durations in which a pod tries to connect: in its
	// first moments, and once it runs. A plugin may need some seconds to open a connection.
	firstDuration, fullDuration   = "1s", "8s"
	firstContainer, mainContainer = "first", "dial"
)

// buildServer builds a pod that accepts connections.
func (p *Packets) buildServer(namespace string) *corev1.Pod {
	pod := p.buildPod(namespace, serverName)
	pod.Labels = map[string]string{"app": serverName}
	pod.Spec.Containers = []corev1.Container{buildContainer(p.image, "serve", "packets", "serve")}
	return pod
}

// buildService builds a Service for the server of a namespace.
func buildService(namespace string) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: serverName},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": serverName}, IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack)},
	}
	for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
		service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{
			Name: strings.ToLower(string(protocol)), Protocol: protocol, Port: dial.Port, TargetPort: intstr.FromInt32(dial.Port),
		})
	}
	return service
}

// buildDialer builds a pod that connects to the targets of a namespace: in its first moments,
// by an init container, to the targets that must be closed, then to all.
func (p *Packets) buildDialer(namespace string, t *targets) *corev1.Pod {
	pod := p.buildPod(namespace, serverName+"-dial")
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	connections := t.listConnections(namespace)
	pod.Spec.InitContainers = []corev1.Container{buildContainer(p.image, firstContainer, append([]string{"packets", "dial", firstDuration}, listAddresses(selectClosed(connections))...)...)}
	pod.Spec.Containers = []corev1.Container{buildContainer(p.image, mainContainer, append([]string{"packets", "dial", fullDuration}, listAddresses(connections)...)...)}
	return pod
}

func (p *Packets) buildPod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false), TerminationGracePeriodSeconds: ptr.To[int64](1),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
}

func buildContainer(image, name string, args ...string) corev1.Container {
	return corev1.Container{
		Name: name, Image: image, Args: args,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

func isPodReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// explainWaiting returns why a pod does not run: the scheduler's message, or a container's.
func explainWaiting(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Message
		}
	}
	for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if w := c.State.Waiting; w != nil && w.Message != "" {
			return w.Reason + ": " + w.Message
		}
	}
	return ""
}

func listPodIPs(pod *corev1.Pod) []string {
	var all []string
	for _, ip := range pod.Status.PodIPs {
		all = append(all, ip.IP)
	}
	return all
}
