package policy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"croft.dev/croft/internal/attack"
)

const (
	foreignHost     = "www.example.com"
	externalDNS     = "external-dns.alpha.kubernetes.io/hostname"
	serverAlias     = "nginx.ingress.kubernetes.io/server-alias"
	ingressSnippets = "https://github.com/kubernetes/ingress-nginx/issues/7837"
)

// services reach out of the tenant's namespaces.
func (s scene) services() []attack.Attack {
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
		attack.Creating("write-a-service", "write a Service", attack.Nobody, service("write-a-service")),
		attack.Creating("write-a-headless-service", "write a headless Service", attack.Nobody, service("write-a-headless-service", func(svc *corev1.Service) { svc.Spec.ClusterIP = "None" })),
	}
	for _, t := range []struct {
		of   corev1.ServiceType
		name string
	}{{corev1.ServiceTypeNodePort, "node-port"}, {corev1.ServiceTypeLoadBalancer, "load-balancer"}, {corev1.ServiceTypeExternalName, "external-name"}} {
		summary := "write a Service of type " + string(t.of)
		if slices.Contains(s.by.Allowances.ServiceTypes, t.of) {
			all = append(all, attack.Creating("write-"+t.name+"-as-allowed", summary+", which the tenant may", attack.Nobody, service("write-"+t.name, as(t.of))))
			continue
		}
		by := attack.ByPolicy(ServicesPolicy, ServiceTypeRule)
		all = append(all,
			attack.Creating("open-"+t.name, summary, by, service("open-"+t.name, as(t.of))),
			attack.Changing("turn-into-"+t.name, "turn a Service into one of type "+string(t.of), by, service("turn-into-"+t.name), as(t.of)))
	}
	if slices.Contains(s.by.Allowances.ServiceTypes, corev1.ServiceTypeExternalName) {
		by := attack.ByPolicy(ServicesPolicy, ExternalNameRule)
		alias := func(name, summary, target string) {
			all = append(all, attack.Creating(name, summary, by, service(name, as(corev1.ServiceTypeExternalName), func(svc *corev1.Service) { svc.Spec.ExternalName = target })))
		}
		alias("alias-other-service", "write an ExternalName that is another tenant's Service", "web."+s.other+".svc.cluster.local")
		alias("alias-other-service-shortly", "write an ExternalName that is the short name of another tenant's Service", "web."+s.other+".svc")
		alias("alias-localhost", "write an ExternalName that is localhost, that of whoever proxies it", "localhost")
	}
	byIPs := attack.ByPolicy(ServicesPolicy, ExternalIPsRule)
	ips := func(svc *corev1.Service) { svc.Spec.ExternalIPs = []string{"203.0.113.7"} }
	all = append(all, attack.Because("whatever is sent to the address from within the cluster would go to the tenant", []string{"CVE-2020-8554"},
		attack.Creating("claim-external-ip", "claim an address by spec.externalIPs", byIPs, service("claim-external-ip", ips)),
		attack.Changing("claim-external-ip-later", "claim an address by spec.externalIPs of a Service that is there", byIPs, service("claim-external-ip-later"), ips),
	)...)
	byHosts := attack.ByPolicy(ServicesPolicy, AnnotatedHostsRule)
	announce := func(key, host string) func(*corev1.Service) {
		return func(svc *corev1.Service) { svc.Annotations = map[string]string{key: host} }
	}
	all = append(all,
		attack.Creating("announce-service-as-other-host", "have external-dns point another tenant's host at a Service", byHosts, service("announce-other", announce(externalDNS, s.otherHost))),
		attack.Creating("announce-service-among-own", "have external-dns point a foreign host at a Service, behind a host of one's own", byHosts,
			service("announce-among-own", announce(externalDNS, s.host+", "+foreignHost))),
		attack.Creating("announce-service-by-other-prefix", "have an external-dns with another prefix point a foreign host at a Service", byHosts,
			service("announce-by-other-prefix", announce("internal.external-dns.example.org/hostname", foreignHost))),
		attack.Changing("announce-service-later", "have external-dns point a foreign host at a Service that is there", byHosts, service("announce-later"), announce(externalDNS, foreignHost)),
	)
	if s.host != "" {
		all = append(all, attack.Creating("announce-service", "have external-dns point a host of one's own at a Service", attack.Nobody, service("announce-service", announce(externalDNS, s.host))))
	}
	return attack.Because("a Service that reaches out of its namespace takes ports, addresses or names that others use", nil, all...)
}

