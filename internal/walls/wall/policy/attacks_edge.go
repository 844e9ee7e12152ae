package policy

import (
	"slices"

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

// buildServiceAttacks lead out of the tenant's namespaces.
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
	as := func(t corev1.ServiceType) func(*corev1.Service) {
		return func(svc *corev1.Service) {
			svc.Spec.Type = t
			if t == corev1.ServiceTypeExternalName {
				svc.Spec.ExternalName, svc.Spec.Selector = foreignHost, nil
			}
		}
	}
	all := []attack.Attack{
		attack.NewCreate("write-a-service", "write a Service", attack.Nobody, service("write-a-service")),
		attack.NewCreate("write-a-headless-service", "write a headless Service", attack.Nobody, service("write-a-headless-service", func(svc *corev1.Service) { svc.Spec.ClusterIP = "None" })),
	}
	for _, t := range []struct {
		of   corev1.ServiceType
		name string
	}{{corev1.ServiceTypeNodePort, "node-port"}, {corev1.ServiceTypeLoadBalancer, "load-balancer"}, {corev1.ServiceTypeExternalName, "external-name"}} {
		summary := "write a Service of type " + string(t.of)
		if slices.Contains(s.attacker.Allowances.ServiceTypes, t.of) {
			all = append(all, attack.NewCreate("write-"+t.name+"-as-allowed", summary+", which the tenant may", attack.Nobody, service("write-"+t.name, as(t.of))))
			continue
		}
		by := attack.ByPolicy(ServicesPolicy, ServiceTypeRule)
		all = append(all,
			attack.NewCreate("open-"+t.name, summary, by, service("open-"+t.name, as(t.of))),
			attack.NewUpdate("turn-into-"+t.name, "turn a Service into one of type "+string(t.of), by, service("turn-into-"+t.name), as(t.of)))
	}
	if slices.Contains(s.attacker.Allowances.ServiceTypes, corev1.ServiceTypeExternalName) {
		by := attack.ByPolicy(ServicesPolicy, ExternalNameRule)
		alias := func(name, summary, target string) {
			all = append(all, attack.NewCreate(name, summary, by, service(name, as(corev1.ServiceTypeExternalName), func(svc *corev1.Service) { svc.Spec.ExternalName = target })))
		}
		alias("alias-other-service", "write an ExternalName that is another tenant's Service", "web."+s.other+".svc.cluster.local")
		alias("alias-other-service-shortly", "write an ExternalName that is the short name of another tenant's Service", "web."+s.other+".svc")
		alias("alias-metadata-service", "write an ExternalName that is the instance metadata service", "169.254.169.254")
		alias("alias-localhost", "write an ExternalName that is localhost, which is the proxy's own host", "localhost")
	}
	byIPs := attack.ByPolicy(ServicesPolicy, ExternalIPsRule)
	ips := func(svc *corev1.Service) { svc.Spec.ExternalIPs = []string{"203.0.113.7"} }
	all = append(all, attack.WithReason("the cluster's own traffic to the address would go to the tenant", []string{"CVE-2020-8554"},
		attack.NewCreate("claim-external-ip", "claim an address by spec.externalIPs", byIPs, service("claim-external-ip", ips)),
		attack.NewUpdate("claim-external-ip-later", "claim an address by spec.externalIPs of an existing Service", byIPs, service("claim-external-ip-later"), ips),
	)...)
	chosen := func(svc *corev1.Service) { svc.Spec.ClusterIP = attack.FreeClusterIP }
	if slices.Contains(s.attacker.Allowances.ClusterIPs, "*") {
		all = append(all, attack.NewCreate("choose-cluster-ip-as-allowed", "choose the address of a Service, as the tenant may", attack.Nobody, service("choose-cluster-ip", chosen)))
	} else {
		byClusterIP := attack.ByPolicy(ServicesPolicy, ClusterIPRule)
		all = append(all, attack.WithReason("the address may be that of the cluster's DNS, or of another tenant's Service that is being re-created", nil,
			attack.NewCreate("choose-cluster-ip", "choose the address of a Service", byClusterIP, service("choose-cluster-ip", chosen)),
			attack.NewCreate("choose-cluster-ips", "choose the address of a Service in the list of addresses too", byClusterIP, service("choose-cluster-ips", chosen, func(svc *corev1.Service) {
				svc.Spec.ClusterIPs = []string{attack.FreeClusterIP}
			})),
		)...)
	}
	kept := attack.NewUpdate("change-service-with-address", "change a Service, and resend its current address", attack.Nobody, service("change-service-with-address"),
		func(svc *corev1.Service) { svc.Labels = map[string]string{"app": "web"} })
	all = append(all, kept)
	byHosts := attack.ByPolicy(AnnotationsPolicy, AnnotatedHostsRule)
	announce := func(key, host string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Annotations = map[string]string{key: host} }
	}
	all = append(all,
		attack.NewCreate("announce-service-as-other-host", "have external-dns point another tenant's host at a Service", byHosts, service("announce-other", announce(externalDNS, s.otherHost))),
		attack.NewCreate("announce-service-among-own", "have external-dns point a foreign host at a Service, behind a host of one's own", byHosts,
			service("announce-among-own", announce(externalDNS, s.host+", "+foreignHost))),
		attack.NewCreate("announce-service-by-other-prefix", "have an external-dns with another prefix point a foreign host at a Service", byHosts,
			service("announce-by-other-prefix", announce("internal.external-dns.example.org/hostname", foreignHost))),
		attack.NewUpdate("announce-service-later", "have external-dns point a foreign host at an existing Service", byHosts, service("announce-later"), announce(externalDNS, foreignHost)),
	)
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

