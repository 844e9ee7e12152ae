package policy

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/addons"
	"croft.dev/croft/internal/rules/addons/addonstest"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// TestAnnotations fails if the rules on annotations allow a value that affects other tenants,
// or refuse one that does not. It evaluates them with the API server's own CEL.
func TestAnnotations(t *testing.T) {
	policy := compile(t, checkAnnotations())
	const nginx, alb = "nginx.ingress.kubernetes.io/", "alb.ingress.kubernetes.io/"
	for _, c := range []struct{ kind, key, value, rule string }{
		{"Ingress", nginx + "auth-url", "http://auth.a.svc.cluster.local:8080/x?y=$request_uri", ""},
		{"Ingress", nginx + "auth-url", "http://AUTH.A.SVC/", ""},
		{"Ingress", nginx + "auth-url", "https://$host/oauth2/auth", ""},
		{"Ingress", nginx + "auth-url", "https://login.a.example.org/auth", ""},
		{"Ingress", nginx + "auth-url", "https://granted.example.net/", ""},
		{"Ingress", nginx + "auth-url", "https://login.example.net/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://web.b.SVC/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://web.b.svc.cluster.local./", URLsRule},
		{"Ingress", nginx + "auth-url", "http://10-0-0-1.a.pod.cluster.local/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://0251.0376.0251.0376/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://0xa9fea9fe/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://2852039166/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://169.254.169.254#.a.svc/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://169.254.169.254#.a.svc", URLsRule},
		{"Ingress", nginx + "auth-url", "http://-.a.svc/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://[::ffff:169.254.169.254]/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://169.254.169.254.nip.io/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://metadata.google.internal/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://a.example.org@web.b.svc/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://web.b.svc\\.a.example.org/", URLsRule},
		{"Ingress", nginx + "auth-url", "http://auth.a.svc/\nproxy_pass http://web.b.svc", URLsRule},
		{"Ingress", nginx + "auth-url", "http://auth.a.svc/;", URLsRule},
		{"Ingress", nginx + "auth-url", "http://$arg_x/", URLsRule},
		{"Ingress", nginx + "auth-url", "file:///etc/passwd", URLsRule},
		{"Ingress", nginx + "auth-url", "", URLsRule},
		{"Ingress", nginx + "server-alias", "www.a.example.org, WWW.A.example.org", ""},
		{"Ingress", nginx + "server-alias", "*.a.example.org", ""},
		{"Ingress", nginx + "server-alias", "~^.*$|x.a.example.org", AnnotatedHostsRule},
		{"Ingress", nginx + "server-alias", "www.a.example.org www.b.example.org", AnnotatedHostsRule},
		{"Ingress", nginx + "server-alias", "www.b.example.org;www.a.example.org", AnnotatedHostsRule},
		{"Ingress", nginx + "auth-secret", "passwords", ""},
		{"Ingress", nginx + "auth-secret", "a/passwords", ""},
		{"Ingress", nginx + "auth-secret", "b/passwords", ReferencesRule},
		{"Ingress", nginx + "auth-secret", " b/passwords", ReferencesRule},
		{"Ingress", nginx + "rewrite-target", "/$1/$2", ""},
		{"Ingress", nginx + "rewrite-target", "/x;", ValuesRule},
		{"Ingress", nginx + "cors-allow-origin", "https://a.example.org, https://*.a.example.org:8443", ""},
		{"Ingress", nginx + "auth-tls-match-cn", "CN=x\n}", ValuesRule},
		{"Ingress", nginx + "server-snippet", "return 200;", WithheldRule},
		{"Ingress", "anything.example.net/http-snippet", "x", WithheldRule},
		{"Ingress", nginx + "of-next-release", "x", UnknownAnnotationsRule},
		{"Ingress", "haproxy-ingress.github.io/of-next-release", "x", WithheldRule},
		{"Ingress", "ingress.kubernetes.io/auth-url", "http://web.b.svc/", URLsRule},
		{"Ingress", alb + "conditions.web", `[{"field":"path-pattern","pathPatternConfig":{"values":["/x*"]}}]`, ""},
		{"Ingress", alb + "conditions.web", `[{"field":"host-header"}]`, ValuesRule},
		{"Ingress", alb + "conditions.web", `[{"field":"host\u002dheader"}]`, ValuesRule},
		{"Ingress", alb + "conditions.web", `[{"field":"path-pattern","HOSTHeaderConfig":{}}]`, ValuesRule},
		{"Ingress", alb + "conditions.web", "[{\"field\":\"x\",\"ho\u017ftHeaderConfig\":{}}]", ValuesRule},
		{"Ingress", alb + "actions.web", `{"type":"forward","TargetGroupARN":"arn"}`, ValuesRule},
		{"Ingress", alb + "actions.web", `{"type":"forward","forwardConfig":{"targetGroups":[{"serviceName":"a","servicePort":80,"weight":50}],"targetGroupStickinessConfig":{"enabled":true}}}`, ""},
		{"Ingress", alb + "actions.web", `{"type":"forward","ForwardConfig":{"TargetGroups":[{"TargetGroupName":"other"}]}}`, ValuesRule},
		{"Ingress", alb + "actions.web", `{"targetgroupsstickinessconfig":"","targetGrouptargetGroups"ARN":"x"}`, ValuesRule},
		{"Ingress", alb + "load-balancer-attributes", "idle_timeout.timeout_seconds=600, routing.http.drop_invalid_header_fields.enabled=true", ""},
		{"Ingress", alb + "load-balancer-attributes", "idle_timeout.timeout_seconds=600,access_logs.s3.enabled=true", ValuesRule},
		{"Ingress", alb + "load-balancer-attributes", " deletion_protection.enabled =true", ValuesRule},
		{"Ingress", alb + "load-balancer-attributes", `routing.x=a\,access_logs.s3.enabled=true`, ValuesRule},
		{"Ingress", alb + "load-balancer-attributes", "", ValuesRule},
		{"Ingress", alb + "listener-attributes.HTTPS-443", "routing.http.response.server.enabled=false", ""},
		{"Ingress", alb + "listener-attributes.HTTPS-443", "mutual_authentication.mode=off", ValuesRule},
		{"Ingress", alb + "target-group-attributes", "stickiness.enabled=true,deregistration_delay.timeout_seconds=30", ""},
		{"Ingress", alb + "tags", "costCode=other", WithheldRule},
		{"Service", "service.beta.kubernetes.io/aws-load-balancer-attributes", "load_balancing.cross_zone.enabled=true", ""},
		{"Service", "service.beta.kubernetes.io/aws-load-balancer-attributes", "deletion_protection.enabled=true", ValuesRule},
		{"Service", "cloud.google.com/neg", `{"ingress":true}`, ""},
		{"Service", "cloud.google.com/neg", `{"exposed_ports":{"80":{"name":"other"}}}`, ValuesRule},
		{"Service", "kubernetes.io/elb.id", "x", WithheldRule},
		{"Ingress", "dns.gardener.cloud/dnsnames", "*", ""},
		{"Ingress", "dns.gardener.cloud/dnsnames", "all", ""},
		{"Service", "dns.gardener.cloud/dnsnames", "www.a.example.org,b.a.example.org", ""},
		{"Service", "dns.gardener.cloud/dnsnames", "www.a.example.org,www.b.example.org", AnnotatedHostsRule},
		{"Service", "dns.gardener.cloud/targets", "all", AnnotatedHostsRule},
		{"Ingress", "cert.gardener.cloud/secret-namespace", "b", ReferencesRule},
		{"Ingress", "k8s.apisix.apache.org/svc-namespace", "b", ReferencesRule},
		{"Ingress", "k8s.apisix.apache.org/auth-uri", "http://web.b.svc/", URLsRule},
		{"Service", "purelb.io/addresses", "203.0.113.7", WithheldRule},
		{"Service", "cis.f5.com/ip", "203.0.113.7", WithheldRule},
		{"ConfigMap", "virtual-server.f5.com/ip", "203.0.113.7", WithheldRule},
		{"Service", "ako.vmware.com/load-balancer-ip", "203.0.113.7", WithheldRule},
		{"Ingress", "aviinfrasetting.ako.vmware.com/name", "other", WithheldRule},
		{"PersistentVolumeClaim", "ebs.csi.aws.com/iops", "64000", WithheldRule},
		{"PersistentVolumeClaim", "trident.netapp.io/importOriginalName", "other", WithheldRule},
		{"PersistentVolumeClaim", "trident.netapp.io/cloneFromNamespace", "b", ReferencesRule},
		{"PersistentVolumeClaim", "trident.netapp.io/cloneFromPVC", "data", ""},
		{"Service", "auth.istio.io/8089", "NONE", ""},
		{"Ingress", alb + "group.name", "a", ""},
		{"Ingress", alb + "group.name", "a.web", ""},
		{"Ingress", alb + "group.name", "ab", ReferencesRule},
		{"Ingress", alb + "group.name", "b", ReferencesRule},
		{"Ingress", alb + "of-next-release", "b", WithheldRule},
		{"Ingress", alb + "waf-acl-id", "granted", ""},
		{"Ingress", "traefik.ingress.kubernetes.io/router.middlewares", "a-auth@kubernetescrd, platform-tls@kubernetescrd,strip@file", ""},
		{"Ingress", "traefik.ingress.kubernetes.io/router.middlewares", "a-auth@kubernetescrd,b-auth@kubernetescrd", ReferencesRule},
		{"Ingress", "traefik.ingress.kubernetes.io/router.tls.domains.0.main", "www.b.example.org", WithheldRule},
		{"Ingress", "traefik.ingress.kubernetes.io/router.entrypoints", "web, websecure", ""},
		{"Ingress", "traefik.ingress.kubernetes.io/router.entrypoints", "websecure,traefik", ValuesRule},
		{"Service", "traefik.ingress.kubernetes.io/service.serverstransport", "b-skip@kubernetescrd", ReferencesRule},
		{"Service", "traefik.ingress.kubernetes.io/service.serverstransport", "a-skip@kubernetescrd", ""},
		{"Service", "kube-vip.io/loadbalancerIPs", "203.0.113.9", WithheldRule},
		{"Service", "lbipam.cilium.io/sharing-cross-namespace", "*", WithheldRule},
		{"Service", "io.cilium/global-service", "true", WithheldRule},
		{"Service", "service.cilium.io/lb-algorithm", "maglev", ""},
		{"Service", "load-balancer.hetzner.cloud/hostname", "www.a.example.org", ""},
		{"Service", "load-balancer.hetzner.cloud/hostname", "www.b.example.org", AnnotatedHostsRule},
		{"Service", "load-balancer.hetzner.cloud/id", "1", WithheldRule},
		{"Service", "kubernetes.digitalocean.com/load-balancer-id", "1", WithheldRule},
		{"Service", "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-id", "lb-1", WithheldRule},
		{"Service", "getambassador.io/config", "kind: Mapping", WithheldRule},
		{"Ingress", "ingress.bluemix.net/rewrite-path", "x", WithheldRule},
		{"PersistentVolumeClaim", "cdi.kubevirt.io/storage.import.endpoint", "http://files.a.svc/x", ""},
		{"PersistentVolumeClaim", "cdi.kubevirt.io/storage.import.endpoint", "s3://bucket/x", URLsRule},
		{"PersistentVolumeClaim", "cdi.kubevirt.io/storage.import.secretName", "other", WithheldRule},
		{"Service", "external-dns.alpha.kubernetes.io/hostname", "www.a.example.org,", ""},
		{"Service", "external-dns.alpha.kubernetes.io/hostname", "www.a.example.org.", AnnotatedHostsRule},
		{"Service", "internal.external-dns.example.org/target", "10.0.0.1", AnnotatedHostsRule},
		{"Service", "external-dns.alpha.kubernetes.io/webhook-x", "y", UnknownAnnotationsRule},
		{"Service", "service.beta.kubernetes.io/aws-load-balancer-type", "nlb", ""},
		{"Service", "service.beta.kubernetes.io/aws-load-balancer-of-next-release", "x", WithheldRule},
		{"Service", "granted.example.net/x", "y", ""},
		{"Service", "www.a.example.org/owner", "team", ""},
		{"Service", "www.b.example.org/owner", "team", UnknownAnnotationsRule},
		{"Service", "plain", "x", ""},
		{"Service", "helm.sh/hook", "x", ""},
		{"Secret", nginx + "server-snippet", "x", WithheldRule}, // snippets are refused on every kind
		{"Secret", nginx + "auth-url", "http://web.b.svc/", ""}, // no add-on reads it on a Secret
		{"Secret", "cert-manager.io/alt-names", "web.a.svc", ""},
		{"Secret", "reflector.v1.k8s.emberstack.com/reflects", "b/passwords", ReferencesRule},
		{"Secret", "reflector.v1.k8s.emberstack.com/reflects", "a/passwords", ""},
		{"Secret", "reflector.v1.k8s.emberstack.com/reflection-auto-enabled", "true", WithheldRule},
		{"PersistentVolumeClaim", "k8s.io/CloneRequest", "b/data", ReferencesRule},
		{"PersistentVolumeClaim", "volume.beta.kubernetes.io/storage-provisioner", "ebs.csi.aws.com", ""},
	} {
		object := map[string]any{"kind": c.kind, "metadata": map[string]any{"annotations": map[string]any{c.key: c.value}}}
		want := []string{}
		if c.rule != "" {
			want = []string{c.rule}
		}
		if got, _ := policy.broken(t, object, nil); !slices.Equal(got, want) {
			t.Errorf("%s with %s: %q breaks %v, want %v", c.kind, c.key, c.value, got, want)
		}
		if got, _ := policy.broken(t, object, object); len(got) > 0 {
			t.Errorf("%s that has %s: %q already breaks %v", c.kind, c.key, c.value, got)
		}
	}
}

