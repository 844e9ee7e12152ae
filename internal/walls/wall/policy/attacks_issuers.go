package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

// makeCertificate returns a Certificate of a ClusterIssuer that the tenant may use.
func (s scene) makeCertificate(name string, names []any, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	u := attack.NewCustomObject("cert-manager.io/v1", "Certificate", s.own, "croft-"+name, map[string]any{
		"secretName": "croft-verify", "dnsNames": names, "issuerRef": map[string]any{"name": s.findIssuer(), "kind": "ClusterIssuer", "group": "cert-manager.io"},
	})
	for _, edit := range edits {
		edit(u)
	}
	return u
}

const clusterIssuer = "ClusterIssuer/"

// findIssuer returns the name of a ClusterIssuer that the tenant may use.
func (s scene) findIssuer() string {
	for _, i := range s.attacker.Allowances.Issuers {
		if name, ok := strings.CutPrefix(i, clusterIssuer); ok && name != "*" {
			return name
		}
	}
	return "letsencrypt"
}

// buildCertificateAttacks request certificates for other tenants' hosts and names.
func (s scene) buildCertificateAttacks() []attack.Attack {
	certificate := s.makeCertificate
	by := attack.ByPolicy(CertificatesPolicy, HostsRule)
	service := "web." + s.own + ".svc"
	named := func(name, summary string, edit func(*unstructured.Unstructured)) attack.Attack {
		return attack.NewCreate(name, summary, attack.ByPolicy(CertificatesPolicy, NamesRule), certificate(name, []any{service}, edit))
	}
	all := []attack.Attack{
		attack.NewCreate("certify-other-host", "ask cert-manager to certify another tenant's host", by, certificate("certify-other-host", []any{s.otherHost})),
		attack.NewCreate("certify-two-hosts-in-one", "ask cert-manager to certify another tenant's host before one's own, as one name", by,
			certificate("certify-two-hosts", []any{s.otherHost + "," + service})),
		attack.NewCreate("certify-other-host-as-common-name", "ask cert-manager to certify another tenant's host as the common name", by,
			certificate("certify-common-name", []any{service}, func(u *unstructured.Unstructured) { setField(u, s.otherHost, "spec", "commonName") })),
		attack.NewCreate("certify-wildcard-of-all", "ask cert-manager to certify a wildcard that covers another tenant's host", by, certificate("certify-wildcard", []any{"*." + findParentDomain(s.otherHost)})),
		attack.NewCreate("certify-other-service", "ask cert-manager to certify another tenant's Service", by, certificate("certify-other-service", []any{"web." + s.other + ".svc"})),
		attack.NewUpdate("certify-other-host-later", "ask cert-manager to certify another tenant's host by an existing Certificate", by, certificate("certify-later", []any{service}),
			func(u *unstructured.Unstructured) { setField(u, []any{s.otherHost}, "spec", "dnsNames") }),
		named("certify-address", "ask cert-manager to certify an address", func(u *unstructured.Unstructured) { setField(u, []any{"203.0.113.7"}, "spec", "ipAddresses") }),
		named("certify-identity", "ask cert-manager to certify a workload identity by URI", func(u *unstructured.Unstructured) {
			setField(u, []any{"spiffe://cluster.local/ns/" + s.other + "/sa/default"}, "spec", "uris")
		}),
		attack.NewCreate("request-certificate", "ask cert-manager for a certificate without a Certificate, by a request that no policy can read", attack.ByRBAC,
			attack.NewCustomObject("cert-manager.io/v1", "CertificateRequest", s.own, "croft-request", map[string]any{
				"request": "Zm9yZ2Vk", "issuerRef": map[string]any{"name": "letsencrypt", "kind": "ClusterIssuer", "group": "cert-manager.io"},
			})),
		attack.NewCreate("certify-own-service", "ask cert-manager to certify a Service of one's own", attack.Nobody, certificate("certify-own-service", []any{service, service + ".cluster.local"})),
	}
	all = append(all, s.buildIssuerRequestAttacks()...)
	if s.host != "" {
		all = append(all, attack.NewCreate("certify-own-host", "ask cert-manager to certify a host of one's own", attack.Nobody, certificate("certify-own-host", []any{s.host})))
	}
	return attack.WithReason("the holder of the certificate can impersonate the host to clients that trust it", nil, all...)
}

