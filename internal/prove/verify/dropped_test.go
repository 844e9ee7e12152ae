package verify

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/rules/attack"
)

// TestDroppedImageVolumes expects attacks and mirrors that mount images to prove nothing
// on an API server that drops image volumes, as Kubernetes 1.34 does by default.
func TestDroppedImageVolumes(t *testing.T) {
	dropping := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme.New()).Build(), interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if p, ok := o.(*corev1.Pod); ok {
				for i := range p.Spec.Volumes {
					p.Spec.Volumes[i].Image = nil
				}
			}
			return nil
		},
	})
	var platform v1alpha1.Platform
	platform.Name = v1alpha1.PlatformName
	platform.Spec = v1alpha1.PlatformSpec{ClusterName: "demo", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}}}
	scratch, err := NewScratch(platform)
	if err != nil {
		t.Fatal(err)
	}
	r := &Runner{}
	tried := 0
	for _, a := range scratch.Attacks() {
		if a.Request == nil {
			continue
		}
		pod, ok := a.Request.Object.(*corev1.Pod)
		if !ok || !hasImageVolume(pod) || a.Request.Verb != attack.Create {
			continue
		}
		tried++
		if got := r.sendAttack(t.Context(), a, &member{client: dropping}); got.Result != NotTried {
			t.Errorf("%s: %s (%s), want it not tried", a.Name, got.Result, got.Message)
		}
	}
	if tried < 3 {
		t.Errorf("%d attacks mount images, want 3 at least: this test tries nothing", tried)
	}
}
