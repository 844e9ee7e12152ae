package attack

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// NewPod returns a pod that every wall allows, changed by edits. It has a scheduling gate, so
// that an attack never costs a node.
func NewPod(namespace, name string, edits ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       NewPodSpec(),
	}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "croft.dev/verify"}}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

// Image is the image of attacks' containers.
const Image = "pause:3.10"

// ChooseImage returns an image that a tenant with these allowances may run. It is never pulled.
func ChooseImage(may *v1alpha1.Allowances) string {
	image := Image
	if may.Images != nil && may.Images.Digest != "" {
		image += "@sha256:" + strings.Repeat("0", 64)
	}
	if len(may.Registries) == 0 {
		return image
	}
	for _, home := range []string{"*", "docker.io", "docker.io/library"} {
		if slices.Contains(may.Registries, home) {
			return image
		}
	}
	return may.Registries[0] + "/" + image
}

// NewPodSpec returns the spec of a pod that even the restricted Pod Security level allows. It declines the
// token of its service account, which a tenant's policy may give to pods on request only.
func NewPodSpec() corev1.PodSpec {
	return corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name:  "main",
			Image: Image,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: ptr.To(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
			},
		}},
	}
}

// ExpectType returns a Change, or an Outcome, that expects an object of type T. The caller passes the
// API server's response.
func ExpectType[T client.Object](do func(T) error) func(client.Object) error {
	return func(got client.Object) error {
		object, ok := got.(T)
		if !ok {
			return fmt.Errorf("the API server gave a %T", got)
		}
		return do(object)
	}
}
