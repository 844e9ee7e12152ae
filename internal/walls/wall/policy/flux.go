package policy

import (
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the policies on the objects that Flux applies for tenants.
const (
	FluxPolicy        = "croft-flux"
	FluxSourcesPolicy = "croft-flux-sources"
)

// The names of their rules, and bounds.
const (
	ServiceAccountRule   = "service-account"
	KubeConfigRule       = "kube-config"
	SourceNamespaceRule  = "source-namespace"
	OtherNamespacesRule  = "other-namespaces"
	DecryptionRule       = "decryption"
	IntervalRule         = "interval"
	TimeoutRule          = "timeout"
	ProviderRule         = "provider"
	SourceHostsRule      = "source-hosts"
	ProxyRule            = "proxy"
	shortestFluxInterval = "30s"
	longestFluxTimeout   = "1h"
)

// fluxNamespaces is the expression for the namespaces in a Kustomization or HelmRelease,
// except the namespaces of its sources.
const fluxNamespaces = `((has(variables.spec.targetNamespace) ? [variables.spec.targetNamespace] : [])
	+ (has(variables.spec.storageNamespace) ? [variables.spec.storageNamespace] : [])
	+ (has(variables.spec.dependsOn)
		? variables.spec.dependsOn.filter(o, has(o.namespace)).map(o, o.namespace) : [])
	+ (has(variables.spec.healthChecks)
		? variables.spec.healthChecks.filter(o, has(o.namespace)).map(o, o.namespace) : []))`

// readTimeouts returns an expression for the timeouts of a Flux object. In a HelmRelease,
// each action may have its own.
func readTimeouts() string {
	return `(` + readFields("variables.spec", "timeout") + `
		+ ["install", "upgrade", "rollback", "uninstall", "test"]
			.filter(a, a in variables.spec && "timeout" in variables.spec[a]).map(a, variables.spec[a].timeout))`
}

// checkFlux restricts the objects that Flux applies to the permissions of a service account
// of the namespace. Flux' own multi-tenancy lockdown does the same. The policy also works
// where Flux' controllers run without it.
func checkFlux() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: FluxPolicy,
		Resources: []admissionpolicy.Resource{
			{
				Group: "kustomize.toolkit.fluxcd.io", Version: "*",
				Resources: []string{"kustomizations"}, Operations: write,
			},
			{Group: "helm.toolkit.fluxcd.io", Version: "*", Resources: []string{"helmreleases"}, Operations: write},
		},
		Bounds: fluxBounds,
		Variables: append(buildSpecVariables(),
			admissionpolicy.Variable{
				Name: "sources",
				Expression: `(has(variables.spec.sourceRef) ? [variables.spec.sourceRef] : [])
					+ (has(variables.spec.chartRef) ? [variables.spec.chartRef] : [])
					+ (has(variables.spec.chart) ? [variables.spec.chart.spec.sourceRef] : [])`,
			},
			buildRefusedVariable("refusedNamespaces", fluxNamespaces,
				`(VALUE == "" || VALUE in params.spec.namespaces)`),
			buildRefusedIntervals(`(`+readFields("variables.spec", "interval", "retryInterval")+
				` + (has(variables.spec.chart) ? `+readFields("variables.spec.chart.spec", "interval")+` : [])
				+ ["install", "upgrade"].filter(a, a in variables.spec && "strategy" in variables.spec[a] &&
					"retryInterval" in variables.spec[a].strategy)
					.map(a, variables.spec[a].strategy.retryInterval))`),
			buildRefusedTimeouts(readTimeouts()),
		),
		Rules: []admissionpolicy.Rule{
			{
				Name: ServiceAccountRule, Summary: "Flux applies with the rights of a service account of the namespace",
				Expression: `variables.unchanged ||
					has(variables.spec.serviceAccountName) && variables.spec.serviceAccountName != ""`,
				Message: `"spec.serviceAccountName: name a ServiceAccount of namespace " +
					namespaceObject.metadata.name + "; without one Flux would apply with its own rights"`,
			},
			{
				Name: KubeConfigRule, Summary: "Flux applies to this cluster, without a kubeconfig",
				Expression: `variables.unchanged || !has(variables.spec.kubeConfig)`,
				Message: `"spec.kubeConfig: Flux's controller would use it instead of the service account: ` +
					`remove the field"`,
			},
			{
				Name: SourceNamespaceRule, Summary: "Flux applies only sources of the tenant's namespaces",
				Expression: `variables.unchanged || variables.sources.all(s,
					!has(s.namespace) || s.namespace == "" || s.namespace in params.spec.namespaces)`,
				Message: `"spec.sourceRef.namespace: sources of tenant " + params.spec.tenant + " are in " + ` +
					formatAllowed("namespaces"),
			},
			{
				Name: OtherNamespacesRule,
				Summary: "targetNamespace, storageNamespace, dependsOn and healthChecks " +
					"name only the tenant's namespaces",
				Expression: `variables.refusedNamespaces.size() == 0`,
				Message: `"spec: targetNamespace, storageNamespace, dependsOn[].namespace and ` +
					`healthChecks[].namespace name " + ` + formatFirst("variables.refusedNamespaces", 3) +
					` + ": tenant " + params.spec.tenant + " has " + ` + formatAllowed("namespaces"),
			},
			{
				Name: DecryptionRule, Summary: "Flux decrypts with a secret or a service account of the namespace",
				Expression: `!has(variables.spec.decryption) ||
					has(variables.specBefore.decryption) &&
						variables.spec.decryption == variables.specBefore.decryption ||
					has(variables.spec.decryption.secretRef) ||
					has(variables.spec.decryption.serviceAccountName) &&
						variables.spec.decryption.serviceAccountName != ""`,
				Message: `"spec.decryption: Flux would decrypt with its own cloud identity, ` +
					`other tenants' secrets too: name a secretRef or a serviceAccountName"`,
			},
			buildIntervalRule(),
			buildTimeoutRule(),
		},
	}
}