// buildIssuerRequestAttacks request more from an issuer than certificates for the tenant's names.
func (s scene) buildIssuerRequestAttacks() []attack.Attack {
	var all []attack.Attack
	service := []any{"web." + s.own + ".svc"}
	edited := func(edit func(map[string]any)) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { edit(u.Object["spec"].(map[string]any)) }
	}
	with := func(field string, value any) func(*unstructured.Unstructured) {
		return edited(func(spec map[string]any) { spec[field] = value })
	}
	own := func(name string) func(*unstructured.Unstructured) {
		return with("issuerRef", map[string]any{"name": name, "kind": "Issuer", "group": "cert-manager.io"})
	}
	refused := func(rule, name, summary string, edit func(*unstructured.Unstructured)) {
		all = append(all, attack.NewCreate(name, summary, attack.ByPolicy(CertificatesPolicy, rule), s.makeCertificate(name, service, edit)))
	}
	later := func(rule, name, summary string, edit func(*unstructured.Unstructured)) {
		all = append(all, attack.NewUpdate(name, summary, attack.ByPolicy(CertificatesPolicy, rule), s.makeCertificate(name, service), edit))
	}
	refused(AuthorityRule, "certify-an-authority", "ask the platform's issuer for a certificate authority", with("isCA", true))
	refused(AuthorityRule, "certify-to-sign", "ask the platform's issuer for a certificate that may sign others", with("usages", []any{"digital signature", "cert sign"}))
	refused(AuthorityRule, "certify-for-anything", "ask the platform's issuer for a certificate for any use", with("usages", []any{"any"}))
	refused(AuthorityRule, "certify-to-sign-code", "ask the platform's issuer for a certificate that signs code", with("usages", []any{"code signing"}))
	later(AuthorityRule, "certify-an-authority-later", "ask the platform's issuer for a certificate authority by an existing Certificate", with("isCA", true))
	refused(SubjectRule, "certify-masters", "ask the platform's issuer for a client certificate of the group system:masters", with("subject", map[string]any{"organizations": []any{"system:masters"}}))
	refused(SubjectRule, "certify-admins", "ask the platform's issuer for a client certificate of the platform's admins", with("subject", map[string]any{"organizations": []any{"platform-admins"}}))
	refused(SubjectRule, "certify-a-unit", "ask the platform's issuer for a certificate of another unit", with("subject", map[string]any{"organizationalUnits": []any{"platform"}}))
	refused(DurationRule, "certify-for-ten-years", "ask the platform's issuer for a certificate of ten years", with("duration", "87600h"))
	refused(DurationRule, "certify-for-ten-years-in-seconds", "ask the platform's issuer for a certificate of ten years, in seconds", with("duration", "31536000s315360000ms284256000s"))
	refused(SecretTemplateRule, "certify-and-copy", "have cert-manager annotate a Secret so that reflector copies it into every namespace", with("secretTemplate", map[string]any{
		"annotations": map[string]any{"reflector.v1.k8s.emberstack.com/reflection-auto-enabled": "true"}}))
	refused(SecretTemplateRule, "certify-and-register-cluster", "have cert-manager label a Secret so that Argo CD takes it for a cluster", with("secretTemplate", map[string]any{
		"labels": map[string]any{"argocd.argoproj.io/secret-type": "cluster"}}))
	all = attack.WithReason("clients that trust the platform's issuer trust the names in the certificate", nil, all...)
	issuers := s.attacker.Allowances.Issuers
	if !slices.Contains(issuers, "*") {
		refused(IssuerRule, "choose-external-issuer", "ask an issuer of another API group", with("issuerRef", map[string]any{"name": "internal", "kind": "ClusterIssuer", "group": "awspca.cert-manager.io"}))
		if !slices.Contains(issuers, clusterIssuer+"*") {
			refused(IssuerRule, "choose-issuer", "ask an issuer that is not the tenant's", with("issuerRef", map[string]any{"name": "internal-ca", "kind": "ClusterIssuer"}))
			later(IssuerRule, "choose-issuer-later", "ask an issuer that is not the tenant's by an existing Certificate", with("issuerRef", map[string]any{"name": "internal-ca", "kind": "ClusterIssuer"}))
		}
	}
	if slices.ContainsFunc(issuers, func(i string) bool { return i == "*" || i == "Issuer/*" }) {
		all = append(all, attack.NewCreate("certify-own-authority", "ask an Issuer of one's own for an authority of one's own, of ten years", attack.Nobody, s.makeCertificate("certify-own-authority", service, own("own"), edited(func(spec map[string]any) {
			spec["isCA"], spec["duration"], spec["usages"], spec["subject"] = true, "87600h", []any{"cert sign", "digital signature"}, map[string]any{"organizations": []any{"bank"}}
		}))))
	}
	return append(all, attack.NewCreate("certify-as-charts-do", "ask the platform's issuer for a certificate of a year, with labels for the Secret", attack.Nobody, s.makeCertificate("certify-as-charts-do", service, edited(func(spec map[string]any) {
		spec["duration"], spec["usages"] = "8760h0m0s", []any{"digital signature", "key encipherment", "server auth", "client auth"}
		spec["subject"] = map[string]any{"countries": []any{"DE"}}
		spec["secretTemplate"] = map[string]any{"labels": map[string]any{"app.kubernetes.io/name": "web", "app": "web"}, "annotations": map[string]any{"helm.sh/chart": "web-1.0.0"}}
	}))))
}

