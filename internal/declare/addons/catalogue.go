package addons

import "strings"

// splitNames returns the words of a text.
func splitNames(names string) []string { return strings.Fields(names) }

const (
	configures = "it is written into the configuration of a controller that serves every tenant"
	cloud      = "it names something of the cloud account, which may be another tenant's or the platform's"
	address    = "it claims an address, which may be another's"
	copies     = "the add-on copies between namespaces with rights to all of them"
	runtime    = "the container runtime gives the pod what Pod Security keeps from it"
	tags       = "tags decide who pays, and who has rights in the account"
	logs       = "others write logs into any bucket of the account, or keep the load balancer, and with it the namespace, from being deleted"
	cve        = "https://nvd.nist.gov/vuln/detail/"
)

// The attributes of AWS load balancers that affect only the balancer's own requests.
var (
	attributesOfALB = splitNames(`routing. idle_timeout.timeout_seconds client_keep_alive.seconds load_balancing.cross_zone.enabled zonal_shift.config.enabled
		dns_record.client_routing_policy`)
	attributesOfNLB = splitNames("load_balancing.cross_zone.enabled zonal_shift.config.enabled dns_record.client_routing_policy tcp.idle_timeout.seconds")
)

// catalogue has the add-ons. Each prefix belongs to one add-on. If an add-on's annotations
// can do harm, DefaultClass refuses annotations that are not listed, or treats them as unknown: a
// list of harmful annotations would miss new ones of the next release.
var catalogue = []Addon{
	{
		Name: "ingress-nginx", Source: "https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations-risk/",
		Kinds: Edge, Prefixes: splitNames("nginx.ingress.kubernetes.io"), InstalledMarkers: splitNames("k8s.io/ingress-nginx"),
		Names: []Names{
			{Class: Never, Harm: configures, Source: cve + "CVE-2021-25742", Names: splitNames("configuration-snippet server-snippet auth-snippet modsecurity-snippet stream-snippet location-snippet influxdb-host influxdb-port enable-influxdb influxdb-measurement influxdb-server-name")},
			{Class: Hosts, Harm: "the controller serves the host besides", Names: splitNames("server-alias")},
			{Class: URL, Harm: "the controller sends requests there, with its own network", Source: cve + "CVE-2025-24514", Names: splitNames("auth-url mirror-target")},
			{Class: Object, Harm: "the controller reads the object with rights to all namespaces", Names: splitNames("auth-secret auth-tls-secret proxy-ssl-secret secure-verify-ca-secret auth-proxy-set-headers custom-headers fastcgi-params-configmap")},
			{Class: Text, Harm: configures, Source: cve + "CVE-2023-5044, " + cve + "CVE-2025-1097, " + cve + "CVE-2025-1098, " + cve + "CVE-2021-25746", Names: splitNames(`
				allowlist-source-range whitelist-source-range backend-protocol auth-realm auth-secret-type auth-type canary canary-by-cookie canary-by-header canary-by-header-pattern
				canary-by-header-value canary-weight canary-weight-total auth-tls-error-page auth-tls-match-cn auth-tls-pass-certificate-to-upstream auth-tls-verify-client
				auth-tls-verify-depth client-body-buffer-size connection-proxy-header cors-allow-credentials cors-allow-headers cors-allow-methods cors-allow-origin
				cors-expose-headers cors-max-age enable-cors custom-http-errors default-backend denylist-source-range disable-proxy-intercept-errors enable-global-auth
				auth-always-set-cookie auth-cache-duration auth-cache-key auth-keepalive auth-keepalive-requests auth-keepalive-share-vars auth-keepalive-timeout auth-method
				auth-request-redirect auth-response-headers auth-signin auth-signin-redirect-param fastcgi-index http2-push-preload load-balance enable-access-log
				enable-rewrite-log mirror-host mirror-request-body enable-modsecurity enable-owasp-core-rules modsecurity-transaction-id enable-opentelemetry
				opentelemetry-operation-name opentelemetry-trust-incoming-span enable-opentracing opentracing-trust-incoming-span proxy-body-size proxy-buffer-size
				proxy-buffering proxy-buffers-number proxy-busy-buffers-size proxy-connect-timeout proxy-cookie-domain proxy-cookie-path proxy-http-version
				proxy-max-temp-file-size proxy-next-upstream proxy-next-upstream-timeout proxy-next-upstream-tries proxy-read-timeout proxy-redirect-from
				proxy-redirect-to proxy-request-buffering proxy-send-timeout proxy-ssl-ciphers proxy-ssl-name proxy-ssl-protocols proxy-ssl-server-name
				proxy-ssl-verify proxy-ssl-verify-depth limit-allowlist limit-whitelist limit-burst-multiplier limit-connections limit-rate limit-rate-after
				limit-rpm limit-rps from-to-www-redirect permanent-redirect permanent-redirect-code temporal-redirect temporal-redirect-code relative-redirects app-root
				force-ssl-redirect preserve-trailing-slash rewrite-target ssl-redirect use-regex ssl-ciphers ssl-prefer-server-ciphers ssl-passthrough satisfy
				service-upstream affinity affinity-canary-behavior affinity-mode session-cookie-change-on-failure session-cookie-conditional-samesite-none
				session-cookie-domain session-cookie-expires session-cookie-max-age session-cookie-name session-cookie-partitioned session-cookie-path
				session-cookie-samesite session-cookie-secure upstream-hash-by upstream-hash-by-subset upstream-hash-by-subset-size upstream-vhost
				use-port-in-redirects x-forwarded-prefix`)},
		},
	},
	{
		Name: "NGINX Ingress Controller", Source: "https://docs.nginx.com/nginx-ingress-controller/configuration/ingress-resources/advanced-configuration-with-annotations/",
		Kinds: Edge, Prefixes: splitNames("nginx.org nginx.com"), DefaultClass: Text, InstalledMarkers: splitNames("nginx.org/ingress-controller k8s.nginx.org gateway.nginx.org"),
		Names: []Names{
			{Class: Never, Harm: configures, Names: splitNames("server-snippets location-snippets http-snippets stream-snippets main-snippets")},
			{Class: Object, Harm: "the controller reads the object with rights to all namespaces", Names: splitNames("policies basic-auth-secret jwt-key")},
			{Class: Never, Harm: "it sends requests for one host to Ingresses of others", Names: splitNames("mergeable-ingress-type")},
		},
	},
	{
		Name: "NGINX App Protect", Source: "https://docs.nginx.com/nginx-ingress-controller/installation/integrations/app-protect-waf/configuration/",
		Kinds: Edge, Prefixes: splitNames("appprotect.f5.com appprotectdos.f5.com"), DefaultClass: Never, InstalledMarkers: splitNames("appprotect.f5.com appprotectdos.f5.com"),
		Names: []Names{{Class: Object, Harm: "the policy may be another tenant's", Names: splitNames("app-protect-policy app-protect-security-log app-protect-dos-resource")},
			{Class: OneOf, Values: splitNames("True False"), Names: splitNames("app-protect-enable app-protect-security-log-enable")}},
	},
	{
		Name: "HAProxy Ingress", Source: "https://haproxy-ingress.github.io/docs/configuration/keys/",
		Kinds: Edge, Prefixes: splitNames("haproxy-ingress.github.io ingress.kubernetes.io"), DefaultClass: Never, InstalledMarkers: splitNames("haproxy-ingress.github.io/controller"),
		Names: []Names{
			{Class: Never, Harm: configures, Names: splitNames("config-backend config-tcp-service")},
			{Class: Never, Harm: "a regular expression may match every host", Names: splitNames("server-alias-regex")},
			{Class: Hosts, Harm: "the controller serves the host besides", Names: splitNames("server-alias redirect-from")},
			{Class: URL, Harm: "the controller sends requests there, with its own network", Names: splitNames("auth-url")},
			{Class: Object, Harm: "the controller reads the object with rights to all namespaces", Names: splitNames("auth-secret auth-tls-secret secure-crt-secret secure-verify-ca-secret")},
			{Class: Text, Harm: configures, Names: splitNames(`affinity allowlist-source-range whitelist-source-range denylist-source-range app-root auth-headers-fail auth-headers-request auth-headers-succeed
				auth-method auth-realm auth-signin auth-tls-cert-header auth-tls-error-page auth-tls-strict auth-tls-verify-client backend-check-interval backend-protocol
				backend-server-naming backend-server-slots-increment balance-algorithm blue-green-balance blue-green-cookie blue-green-deploy blue-green-header
				blue-green-mode cert-signer cors-allow-credentials cors-allow-headers cors-allow-methods cors-allow-origin cors-enable cors-expose-headers cors-max-age
				health-check-interval health-check-port health-check-uri hsts hsts-include-subdomains hsts-max-age hsts-preload initial-weight limit-connections
				limit-rps limit-whitelist maxconn-server maxqueue-server oauth oauth-headers oauth-uri-prefix path-type proxy-body-size redirect-to redirect-code rewrite-target
				secure-backends secure-sni secure-verify-hostname service-upstream session-cookie-dynamic session-cookie-keywords session-cookie-name
				session-cookie-preserve session-cookie-shared session-cookie-strategy slots-increment ssl-always-add-https ssl-cipher-suites ssl-ciphers
				ssl-passthrough ssl-redirect ssl-redirect-code timeout-client timeout-connect timeout-http-request timeout-keep-alive timeout-queue timeout-server
				timeout-server-fin timeout-tunnel use-resolver waf waf-mode force-ssl-redirect`)},
		},
	},
	{
		Name: "HAProxy Kubernetes Ingress Controller", Source: "https://www.haproxy.com/documentation/kubernetes-ingress/community/configuration-reference/ingress/",
		Kinds: Edge, Prefixes: splitNames("haproxy.org haproxy.com"), DefaultClass: Never, InstalledMarkers: splitNames("haproxy.org/ingress-controller core.haproxy.org ingress.v1.haproxy.org ingress.v3.haproxy.com"),
		Names: []Names{
			{Class: Never, Harm: configures, Names: splitNames("backend-config-snippet frontend-config-snippet")},
			{Class: Object, Harm: "the controller reads the object with rights to all namespaces", Names: splitNames("auth-secret server-ca server-crt client-ca cr-backend")},
			{Class: Text, Harm: configures, Names: splitNames(`allow-list deny-list whitelist blacklist auth-realm auth-type check check-http check-interval cookie-persistence cookie-persistence-no-dynamic
				cors-allow-credentials cors-allow-headers cors-allow-methods cors-allow-origin cors-enable cors-max-age forwarded-for ingress.class load-balance
				path-rewrite pod-maxconn rate-limit-period rate-limit-requests rate-limit-size rate-limit-status-code request-redirect request-redirect-code
				scale-server-slots send-proxy-protocol server-proto server-sni server-ssl set-host src-ip-header ssl-passthrough ssl-redirect ssl-redirect-code
				ssl-redirect-port standalone-backend timeout-check timeout-connect timeout-queue timeout-server timeout-tunnel abortonclose`)},
		},
	},
	{
		Name: "Traefik", Source: "https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/ingress/",
		Kinds: Edge, Prefixes: splitNames("traefik.ingress.kubernetes.io"), DefaultClass: Never, InstalledMarkers: splitNames("traefik.io traefik.containo.us traefik.io/ingress-controller"),
		Names: []Names{
			{Class: Prefixed, Harm: "the middleware may be another tenant's", Names: splitNames("router.middlewares router.tls.options service.serverstransport")},
			{Class: OneOf, Values: splitNames("web websecure"), Harm: "other entry points are the platform's", Names: splitNames("router.entrypoints")},
			{Class: Harmless, Names: splitNames(`router.priority router.pathmatcher router.tls router.tls.certresolver router.observability.accesslogs router.observability.metrics
				router.observability.tracing service.serversscheme service.passhostheader service.nativelb service.nodeportlb service.sticky.cookie
				service.sticky.cookie.name service.sticky.cookie.secure service.sticky.cookie.samesite service.sticky.cookie.httponly service.sticky.cookie.maxage
				service.sticky.cookie.path`)},
		},
	},
	{
		Name: "Kong", Source: "https://developer.konghq.com/kubernetes-ingress-controller/reference/annotations/",
		Kinds: Edge, Prefixes: splitNames("konghq.com"), InstalledMarkers: splitNames("ingress-controllers.konghq.com/kong configuration.konghq.com gateway-operator.konghq.com"),
		Names: []Names{
			{Class: Hosts, Harm: "the controller serves the host besides", Names: splitNames("host-aliases snis")},
			{Class: Harmless, Names: splitNames(`plugins override protocol protocols path strip-path rewrite preserve-host regex-priority regex-prefix methods host-header request-buffering
				response-buffering https-redirect-status-code connect-timeout read-timeout write-timeout retries upstream-policy path-handling tags tls-verify tls-verify-depth
				http-forced headers. service-upstream`)},
			{Class: Object, Harm: "the secret may be another tenant's", Names: splitNames("client-cert ca-certificates-secrets ca-certificates-configmaps")},
		},
	},
	{
		Name: "Contour", Source: "https://projectcontour.io/docs/main/config/annotations/",
		Kinds: Edge, Prefixes: splitNames("projectcontour.io"), DefaultClass: Text, InstalledMarkers: splitNames("projectcontour.io projectcontour.io/ingress-controller"),
		Names: []Names{{Class: Namespaces, Harm: "the certificate is read in that namespace", Names: splitNames("tls-cert-namespace")}},
	},
	{
		Name: "Skipper and kube-ingress-aws-controller", Source: "https://opensource.zalando.com/skipper/kubernetes/ingress-usage/",
		Kinds: Edge, Prefixes: splitNames("zalando.org"), DefaultClass: Never, InstalledMarkers: splitNames("zalando.org"),
		Names: []Names{
			{Class: Never, Harm: "filters, predicates and routes send requests anywhere", Names: splitNames("skipper-filter skipper-predicate skipper-routes skipper-backend")},
			{Class: Hosts, Harm: "a DNS record is made of it", Names: splitNames("dnsname")},
			{Class: Harmless, Names: splitNames("backend-weights skipper-loadbalancer skipper-ingress-path-mode skipper-ingress-redirect skipper-ingress-redirect-code ratelimit")},
		},
	},
	{
		Name: "AWS Load Balancer Controller, Ingresses", Source: "https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/ingress/annotations/",
		Kinds: Edge, Prefixes: splitNames("alb.ingress.kubernetes.io"), DefaultClass: Rights, InstalledMarkers: splitNames("elbv2.k8s.aws gateway.k8s.aws ingress.k8s.aws/alb eks.amazonaws.com/alb"),
		Names: []Names{
			{Class: Shared, Harm: "Ingresses of one group share a load balancer and its rules", Names: splitNames("group.name")},
			{Class: Rules, Harm: "a rule that names hosts or target groups takes another tenant's requests", Names: splitNames("actions. conditions. transforms.")},
			{Class: Rights, Harm: cloud, Names: splitNames(`certificate-arn wafv2-acl-arn wafv2-acl-name waf-acl-id web-acl-id shield-advanced-protection security-groups security-group-prefix-lists
				manage-backend-security-group-rules subnets customer-owned-ipv4-pool ipam-ipv4-pool-id mutual-authentication
				auth-idp-cognito frontend-nlb-eip-allocations frontend-nlb-security-groups frontend-nlb-subnets load-balancer-name
				minimum-load-balancer-capacity target-node-labels multi-cluster-target-group create-acm-cert acm-pca-arn`)},
			{Class: Rights, Harm: tags, Names: splitNames("tags frontend-nlb-tags")},
			{Class: Attributes, Values: attributesOfALB, Harm: logs, Names: splitNames("load-balancer-attributes listener-attributes.")},
			{Class: Attributes, Values: attributesOfNLB, Harm: logs, Names: splitNames("frontend-nlb-attributes")},
			{Class: Harmless, Names: splitNames(`scheme target-type listen-ports healthcheck-port healthcheck-protocol healthcheck-path healthcheck-interval-seconds healthcheck-timeout-seconds
				healthy-threshold-count unhealthy-threshold-count success-codes backend-protocol backend-protocol-version ssl-redirect ssl-policy ip-address-type inbound-cidrs
				group.order target-group-attributes auth-type auth-idp-oidc auth-on-unauthenticated-request auth-scope auth-session-cookie auth-session-timeout
				use-regex-path-match enable-frontend-nlb frontend-nlb-scheme frontend-nlb-listener-port-mapping frontend-nlb-healthcheck-port frontend-nlb-healthcheck-protocol
				frontend-nlb-healthcheck-path frontend-nlb-healthcheck-interval-seconds frontend-nlb-healthcheck-timeout-seconds frontend-nlb-healthcheck-healthy-threshold-count
				frontend-nlb-healthcheck-unhealthy-threshold-count frontend-nlb-healthcheck-success-codes target-control-port.`)},
		},
	},
	{
		Name: "Service load balancers: AWS, Azure, DigitalOcean, others", Source: "https://kubernetes-sigs.github.io/aws-load-balancer-controller/latest/guide/service/annotations/",
		Kinds: Edge, Prefixes: splitNames("service.beta.kubernetes.io service.kubernetes.io"), DefaultClass: Rights,
		Names: []Names{
			{Class: Rights, Harm: cloud, Names: splitNames(`aws-load-balancer-security-groups aws-load-balancer-extra-security-groups aws-load-balancer-ssl-cert aws-load-balancer-subnets
				aws-load-balancer-access-log-s3-bucket-name aws-load-balancer-access-log-s3-bucket-prefix aws-load-balancer-name azure-load-balancer-resource-group azure-pip-name azure-shared-securityrule do-loadbalancer-id do-loadbalancer-certificate-id`)},
			{Class: Rights, Harm: tags, Names: splitNames("aws-load-balancer-additional-resource-tags")},
			{Class: Attributes, Values: attributesOfNLB, Harm: logs, Names: splitNames("aws-load-balancer-attributes aws-load-balancer-listener-attributes.")},
			{Class: Address, Harm: address, Names: splitNames("aws-load-balancer-eip-allocations aws-load-balancer-private-ipv4-addresses aws-load-balancer-ipv6-addresses azure-load-balancer-ipv4 azure-load-balancer-ipv6 azure-pip-prefix-id")},
			{Class: Harmless, Names: splitNames(`aws-load-balancer-type aws-load-balancer-nlb-target-type aws-load-balancer-internal aws-load-balancer-scheme aws-load-balancer-proxy-protocol
				aws-load-balancer-ip-address-type aws-load-balancer-access-log-enabled aws-load-balancer-access-log-emit-interval
				aws-load-balancer-cross-zone-load-balancing-enabled aws-load-balancer-ssl-ports aws-load-balancer-ssl-negotiation-policy aws-load-balancer-backend-protocol
				aws-load-balancer-healthcheck-healthy-threshold aws-load-balancer-healthcheck-unhealthy-threshold aws-load-balancer-healthcheck-timeout
				aws-load-balancer-healthcheck-interval aws-load-balancer-healthcheck-protocol aws-load-balancer-healthcheck-port aws-load-balancer-healthcheck-path
				aws-load-balancer-healthcheck-success-codes aws-load-balancer-target-group-attributes aws-load-balancer-connection-idle-timeout
				aws-load-balancer-connection-draining-enabled aws-load-balancer-connection-draining-timeout aws-load-balancer-alpn-policy
				aws-load-balancer-proxy-protocol-per-target-group aws-load-balancer-enable-tcp-udp-listener aws-load-balancer-quic-enabled-ports
				azure-load-balancer-internal azure-load-balancer-internal-subnet azure-load-balancer-tcp-idle-timeout azure-load-balancer-health-probe-request-path
				azure-load-balancer-health-probe-protocol azure-load-balancer-health-probe-interval azure-allowed-ip-ranges azure-allowed-service-tags load-balancer-source-ranges topology-mode topology-aware-hints
				do-loadbalancer-protocol do-loadbalancer-size-slug do-loadbalancer-enable-proxy-protocol`)},
		},
	},
	{
		Name: "MetalLB", Source: "https://metallb.io/usage/", Kinds: Edge, Prefixes: splitNames("metallb.io metallb.universe.tf"), DefaultClass: Address, InstalledMarkers: splitNames("metallb.io"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("loadBalancerIPs allow-shared-ip address-pool")},
			{Class: Harmless, Harm: "MetalLB writes it", Names: splitNames("ip-allocated-from-pool")},
		},
	},
	{Name: "kube-vip", Source: "https://kube-vip.io/docs/usage/kubernetes-services/", Kinds: Edge, Prefixes: splitNames("kube-vip.io"), DefaultClass: Address,
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("loadbalancerIPs requestedIP hwaddr serviceInterface")},
			{Class: Harmless, Harm: "kube-vip writes it", Names: splitNames("vipHost active-endpoint active-endpoint-ipv6")},
		}},
	{Name: "PureLB", Source: "https://purelb.gitlab.io/docs/operation/services/", Kinds: Edge, Prefixes: splitNames("purelb.io"), DefaultClass: Address, InstalledMarkers: splitNames("purelb.io"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("service-group addresses allow-shared-ip")},
			{Class: Harmless, Harm: "PureLB writes it", Names: splitNames("allocated-by allocated-from pool-type announcing-IPv4 announcing-IPv6")},
		}},
	{Name: "OpenELB, LoxiLB, kube-router", Source: "https://openelb.io/docs/getting-started/usage/", Kinds: Edge, DefaultClass: Address, InstalledMarkers: splitNames("network.kubesphere.io loxilb.io"),
		Prefixes: splitNames("lb.kubesphere.io eip.openelb.kubesphere.io protocol.openelb.kubesphere.io layer2.openelb.kubesphere.io loxilb.io kube-router.io"),
		Names:    []Names{{Class: Address, Harm: address, Names: splitNames("v1alpha1 v1alpha2 staticIP service.advertise.externalip service.advertise.loadbalancerip")}}},
	{Name: "AVI, AKO", Source: "https://techdocs.broadcom.com/us/en/vmware-security-load-balancing/avi-load-balancer/avi-kubernetes-operator.html", Kinds: Edge, DefaultClass: Rights, InstalledMarkers: splitNames("ako.vmware.com ako.vmware.com/avi-lb"),
		Prefixes: splitNames("ako.vmware.com aviinfrasetting.ako.vmware.com passthrough.ako.vmware.com skipnodeport.ako.vmware.com"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("load-balancer-ip enable-shared-vip")},
			{Class: Rights, Harm: "it names settings of the load balancer, which may be another tenant's or the platform's", Names: splitNames("name application-profile l4rule")},
			{Class: Harmless, Names: splitNames("enabled enable-tls disable-traffic")},
			{Class: Harmless, Harm: "AKO writes it", Names: splitNames("host-fqdn-vs-uuid-map controller-cluster-uuid vs-uuid")},
		}},
	{Name: "F5 BIG-IP", Source: "https://clouddocs.f5.com/containers/latest/", Kinds: Edge | Data, Prefixes: splitNames("cis.f5.com virtual-server.f5.com"), DefaultClass: Rights, InstalledMarkers: splitNames("cis.f5.com f5.com/cntr-ingress-svcs"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("ip ipamLabel")},
			{Class: Rights, Harm: "it names a partition, a policy or a profile of the load balancer, which may be another tenant's or the platform's", Names: splitNames("partition policyName clientssl serverssl waf host multiClusterServices health")},
			{Class: Harmless, Names: splitNames("http-port https-port balance rewrite-app-root rewrite-target-url allow-source-range whitelist-source-range pod-concurrent-connections")},
		}},
	{Name: "APISIX", Source: "https://apisix.apache.org/docs/ingress-controller/reference/ingress-annotations/", Kinds: Edge, Prefixes: splitNames("k8s.apisix.apache.org"), InstalledMarkers: splitNames("apisix.apache.org apisix.apache.org/apisix-ingress-controller"),
		Names: []Names{
			{Class: Namespaces, Harm: "the backend is a Service of that namespace", Names: splitNames("svc-namespace")},
			{Class: URL, Harm: "the controller sends requests there, with its own network", Names: splitNames("auth-uri")},
			{Class: Harmless, Names: splitNames(`plugin-config-name auth-type use-regex enable-websocket enable-cors cors-allow-origin cors-allow-headers cors-allow-methods enable-csrf csrf-key
				allowlist-source-range blocklist-source-range rewrite-target rewrite-target-regex rewrite-target-regex-template http-to-https http-redirect http-redirect-code
				http-allow-methods http-block-methods enable-response-rewrite response-rewrite-status-code response-rewrite-body response-rewrite-body-base64
				response-rewrite-add-header response-rewrite-set-header response-rewrite-remove-header auth-ssl-verify auth-request-headers auth-upstream-headers
				auth-client-headers upstream-scheme upstream-retries upstream-connect-timeout upstream-read-timeout upstream-send-timeout`)},
		}},
	{Name: "Load balancers of Huawei, Oracle, Tencent and Yandex, Octavia's Ingresses", Source: "https://support.huaweicloud.com/intl/en-us/usermanual-cce/cce_10_0385.html", Kinds: Edge, DefaultClass: Rights,
		Prefixes: splitNames("oci.oraclecloud.com oci-network-load-balancer.oraclecloud.com service.cloud.tencent.com ingress.cloud.tencent.com ingress.alb.yc.io octavia.ingress.kubernetes.io"),
		Names:    []Names{{Class: Rights, Harm: cloud, Names: splitNames("security-groups subnets internal oci-network-security-groups")}}},
	{Name: "OpenStack's load balancers", Source: "https://github.com/kubernetes/cloud-provider-openstack/blob/master/docs/openstack-cloud-controller-manager/expose-applications-using-loadbalancer-type-service.md", Kinds: Edge, Prefixes: splitNames("loadbalancer.openstack.org"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: cloud, Names: splitNames("load-balancer-id")}}},
	{Name: "DigitalOcean", Source: "https://github.com/digitalocean/digitalocean-cloud-controller-manager/blob/master/docs/controllers/services/annotations.md", Kinds: Edge, Prefixes: splitNames("kubernetes.digitalocean.com"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: cloud, Names: splitNames("load-balancer-id")}}},
	{
		Name: "Hetzner Cloud", Source: "https://github.com/hetznercloud/hcloud-cloud-controller-manager/blob/main/docs/reference/load_balancer_annotations.md", Kinds: Edge, Prefixes: splitNames("load-balancer.hetzner.cloud"), DefaultClass: Rights,
		Names: []Names{
			{Class: Rights, Harm: cloud, Names: splitNames("id name http-certificates http-managed-certificate-name")},
			{Class: Hosts, Harm: "a certificate, or the Service's address, is of it", Names: splitNames("hostname http-managed-certificate-domains")},
			{Class: Address, Harm: address, Names: splitNames("private-ipv4 ipv4 ipv6")},
			{Class: Harmless, Names: splitNames(`location network-zone type algorithm-type protocol uses-proxyprotocol use-private-ip disable-private-ingress disable-public-network ipv6-disabled http-redirect-http
				http-sticky-sessions http-cookie-name http-cookie-lifetime certificate-type health-check-protocol health-check-port health-check-interval health-check-timeout
				health-check-retries health-check-http-domain health-check-http-path health-check-http-validate-certificate http-status-codes`)},
		},
	},
	{Name: "Alibaba Cloud: Terway, ECI, load balancers", Source: "https://www.alibabacloud.com/help/en/cs/user-guide/pod-annotation-function-description", Kinds: Edge | Pods, Prefixes: splitNames("k8s.aliyun.com network.alibabacloud.com alibabacloud.com"), DefaultClass: Rights, InstalledMarkers: splitNames("network.alibabacloud.com alibabacloud.com"),
		Names: []Names{{Class: Rights, Harm: cloud, Names: splitNames("eip-instance-id pod-eip-instanceid security-group-ids vswitch-ids")}}},
	{Name: "Emissary, Ambassador", Source: "https://emissary-ingress.dev/docs/3.10/topics/using/ingress-controller/", Kinds: Edge, Prefixes: splitNames("getambassador.io"), DefaultClass: Never, InstalledMarkers: splitNames("getambassador.io getambassador.io/ingress-controller"),
		Names: []Names{{Class: Never, Harm: "a mapping serves any host, and sends requests to any Service", Names: splitNames("config")}}},
	{Name: "IBM Cloud's Ingress", Source: "https://cloud.ibm.com/docs/containers?topic=containers-cs_annotations", Kinds: Edge, Prefixes: splitNames("ingress.bluemix.net"), DefaultClass: Never,
		Names: []Names{{Class: Never, Harm: configures, Names: splitNames("location-snippets server-snippets proxy-external-service")}}},
	{Name: "Tailscale", Source: "https://tailscale.com/kb/1439/kubernetes-operator-cluster-ingress", Kinds: Edge, Prefixes: splitNames("tailscale.com"), DefaultClass: Rights, InstalledMarkers: splitNames("tailscale.com tailscale.com/ts-ingress"),
		Names: []Names{{Class: Rights, Harm: "it opens the Service to, or reaches into, another network", Names: splitNames("expose tailnet-fqdn tailnet-ip")}}},
	{
		Name: "GKE", Source: "https://cloud.google.com/kubernetes-engine/docs/concepts/service-load-balancer-parameters",
		Kinds: Edge | Pods, Prefixes: splitNames("networking.gke.io cloud.google.com ingress.gcp.kubernetes.io"), DefaultClass: Rights, InstalledMarkers: splitNames("networking.gke.io cloud.google.com k8s.io/ingress-gce auto.gke.io"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("load-balancer-ip-addresses")},
			{Class: Rights, Harm: cloud, Names: splitNames("pre-shared-cert interfaces default-interface")},
			{Class: Harmless, Names: splitNames("load-balancer-type app-protocols backend-config managed-certificates neg-status internal-load-balancer-allow-global-access l4-rbs")},
			{Class: OneOf, Values: splitNames(`{"ingress":true} {"ingress":false}`), Harm: "a group of endpoints with a chosen name may be another Service's", Names: splitNames("neg")},
		},
	},
	{
		Name: "Azure Application Gateway", Source: "https://azure.github.io/application-gateway-kubernetes-ingress/annotations/",
		Kinds: Edge, Prefixes: splitNames("appgw.ingress.kubernetes.io"), DefaultClass: Rights, InstalledMarkers: splitNames("azure/application-gateway appgw.ingress.k8s.io alb.networking.azure.io"),
		Names: []Names{
			{Class: Hosts, Harm: "the gateway serves the host besides", Names: splitNames("hostname-extension")},
			{Class: Harmless, Names: splitNames("backend-path-prefix ssl-redirect connection-draining connection-draining-timeout cookie-based-affinity request-timeout health-probe-path health-probe-port health-probe-interval health-probe-timeout health-probe-status-codes backend-protocol")},
		},
	},
	{
		Name: "external-dns", Source: "https://kubernetes-sigs.github.io/external-dns/latest/docs/annotations/annotations/",
		Kinds: Edge | Pods, Prefixes: splitNames(externalDNS), InstalledMarkers: splitNames("externaldns.k8s.io"),
		Names: []Names{
			{Class: Hosts, Harm: "a DNS record is made of it", Names: splitNames("hostname internal-hostname cloudflare-custom-hostname")},
			{Class: Hosts, Harm: "the DNS record points there, and with it whatever trusts the name", Names: splitNames("target")},
			{Class: Harmless, Names: splitNames("ttl access alias controller endpoints-type ingress-hostname-source gateway-hostname-source ingress set-identifier cloudflare-proxied cloudflare-region-key aws-weight aws-region aws-failover aws-geolocation-continent-code aws-geolocation-country-code aws-evaluate-target-health aws-multi-value-answer")},
		},
	},
	{
		Name: "Gardener's DNS and certificates", Source: "https://github.com/gardener/external-dns-management", Kinds: Edge, Prefixes: splitNames("dns.gardener.cloud cert.gardener.cloud"), DefaultClass: Rights, InstalledMarkers: splitNames("dns.gardener.cloud cert.gardener.cloud"),
		Names: []Names{
			{Class: Hosts, Values: splitNames("* all"), Harm: "a DNS record or a certificate is made of it; * and all are the hosts of the object itself", Names: splitNames("dnsnames")},
			{Class: Hosts, Harm: "a certificate is asked for", Names: splitNames("commonname")},
			{Class: Hosts, Harm: "the DNS record points there, and with it whatever trusts the name", Names: splitNames("targets")},
			{Class: Namespaces, Harm: "the certificate is written into that namespace", Names: splitNames("secret-namespace")},
			{Class: Object, Harm: "the issuer may be another tenant's", Names: splitNames("issuer")},
			{Class: Harmless, Names: splitNames(`class ttl purpose secretname ignore ip-stack resolve-targets-to-addresses cname-lookup-interval follow-cname preferred-chain
				private-key-algorithm private-key-size private-key-encoding`)},
		},
	},
	{Name: "kops' dns-controller", Source: "https://github.com/kubernetes/kops/tree/master/dns-controller", Kinds: Edge | Pods, Prefixes: splitNames("dns.alpha.kubernetes.io"), DefaultClass: Hosts,
		Names: []Names{{Class: Hosts, Harm: "a DNS record is made of it", Names: splitNames("external internal")}}},
	{
		Name: "cert-manager", Source: "https://cert-manager.io/docs/reference/annotations/", Kinds: Edge, Prefixes: splitNames("cert-manager.io acme.cert-manager.io"), InstalledMarkers: splitNames("cert-manager.io"),
		Names: []Names{
			{Class: Hosts, Harm: "a certificate is asked for", Names: splitNames("common-name alt-names")},
			{Class: Never, Harm: "a certificate for it lets its holder pass for others", Names: splitNames("ip-sans uri-sans email-sans subject-organizations subject-organizationalunits subject-serialnumber usages secret-template literal-subject")},
			{Class: Harmless, Names: splitNames(`issuer cluster-issuer issuer-kind issuer-group issuer-name duration renew-before renew-before-percentage revision-history-limit private-key-algorithm private-key-encoding private-key-size
				private-key-rotation-policy subject-countries subject-provinces subject-localities subject-postalcodes subject-streetaddresses issue-temporary-certificate
				http01-edit-in-place http01-ingress-class http01-ingress-ingressclassname http01-override-ingress-name certificate-name certificate-revision private-key-secret-name allow-direct-injection`)},
		},
	},
	{
		Name: "Reflector", Source: "https://github.com/emberstack/kubernetes-reflector", Kinds: Data, Prefixes: splitNames("reflector.v1.k8s.emberstack.com"), DefaultClass: Never,
		Names: []Names{
			{Class: Object, Harm: copies, Names: splitNames("reflects")},
			{Class: Never, Harm: copies, Names: splitNames("reflection-allowed reflection-allowed-namespaces reflection-auto-enabled reflection-auto-namespaces")},
			{Class: Harmless, Harm: "Reflector writes it", Names: splitNames("auto-reflects reflected-version reflected-at")},
		},
	},
	{
		Name: "kubernetes-replicator", Source: "https://github.com/mittwald/kubernetes-replicator", Kinds: Data, Prefixes: splitNames("replicator.v1.mittwald.de"), DefaultClass: Never,
		Names: []Names{
			{Class: Object, Harm: copies, Names: splitNames("replicate-from")},
			{Class: Never, Harm: copies, Names: splitNames("replicate-to replicate-to-matching replication-allowed replication-allowed-namespaces")},
			{Class: Harmless, Names: splitNames("strip-labels keep-owner-references replicated-at replicated-from-version replicated-keys")},
		},
	},
	{Name: "kubed, config-syncer", Source: "https://config-syncer.com/docs/latest/guides/config-syncer/intra-cluster/", Kinds: Data, Prefixes: splitNames("kubed.appscode.com"), DefaultClass: Never,
		Names: []Names{
			{Class: Never, Harm: copies, Names: splitNames("sync sync-contexts")},
			{Class: Harmless, Harm: "kubed writes it", Names: splitNames("origin")},
		}},
	{Name: "Bank-Vaults", Source: "https://bank-vaults.dev/docs/mutating-webhook/annotations/", Kinds: Data | Pods, Prefixes: splitNames("vault.security.banzaicloud.io"), DefaultClass: Rights, InstalledMarkers: splitNames("vault.banzaicloud.com"),
		Names: []Names{{Class: Rights, Harm: "the webhook reads Vault with its own role", Names: splitNames("vault-addr vault-role vault-serviceaccount")}}},
	{Name: "CDI", Source: "https://github.com/kubevirt/containerized-data-importer", Kinds: Data, Prefixes: splitNames("k8s.io"), InstalledMarkers: splitNames("cdi.kubevirt.io kubevirt.io"),
		Names: []Names{{Class: Object, Harm: "the volume is copied from that namespace", Names: splitNames("CloneRequest")}}},
	{Name: "CDI, imports and copies", Source: "https://github.com/kubevirt/containerized-data-importer/blob/main/doc/basic_pv_pvc_dv.md", Kinds: Data, Prefixes: splitNames("cdi.kubevirt.io"), DefaultClass: Rights,
		Names: []Names{
			{Class: URL, Harm: "the importer sends requests there", Names: splitNames("storage.import.endpoint")},
			{Class: Rights, Harm: "the importer reads a Secret, or a volume of another namespace, with rights to all of them", Names: splitNames("storage.")},
		}},
	{Name: "NFS subdir provisioner", Source: "https://github.com/kubernetes-sigs/nfs-subdir-external-provisioner", Kinds: Data, Prefixes: splitNames("nfs.io"), DefaultClass: Never,
		Names: []Names{{Class: Never, Harm: "the path on the server may be another tenant's", Names: splitNames("storage-path")}}},
	{Name: "EBS volume modifier", Source: "https://github.com/awslabs/volume-modifier-for-k8s", Kinds: Data, Prefixes: splitNames("ebs.csi.aws.com"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: "the volume gets a type, a speed and a price that its StorageClass does not allow", Names: splitNames("volumeType iops throughput")}}},
	{Name: "Trident", Source: "https://docs.netapp.com/us-en/trident/trident-reference/objects.html", Kinds: Data, Prefixes: splitNames("trident.netapp.io"), DefaultClass: Rights, InstalledMarkers: splitNames("trident.netapp.io"),
		Names: []Names{
			{Class: Namespaces, Harm: "the volume is shared with, or copied from, that namespace", Names: splitNames("shareToNamespace cloneToNamespace cloneFromNamespace")},
			{Class: Object, Harm: "the volume is copied from that namespace", Names: splitNames("cloneFromPVC cloneFromSnapshot shareFromPVC")},
			{Class: Rights, Harm: "any volume of the storage system becomes the tenant's", Names: splitNames("importOriginalName importBackendUUID importNoRename notManaged internalSnapshotName mirrorRelationship")},
			{Class: Harmless, Names: splitNames("protocol fileSystem blockSize unixPermissions snapshotDirectory splitOnClone readOnlyClone")},
		}},
	{
		Name: "Calico", Source: "https://docs.tigera.io/calico/latest/reference/configure-cni-plugins#ip-address-management", Kinds: Pods, Prefixes: splitNames("cni.projectcalico.org"), DefaultClass: Address, InstalledMarkers: splitNames("projectcalico.org operator.tigera.io"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("ipv4pools ipv6pools ipAddrs ipAddrsNoIpam floatingIPs allowedSourcePrefixes hwAddr")},
			{Class: Harmless, Harm: "Calico writes it", Names: splitNames("containerID podIP podIPs")},
		},
	},
	{
		Name: "Multus", Source: "https://k8snetworkplumbingwg.github.io/multus-cni/docs/how-to-use.html", Kinds: Pods, Prefixes: splitNames("k8s.v1.cni.cncf.io v1.multus-cni.io"), DefaultClass: Never, InstalledMarkers: splitNames("k8s.cni.cncf.io"),
		Names: []Names{
			{Class: Networks, Harm: "the network may be another tenant's, past its NetworkPolicies; an address may be another's", Names: splitNames("networks")},
			{Class: Never, Harm: "it replaces the network that the NetworkPolicies hold on", Names: splitNames("default-network")},
			{Class: Harmless, Harm: "Multus writes it", Names: splitNames("network-status networks-status")},
		},
	},
	{Name: "Cilium", Source: "https://docs.cilium.io/en/stable/network/lb-ipam/", Kinds: Edge | Pods, Prefixes: splitNames("lbipam.cilium.io io.cilium service.cilium.io ipam.cilium.io ingress.cilium.io policy.cilium.io cni.cilium.io network.cilium.io config.cilium.io clustermesh.cilium.io cec.cilium.io cilium.io"), DefaultClass: Address, InstalledMarkers: splitNames("cilium.io cilium.io/ingress-controller"),
		Names: []Names{
			{Class: Address, Harm: address, Names: splitNames("ips sharing-key sharing-cross-namespace lb-ipam-ips lb-ipam-sharing-key lb-ipam-sharing-cross-namespace ip-pool ipv4-pool ipv6-pool mac-address disable-source-ip-verification")},
			{Class: Rights, Harm: "Services of one name in several clusters are joined", Names: splitNames("global shared affinity global-service shared-service service-affinity global-sync-endpoint-slices")},
			{Class: Harmless, Names: splitNames("force-https tls-passthrough websocket request-timeout lb-l7 lb-l7-algorithm lb-algorithm src-ranges-policy proxy-visibility")},
		}},
	{Name: "Kube-OVN, OVN-Kubernetes", Source: "https://kubeovn.github.io/docs/stable/en/guide/static-ip-mac/", Kinds: Pods | Edge, Prefixes: splitNames("ovn.kubernetes.io k8s.ovn.org"), DefaultClass: Address, InstalledMarkers: splitNames("kubeovn.io k8s.ovn.org"),
		Names: []Names{{Class: Address, Harm: address, Names: splitNames("ip_address ip_pool mac_address logical_switch vpc eip snat")}}},
	{Name: "Antrea, Spiderpool", Source: "https://antrea.io/docs/main/docs/antrea-ipam/", Kinds: Pods | Edge, Prefixes: splitNames("ipam.antrea.io ipam.spidernet.io service.antrea.io"), DefaultClass: Address, InstalledMarkers: splitNames("antrea.io antrea.tanzu.vmware.com spiderpool.spidernet.io"),
		Names: []Names{{Class: Address, Harm: address, Names: splitNames("ippools ippool external-ip-pool")}}},
	{Name: "DANM", Source: "https://github.com/nokia/danm/blob/master/user-guide.md", Kinds: Pods | Edge, Prefixes: splitNames("danm.io danm.k8s.io"), DefaultClass: Rights, InstalledMarkers: splitNames("danm.io danm.k8s.io"),
		Names: []Names{{Class: Address, Harm: address, Names: splitNames("interfaces")}}},
	{Name: "Cisco ACI", Source: "https://github.com/noironetworks/aci-containers", Kinds: Pods | Edge, Prefixes: splitNames("opflex.cisco.com"), DefaultClass: Rights, InstalledMarkers: splitNames("aci.snat aci.ctrl aci.fabricattachment"),
		Names: []Names{
			{Class: Rights, Harm: "the pod gets into any group of the network, past its NetworkPolicies", Names: splitNames("endpoint-group security-group qospolicy service-graph-name ext_service_contract_scope")},
			{Class: Address, Harm: address, Names: splitNames("lb-ipam-ips")},
		}},
	{Name: "Amazon VPC CNI", Source: "https://docs.aws.amazon.com/eks/latest/userguide/security-groups-for-pods.html", Kinds: Pods, Prefixes: splitNames("vpc.amazonaws.com"), DefaultClass: Rights, InstalledMarkers: splitNames("vpcresources.k8s.aws crd.k8s.amazonaws.com networking.k8s.aws"),
		Names: []Names{{Class: Address, Harm: "the pod would use another pod's network interface", Names: splitNames("pod-eni PrivateIPv4Address")}}},
	{Name: "kube2iam, kiam", Source: "https://github.com/jtblin/kube2iam", Kinds: Pods, Prefixes: splitNames("iam.amazonaws.com"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: "the pod gets the rights of any role that the nodes may assume", Names: splitNames("role external-id session-name")}}},
	{Name: "CRI-O", Source: "https://github.com/cri-o/cri-o/blob/main/ANNOTATION_MIGRATION.md", Kinds: Pods, Prefixes: splitNames("*.crio.io *.cri-o.io"), DefaultClass: Never,
		Names: []Names{{Class: Never, Harm: runtime, Names: splitNames("pod")}}},
	{Name: "Container runtimes, by reversed domains", Source: "https://github.com/kata-containers/kata-containers/blob/main/docs/how-to/how-to-set-sandbox-config-kata.md", Kinds: Pods,
		Names: []Names{{Class: Never, Harm: runtime, Names: splitNames("io.kubernetes. io.katacontainers. io.containerd. io.containers. io.microsoft. dev.gvisor. run.oci. org.systemd. org.criu.")}}},
	{Name: "CDI devices and NRI plugins", Source: "https://github.com/containerd/nri/tree/main/plugins", Kinds: Pods, Prefixes: splitNames("*.nri.io *.noderesource.dev *.containerd.io cdi.k8s.io nvidia.cdi.k8s.io"), DefaultClass: Never,
		Names: []Names{{Class: Never, Harm: runtime, Names: splitNames("device container.")}}},
	{Name: "Classes of caches and disks", Source: "https://github.com/intel/goresctrl", Kinds: Pods, Prefixes: splitNames("rdt.resources.beta.kubernetes.io blockio.resources.beta.kubernetes.io"), DefaultClass: Never,
		Names: []Names{{Class: Never, Harm: "the runtime takes shares of caches and disks from other pods of the node", Names: splitNames("pod container.")}}},
	{
		Name: "Karpenter", Source: "https://karpenter.sh/docs/concepts/disruption/#pod-level-controls", Kinds: Pods, Prefixes: splitNames("karpenter.sh"), DefaultClass: KeepsNode, InstalledMarkers: splitNames("karpenter.sh karpenter.k8s.aws karpenter.kwok.sh autoscaling.x-k8s.io"),
		Names: []Names{{Class: KeepsNode, Harm: "the node is not replaced", Names: splitNames("do-not-disrupt do-not-evict do-not-consolidate")}},
	},
	{
		Name: "cluster-autoscaler", Source: "https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md", Kinds: Pods, Prefixes: splitNames("cluster-autoscaler.kubernetes.io"), DefaultClass: Harmless,
		Names: []Names{{Class: KeepsNode, Values: splitNames("true"), Harm: "the node is not scaled down", Names: splitNames("safe-to-evict")}},
	},
	{
		Name: "descheduler", Source: "https://github.com/kubernetes-sigs/descheduler", Kinds: Pods, Prefixes: splitNames("descheduler.alpha.kubernetes.io"), DefaultClass: Harmless,
		Names: []Names{{Class: KeepsNode, Harm: "the pod is not moved", Names: splitNames("prefer-no-eviction")}},
	},
	{
		Name: "Datadog Agent", Source: "https://docs.datadoghq.com/containers/kubernetes/integrations/", Kinds: Pods | Edge, Prefixes: splitNames("ad.datadoghq.com service-discovery.datadoghq.com"), DefaultClass: Rights, InstalledMarkers: splitNames("datadoghq.com"),
		Names: []Names{
			{Class: Harmless, Names: splitNames("tags .tags tolerate-unready .exclude .logs_exclude .metrics_exclude exclude logs_exclude metrics_exclude")},
			{
				Class: JSON, Harm: "other keys and types have the agent read any file and journal of the node, or listen there",
				Values: splitNames(`source service tags log_processing_rules name pattern replace_placeholder auto_multi_line_detection auto_multi_line_sample_size
					auto_multi_line_match_threshold type=exclude_at_match type=include_at_match type=mask_sequences type=multi_line`),
				Names: splitNames(".logs"),
			},
			{Class: Rights, Harm: "the agent runs checks against any address, and reads files, with the node's network and rights", Names: splitNames(".checks .instances .init_configs .check_names")},
		},
	},
	{
		Name: "Elastic Beats and Agent", Source: "https://www.elastic.co/docs/reference/beats/filebeat/configuration-autodiscover-hints", Kinds: Pods | Edge, Prefixes: splitNames("co.elastic.metrics co.elastic.monitor co.elastic.hints"), DefaultClass: Rights, InstalledMarkers: splitNames("k8s.elastic.co"),
		Names: []Names{
			{Class: Rights, Harm: "the agent connects to any address with the node's network", Names: splitNames("hosts module raw")},
			{Class: OneOf, Values: splitNames("false"), Names: splitNames("enabled")},
		},
	},
	{
		Name: "Filebeat's hints on logs", Source: "https://www.elastic.co/docs/reference/beats/filebeat/configuration-autodiscover-hints", Kinds: Pods, Prefixes: splitNames("co.elastic.logs"), DefaultClass: Rights,
		Names: []Names{
			{Class: Harmless, Names: splitNames("enabled disable multiline. json. exclude_lines include_lines fileset fileset. json.keys_under_root module")},
			{Class: Rights, Harm: "any input reads any file of the node", Names: splitNames("raw")},
		},
	},
	{
		Name: "Velero", Source: "https://velero.io/docs/main/backup-hooks/", Kinds: Pods, Prefixes: splitNames("pre.hook.backup.velero.io post.hook.backup.velero.io init.hook.restore.velero.io post.hook.restore.velero.io backup.velero.io velero.io"), DefaultClass: Harmless, InstalledMarkers: splitNames("velero.io"),
		Names: []Names{{Class: Never, Harm: "the backups of all tenants wait for the hook", Names: splitNames("timeout exec-timeout wait-timeout")}},
	},
	{
		Name: "Istio's sidecars", Source: "https://istio.io/latest/docs/reference/config/annotations/", Kinds: Pods, Prefixes: splitNames("sidecar.istio.io"), DefaultClass: Harmless,
		Names: []Names{{Class: Never, Harm: "the injector adds volumes, an image or a configuration that nobody looked at where they were written, and sends the pod to a control plane of its choice",
			Names: splitNames("userVolume userVolumeMount proxyImage bootstrapOverride discoveryAddress")}},
	},
	{
		Name: "Istio's proxy configuration", Source: "https://istio.io/latest/docs/reference/config/istio.mesh.v1alpha1/#ProxyConfig", Kinds: Pods, Prefixes: splitNames("proxy.istio.io"), DefaultClass: Harmless,
		Names: []Names{{
			Class: Settings, Harm: "others name a control plane, collectors, files and identities",
			Values: splitNames(`holdApplicationUntilProxyStarts concurrency terminationDrainDuration drainDuration parentShutdownDuration discoveryRefreshDelay tracing sampling maxPathTagLength
				gatewayTopology numTrustedProxies forwardClientCertDetails proxyStatsMatcher inclusionPrefixes inclusionRegexps inclusionSuffixes proxyHeaders readinessProbe
				initialDelaySeconds periodSeconds timeoutSeconds failureThreshold successThreshold interceptionMode statusPort`),
			Names: splitNames("config"),
		}},
	},
	{
		Name: "Istio", Source: "https://istio.io/latest/docs/reference/config/annotations/", Kinds: Every, Prefixes: splitNames("traffic.sidecar.istio.io inject.istio.io istio.io networking.istio.io topology.istio.io ambient.istio.io security.istio.io status.sidecar.istio.io service.istio.io readiness.status.sidecar.istio.io prometheus.istio.io auth.istio.io"), DefaultClass: Harmless, InstalledMarkers: splitNames("istio.io istio.io/ingress-controller"),
		Names: []Names{{Class: Rights, Harm: "the Service is a name in every namespace of the mesh", Names: splitNames("exportTo")}},
	},
	{
		Name: "Linkerd", Source: "https://linkerd.io/2/reference/proxy-configuration/", Kinds: Every, Prefixes: splitNames("linkerd.io config.linkerd.io config.alpha.linkerd.io config.beta.linkerd.io viz.linkerd.io balancer.linkerd.io retry.linkerd.io timeout.linkerd.io proxy-injector.linkerd.io"), DefaultClass: Harmless, InstalledMarkers: splitNames("linkerd.io"),
	},
	{Name: "Linkerd multicluster", Source: "https://linkerd.io/2/features/multicluster/", Kinds: Edge, Prefixes: splitNames("mirror.linkerd.io multicluster.linkerd.io"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: "the Service is opened to other clusters", Names: splitNames("gateway-identity remote-svc-fq-name")}}},
	{
		Name: "Kubernetes, kubectl, Helm, kustomize", Source: "https://kubernetes.io/docs/reference/labels-annotations-taints/", Kinds: Every, DefaultClass: Harmless,
		Prefixes: splitNames(`kubectl.kubernetes.io helm.sh meta.helm.sh checksum deployment.kubernetes.io pv.kubernetes.io volume.kubernetes.io volume.beta.kubernetes.io statefulset.kubernetes.io
			controller.kubernetes.io batch.kubernetes.io scheduler.alpha.kubernetes.io seccomp.security.alpha.kubernetes.io container.apparmor.security.beta.kubernetes.io
			container.seccomp.security.alpha.kubernetes.io apparmor.security.beta.kubernetes.io autoscaling.alpha.kubernetes.io control-plane.alpha.kubernetes.io endpoints.kubernetes.io
			pod.alpha.kubernetes.io service.alpha.kubernetes.io app.kubernetes.io config.kubernetes.io internal.config.kubernetes.io kustomize.config.k8s.io config.k8s.io
			authentication.kubernetes.io resource.kubernetes.io storage.kubernetes.io gateway.networking.k8s.io gateway.kubernetes.io applyset.kubernetes.io croft.dev rule.croft.dev kompose.io kompose.cmd skaffold.dev dev.okteto.com`),
		InstalledMarkers: splitNames("croft.dev gateway.networking.k8s.io metrics.k8s.io snapshot.storage.k8s.io policy.networking.k8s.io eks.amazonaws.com x-k8s.io gatekeeper.sh"),
	},
	{
		Name: "Kubernetes, and the Ingresses of GKE, Huawei and Tencent", Source: "https://cloud.google.com/kubernetes-engine/docs/how-to/load-balance-ingress", Kinds: Edge, Prefixes: splitNames("kubernetes.io"), DefaultClass: Harmless,
		Names: []Names{{Class: Rights, Harm: cloud, Names: splitNames(`ingress.global-static-ip-name ingress.regional-static-ip-name elb. ingress.existLbId ingress.subnetId ingress.qcloud-loadbalance-id
			ingress.extensiveParameters`)}},
	},
	{Name: "Argo CD, Argo Workflows, Argo Rollouts", Source: "https://argo-cd.readthedocs.io/en/stable/user-guide/annotations-and-labels/", Kinds: Every, DefaultClass: Harmless, InstalledMarkers: splitNames("argoproj.io"),
		Prefixes: splitNames("argocd.argoproj.io link.argocd.argoproj.io workflows.argoproj.io rollout.argoproj.io rollouts.argoproj.io argo-rollouts.argoproj.io notifications.argoproj.io argocd-image-updater.argoproj.io")},
	{Name: "Flux", Source: "https://fluxcd.io/flux/components/kustomize/kustomizations/", Kinds: Every, DefaultClass: Harmless, InstalledMarkers: splitNames("fluxcd.io fluxcd.controlplane.io"), Prefixes: splitNames("kustomize.toolkit.fluxcd.io helm.toolkit.fluxcd.io reconcile.fluxcd.io fluxcd.io source.toolkit.fluxcd.io event.toolkit.fluxcd.io")},
	{Name: "Prometheus by annotations", Source: "https://github.com/prometheus-community/helm-charts/tree/main/charts/prometheus", Kinds: Every, DefaultClass: Harmless, InstalledMarkers: splitNames("monitoring.coreos.com"), Prefixes: splitNames("prometheus.io monitoring.coreos.com")},
	{
		Name: "Vault Agent Injector", Source: "https://developer.hashicorp.com/vault/docs/deploy/kubernetes/injector/annotations", Kinds: Pods, DefaultClass: Harmless, InstalledMarkers: splitNames("secrets.hashicorp.com"), Prefixes: splitNames("vault.hashicorp.com"),
		Names: []Names{
			{Class: URL, Harm: "the agent shows the pod's token there", Names: splitNames("service proxy-address")},
			{Class: Harmless, Harm: "Vault itself decides which service accounts have the role", Names: splitNames("role")},
		},
	},
	{Name: "Reloader, Forecastle and others of Stakater", Source: "https://github.com/stakater/Reloader", Kinds: Every, DefaultClass: Harmless, InstalledMarkers: splitNames("stakater.com"), Prefixes: splitNames("reloader.stakater.com configmap.reloader.stakater.com secret.reloader.stakater.com search.reloader.stakater.com deployment.reloader.stakater.com forecastle.stakater.com")},
	{Name: "GitLab, Jenkins, Tekton", Source: "https://docs.gitlab.com/user/project/deploy_boards/", Kinds: Every, DefaultClass: Harmless, InstalledMarkers: splitNames("tekton.dev"), Prefixes: splitNames("app.gitlab.com job.runner.gitlab.com project.runner.gitlab.com manager.runner.gitlab.com pipeline.runner.gitlab.com jenkins tekton.dev pipeline.tekton.dev")},
	{Name: "Log collectors", Source: "https://docs.fluentbit.io/manual/data-pipeline/filters/kubernetes", Kinds: Pods, DefaultClass: Harmless, Prefixes: splitNames("fluentbit.io vector.dev logging.banzaicloud.io"), InstalledMarkers: splitNames("logging.banzaicloud.io fluentbit.fluent.io")},
	{Name: "Policy engines and scanners", Source: "https://kyverno.io/docs/", Kinds: Every, DefaultClass: Harmless, Prefixes: splitNames("policies.kyverno.io pod-policies.kyverno.io kyverno.io ignore-check.kube-linter.io polaris.fairwinds.com goldilocks.fairwinds.com trivy.aquasecurity.github.io"), InstalledMarkers: splitNames("kyverno.io wgpolicyk8s.io aquasecurity.github.io openreports.io")},
	{Name: "Identities of clouds on pods", Source: "https://azure.github.io/azure-workload-identity/docs/topics/service-account-labels-and-annotations.html", Kinds: Pods, DefaultClass: Harmless, Prefixes: splitNames("azure.workload.identity eks.amazonaws.com iam.gke.io"), InstalledMarkers: splitNames("aadpodidentity.k8s.io")},
	{Name: "KEDA, VPA, Keel and other scalers", Source: "https://keda.sh/docs/", Kinds: Every, DefaultClass: Harmless, Prefixes: splitNames("keda.sh autoscaling.keda.sh keel.sh flagger.app"), InstalledMarkers: splitNames("keda.sh flagger.app autoscaling.k8s.io")},
	{Name: "Sealed Secrets, External Secrets", Source: "https://github.com/bitnami-labs/sealed-secrets", Kinds: Data, DefaultClass: Harmless, Prefixes: splitNames("sealedsecrets.bitnami.com reconcile.external-secrets.io external-secrets.io"), InstalledMarkers: splitNames("bitnami.com external-secrets.io secrets-store.csi.x-k8s.io")},
	{Name: "OpenTelemetry Operator", Source: "https://github.com/open-telemetry/opentelemetry-operator", Kinds: Pods, Prefixes: splitNames("instrumentation.opentelemetry.io sidecar.opentelemetry.io"), InstalledMarkers: splitNames("opentelemetry.io"),
		Names: []Names{{Class: Object, Harm: "the instrumentation may be another tenant's", Names: splitNames("inject inject-java inject-nodejs inject-python inject-dotnet inject-go inject-apache-httpd inject-nginx inject-sdk")},
			{Class: Harmless, Names: splitNames("container-names java-container-names nodejs-container-names python-container-names dotnet-container-names go-container-names otel-go-auto-target-exe otel-dotnet-auto-runtime otel-python-platform")}}},
	{Name: "Operators of databases, queues, jobs and sidecars", Source: "https://kubernetes.io/docs/concepts/extend-kubernetes/operator/", Kinds: Every, DefaultClass: Harmless,
		Prefixes: splitNames(`strimzi.io cnpg.io rabbitmq.com elasticsearch.k8s.elastic.co common.k8s.elastic.co eck.k8s.elastic.co kibana.k8s.elastic.co postgres-operator.crunchydata.com
			jobset.sigs.k8s.io kueue.x-k8s.io leaderworkerset.sigs.k8s.io scheduling.k8s.io training.kubeflow.org notebooks.kubeflow.org pipelines.kubeflow.org
			serving.kserve.io internal.serving.kserve.io serving.knative.dev autoscaling.knative.dev ray.io sparkoperator.k8s.io dapr.io admission.datadoghq.com
			k8s.grafana.com profiles.grafana.com field.cattle.io cattle.io gke-gcsfuse`)},
	{Name: "OpenShift's networks", Source: "https://docs.okd.io/4.9/networking/openshift_sdn/deploying-egress-router-dns-redirection.html", Kinds: Pods, Prefixes: splitNames("pod.network.openshift.io"), DefaultClass: Rights,
		Names: []Names{{Class: Rights, Harm: "the pod gets an interface of the node's network, past its NetworkPolicies", Names: splitNames("assign-macvlan")}}},
	{Name: "Jaeger Operator", Source: "https://www.jaegertracing.io/docs/1.62/operator/#auto-injecting-jaeger-agent-sidecars", Kinds: Pods, Prefixes: splitNames("sidecar.jaegertracing.io"), DefaultClass: Harmless, InstalledMarkers: splitNames("jaegertracing.io"),
		Names: []Names{{Class: Object, Harm: "the instance may be another tenant's", Names: splitNames("inject")}}},
	{Name: "OpenShift", Source: "https://docs.openshift.com/container-platform/latest/networking/routes/route-configuration.html", Kinds: Every, DefaultClass: Harmless, Prefixes: splitNames("openshift.io service.beta.openshift.io service.alpha.openshift.io app.openshift.io alpha.image.policy.openshift.io image.openshift.io"), InstalledMarkers: splitNames("openshift.io")},
}