// TestPodAnnotations does the same for pods.
func TestPodAnnotations(t *testing.T) {
	policy := compile(t, admissionpolicy.CheckPods(buildPodPart(nil)))
	for _, c := range []struct{ key, value, rule string }{
		{"k8s.v1.cni.cncf.io/networks", "net1, a/net2@eth1", ""},
		{"k8s.v1.cni.cncf.io/networks", "a/net1,b/net2", PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1","namespace":"b"}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1"}]`, ""},
		{"k8s.v1.cni.cncf.io/networks", "[ {\"name\": \"net1\", \"namespace\" : \"a-dev\",\n\"interface\":\"eth1\"}, {\"name\":\"net2\"} ]", ""},
		{"k8s.v1.cni.cncf.io/networks", `[{"namespace":"a","namespace":"b","name":"x"}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1"},{"name":"net1","namespace":"b"}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1","name\u0073pace":"b"}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1","NAMESPACE":"b"}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", "[{\"name\":\"net1\",\"name\u017fpace\":\"b\"}]", PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `[{"name":"net1","ips":["10.0.0.1"]}]`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", `{"name":"net1"}`, PodAnnotationsRule},
		{"k8s.v1.cni.cncf.io/networks", strings.Repeat("net1,", 1000), PodAnnotationsRule},
		{"proxy.istio.io/config", "holdApplicationUntilProxyStarts: true", ""},
		{"proxy.istio.io/config", `{"tracing": {"sampling": 1}, 'concurrency' : 2}`, ""},
		{"proxy.istio.io/config", "gatewayTopology:\n  numTrustedProxies: 2\nproxyStatsMatcher:\n  inclusionPrefixes: [a.b, \"c-d\"]\n", ""},
		{"proxy.istio.io/config", "", ""},
		{"proxy.istio.io/config", "discoveryAddress: x:15012", PodAnnotationsRule},
		{"proxy.istio.io/config", "concurrency: 2\n\"discoveryAddress\" : x", PodAnnotationsRule},
		{"proxy.istio.io/config", "{concurrency: 2, discoveryAddress\n: x}", PodAnnotationsRule},
		{"proxy.istio.io/config", `{"discovery\u0041ddress": "x"}`, PodAnnotationsRule},
		{"proxy.istio.io/config", "? discoveryAddress\n: x", PodAnnotationsRule},
		{"proxy.istio.io/config", "tracing: {zipkin: {address: x}}", PodAnnotationsRule},
		{"proxy.istio.io/config", "&a concurrency: 2", PodAnnotationsRule},
		{"proxy.istio.io/config", "!!str concurrency: 2", PodAnnotationsRule},
		{"proxy.istio.io/config", "configPath: /", PodAnnotationsRule},
		{"sidecar.istio.io/userVolume", "[]", PodAnnotationsRule},
		{"sidecar.istio.io/inject", "true", ""},
		{"vault.hashicorp.com/role", "anything", ""},
		{"vault.hashicorp.com/service", "https://vault.platform.svc:8200", ""},
		{"vault.hashicorp.com/service", "http://169.254.169.254", PodAnnotationsRule},
		{"vault.hashicorp.com/service", "http://2852039166/", PodAnnotationsRule},
		{"vault.hashicorp.com/service", "http://VAULT.B.svc", PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"source":"java","service":"app","tags":["a:b"],"log_processing_rules":[{"type":"multi_line","name":"start","pattern":"\\d{4}-\\d{2}"}]}]`, ""},
		{"ad.datadoghq.com/app.logs", `[{"source": "java", "auto_multi_line_detection": true}]`, ""},
		{"ad.datadoghq.com/app.logs", "[]", ""},
		{"ad.datadoghq.com/app.logs", `[{"type":"file","path":"/var/log/pods/*"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"type":"journald"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"type" : "journald", "source":"multi_line"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"type":"tcp","port":80}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"source":"a\"","path":"/x"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"source":"a",":":1,"path":"/x"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"source":"a","Path":"/x"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"path":"/x"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", "- path: /x", PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", "[{'path': '/x'}]", PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{path: "/x"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `["a", "path"` + "\n" + `: "/x"]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs", `[{"source":"` + strings.Repeat("x", 4096) + `"}]`, PodAnnotationsRule},
		{"ad.datadoghq.com/app.logs_exclude", "true", ""},
		{"service-discovery.datadoghq.com/app.instances", "[]", PodAnnotationsRule},
		{"devices.nri.io", "- path: /dev/sda", PodAnnotationsRule},
		{"mounts.noderesource.dev", "- source: /", PodAnnotationsRule},
		{"mounts.noderesource.dev/container.app", "- source: /", PodAnnotationsRule},
		{"x.rdt.noderesource.dev/container.app", "x", PodAnnotationsRule},
		{"devices.next-plugin.io", "x", PodAnnotationsRule},
		{"co.elastic.logs.app/raw", "[]", PodAnnotationsRule},
		{"co.elastic.logs.app/enabled", "false", ""},
		{"opflex.cisco.com/endpoint-group", "{}", PodAnnotationsRule},
		{"danm.io/interfaces", "[]", PodAnnotationsRule},
		{"www.a.example.org", "a host of one's own as a key", ""},
		{"userns-mode.crio.io", "auto", PodAnnotationsRule},
		{"shm-size.crio.io/app", "1Gi", PodAnnotationsRule},
		{"org.systemd.property.CPUWeight", "1", PodAnnotationsRule},
		{"io.containers.trace-syscall", "of:/x", PodAnnotationsRule},
		{"k8s.aliyun.com/eci-eip-instanceid", "eip-1", PodAnnotationsRule},
		{"sidecar.jaegertracing.io/inject", "true", ""},
		{"v1.multus-cni.io/default-network", "a/net1", PodAnnotationsRule},
		{"io.katacontainers.config.hypervisor.of_next_release", "x", PodAnnotationsRule},
		{"io.kubernetes.cri-o.Devices", "/dev/sda", PodAnnotationsRule},
		{"iam.amazonaws.com/role", "admin", PodAnnotationsRule},
		{"cni.projectcalico.org/ipAddrs", "x", PodAnnotationsRule},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", "true", ""},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", "false", DoNotDisruptRule},
		{"karpenter.sh/do-not-disrupt", "true", DoNotDisruptRule},
		{"external-dns.alpha.kubernetes.io/internal-hostname", "www.b.example.org", PodAnnotationsRule},
		{"checksum/config.yaml", "x", ""},
		{"build.url.of", "x", ""},
		{"example.net/x", "x", PodAnnotationsRule},
	} {
		pod := podWith(map[string]any{c.key: c.value})
		want := []string{}
		if c.rule != "" {
			want = []string{c.rule}
		}
		got, _ := policy.broken(t, pod, nil)
		if got = slices.DeleteFunc(got, func(rule string) bool { return rule == PullPolicyRule }); !slices.Equal(got, want) {
			t.Errorf("a pod with %s: %q breaks %v, want %v", c.key, c.value, got, want)
		}
	}
	_, without := policy.broken(t, podWith(map[string]any{}), nil)
	_, with := policy.broken(t, podWith(map[string]any{
		"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": "9e107d9d372bb6826bd81d3542a419d6", "kubectl.kubernetes.io/default-container": "web",
	}), nil)
	t.Logf("CEL cost of a pod without annotations %d, with four %d", without, with)
	if with > without+1000 {
		t.Errorf("four annotations make the cost of a pod %d, without them it is %d", with, without)
	}
}

// TestAnnotationsOfWorkloads fails if the catalogue lacks an annotation of the workloads that
// TestWorkloads deploys, which would lead to a warning there.
func TestAnnotationsOfWorkloads(t *testing.T) {
	files, err := filepath.Glob("../../../test/e2e/testdata/workloads/*/*.yaml")
	if err != nil || len(files) < 40 {
		t.Fatalf("there are %d workloads: %v", len(files), err)
	}
	tables := map[bool]map[string]string{true: addons.BuildTable(addons.Pods), false: addons.BuildTable(addons.Edge)}
	data := addons.BuildTable(addons.Data)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(content, []byte("\n---")) {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal(document, &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			template, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
			own := o.GetAnnotations()
			table := tables[false]
			switch o.GetKind() {
			case "Secret", "ConfigMap", "PersistentVolumeClaim":
				table = data
			case "Pod":
				template = own
			}
			for key := range own {
				switch o.GetKind() {
				case "Ingress", "Service", "Secret", "ConfigMap", "PersistentVolumeClaim", "HTTPRoute", "GRPCRoute", "Gateway":
					if addonstest.FindClass(table, key) == string(addons.Unknown) {
						t.Errorf("%s: %s %s has %s, which is not known", filepath.Base(file), o.GetKind(), o.GetName(), key)
					}
				}
			}
			for key := range template {
				if class := addonstest.FindClass(tables[true], key); class == string(addons.Unknown) {
					t.Errorf("%s: the pods of %s %s have %s, which is not known", filepath.Base(file), o.GetKind(), o.GetName(), key)
				}
			}
		}
	}
}

// TestTypes fails if an expression does not fit the types of the variables before it. The API
// server would refuse such a policy.
func TestTypes(t *testing.T) {
	texts := cel.MapType(cel.StringType, cel.StringType)
	known := map[string]*cel.Type{"annotations": texts, "annotationsBefore": texts, "labels": texts, "labelsBefore": texts, "handedLabels": texts, "handedLabelsBefore": texts}
	for _, policy := range []admissionpolicy.Validating{checkAnnotations(), warnOfAnnotations(), buildPolicy(&estate.Platform{}, "croft-ingresses"), admissionpolicy.CheckPods(buildPodPart(nil))} {
		env, _ := environmentOf(t).Extend()
		for _, v := range declared(policy) {
			ast, issues := env.Compile(v.Expression)
			if issues.Err() != nil {
				t.Fatalf("%s: variable %s: %v", policy.Name, v.Name, issues.Err())
			}
			is := ast.OutputType()
			if known[v.Name] != nil {
				is = known[v.Name]
			}
			var err error
			if env, err = env.Extend(cel.Variable("variables."+v.Name, is)); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range policy.Rules {
			for what, expression := range map[string]string{"rule": r.Expression, "message": `"[x] " + ("a template: " + ` + r.Message + `)`} {
				if _, issues := env.Compile(expression); issues.Err() != nil {
					t.Errorf("%s: %s %s: %v", policy.Name, what, r.Name, issues.Err())
				}
			}
		}
	}
}

// TestCatalogue fails if the catalogue contradicts itself or is incomplete.
func TestCatalogue(t *testing.T) {
	seen := map[string]string{}
	for _, a := range addons.All() {
		if a.Name == "" || a.Source == "" || a.Kinds == 0 {
			t.Errorf("%q says not what it is, where it is from, or on what", a.Name)
		}
		for _, prefix := range a.Prefixes {
			if other := seen[prefix]; other != "" {
				t.Errorf("prefix %s is %s's and %s's", prefix, a.Name, other)
			}
			seen[prefix] = a.Name
		}
		names := map[string]bool{}
		for _, n := range a.Names {
			if n.Class != addons.Harmless && n.Class != addons.OneOf && n.Harm == "" {
				t.Errorf("%s: nothing says why %v are %s", a.Name, n.Names, n.Class)
			}
			for _, name := range n.Names {
				if names[name] {
					t.Errorf("%s: %s is there twice", a.Name, name)
				}
				names[name] = true
			}
		}
	}
	for _, g := range addons.Groups {
		table := addons.BuildTable(g.Kinds)
		for key, code := range table {
			class, _, _ := strings.Cut(code, ":")
			many := strings.HasSuffix(key, ".") || strings.Contains(key, "/.") || strings.HasPrefix(key, "*.")
			if slices.Contains(listing, addons.Class(class)) && many {
				t.Errorf("%s stands for others, whose values are lists: no bound counts them", key)
			}
		}
		for key, class := range table {
			if got := addonstest.FindClass(table, key); got != class && !strings.HasPrefix(key, "*.") {
				t.Errorf("%s is %s, and found as %s", key, class, got)
			}
		}
	}
}

// TestLookups fails if the rules and addonstest.FindClass look up a key in the catalogue
// differently.
func TestLookups(t *testing.T) {
	table := addons.BuildTable(addons.Pods)
	all := slices.Sorted(maps.Keys(table))
	for _, key := range slices.Clone(all) {
		name := strings.Trim(strings.Trim(key, "*."), "/")
		all = append(all, name, "new."+name, name+"/x", name+"/x.y.z", name+".c/x", name+".c")
	}
	all = append(all, "note", "build.url.of", "com.example.team", "next-plugin.io", "example.net/x", "co.elastic.logs.c/x", "x.external-dns/hostname")
	variables := buildAddonVariables(formatTable(table, nil), "{}", listValueClasses(table), false)
	set := environmentOf(t)
	asked := evaluated(t, set, variables[1].Expression)
	class := evaluated(t, set, `variables.asked.map(a, string(`+findClass()+`))`)
	for _, key := range all {
		if strings.HasPrefix(key, "*.") || strings.Count(key, "/") > 1 || strings.HasSuffix(key, "/") {
			continue
		}
		in := map[string]any{"params": map[string]any{"spec": map[string]any{"domains": []string{}}}, "variables": map[string]any{
			"plain": false, "wildcards": []string{}, "annotations": map[string]string{key: "x"}, "annotationsBefore": map[string]string{}, "catalogue": table,
		}}
		in["variables"].(map[string]any)["asked"] = asked(in)
		got := fmt.Sprint(class(in).(traits.Lister).Get(types.Int(0)).Value())
		if want := addonstest.FindClass(table, key); got != want {
			t.Errorf("%s is %s in the rules, and %s in the catalogue", key, got, want)
		}
	}
}

// evaluated returns a function that evaluates an expression.
func evaluated(t *testing.T, env *cel.Env, expression string) func(map[string]any) ref.Val {
	t.Helper()
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	return func(in map[string]any) ref.Val {
		t.Helper()
		out, _, err := program.Eval(in)
		if err != nil {
			t.Fatalf("%v: %v", in["variables"].(map[string]any)["annotations"], err)
		}
		return out
	}
}

func podWith(annotations map[string]any) map[string]any {
	metadata := map[string]any{}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	return map[string]any{"kind": "Pod", "metadata": metadata, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "app", "image": "app", "imagePullPolicy": "Always"}},
	}}
}

// compiled is a policy whose expressions can be evaluated.
type compiled struct {
	variables, rules, messages []program
}

type program struct {
	name string
	cel.Program
}

func environmentOf(t *testing.T) *cel.Env {
	t.Helper()
	set, err := environment.MustBaseEnvSet(version.MajorMinor(1, 36)).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions: []cel.EnvOption{
			cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType),
			cel.Variable("params", cel.DynType), cel.Variable("variables", cel.DynType), cel.Variable("authorizer", cel.DynType), cel.Variable("namespaceObject", cel.DynType),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	env, err := set.Env(environment.NewExpressions)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// declared returns a policy's variables, including the variables for its bounds.
func declared(policy admissionpolicy.Validating) []admissionpolicy.Variable {
	return slices.Concat(policy.EarlyVariables, []admissionpolicy.Variable{{Name: "comparable", Expression: `request.operation == "UPDATE"`}}, policy.Variables)
}

func compile(t *testing.T, policy admissionpolicy.Validating) *compiled {
	t.Helper()
	env := environmentOf(t)
	one := func(name, expression string) program {
		ast, issues := env.Compile(expression)
		if issues.Err() != nil {
			t.Fatalf("%s: %v\n%s", name, issues.Err(), expression)
		}
		p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(math.MaxInt64))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return program{name, p}
	}
	c := &compiled{}
	for _, v := range declared(policy) {
		c.variables = append(c.variables, one(v.Name, v.Expression))
	}
	for _, r := range policy.Rules {
		holds := r.Expression
		if r.FastPath != "" {
			holds = r.FastPath + " || " + holds
		}
		c.rules = append(c.rules, one(r.Name, holds))
		c.messages = append(c.messages, one(r.Name+"'s message", r.Message))
	}
	return c
}

// broken returns the names of the rules that an object violates, and their cost. The tenant
// is a, next to a tenant b.
func (c *compiled) broken(t *testing.T, object, before map[string]any) ([]string, uint64) {
	t.Helper()
	variables := map[string]any{}
	in := map[string]any{
		"namespaceObject": map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.MaxOtherObjectBytesAnnotation: "49152"}}},
		"object":          object, "oldObject": before, "variables": variables, "request": map[string]any{"operation": "CREATE", "userInfo": map[string]any{"username": "dev", "groups": []string{}}, "resource": map[string]any{"group": "", "resource": "x"}},
		"params": map[string]any{"spec": map[string]any{
			"tenant": "a", "namespaces": []string{"a", "a-dev"}, "platformNamespaces": []string{"platform"}, "domains": []string{"a.example.org", "*.a.example.org"},
			"annotations":        []string{"nginx.ingress.kubernetes.io/auth-url=https://granted.example.net/", "alb.ingress.kubernetes.io/waf-acl-id", "granted.example.net/"},
			"unknownAnnotations": "Deny", "doNotDisrupt": false, "registries": []string{"*"}, "csiDrivers": []string{}, "volumeTypes": []string{}, "deviceClasses": []string{}, "runtimeClasses": []string{},
			"storageClasses": []string{}, "volumeAttributesClasses": []string{}, "maxVolumeSize": "1Ti", "cloudIdentities": []string{}, "pools": []string{}, "priorityClasses": []string{},
			"imagePullPolicies": []string{"Always"}, "maxTerminationGracePeriodSeconds": 3600,
		}},
	}
	if before != nil {
		in["request"] = map[string]any{"operation": "UPDATE", "userInfo": map[string]any{"username": "dev", "groups": []string{}}, "resource": map[string]any{"group": "", "resource": "x"}}
	}
	var cost uint64
	for _, v := range c.variables {
		out, details, err := v.Eval(in)
		if err != nil {
			t.Fatalf("variable %s: %v", v.name, err)
		}
		variables[v.name] = out
		cost += *details.ActualCost()
	}
	broken := []string{}
	for i, r := range c.rules {
		out, details, err := r.Eval(in)
		if err != nil && !strings.Contains(err.Error(), "authorizer") && !strings.Contains(err.Error(), "no such overload") && !strings.Contains(err.Error(), "no such attribute") {
			t.Fatalf("rule %s: %v", r.name, err)
		}
		cost += *details.ActualCost()
		if err != nil || out.Value() != true {
			broken = append(broken, r.name)
			// The API server discards messages with line breaks, or of more than 5 KiB.
			if text, _, err := c.messages[i].Eval(in); err != nil || text.Value() == "" || strings.ContainsAny(text.Value().(string), "\n\x1b") || len(text.Value().(string)) > 5<<10 {
				t.Errorf("the message of %s is %v: %v", r.name, text, err)
			}
		}
	}
	return broken, cost
}
