package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// buildFluxAttacks are attacks by Flux on the tenant's behalf, if the cluster has Flux.
func (s scene) buildFluxAttacks() []attack.Attack {
	const kustomize, helm, source = "kustomize.toolkit.fluxcd.io/v1", "helm.toolkit.fluxcd.io/v2", "source.toolkit.fluxcd.io/v1"
	kustomization := func(name string, edit func(map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{"interval": "1m", "prune": true, "serviceAccountName": "flux", "sourceRef": map[string]any{"kind": "GitRepository", "name": "app"}}
		edit(spec)
		return attack.NewCustomObject(kustomize, "Kustomization", s.own, "croft-"+name, spec)
	}
	release := func(name string, edit func(map[string]any)) *unstructured.Unstructured {
		spec := map[string]any{"interval": "1m", "serviceAccountName": "flux", "chartRef": map[string]any{"kind": "OCIRepository", "name": "app"}}
		edit(spec)
		return attack.NewCustomObject(helm, "HelmRelease", s.own, "croft-"+name, spec)
	}
	ref := func(kind string) map[string]any {
		return map[string]any{"kind": kind, "name": "app", "namespace": s.other}
	}
	by := func(rule string) attack.Stopper { return attack.ByPolicy(FluxPolicy, rule) }
	repository := func(name string, spec map[string]any) *unstructured.Unstructured {
		return attack.NewCustomObject(source, "OCIRepository", s.own, "croft-"+name, spec)
	}
	none := func(map[string]any) {}
	all := attack.WithReason("Flux applies with the rights of the cluster's administrator unless its object names a service account", []string{"https://fluxcd.io/flux/installation/configuration/multitenancy/"},
		attack.NewCreate("apply-as-flux", "have Flux apply manifests with its own rights", by(ServiceAccountRule), kustomization("apply-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.NewCreate("install-as-flux", "have Flux install a chart with its own rights", by(ServiceAccountRule), release("install-as-flux", func(m map[string]any) { delete(m, "serviceAccountName") })),
		attack.NewCreate("apply-by-kubeconfig", "have Flux apply manifests by a kubeconfig", by(KubeConfigRule), kustomization("apply-by-kubeconfig", func(m map[string]any) {
			m["kubeConfig"] = map[string]any{"secretRef": map[string]any{"name": "kubeconfig"}}
		})),
		attack.NewCreate("apply-other-source", "have Flux apply another tenant's source", by(SourceNamespaceRule), kustomization("apply-other-source", func(m map[string]any) { m["sourceRef"] = ref("GitRepository") })),
		attack.NewCreate("install-other-source", "have Flux install another tenant's chart", by(SourceNamespaceRule), release("install-other-source", func(m map[string]any) { m["chartRef"] = ref("OCIRepository") })),
		attack.NewCreate("fetch-as-platform", "have Flux fetch with the platform's cloud identity", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app", "provider": "aws"})),
		attack.NewUpdate("apply-as-flux-later", "have Flux apply manifests with its own rights, by an existing Kustomization", by(ServiceAccountRule),
			kustomization("apply-as-flux-later", none), func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, "spec", "serviceAccountName")
			}),
		attack.NewUpdate("install-as-flux-later", "have Flux install a chart with its own rights, by an existing HelmRelease", by(ServiceAccountRule),
			release("install-as-flux-later", none), func(u *unstructured.Unstructured) {
				unstructured.RemoveNestedField(u.Object, "spec", "serviceAccountName")
			}),
		attack.NewUpdate("fetch-as-platform-later", "have Flux fetch with the platform's cloud identity, by an existing source", attack.ByPolicy(FluxSourcesPolicy, ProviderRule),
			repository("fetch-as-platform-later", map[string]any{"interval": "1m", "url": "oci://registry.example.com/other/app"}),
			func(u *unstructured.Unstructured) { setField(u, "aws", "spec", "provider") }),
		attack.NewCreate("apply-by-flux", "have Flux apply manifests as a service account", attack.Nobody, kustomization("apply-by-flux", none)),
		attack.NewCreate("install-by-flux", "have Flux install a chart as a service account", attack.Nobody, release("install-by-flux", none)),
		attack.NewCreate("fetch-by-flux", "have Flux fetch with a secret", attack.Nobody, repository("fetch-by-flux", map[string]any{"interval": "1m", "url": "oci://registry.example.com/own/app"})),
	)
	return append(all, s.buildFluxBoundsAttacks(kustomization, release)...)
}

// buildFluxBoundsAttacks have Flux' controllers connect to internal addresses, and take more than a share
// of their work.
func (s scene) buildFluxBoundsAttacks(kustomization func(string, func(map[string]any)) *unstructured.Unstructured, release func(string, func(map[string]any)) *unstructured.Unstructured) []attack.Attack {
	const source = "source.toolkit.fluxcd.io/v1"
	var all []attack.Attack
	by := func(rule string) attack.Stopper { return attack.ByPolicy(FluxPolicy, rule) }
	apply := func(rule, name, summary string, edit func(map[string]any)) {
		all = append(all, attack.NewCreate(name, summary, by(rule), kustomization(name, edit)))
	}
	install := func(rule, name, summary string, edit func(map[string]any)) {
		all = append(all, attack.NewCreate(name, summary, by(rule), release(name, edit)))
	}
	other := []any{map[string]any{"name": "app", "namespace": s.other}}
	apply(OtherNamespacesRule, "apply-to-other", "have Flux apply manifests to another tenant's namespace", func(m map[string]any) { m["targetNamespace"] = s.other })
	apply(admissionpolicy.BoundsRule, "wait-for-more", "have Flux wait for more Kustomizations than croft evaluates", func(m map[string]any) {
		more := make([]any, 501)
		for i := range more {
			more[i] = map[string]any{"name": fmt.Sprint("d", i)}
		}
		m["dependsOn"] = more
	})
	apply(OtherNamespacesRule, "wait-for-other", "have Flux report whether another tenant's Kustomization is ready", func(m map[string]any) { m["dependsOn"] = other })
	apply(OtherNamespacesRule, "watch-health-of-other", "have Flux report the health of another tenant's Deployment", func(m map[string]any) {
		m["healthChecks"] = []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": s.other}}
	})
	install(OtherNamespacesRule, "install-into-other", "have Flux install a chart into another tenant's namespace", func(m map[string]any) { m["targetNamespace"] = s.other })
	install(OtherNamespacesRule, "keep-release-in-other", "have Flux keep a release in another tenant's namespace", func(m map[string]any) { m["storageNamespace"] = s.other })
	install(OtherNamespacesRule, "wait-for-other-release", "have Flux report whether another tenant's release is ready", func(m map[string]any) { m["dependsOn"] = other })
	apply(DecryptionRule, "decrypt-as-flux", "have Flux decrypt with its own cloud identity", func(m map[string]any) { m["decryption"] = map[string]any{"provider": "sops"} })
	apply(IntervalRule, "apply-every-second", "have Flux apply every second", func(m map[string]any) { m["interval"] = "1s" })
	apply(IntervalRule, "retry-every-second", "have Flux retry every second", func(m map[string]any) { m["retryInterval"] = "1000ms" })
	install(IntervalRule, "look-for-chart-every-second", "have Flux check for a chart every second", func(m map[string]any) {
		delete(m, "chartRef")
		m["chart"] = map[string]any{"spec": map[string]any{"chart": "app", "interval": "1s", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "app"}}}
	})
	apply(TimeoutRule, "wait-for-a-day", "have Flux wait for a day, and process no other object meanwhile", func(m map[string]any) { m["timeout"] = "24h" })
	install(TimeoutRule, "install-for-a-day", "have Flux wait a day for a chart's installation", func(m map[string]any) { m["install"] = map[string]any{"timeout": "1440m"} })
	all = append(all, attack.NewUpdate("apply-every-second-later", "have Flux apply every second by an existing Kustomization", by(IntervalRule),
		kustomization("apply-every-second-later", func(map[string]any) {}), func(u *unstructured.Unstructured) { setField(u, "1s", "spec", "interval") }))
	all = attack.WithReason("Flux's controllers work for every tenant, one object after the other", nil, all...)

	fetch := func(kind, name string, spec map[string]any) *unstructured.Unstructured {
		fields := map[string]any{"interval": "1m"}
		maps.Copy(fields, spec)
		return attack.NewCustomObject(source, kind, s.own, "croft-"+name, fields)
	}
	byHosts := attack.ByPolicy(FluxSourcesPolicy, SourceHostsRule)
	var sources []attack.Attack
	refused := func(kind, name string, spec map[string]any, url string) {
		sources = append(sources, attack.NewCreate("fetch-from-"+name, "have Flux connect to "+url+" by a "+kind, byHosts, fetch(kind, "fetch-from-"+name, spec)))
	}
	for _, u := range []struct{ name, url string }{
		{"metadata", "http://169.254.169.254/latest/meta-data"}, {"metadata-in-decimal", "http://2852039166/latest"}, {"metadata-in-hex", "http://0xA9FEA9FE/latest"},
		{"metadata-in-octal", "http://0251.0376.0251.0376/latest"}, {"metadata-over-ipv6", "http://[fd00:ec2::254]/latest"}, {"metadata-over-nat64", "http://[64:ff9b::a9fe:a9fe]/latest"},
		{"metadata-by-name", "http://Metadata.Google.Internal/computeMetadata/v1"}, {"private-address", "https://192.168.1.1/repo"}, {"other-service", "http://web." + s.other + ".svc.cluster.local/repo"},
		{"other-service-by-short-name", "http://web." + s.other + "/repo"}, {"kubernetes", "https://kubernetes.default.svc/api"}, {"localhost", "http://localhost:8080/metrics"},
		{"what-a-fragment-hides", "http://169.254.169.254#." + s.own + ".svc/repo"}, {"what-a-user-hides", "https://git.example.org@10.0.0.1/repo"}, {"trailing-dot", "http://metadata.google.internal./"},
	} {
		refused("GitRepository", u.name, map[string]any{"url": u.url}, u.url)
	}
	refused("HelmRepository", "metadata-for-charts", map[string]any{"url": "http://169.254.169.254/charts"}, "http://169.254.169.254/charts")
	refused("OCIRepository", "metadata-for-images", map[string]any{"url": "oci://169.254.169.254/app"}, "oci://169.254.169.254/app")
	refused("Bucket", "metadata-for-files", map[string]any{"bucketName": "latest", "endpoint": "169.254.169.254:80", "insecure": true}, "169.254.169.254:80")
	refused("Bucket", "metadata-for-tokens", map[string]any{"bucketName": "latest", "endpoint": "minio.example.com", "provider": "generic",
		"sts": map[string]any{"provider": "ldap", "endpoint": "http://169.254.169.254/"}}, "http://169.254.169.254/")
	if !slices.Contains(s.attacker.Allowances.SourceHosts, "*") {
		refused("GitRepository", "any-host", map[string]any{"url": "https://git.croft-verify.example/repo"}, "a host that is not the tenant's")
	}
	if !slices.Contains(s.attacker.Allowances.SourceHosts, "*") {
		for _, h := range s.attacker.Allowances.SourceHosts[:min(4, len(s.attacker.Allowances.SourceHosts))] {
			h = strings.Replace(h, "*", "git", 1)
			sources = append(sources, attack.NewCreate("fetch-from-named-"+strings.NewReplacer(".", "-", ":", "-").Replace(h), "have Flux fetch from a host that the tenant is allowed", attack.Nobody,
				fetch("GitRepository", "fetch-from-named-host", map[string]any{"url": "https://" + h + "/own/app"})))
		}
	}
	if slices.Contains(s.attacker.Allowances.SourceHosts, "*") {
		sources = append(sources, attack.NewCreate("fetch-from-a-company", "have Flux fetch from a host of one's company, and by another port", attack.Nobody,
			fetch("GitRepository", "fetch-from-a-company", map[string]any{"url": "https://Git-1.internal.example.co.uk:8443/own/app.git"})))
	}
	by = func(rule string) attack.Stopper { return attack.ByPolicy(FluxSourcesPolicy, rule) }
	git := func(host string) map[string]any { return map[string]any{"url": "ssh://git@" + host + ":22/own/app"} }
	host := s.findSourceHost()
	sources = append(sources,
		attack.NewUpdate("fetch-from-metadata-later", "have Flux connect to a metadata address by an existing source", byHosts, fetch("GitRepository", "fetch-from-metadata-later", git(host)),
			func(u *unstructured.Unstructured) { setField(u, "http://169.254.169.254/latest", "spec", "url") }),
		attack.NewCreate("fetch-by-proxy", "have Flux connect to any address in a Secret, as a proxy", by(ProxyRule), fetch("GitRepository", "fetch-by-proxy",
			map[string]any{"url": "https://" + host + "/app", "proxySecretRef": map[string]any{"name": "proxy"}})),
		attack.NewCreate("fetch-every-second", "have Flux fetch every second", by(IntervalRule), fetch("GitRepository", "fetch-every-second", map[string]any{"url": "https://" + host + "/app", "interval": "1s"})),
		attack.NewCreate("fetch-for-ever", "have Flux wait for longer than it can count, and read no source of any tenant", by(TimeoutRule), fetch("GitRepository", "fetch-for-ever",
			map[string]any{"url": "https://" + host + "/app", "timeout": "9999999999m"})),
		attack.NewCreate("fetch-a-chart-every-second", "have Flux fetch a chart every second", by(IntervalRule), fetch("HelmChart", "fetch-a-chart-every-second",
			map[string]any{"chart": "app", "interval": "1s", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "app"}})),
		attack.NewCreate("fetch-over-ssh", "have Flux fetch by SSH", attack.Nobody, fetch("GitRepository", "fetch-over-ssh", git(host))),
		attack.NewCreate("fetch-from-own-service", "have Flux fetch from a Service of one's own", attack.Nobody, fetch("GitRepository", "fetch-from-own-service", map[string]any{"url": "http://gitea." + s.own + ".svc.cluster.local:3000/own/app"})),
		attack.NewCreate("fetch-from-bucket", "have Flux fetch from a bucket", attack.Nobody, fetch("Bucket", "fetch-from-bucket", map[string]any{"bucketName": "own", "endpoint": host + ":443"})),
		attack.NewCreate("fetch-a-chart", "have Flux fetch a chart", attack.Nobody, fetch("HelmChart", "fetch-a-chart", map[string]any{"chart": "app", "sourceRef": map[string]any{"kind": "HelmRepository", "name": "app"}})),
		attack.NewCreate("apply-within-bounds", "have Flux apply to one's own namespaces, after another Kustomization, with a key of one's own", attack.Nobody, kustomization("apply-within-bounds", func(m map[string]any) {
			m["targetNamespace"], m["timeout"], m["interval"] = s.own, "15m", "1m30s"
			m["dependsOn"] = []any{map[string]any{"name": "infra"}, map[string]any{"name": "app", "namespace": s.own}}
			m["decryption"] = map[string]any{"provider": "sops", "secretRef": map[string]any{"name": "age"}}
		})),
	)
	return append(all, attack.WithReason("Flux's controllers have network access that no tenant has", nil, sources...)...)
}

// findSourceHost returns a host that the tenant's sources may be on.
func (s scene) findSourceHost() string {
	for _, h := range s.attacker.Allowances.SourceHosts {
		if below, ok := strings.CutPrefix(h, "*."); ok {
			return "git." + below
		}
		if h != "*" {
			return h
		}
	}
	return "git.example.org"
}