// buildIssuerAttacks have cert-manager's controller connect to addresses of the tenant's choice.
func (s scene) buildIssuerAttacks() []attack.Attack {
	issuer := func(name string, spec map[string]any) *unstructured.Unstructured {
		return attack.NewCustomObject("cert-manager.io/v1", "Issuer", s.own, "croft-"+name, spec)
	}
	acme := func(server string, solver map[string]any) map[string]any {
		return map[string]any{"acme": map[string]any{"server": server, "privateKeySecretRef": map[string]any{"name": "account"}, "solvers": []any{solver}}}
	}
	vault := func(server string) map[string]any {
		return map[string]any{"vault": map[string]any{"server": server, "path": "pki/sign/web", "auth": map[string]any{"tokenSecretRef": map[string]any{"name": "vault"}}}}
	}
	venafi := func(server string) map[string]any {
		return map[string]any{"venafi": map[string]any{"zone": "web", "tpp": map[string]any{"url": server, "credentialsRef": map[string]any{"name": "venafi"}}}}
	}
	const letsencrypt = "https://acme-v02.api.letsencrypt.org/directory"
	http01 := map[string]any{"http01": map[string]any{"ingress": map[string]any{"ingressClassName": "nginx", "serviceType": "ClusterIP"}}}
	dns01 := func(provider string, spec map[string]any) map[string]any {
		return map[string]any{"dns01": map[string]any{provider: spec}}
	}
	var all []attack.Attack
	may := func(kind string) bool { return slices.Contains(s.attacker.Allowances.IssuerTypes, kind) }
	refused := func(rule, name, summary string, spec map[string]any) {
		all = append(all, attack.NewCreate(name, summary, attack.ByPolicy(IssuersPolicy, rule), issuer(name, spec)))
	}
	for kind, spec := range map[string]map[string]any{
		"acme": acme(letsencrypt, http01), "vault": vault("https://vault.example.org"), "venafi": venafi("https://venafi.example.org/vedsdk"),
	} {
		if may(kind) {
			all = append(all, attack.NewCreate("issue-by-"+kind, "write an Issuer of type "+kind+", which the tenant may", attack.Nobody, issuer("issue-by-"+kind, spec)))
		} else {
			refused(IssuerTypeRule, "send-cert-manager-by-"+kind, "have cert-manager connect to an address by an Issuer of type "+kind, spec)
		}
	}
	slices.SortFunc(all, func(a, b attack.Attack) int { return strings.Compare(a.Name, b.Name) })
	if may("selfSigned") && !may("vault") {
		all = append(all, attack.NewUpdate("send-cert-manager-later", "have cert-manager connect to an address by an existing Issuer", attack.ByPolicy(IssuersPolicy, IssuerTypeRule),
			issuer("send-cert-manager-later", map[string]any{"selfSigned": map[string]any{}}), func(u *unstructured.Unstructured) { u.Object["spec"] = vault("http://169.254.169.254") }))
	}
	if may("vault") {
		for name, server := range map[string]string{
			"metadata": "http://169.254.169.254/latest", "metadata-in-hex": "http://0xa9fea9fe/", "metadata-by-name": "http://metadata.google.internal/", "other-service": "http://web." + s.other + ".svc:8200",
			"localhost": "http://localhost:8200", "what-a-fragment-hides": "http://169.254.169.254#." + s.own + ".svc", "no-scheme": "vault.example.org",
		} {
			refused(IssuerURLsRule, "send-cert-manager-to-"+name, "have cert-manager connect to "+server, vault(server))
		}
		slices.SortFunc(all, func(a, b attack.Attack) int { return strings.Compare(a.Name, b.Name) })
		solvers := make([]any, 101)
		for i := range solvers {
			solvers[i] = map[string]any{"http01": map[string]any{"ingress": map[string]any{}}}
		}
		all = append(all, attack.NewCreate("solve-by-more", "write an Issuer with more solvers than croft evaluates", attack.ByPolicy(IssuersPolicy, admissionpolicy.BoundsRule), issuer("solve-by-more",
			map[string]any{"acme": map[string]any{"server": "https://acme.example.com", "privateKeySecretRef": map[string]any{"name": "key"}, "solvers": solvers}})))
		all = append(all, attack.NewCreate("issue-by-own-vault", "write an Issuer of a Vault in one's own namespace", attack.Nobody, issuer("issue-by-own-vault", vault("https://vault."+s.own+".svc:8200"))))
	}
	if may("acme") {
		refused(IssuerURLsRule, "send-cert-manager-to-acme", "have cert-manager take orders from an ACME server in the cluster", acme("https://acme."+s.other+".svc.cluster.local/directory", http01))
		by := map[string]any{"ingressClassName": "nginx"} // creates a Service of type NodePort by default
		if slices.Contains(s.attacker.Allowances.ServiceTypes, "NodePort") {
			by["serviceType"] = "Headless" // a type that is granted to no tenant
		}
		refused(SolverServicesRule, "solve-by-service", "have cert-manager create a Service of a type that the tenant may not have", acme(letsencrypt, map[string]any{"http01": map[string]any{"ingress": by}}))
		refused(SolversRule, "solve-as-platform", "have cert-manager write DNS records with its own cloud identity", acme(letsencrypt, dns01("route53", map[string]any{"region": "eu-west-1"})))
		refused(SolversRule, "solve-as-platform-by-empty-secret", "have cert-manager write DNS records with its own cloud identity, by a Secret without a name",
			acme(letsencrypt, dns01("route53", map[string]any{"region": "eu-west-1", "secretAccessKeySecretRef": map[string]any{"name": ""}})))
		refused(SolversRule, "solve-as-platform-on-google", "have cert-manager write DNS records with its own identity at Google", acme(letsencrypt, dns01("cloudDNS", map[string]any{"project": "p"})))
		refused(SolversRule, "solve-at-address", "have cert-manager write DNS records at an address", acme(letsencrypt, dns01("rfc2136", map[string]any{"nameserver": "10.0.0.1:53"})))
		all = append(all, attack.NewCreate("solve-with-own-secret", "have cert-manager write DNS records with a Secret of one's own", attack.Nobody, issuer("solve-with-own-secret", acme(letsencrypt,
			dns01("route53", map[string]any{"region": "eu-west-1", "accessKeyID": "AKIA", "secretAccessKeySecretRef": map[string]any{"name": "route53", "key": "secret"}})))))
	}
	if may("selfSigned") {
		all = append(all, attack.NewCreate("issue-by-oneself", "write an Issuer that signs for itself", attack.Nobody, issuer("issue-by-oneself", map[string]any{"selfSigned": map[string]any{}})))
	}
	all = append(all, attack.SendAsAdmin(attack.NewCreate("issue-by-any-vault-as-platform", "write an Issuer of a Vault in another tenant's namespace", attack.Nobody,
		issuer("issue-by-any-vault", vault("https://vault."+s.other+".svc:8200")))))
	return attack.WithReason("cert-manager has network access that no tenant has, and shows the responses", nil, all...)
}