func (s scene) ingress(name string, edits ...func(*networkingv1.Ingress)) *networkingv1.Ingress {
	i := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: s.host, IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/", PathType: ptr.To(networkingv1.PathTypePrefix), Backend: backend}}},
		}}}},
	}
	if len(s.by.Allowances.IngressClasses) > 0 && s.by.Allowances.IngressClasses[0] != "*" {
		i.Spec.IngressClassName = &s.by.Allowances.IngressClasses[0]
	}
	for _, edit := range edits {
		edit(i)
	}
	return i
}

var backend = networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "web", Port: networkingv1.ServiceBackendPort{Number: 80}}}

// ingresses serve what is not the tenant's.
func (s scene) ingresses() []attack.Attack {
	var all []attack.Attack
	refused := func(name, summary, rule string, edit func(*networkingv1.Ingress)) {
		all = append(all, attack.Creating(name, summary, attack.ByPolicy(IngressesPolicy, rule), s.ingress(name, edit)))
	}
	host := func(h string) func(*networkingv1.Ingress) {
		return func(i *networkingv1.Ingress) { i.Spec.Rules[0].Host = h }
	}
	tls := func(hosts ...string) func(*networkingv1.Ingress) {
		return func(i *networkingv1.Ingress) {
			i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: hosts, SecretName: "web"}}
		}
	}
	annotated := func(key, value string) func(*networkingv1.Ingress) {
		return func(i *networkingv1.Ingress) { i.Annotations = map[string]string{key: value} }
	}
	refused("serve-other-host", "serve another tenant's host by an Ingress", HostsRule, host(s.otherHost))
	refused("serve-foreign-host", "serve a host by an Ingress that nobody was granted", HostsRule, host(foreignHost))
	refused("serve-every-host", "serve every host by an Ingress without a host", HostsRule, host(""))
	refused("serve-other-host-second", "serve another tenant's host by the second rule of an Ingress", HostsRule, func(i *networkingv1.Ingress) {
		i.Spec.Rules = append(i.Spec.Rules, *i.Spec.Rules[0].DeepCopy())
		i.Spec.Rules[1].Host = s.otherHost
	})
	refused("serve-wildcard-of-all", "serve a wildcard that covers another tenant's host", HostsRule, host("*."+parent(s.otherHost)))
	refused("serve-below-other-host", "serve a host below another tenant's", HostsRule, host("login."+s.otherHost))
	refused("serve-lookalike-host", "serve a host that ends like one's own", HostsRule, host("evil"+s.host))
	all = append(all, attack.Changing("serve-other-host-later", "serve another tenant's host by an Ingress that is there", attack.ByPolicy(IngressesPolicy, HostsRule),
		s.ingress("serve-other-host-later"), host(s.otherHost)))
	refused("serve-tls-for-other-host", "serve TLS for another tenant's host", TLSHostsRule, tls(s.otherHost))
	refused("serve-tls-for-other-host-too", "serve TLS for another tenant's host beside one's own", TLSHostsRule, tls(s.host, s.otherHost))
	refused("serve-tls-for-every-host", "serve TLS without saying for which host", TLSHostsRule, tls())
	refused("serve-the-rest", "serve whatever nobody else does, by a default backend", DefaultBackendRule, func(i *networkingv1.Ingress) { i.Spec.DefaultBackend = &backend })
	refused("serve-only-the-rest", "serve whatever nobody else does, by a default backend and no rules", DefaultBackendRule, func(i *networkingv1.Ingress) {
		i.Spec.DefaultBackend, i.Spec.Rules = &backend, nil
	})
	refused("serve-alias", "serve a foreign host as an alias", AnnotatedHostsRule, annotated(serverAlias, s.otherHost))
	refused("announce-ingress-as-other-host", "have external-dns point another tenant's host at an Ingress", AnnotatedHostsRule, annotated(externalDNS, s.otherHost))
	refused("certify-other-host-by-annotation", "have cert-manager certify another tenant's host for an Ingress", AnnotatedHostsRule, annotated("cert-manager.io/common-name", s.otherHost))
	if !slices.Contains(s.by.Allowances.IngressClasses, "*") {
		refused("choose-ingress-class", "choose a controller that is not the tenant's", ClassRule, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = ptr.To("internal") })
		refused("choose-no-ingress-class", "leave it open which controller serves", ClassRule, func(i *networkingv1.Ingress) { i.Spec.IngressClassName = nil })
		refused("choose-ingress-class-by-annotation", "choose a controller that is not the tenant's by the older annotation", ClassRule, func(i *networkingv1.Ingress) {
			i.Spec.IngressClassName = nil
			i.Annotations = map[string]string{"kubernetes.io/ingress.class": "internal"}
		})
	}
	all = attack.Because("whoever serves another's host reads its users' passwords", nil, all...)

	shared := len(all)
	snippet := "more_set_headers \"x: y\";"
	refused("write-configuration-snippet", "write configuration into ingress-nginx by a snippet", SnippetsRule, annotated("nginx.ingress.kubernetes.io/configuration-snippet", snippet))
	refused("write-server-snippet", "write configuration into ingress-nginx by a server snippet", SnippetsRule, annotated("nginx.ingress.kubernetes.io/server-snippet", snippet))
	refused("write-nginx-org-snippet", "write configuration into NGINX's own controller", SnippetsRule, annotated("nginx.org/location-snippets", snippet))
	refused("write-haproxy-config", "write configuration into HAProxy's controller", SnippetsRule, annotated("haproxy-ingress.github.io/config-backend", "acl x"))
	refused("read-other-secret", "have ingress-nginx read a Secret of another tenant", ReferencesRule, annotated("nginx.ingress.kubernetes.io/auth-secret", s.other+"/passwords"))
	refused("read-other-certificate", "have ingress-nginx read a certificate of another tenant", ReferencesRule, annotated("nginx.ingress.kubernetes.io/auth-tls-secret", s.other+"/tls"))
	attack.Because("the controller serves every tenant, and reads every tenant's Secrets", []string{"CVE-2021-25742", ingressSnippets}, all[shared:]...)

	through := len(all)
	refused("call-other-by-auth-url", "have the ingress controller call another tenant's Service", URLsRule, annotated("nginx.ingress.kubernetes.io/auth-url", "http://web."+s.other+".svc.cluster.local/"))
	refused("call-other-by-short-url", "have the ingress controller call another tenant's Service by its short name", URLsRule, annotated("nginx.ingress.kubernetes.io/auth-url", "http://web."+s.other+"/"))
	refused("call-address-by-auth-url", "have the ingress controller call an address", URLsRule, annotated("nginx.ingress.kubernetes.io/auth-url", "http://169.254.169.254/latest/meta-data/"))
	refused("call-other-by-mirror", "have the ingress controller mirror requests to another tenant's Service", URLsRule, annotated("nginx.ingress.kubernetes.io/mirror-target", "http://web."+s.other+".svc:80/"))
	refused("call-anything-by-variable", "have the ingress controller call whatever a request says", URLsRule, annotated("nginx.ingress.kubernetes.io/auth-url", "http://$arg_target/"))
	refused("add-host-to-load-balancer", "add a foreign host to a rule of the AWS load balancer", LoadBalancerRule,
		annotated("alb.ingress.kubernetes.io/conditions.web", `[{"field":"host-header","hostHeaderConfig":{"values":["`+foreignHost+`"]}}]`))
	refused("forward-to-other-target-group", "have the AWS load balancer forward to another tenant's targets", LoadBalancerRule,
		annotated("alb.ingress.kubernetes.io/actions.web", `{"type":"forward","targetGroupARN":"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/other/1"}`))
	attack.Because("the controller reaches every tenant: who sends it reaches them too", nil, all[through:]...)

	if s.host == "" {
		return all
	}
	if platform := s.platform.Network.PlatformNamespaces; len(platform) > 0 {
		all = append(all, attack.Creating("sign-in-by-platform-service", "have ingress-nginx ask a Service of the platform who may come in", attack.Nobody,
			s.ingress("sign-in-by-platform-service", annotated("nginx.ingress.kubernetes.io/auth-url", "http://auth."+platform[0]+".svc.cluster.local/oauth2/auth"))))
	}
	return append(all,
		attack.Creating("serve-own-host", "serve a host of one's own by an Ingress, with TLS", attack.Nobody, s.ingress("serve-own-host", tls(s.host))),
		attack.Creating("sign-in-by-own-service", "have ingress-nginx ask a Service of one's own who may come in", attack.Nobody, s.ingress("sign-in-by-own-service", func(i *networkingv1.Ingress) {
			i.Annotations = map[string]string{
				"nginx.ingress.kubernetes.io/auth-url":    "http://auth." + s.own + ".svc.cluster.local/oauth2/auth",
				"nginx.ingress.kubernetes.io/auth-signin": "https://$host/oauth2/start",
				"nginx.ingress.kubernetes.io/auth-secret": "passwords",
			}
		})),
		attack.Creating("sign-in-by-another-host", "have ingress-nginx ask a host outside who may come in", attack.Nobody, s.ingress("sign-in-by-another-host", annotated("nginx.ingress.kubernetes.io/auth-url", "https://login.corp.example.org/auth"))),
	)
}

// parent is the domain that a host is directly below.
func parent(host string) string {
	for i, c := range host {
		if c == '.' {
			return host[i+1:]
		}
	}
	return host
}
