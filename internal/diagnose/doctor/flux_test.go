package doctor

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFluxFlags expects a finding for each missing flag of Flux's multi-tenancy lockdown,
// and for each flag that gives tenants a key of the platform. It needs no control plane.
func TestFluxFlags(t *testing.T) {
	for _, test := range []struct {
		name, controller string
		args             []string
		want             []string
	}{
		{"none", "kustomize-controller", nil, []string{"--no-cross-namespace-refs", "--default-service-account", "--no-remote-bases"}},
		{"all", "kustomize-controller", []string{"--no-cross-namespace-refs=true", "--default-service-account=default", "--no-remote-bases"}, nil},
		{"with one hyphen", "kustomize-controller", []string{"-no-cross-namespace-refs", "-default-service-account=default", "-no-remote-bases=1"}, nil},
		{"off", "kustomize-controller", []string{"--no-cross-namespace-refs=false", "--default-service-account=", "--no-remote-bases=0"}, []string{"--no-cross-namespace-refs", "--default-service-account", "--no-remote-bases"}},
		{"on and off again", "notification-controller", []string{"--no-cross-namespace-refs", "--no-cross-namespace-refs=false"}, []string{"--no-cross-namespace-refs"}},
		{"of Helm", "helm-controller", []string{"--no-cross-namespace-refs"}, []string{"--default-service-account"}},
		{"with a key for all", "kustomize-controller", []string{"--no-cross-namespace-refs", "--default-service-account=default", "--no-remote-bases", "--sops-age-secret=sops-age"}, []string{"--sops-age-secret"}},
		{"with no key", "kustomize-controller", []string{"--no-cross-namespace-refs", "--default-service-account=default", "--no-remote-bases", "--sops-age-secret="}, nil},
		{"of sources", "source-controller", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: test.controller}}
			d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager", Args: test.args}}
			found := checkFlux(&Snapshot{Flux: []appsv1.Deployment{d}})
			if len(found) != len(test.want) {
				t.Fatalf("got %v, want findings of %v", found, test.want)
			}
			for i, flag := range test.want {
				if !strings.Contains(found[i].Message, flag) || found[i].Fix == "" {
					t.Errorf("got %+v, want one of %s with a fix", found[i], flag)
				}
			}
		})
	}
}
