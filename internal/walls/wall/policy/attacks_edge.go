package policy

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/rules/attack"
)

const (
	foreignHost     = "www.example.com"
	externalDNS     = "external-dns.alpha.kubernetes.io/hostname"
	serverAlias     = "nginx.ingress.kubernetes.io/server-alias"
	ingressSnippets = "https://github.com/kubernetes/ingress-nginx/issues/7837"
)

// buildServiceAttacks announce other tenants' hosts by Services.
func (s scene) buildServiceAttacks() []attack.Attack {
	service := func(name string, edits ...func(*corev1.Service)) *corev1.Service {
		svc := &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}},
		}
		for _, edit := range edits {
			edit(svc)
		}
		return svc
	}
	byHosts := attack.ByPolicy(AnnotationsPolicy, AnnotatedHostsRule)
	announce := func(key, host string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Annotations = map[string]string{key: host} }
	}
	all := []attack.Attack{
		attack.NewCreate("announce-service-as-other-host", "have external-dns point another tenant's host at a Service", byHosts, service("announce-other", announce(externalDNS, s.otherHost))),
		attack.NewCreate("announce-service-among-own", "have external-dns point a foreign host at a Service, behind a host of one's own", byHosts,
			service("announce-among-own", announce(externalDNS, s.host+", "+foreignHost))),
		attack.NewCreate("announce-service-by-other-prefix", "have an external-dns with another prefix point a foreign host at a Service", byHosts,
			service("announce-by-other-prefix", announce("internal.external-dns.example.org/hostname", foreignHost))),
		attack.NewUpdate("announce-service-later", "have external-dns point a foreign host at an existing Service", byHosts, service("announce-later"), announce(externalDNS, foreignHost)),
	}
	if s.host != "" {
		all = append(all, attack.NewCreate("announce-service", "have external-dns point a host of one's own at a Service", attack.Nobody, service("announce-service", announce(externalDNS, s.host))))
	}
	return attack.WithReason("a Service outside of its namespace can take ports, addresses or names that others use", nil, all...)
}

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
