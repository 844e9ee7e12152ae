package policy

import (
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// IssuersPolicy is the name of the policy on cert-manager's Issuers.
const IssuersPolicy = "croft-issuers"

// The names of the rules on issuers and on Certificates.
const (
	IssuerRule         = "issuer"
	AuthorityRule      = "authority"
	SubjectRule        = "subject"
	DurationRule       = "duration"
	SecretTemplateRule = "secret-template"
	IssuerTypeRule     = "issuer-type"
	IssuerURLsRule     = "issuer-urls"
	SolversRule        = "solvers"
	SolverServicesRule = "solver-services"
)

const (
	// longestCertificate is the maximum lifetime of a certificate of the platform's
	// issuers: 398 days, the limit of browsers.
	longestCertificate = "9552h"
	// goDuration matches a duration as cert-manager and Flux write it. CEL's duration()
	// accepts the same, and fails on anything else. It also fails on durations beyond the
	// range of Go's Duration, which is some 292 years.
	goDuration = `^([0-9]{1,5}([.][0-9]{1,9})?h|[0-9]{1,7}([.][0-9]{1,9})?m|` +
		`[0-9]{1,9}([.][0-9]{1,9})?(s|ms|us|µs|ns)){1,6}$`
	// harmlessUsages are usages by which a certificate attests its own names only.
	harmlessUsages = `["signing", "digital signature", "content commitment", "key encipherment", "key agreement",
		"data encipherment", "encipher only", "decipher only", "server auth", "client auth"]`
)

// buildIssuerVariables returns variables for the issuer of a Certificate. The namespace's own
// Issuer is not restricted, because only the tenant trusts it: a tenant may have its own CA.
func buildIssuerVariables() []admissionpolicy.Variable {
	return append(buildSpecVariables(),
		admissionpolicy.Variable{
			Name: "issuerKind",
			Expression: `(has(variables.spec.issuerRef.kind) && variables.spec.issuerRef.kind != ""
					? variables.spec.issuerRef.kind : "Issuer") +
				(!has(variables.spec.issuerRef.group) || variables.spec.issuerRef.group in ["", "cert-manager.io"]
					? "" : "." + variables.spec.issuerRef.group)`,
		},
		admissionpolicy.Variable{
			Name: "sameIssuer",
			Expression: `"issuerRef" in variables.specBefore &&
				variables.spec.issuerRef == variables.specBefore.issuerRef`,
		},
		// New requests to an issuer of the platform.
		admissionpolicy.Variable{
			Name: "asked",
			Expression: `variables.issuerKind == "Issuer" ? [] :
				["isCA", "usages", "subject", "duration"].filter(f, f in variables.spec &&
					!(variables.sameIssuer && f in variables.specBefore &&
						variables.specBefore[f] == variables.spec[f]))`,
		},
		buildRefusedVariable("refusedTemplate", `(!has(variables.spec.secretTemplate) ? [] :
			(has(variables.spec.secretTemplate.annotations)
				? variables.spec.secretTemplate.annotations.map(k, string(k)) : []) +
			(has(variables.spec.secretTemplate.labels)
				? variables.spec.secretTemplate.labels.map(k, string(k)) : []))`,
			`(!VALUE.contains("/") || VALUE.startsWith("app.kubernetes.io/") || VALUE.startsWith("helm.sh/") ||
			`+matchGranted(`VALUE.split("/")[0]`)+`)`),
	)
}

// buildIssuerRules returns the rules on a Certificate's request to its issuer. The platform's
// issuers are trusted by others than the tenant.
func buildIssuerRules() []admissionpolicy.Rule {
	return []admissionpolicy.Rule{
		{
			Name: AuthorityRule,
			Summary: "the platform's issuers issue no certificate authorities, " +
				"and no certificates that sign code, time or revocations",
			Expression: `!("isCA" in variables.asked && variables.spec.isCA) &&
				!("usages" in variables.asked && !variables.spec.usages.all(u, u in ` + harmlessUsages + `))`,
			Message: `"spec: a certificate of " + variables.issuerKind + " " + variables.spec.issuerRef.name +
				" is for TLS: remove isCA, and usages other than digital signature, key encipherment, ` +
				`server auth and client auth; for a CA of your own use an Issuer"`,
		},
		{
			Name:    SubjectRule,
			Summary: "certificates of the platform's issuers name no organizations, which Kubernetes reads as groups",
			Expression: `!("subject" in variables.asked) ||
				!(has(variables.spec.subject.organizations) && variables.spec.subject.organizations.size() > 0 ||
				has(variables.spec.subject.organizationalUnits) &&
					variables.spec.subject.organizationalUnits.size() > 0)`,
			Message: `"spec.subject: organizations and organizationalUnits would be groups and roles ` +
				`for every service that trusts " + variables.issuerKind + " " + variables.spec.issuerRef.name +
				": remove them, or use an Issuer of your own"`,
		},
		{
			Name: DurationRule, Summary: "certificates of the platform's issuers are valid for at most 398 days",
			Expression: `!("duration" in variables.asked) ||
				variables.spec.duration.matches("` + goDuration + `") &&
				duration(variables.spec.duration) <= duration("` + longestCertificate + `")`,
			Message: `"spec.duration: " + variables.spec.duration + " is longer than ` + longestCertificate +
				`, 398 days: write at most that, since cert-manager renews it; or use an Issuer of your own"`,
		},
		{
			Name:       SecretTemplateRule,
			Summary:    "cert-manager adds no labels and annotations to Secrets on which other controllers act",
			Expression: `variables.refusedTemplate.size() == 0`,
			Message: `"spec.secretTemplate: " + ` + formatFirst("variables.refusedTemplate", 3) +
				` + ": other controllers may act on these: leave them out; keys without a prefix, ` +
				`of app.kubernetes.io, of helm.sh and of your domains may stay"`,
		},
		{
			Name: IssuerRule, Summary: "certificates come from the tenant's issuers",
			Expression: `variables.sameIssuer || "*" in params.spec.issuers ||
				variables.issuerKind + "/" + variables.spec.issuerRef.name in params.spec.issuers ||
				variables.issuerKind + "/*" in params.spec.issuers`,
			Exception: "policy.issuers",
			Message: `"spec.issuerRef: " + variables.issuerKind + "/" + variables.spec.issuerRef.name +
				" is not among the issuers of tenant " + params.spec.tenant + ": " + ` +
				formatAllowed("issuers") + ` + "; name one of these; a platform admin allows others by policy.issuers"`,
		},
	}
}

// harmlessSolver is the condition that the solver VALUE neither connects to an address that
// the tenant chooses nor uses cert-manager's own credentials.
const harmlessSolver = `!(has(VALUE.rfc2136) || has(VALUE.acmeDNS) || has(VALUE.webhook) || has(VALUE.akamai) ||
	has(VALUE.route53) && !(has(VALUE.route53.secretAccessKeySecretRef) &&
		VALUE.route53.secretAccessKeySecretRef.name != "" ||
		has(VALUE.route53.auth) && VALUE.route53.auth.size() > 0) ||
	has(VALUE.cloudDNS) && !has(VALUE.cloudDNS.serviceAccountSecretRef) ||
	has(VALUE.azureDNS) && (has(VALUE.azureDNS.managedIdentity) || !has(VALUE.azureDNS.clientSecretSecretRef)))`

// solverService is the condition that the HTTP-01 solver VALUE has cert-manager create a
// Service of a type that the tenant may use. The default type is NodePort.
const solverService = `["ingress", "gatewayHTTPRoute"].all(f, !(f in VALUE) ||
	(has(VALUE[f].serviceType) && VALUE[f].serviceType != "" ? VALUE[f].serviceType : "NodePort")
		in params.spec.serviceTypes)`

// checkIssuers prevents tenants from sending cert-manager's controller, which has network
// access that tenants lack, to addresses of their choice. The solvers' objects in the
// namespace, such as pods and Ingresses, are checked like the tenant's own objects. Platform
// admins may write any issuer, also in tenants' namespaces.
func checkIssuers(admins []string) admissionpolicy.Validating {
	of := func(path, field string) string {
		return replaceWords(
			`(has(variables.spec.PATH) && has(variables.spec.PATH.FIELD) ? [variables.spec.PATH.FIELD] : [])`,
			"PATH", path, "FIELD", field)
	}
	venafi := func(kind, field string) string {
		return replaceWords(`(has(variables.spec.venafi) &&
			has(variables.spec.venafi.KIND) && has(variables.spec.venafi.KIND.FIELD)
			? [variables.spec.venafi.KIND.FIELD] : [])`, "KIND", kind, "FIELD", field)
	}
	return admissionpolicy.Validating{
		Name: IssuersPolicy,
		Resources: []admissionpolicy.Resource{
			{Group: "cert-manager.io", Version: "*", Resources: []string{"issuers"}, Operations: write},
		},
		MatchConditions: admissionpolicy.NotByPlatform(admins),
		Bounds:          issuerBounds,
		Variables: append(buildSpecVariables(),
			admissionpolicy.Variable{Name: "refusedTypes", Expression: `variables.spec.map(t, string(t)).filter(t,
				!(t in params.spec.issuerTypes) &&
				!(t in variables.specBefore && variables.specBefore[t] == variables.spec[t]))`},
			buildRefusedVariable("refusedURLs", `(`+of("acme", "server")+` + `+of("vault", "server")+`
				+ `+venafi("tpp", "url")+` + `+venafi("cloud", "url")+`
				+ `+venafi("ngts", "url")+` + `+venafi("ngts", "tokenEndpoint")+`)`,
				matchURLHost("VALUE", matchSafeHost("h"))),
			buildRefusedVariable("refusedSolvers", `(has(variables.spec.acme) && has(variables.spec.acme.solvers)
				? variables.spec.acme.solvers.filter(s, has(s.dns01)).map(s, s.dns01) : [])`, harmlessSolver),
			buildRefusedVariable("refusedServices", `(has(variables.spec.acme) && has(variables.spec.acme.solvers)
				? variables.spec.acme.solvers.filter(s, has(s.http01)).map(s, s.http01) : [])`, solverService),
			admissionpolicy.Variable{Name: "refusedProviders", Expression: `variables.refusedSolvers.map(s,
				s.filter(k, k != "cnameStrategy").map(k, string(k)).join(" "))`},
		),
		Rules: []admissionpolicy.Rule{
			{
				Name: IssuerTypeRule, Summary: "Issuers have one of the tenant's issuerTypes",
				Expression: `variables.refusedTypes.size() == 0`,
				Exception:  "policy.issuerTypes",
				Message: `"spec." + variables.refusedTypes.join(", ") +
					": cert-manager would connect to an address of your choice; types of Issuers of tenant " +
					params.spec.tenant + ": " + ` + formatAllowed("issuerTypes") +
					` + "; use an issuer of the platform; a platform admin allows others by policy.issuerTypes, ` +
					`or makes the Issuer"`,
			},
			{
				Name:       IssuerURLsRule,
				Summary:    "Issuers name hosts outside of the cluster, or Services of the tenant and the platform",
				Expression: `variables.refusedURLs.size() == 0`,
				Message: `"spec: cert-manager would connect to " + ` + formatFirst("variables.refusedURLs", 3) +
					` + ": name a host outside of the cluster by a URL, or a Service of namespaces " + ` +
					formatAllowed("namespaces") + ` + " as SERVICE.NAMESPACE.svc"`,
			},
			{
				Name: SolversRule,
				Summary: "solvers have credentials of their own, " +
					"and use DNS providers whose addresses cert-manager knows",
				Expression: `variables.refusedSolvers.size() == 0`,
				Message: `"spec.acme.solvers[].dns01: " + ` + formatFirst("variables.refusedProviders", 3) +
					` + " would use cert-manager's own credentials, or an address of your choice: ` +
					`name a Secret with credentials, or use http01"`,
			},
			{
				Name:       SolverServicesRule,
				Summary:    "solvers create Services of the tenant's serviceTypes",
				Expression: `variables.refusedServices.size() == 0`,
				Exception:  "policy.serviceTypes",
				Message: `"spec.acme.solvers[].http01: cert-manager would create a Service that is refused, ` +
					`by default of type NodePort: set serviceType: ClusterIP in ingress, or in gatewayHTTPRoute; ` +
					`types of Services of tenant " +
					params.spec.tenant + ": " + ` + formatAllowed("serviceTypes") +
					` + "; a platform admin allows others by policy.serviceTypes"`,
			},
		},
	}
}
