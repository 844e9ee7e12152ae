package policy

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	externalDNS = "external-dns.alpha.kubernetes.io/hostname"
	serverAlias = "nginx.ingress.kubernetes.io/server-alias"
)

func (s scene) makeIngress(name string, edits ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
	i := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: s.host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix), Backend: backend}}},
		}}}},
	}
	if len(s.attacker.Allowances.IngressClasses) > 0 && s.attacker.Allowances.IngressClasses[0] != "*" {
		i.Spec.IngressClassName = &s.attacker.Allowances.IngressClasses[0]
	}
	for _, edit := range edits {
		edit(i)
	}
	return i
}

var backend = networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}

// findParentDomain returns the domain directly above a host.
func findParentDomain(host string) string {
	for i, c := range host {
		if c == '.' {
			return host[i+1:]
		}
	}
	return host
}

// findIngressClass returns a class of Ingresses that the tenant may use.
func (s scene) findIngressClass() string {
	if classes := s.attacker.Allowances.IngressClasses; len(classes) > 0 && classes[0] != "*" {
		return classes[0]
	}
	return "croft-verify"
}
