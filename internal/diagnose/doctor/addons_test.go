package doctor_test

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/diagnose/doctor"
)

// TestAddons fails if an add-on that is not in the catalogue is not named, or if one is
// named that is in the catalogue or declared by the Platform.
func TestAddons(t *testing.T) {
	s := &doctor.Snapshot{Definitions: map[string]*apiextensionsv1.CustomResourceDefinition{}, Unreadable: map[string]string{}, Estate: &estate.Estate{}}
	s.Estate.Platform.Addons = []v1alpha1.Addon{{APIGroup: "declared.example.org", Resources: []string{"things"}}}
	for _, group := range []string{"cert-manager.io", "acme.cert-manager.io", "kustomize.toolkit.fluxcd.io", "crd.projectcalico.org", "croft.dev", "declared.example.org", "unknown.example.org"} {
		s.Definitions["things."+group] = &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: group}}
	}
	for name, controller := range map[string]string{"nginx": "k8s.io/ingress-nginx", "other": "example.org/ingress"} {
		s.IngressClasses = append(s.IngressClasses, networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}})
	}
	var messages []string
	for _, r := range doctor.Check(s) {
		if r.Check == "add-ons" {
			for _, f := range r.Findings {
				messages = append(messages, f.Object+": "+f.Message)
			}
		}
	}
	if len(messages) != 2 || !strings.Contains(messages[0], "unknown.example.org") || !strings.Contains(messages[1], "IngressClass/other") {
		t.Errorf("doctor reports %q", messages)
	}
}