// buildIngressAttacks serve other tenants' hosts.
func (s scene) buildIngressAttacks() []attack.Attack {
	var all []attack.Attack
	refused := func(name, summary, rule string, edit func(*networkingv1.Ingress)) {
		all = append(all, attack.NewCreate(name, summary, attack.ByPolicy(IngressesPolicy, rule), s.makeIngress(name, edit)))
	}
	host := func(h string) func(*networkingv1.Ingress) {
		return func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = h }
	}
	tls := func(hosts ...string) func(*networkingv1.Ingress) {
		return func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: "web"}}
		}
	}
	refused("serve-other-host", "serve another tenant's host by an Ingress", HostsRule, host(s.otherHost))
	refused("serve-foreign-host", "serve a host by an Ingress that no tenant was granted", HostsRule, host(foreignHost))
	refused("serve-every-host", "serve every host by an Ingress without a host", HostsRule, host(""))
	refused("serve-other-host-second", "serve another tenant's host by the second rule of an Ingress", HostsRule, func(i *networkingv1.Ingress) {
		i.Spec.Rules = append(i.Spec.Rules, *i.Spec.Rules[0].DeepCopy())
		i.Spec.Rules[1].Host = s.otherHost
	})
	refused("serve-wildcard-of-all", "serve a wildcard that covers another tenant's host", HostsRule, host("*."+findParentDomain(s.otherHost)))
	refused("serve-below-other-host", "serve a host below another tenant's", HostsRule, host("login."+s.otherHost))
	refused("serve-lookalike-host", "serve a host that ends like one's own", HostsRule, host("evil"+s.host))
	all = append(all, attack.NewUpdate("serve-other-host-later", "serve another tenant's host by an existing Ingress", attack.ByPolicy(IngressesPolicy, HostsRule),
		s.makeIngress("serve-other-host-later"), host(s.otherHost)))
	refused("serve-tls-for-other-host", "serve TLS for another tenant's host", TLSHostsRule, tls(s.otherHost))
	if s.host != "" {
		refused("serve-tls-for-other-host-too", "serve TLS for another tenant's host, together with one's own", TLSHostsRule, tls(s.host, s.otherHost))
	}
	refused("serve-tls-for-every-host", "serve TLS without a host", TLSHostsRule, tls())
	refused("serve-the-rest", "serve every host without a rule, by a default backend", DefaultBackendRule, func(i *networkingv1.Ingress) { i.Spec.DefaultBackend = &backend })
	refused("serve-only-the-rest", "serve every host without a rule, by a default backend and no rules", DefaultBackendRule, func(i *networkingv1.Ingress) {
		i.Spec.DefaultBackend, i.Spec.Rules = &backend, nil
	})
	if !slices.Contains(s.attacker.Allowances.IngressClasses, "*") {
		refused("choose-ingress-class", "choose a controller that is not the tenant's", ClassRule, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To("internal") })
		refused("choose-no-ingress-class", "name no class of a controller", ClassRule, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil })
		refused("choose-ingress-class-by-annotation", "choose a controller that is not the tenant's by the older annotation", ClassRule, func(i *networkingv1.Ingress) {
			i.Spec.IngressClassName = nil
			i.Annotations = map[string]string{"kubernetes.io/ingress.class": "internal"}
		})
	}
	all = attack.WithReason("a tenant that serves another's host can read its users' passwords", nil, all...)

	if s.host == "" {
		return all
	}
	return append(all,
		attack.NewCreate("serve-own-host", "serve a host of one's own by an Ingress, with TLS", attack.Nobody, s.makeIngress("serve-own-host", tls(s.host))),
	)
}

// findParentDomain returns the domain directly above a host.
func findParentDomain(host string) string {
	for i, c := range host {
		if c == '.' {
			return host[i+1:]
		}
	}
	return host
}
