package verify

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errImageVolumes is the reason why requests with image volumes prove nothing if the API server
// drops these silently: before Kubernetes 1.35, unless the feature gate ImageVolume is on
// (KEP-4639).
var errImageVolumes = errors.New("this API server drops spec.volumes[].image: its feature gate ImageVolume is off")

// dropsImageVolume reports whether the API server removed the image volumes from a pod.
func dropsImageVolume(sent, got client.Object) bool {
	before, ok := sent.(*corev1.Pod)
	if !ok {
		return false
	}
	after, ok := got.(*corev1.Pod)
	return ok && hasImageVolume(before) && !hasImageVolume(after)
}

func hasImageVolume(p *corev1.Pod) bool {
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].Image != nil {
			return true
		}
	}
	return false
}