// readFields returns an expression for the values of the given fields that are set.
func readFields(of string, names ...string) string {
	return replaceWords(`NAMES.filter(f, f in OF).map(f, string(OF[f]))`, "NAMES", formatQuoted(names), "OF", of)
}

func buildRefusedIntervals(intervals string) admissionpolicy.Variable {
	return buildRefusedVariable("refusedIntervals", intervals,
		`(VALUE.matches("`+goDuration+`") && duration(VALUE) >= duration("`+shortestFluxInterval+`"))`)
}

func buildIntervalRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: IntervalRule, Summary: "Flux looks again after " + shortestFluxInterval + " or more",
		Expression: `variables.refusedIntervals.size() == 0`,
		Message: `"spec.interval: " + ` + formatFirst("variables.refusedIntervals", 3) +
			` + ": all tenants share Flux: write ` + shortestFluxInterval + ` or more; flux reconcile starts at once"`,
	}
}

// buildRefusedTimeouts returns a variable with the timeouts that are too long, or that Go cannot
// parse: one object with an invalid duration prevents Flux from reading any object of the
// same kind, in all tenants.
func buildRefusedTimeouts(timeouts string) admissionpolicy.Variable {
	return buildRefusedVariable("refusedTimeouts", timeouts,
		`(VALUE.matches("`+goDuration+`") && duration(VALUE) <= duration("`+longestFluxTimeout+`"))`)
}

func buildTimeoutRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: TimeoutRule, Summary: "Flux waits for an hour at most, since it works on few objects at a time",
		Expression: `variables.refusedTimeouts.size() == 0`,
		Message: `"spec.timeout: " + ` + formatFirst("variables.refusedTimeouts", 3) +
			` + ": while Flux waits, it processes fewer objects of other tenants: ` +
			`write at most ` + longestFluxTimeout + `"`,
	}
}

// readSourceURLs returns an expression for the URLs that sources are fetched from. The endpoint
// of a Bucket is a host with an optional port.
func readSourceURLs() string {
	return `(` + readFields("variables.spec", "url") + `
		+ ` + readFields("variables.spec", "endpoint") + `.map(e, e.contains("://") ? e : "https://" + e)
		+ (has(variables.spec.sts) ? ` + readFields("variables.spec.sts", "endpoint") + ` : []))`
}

// matchSourceHost returns the condition that sources may be fetched from host h: it is one
// of the tenant's sourceHosts, or a Service of the tenant or the platform.
func matchSourceHost() string {
	return `(h in params.spec.sourceHosts ||
		h.matches("` + hostname + `") &&
			params.spec.sourceHosts.exists(s, s.startsWith("*.") && h.endsWith(s.substring(1))) ||
		"*" in params.spec.sourceHosts && ` + matchSafeHost("h") + ` ||
		h.matches("` + hostname + `") && ` + matchClusterName("h") + `)`
}

// checkFluxSources prevents Flux from fetching from hosts that tenants cannot connect to, and
// from using its controller's own cloud identity. The policy reads names only. The network
// policies of Flux' namespace must cover the addresses that the names resolve to, redirects,
// and a repository's submodules.
func checkFluxSources() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name: FluxSourcesPolicy,
		Resources: []admissionpolicy.Resource{{
			Group: "source.toolkit.fluxcd.io", Version: "*",
			Resources:  []string{"gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets"},
			Operations: write,
		}},
		Variables: append(buildSpecVariables(),
			buildRefusedIntervals(readFields("variables.spec", "interval")),
			buildRefusedTimeouts(readFields("variables.spec", "timeout")),
			buildRefusedVariable("refusedURLs", readSourceURLs(), matchURLHost("VALUE", matchSourceHost())),
		),
		Rules: []admissionpolicy.Rule{
			{
				Name: ProviderRule, Summary: "sources are fetched with a secret or a service account of the namespace",
				Expression: `variables.unchanged || !has(variables.spec.provider) ||
					variables.spec.provider in ["", "generic", "github"] ||
					has(variables.spec.serviceAccountName) && variables.spec.serviceAccountName != ""`,
				Message: `"spec.provider: tenant " + params.spec.tenant +
					" would fetch with the platform's cloud identity: name a serviceAccountName, ` +
					`or use provider generic and a secretRef"`,
			},
			{
				Name:       SourceHostsRule,
				Summary:    "sources are at the tenant's sourceHosts, or at Services of the tenant and the platform",
				Expression: `variables.refusedURLs.size() == 0`,
				Exception:  "policy.sourceHosts",
				Message: `"spec.url: Flux would connect to " + ` + formatFirst("variables.refusedURLs", 3) +
					` + ": hosts of sources of tenant " + params.spec.tenant + ": " + ` + formatAllowed("sourceHosts") +
					` + ", where * is every host name outside of the cluster; ` +
					`a platform admin allows others by policy.sourceHosts"`,
			},
			{
				Name: ProxyRule, Summary: "sources are fetched without a proxy of the tenant",
				Expression: `!has(variables.spec.proxySecretRef) ||
					has(variables.specBefore.proxySecretRef) &&
						variables.spec.proxySecretRef == variables.specBefore.proxySecretRef`,
				Message: `"spec.proxySecretRef: Flux would connect to any address that the Secret contains: ` +
					`remove the field; the platform gives Flux's controllers a proxy by HTTPS_PROXY"`,
			},
			buildIntervalRule(),
			buildTimeoutRule(),
		},
	}
}