// labels are labels on whose presence an add-on acts.
var labels = []Label{
	{"Argo CD", "argocd.argoproj.io/secret-type", "Argo CD takes the Secret for a cluster or a repository, and applies there with its own rights", "https://argo-cd.readthedocs.io/en/stable/operator-manual/declarative-setup/", Data},
	{"Kong", "konghq.com/ca-cert", "Kong trusts the Secret's certificate for the clients of every tenant", "https://developer.konghq.com/kubernetes-ingress-controller/reference/annotations/", Data},
	{"Open Policy Agent", "openpolicyagent.org/policy", "kube-mgmt loads the ConfigMap as a policy for the whole cluster", "https://github.com/open-policy-agent/kube-mgmt", Data},
	{"Open Policy Agent", "openpolicyagent.org/data", "kube-mgmt loads the ConfigMap as data of policies for the whole cluster", "https://github.com/open-policy-agent/kube-mgmt", Data},
	{"Istio", "istio/multiCluster", "Istio takes the Secret for the kubeconfig of a cluster of its mesh", "https://istio.io/latest/docs/setup/install/multicluster/", Data},
	{"kubernetes-replicator", "replicator.v1.mittwald.de/replicate-to", "the add-on copies between namespaces with rights to all of them", "https://github.com/mittwald/kubernetes-replicator", Data},
	{"Linkerd multicluster", "mirror.linkerd.io/exported", "the Service is opened to other clusters", "https://linkerd.io/2/features/multicluster/", Edge},
	{"F5 BIG-IP", "f5type", "the ConfigMap configures the load balancer, for any host and address", "https://clouddocs.f5.com/containers/latest/userguide/as3-configmap.html", Data},
	{"F5 BIG-IP", "cis.f5.com/as3-tenant", "the Service's pods get the requests of a pool that may be another tenant's", "https://clouddocs.f5.com/containers/latest/userguide/as3-configmap.html", Edge},
	{"F5 BIG-IP", "cis.f5.com/as3-pool", "the Service's pods get the requests of a pool that may be another tenant's", "https://clouddocs.f5.com/containers/latest/userguide/as3-configmap.html", Edge},
	{"AVI, AKO", "ako.vmware.com/gateway-namespace", "the Service joins a Gateway that may be another tenant's", "https://github.com/vmware/load-balancer-and-ingress-services-for-kubernetes", Edge},
	{"aad-pod-identity", "aadpodidbinding", "the pod gets the rights of any Azure identity that the nodes have", "https://azure.github.io/aad-pod-identity/docs/", Pods},
}
