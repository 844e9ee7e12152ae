package policy

import (
	"slices"

	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the policies on objects that route traffic from outside.
const (
	IngressesPolicy    = "croft-ingresses"
	RoutesPolicy       = "croft-routes"
	GatewaysPolicy     = "croft-gateways"
	CertificatesPolicy = "croft-certificates"
)

// The names of their rules.
const (
	HostsRule          = "hosts"
	TLSHostsRule       = "tls-hosts"
	DefaultBackendRule = "default-backend"
	ClassRule          = "class"
	PathsRule          = "paths"
	AddressesRule      = "addresses"
	NamesRule          = "names"
)

// matchClusterName returns the condition that a host is the in-cluster name of a Service in a
// namespace of the tenant or the platform.
func matchClusterName(host string) string {
	return replaceWords(`(params.spec.namespaces + params.spec.platformNamespaces).exists(n,
		HOST.endsWith("." + n + ".svc") || HOST.endsWith("." + n + ".svc.cluster.local"))`, "HOST", host)
}

// buildHostVariables returns variables with the hosts of an object that the tenant may not serve
// and that the old object does not have. Each expression yields a list of strings.
func buildHostVariables(now, earlier string) []admissionpolicy.Variable {
	return []admissionpolicy.Variable{
		{Name: "hostsBefore", Expression: readBefore(earlier, `[]`)},
		{Name: "refusedHosts", Expression: now + `.filter(h, !` + matchGranted("h") +
			` && !(h in variables.hostsBefore))`},
	}
}

func checkIngresses() admissionpolicy.Validating {
	ruleHosts := func(object string) string {
		return replaceWords(`(has(OBJECT.spec.rules) ?
			OBJECT.spec.rules.map(r, has(r.host) ? r.host : "") : [])`, "OBJECT", object)
	}
	// A list of hosts for each certificate. An entry without hosts applies to every host.
	tlsHosts := func(object string) string {
		return replaceWords(`(has(OBJECT.spec.tls) ?
			OBJECT.spec.tls.map(t, has(t.hosts) && t.hosts.size() > 0 ? t.hosts : [""]) : [])`, "OBJECT", object)
	}
	// A list of paths for each rule.
	paths := func(object string) string {
		return replaceWords(`(has(OBJECT.spec.rules) ?
			OBJECT.spec.rules.filter(r, has(r.http)).map(r,
				r.http.paths.filter(p, has(p.path)).map(p, p.path)) : [])`, "OBJECT", object)
	}
	// Controllers read both the field and the annotation.
	classes := func(object, annotations string) string {
		return replaceWords(`(has(OBJECT.spec.ingressClassName) ? [OBJECT.spec.ingressClassName] : [])
			+ ("kubernetes.io/ingress.class" in ANNOTATIONS ? [ANNOTATIONS["kubernetes.io/ingress.class"]] : [])`,
			"OBJECT", object, "ANNOTATIONS", annotations)
	}
	// Characters that may end a path in a controller's configuration, or prevent a quote from
	// ending it.
	endOfPath := admissionpolicy.Quote("[\\x00-\\x20\\x7f;{}\"'`#]|\\\\$")
	return admissionpolicy.Validating{
		Name: IngressesPolicy,
		Resources: []admissionpolicy.Resource{
			{Group: "networking.k8s.io", Version: "v1", Resources: []string{"ingresses"}, Operations: write},
		},
		Bounds:         ingressBounds,
		EarlyVariables: []admissionpolicy.Variable{buildWildcards()},
		Variables: slices.Concat(
			buildHostVariables(ruleHosts("object"), ruleHosts("oldObject")), []admissionpolicy.Variable{
				{Name: "annotations", Expression: readAnnotations("object.metadata")},
				{Name: "annotationsBefore", Expression: readBefore(readAnnotations("oldObject.metadata"), `{}`)},
				{Name: "tlsHostsBefore", Expression: readBefore(tlsHosts("oldObject"), `[]`)},
				// The first refused host of each certificate, because CEL cannot flatten lists of
				// lists.
				{Name: "refusedTLSHosts", Expression: tlsHosts("object") + `.map(hosts,
				hosts.filter(h,
					!` + matchGranted("h") + ` &&
					!variables.tlsHostsBefore.exists(earlier, h in earlier)))` +
					`.filter(hosts, hosts.size() > 0).map(hosts, hosts[0])`},
				{Name: "classes", Expression: classes("object", "variables.annotations")},
				{
					Name:       "classesBefore",
					Expression: readBefore(classes("oldObject", "variables.annotationsBefore"), `[]`),
				},
				{Name: "pathsBefore", Expression: readBefore(paths("oldObject"), `[]`)},
				{Name: "refusedPaths", Expression: paths("object") + `.map(rule,
				rule.filter(p,
					p.matches(` + endOfPath + `) &&
					!variables.pathsBefore.exists(earlier, p in earlier)))` +
					`.filter(rule, rule.size() > 0).map(rule, rule[0])`},
			}),
		Rules: []admissionpolicy.Rule{
			{
				Name: HostsRule, Summary: "every rule has a host, and it is one of the tenant's",
				Expression: `variables.refusedHosts.size() == 0`,
				Message: `"spec.rules[].host: " + (variables.refusedHosts.exists(h, h == "") ?
					"a rule without a host would serve every host" :
					` + formatFirst("variables.refusedHosts", 3) + `) + ` + formatHosts(),
			},
			{
				Name: TLSHostsRule, Summary: "TLS is for hosts of the tenant",
				Expression: `variables.refusedTLSHosts.size() == 0`,
				Message: `"spec.tls[].hosts: " + (variables.refusedTLSHosts.exists(h, h == "") ?
					"TLS without hosts would be for every host" :
					` + formatFirst("variables.refusedTLSHosts", 3) + `) + ` + formatHosts(),
			},
			{
				Name: DefaultBackendRule, Summary: "there is no default backend, which would serve every host",
				Expression: `!has(object.spec.defaultBackend) ||
					request.operation == "UPDATE" && has(oldObject.spec.defaultBackend)`,
				Message: `"spec.defaultBackend: it would serve every host without a rule: ` +
					`write a rule with a host instead" + ` + formatHosts(),
			},
			{
				Name: ClassRule, Summary: "the class is one of the tenant's ingressClasses",
				Expression: `"*" in params.spec.ingressClasses ||
					variables.classes.size() > 0 &&
					variables.classes.all(c, c in params.spec.ingressClasses) ||
					` + admissionpolicy.Comparable + ` && variables.classes == variables.classesBefore`,
				Exception: "policy.ingressClasses",
				Message: `"spec.ingressClassName: ingress classes of tenant " + params.spec.tenant + ": " + ` +
					formatAllowed("ingressClasses") + ` + "; name one of these; ` +
					`a platform admin allows others by policy.ingressClasses"`,
			},
			{
				Name: PathsRule, Summary: "paths have no characters that end a path in a controller's configuration",
				Expression: `variables.refusedPaths.size() == 0`,
				Message: `"spec.rules[].http.paths[].path: " + ` +
					formatFirst(`variables.refusedPaths.map(p, `+formatPrintable("string(p)")+`)`, 3) +
					` + ": leave out spaces, line breaks, quotes, the characters ; { } # and a backslash at the end: ` +
					`they may end the path in the configuration of a controller that serves every tenant"`,
			},
		},
	}
}

// checkRoutes is for the routes of the Gateway API that match by host. The API's CRDs bound
// the lists before any policy is evaluated: 16 hostnames, and 64 listeners of a Gateway. The
// policy costs nothing in a cluster without the API.
func checkRoutes() admissionpolicy.Validating {
	hostnames := func(object string) string {
		return replaceWords(`(has(OBJECT.spec.hostnames) && OBJECT.spec.hostnames.size() > 0 ?
			OBJECT.spec.hostnames : PARENTS_ARE_OWN ? [] : [""])`,
			"OBJECT", object, "PARENTS_ARE_OWN", matchOwnParents(object))
	}
	return admissionpolicy.Validating{
		Name: RoutesPolicy,
		Resources: []admissionpolicy.Resource{
			{
				Group: "gateway.networking.k8s.io", Version: "*",
				Resources:  []string{"httproutes", "grpcroutes", "tlsroutes"},
				Operations: write,
			},
		},
		EarlyVariables: []admissionpolicy.Variable{buildWildcards()},
		Variables:      buildHostVariables(hostnames("object"), hostnames("oldObject")),
		Rules: []admissionpolicy.Rule{
			{
				Name: HostsRule,
				Summary: "routes have hostnames, and they are the tenant's; " +
					"routes of the tenant's own Gateways and Services need none",
				Expression: `variables.refusedHosts.size() == 0`,
				Message: `"spec.hostnames: " + (variables.refusedHosts.exists(h, h == "") ?
					"a route without hostnames would serve every host of its gateway: name some, ` +
					`or name only Gateways of the tenant as parentRefs" :
					` + formatFirst("variables.refusedHosts", 3) + `) + ` + formatHosts(),
			},
		},
	}
}

// matchOwnParents returns the condition that all parents of a route are in namespaces of the
// tenant: Gateways, whose listeners have hosts of the tenant, or Services in a mesh.
func matchOwnParents(route string) string {
	return replaceWords(`(has(ROUTE.spec.parentRefs) && ROUTE.spec.parentRefs.size() > 0 &&
		!has(dyn(ROUTE).spec.useDefaultGateways) &&
		ROUTE.spec.parentRefs.all(p,
			(!has(p.namespace) || p.namespace in params.spec.namespaces) &&
			(has(p.group) ? p.group : "gateway.networking.k8s.io") + "/" + (has(p.kind) ? p.kind : "Gateway") in
				["gateway.networking.k8s.io/Gateway", "/Service"]))`, "ROUTE", route)
}

func checkGateways() admissionpolicy.Validating {
	hostnames := func(object string) string {
		return replaceWords(`OBJECT.spec.listeners.map(l, has(l.hostname) ? l.hostname : "")`, "OBJECT", object)
	}
	return admissionpolicy.Validating{
		Name: GatewaysPolicy,
		Resources: []admissionpolicy.Resource{
			{Group: "gateway.networking.k8s.io", Version: "*", Resources: []string{"gateways"}, Operations: write},
		},
		EarlyVariables: []admissionpolicy.Variable{buildWildcards()},
		Variables:      buildHostVariables(hostnames("object"), hostnames("oldObject")),
		Rules: []admissionpolicy.Rule{
			{
				Name: HostsRule, Summary: "every listener has a hostname, and it is one of the tenant's",
				Expression: `variables.refusedHosts.size() == 0`,
				Message: `"spec.listeners[].hostname: " + (variables.refusedHosts.exists(h, h == "") ?
					"a listener without a hostname would serve every host" :
					` + formatFirst("variables.refusedHosts", 3) + `) + ` + formatHosts(),
			},
			{
				Name: ClassRule, Summary: "the class is one of the tenant's gatewayClasses",
				Expression: matchAllowed("gatewayClasses", "object.spec.gatewayClassName") + ` ||
					request.operation == "UPDATE" &&
					object.spec.gatewayClassName == oldObject.spec.gatewayClassName`,
				Exception: "policy.gatewayClasses",
				Message: `"spec.gatewayClassName: gateway classes of tenant " + params.spec.tenant + ": " + ` +
					formatAllowed("gatewayClasses") + ` + "; name one of these; ` +
					`a platform admin allows others by policy.gatewayClasses"`,
			},
			{
				Name: AddressesRule, Summary: "Gateways claim no addresses",
				Expression: `!has(object.spec.addresses) || object.spec.addresses.size() == 0 ||
					request.operation == "UPDATE" && has(oldObject.spec.addresses) &&
					object.spec.addresses == oldObject.spec.addresses`,
				Message: `"spec.addresses: a Gateway of a tenant claims no addresses, ` +
					`since these may belong to others: remove the field"`,
			},
		},
	}
}

// hostForm is the form of a host, or of a wildcard for all hosts below one. Programs that
// read a certificate may interpret anything else as two names.
const hostForm = `^([*][.])?([a-z0-9_]([-a-z0-9_]*[a-z0-9])?[.])*[a-z0-9]([-a-z0-9]*[a-z0-9])?$`

// unchecked is the condition that a certificate has fields that cannot be compared with a
// tenant's hosts.
const unchecked = `(has(object.spec.literalSubject) && object.spec.literalSubject != "" ||
	has(object.spec.ipAddresses) && object.spec.ipAddresses.size() > 0 ||
	has(object.spec.uris) && object.spec.uris.size() > 0 ||
	has(object.spec.emailAddresses) && object.spec.emailAddresses.size() > 0 ||
	has(object.spec.otherNames) && object.spec.otherNames.size() > 0)`

// checkCertificates lets tenants request certificates for their hosts and their Services. A
// CertificateRequest is opaque to policies, so no role may write one.
func checkCertificates() admissionpolicy.Validating {
	names := func(object string) string {
		return replaceWords(`((has(OBJECT.spec.dnsNames) ? OBJECT.spec.dnsNames : [])
			+ (has(OBJECT.spec.commonName) && OBJECT.spec.commonName != "" ?
				[OBJECT.spec.commonName] : []))`, "OBJECT", object)
	}
	return admissionpolicy.Validating{
		Name: CertificatesPolicy,
		Resources: []admissionpolicy.Resource{
			{Group: "cert-manager.io", Version: "*", Resources: []string{"certificates"}, Operations: write},
		},
		Bounds:         certificateBounds,
		EarlyVariables: []admissionpolicy.Variable{buildWildcards()},
		Variables: append(buildIssuerVariables(),
			admissionpolicy.Variable{Name: "hostsBefore", Expression: readBefore(names("oldObject"), `[]`)},
			admissionpolicy.Variable{Name: "refusedHosts", Expression: names("object") + `.filter(h,
				!(h.matches("` + hostForm + `") && (` + matchGranted("h") + ` || ` + matchOwnService("h") + `)) &&
				!(h in variables.hostsBefore))`}),
		Rules: append([]admissionpolicy.Rule{
			{
				Name: HostsRule, Summary: "certificates are for the tenant's hosts, and for its Services",
				Expression: `variables.refusedHosts.size() == 0`,
				Message:    `"spec.dnsNames: " + ` + formatFirst("variables.refusedHosts", 3) + ` + ` + formatHosts(),
			},
			{
				Name: NamesRule,
				Summary: "certificates are only for names that can be checked: " +
					"no addresses, URIs, e-mail addresses or literal subjects",
				Expression: `request.operation == "UPDATE" && object.spec == oldObject.spec || !` + unchecked,
				Message: `"spec: a certificate of tenant " + params.spec.tenant +
					" is for dnsNames and a commonName: ` +
					`remove ipAddresses, uris, emailAddresses, otherNames and literalSubject" + ` + formatHosts(),
			},
		}, buildIssuerRules()...),
	}
}

// matchOwnService returns the condition that a name is the name of a Service in a namespace of the
// tenant.
func matchOwnService(host string) string {
	return replaceWords(`params.spec.namespaces.exists(n,
		HOST.endsWith("." + n + ".svc") || HOST.endsWith("." + n + ".svc.cluster.local"))`, "HOST", host)
}
