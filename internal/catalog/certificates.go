package catalog

// certificateRows are causes that prevent cert-manager from issuing a certificate. A further
// one is solver-service.
var certificateRows = []Row{
	{
		ID: "certificate-issuer", Symptom: "`spec.issuerRef` of a Certificate; the condition Ready of its Issuer or ClusterIssuer",
		Cause: "the Certificate's issuer does not exist, or is not ready, so nothing is issued",
		Fix:   "correct `issuerRef`: `croft me` lists the issuers that a tenant may use; do what the issuer's condition says: mostly the server or the Secret of the account is wrong",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/",
		Produced: Produced{ByRecord, "a sandbox has no cert-manager; internal/why TestCertificate judges its conditions"},
	},
	{
		ID: "certificate-challenge", Symptom: "`status.reason` and `status.state` of a Challenge",
		Cause: "the ACME server, or cert-manager before it, does not see the answer to the challenge",
		Fix:   "do what the reason says; for HTTP-01, the domain must lead to the ingress controller, whose pods must reach the solver's pod; for DNS-01, the record must be public",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/acme/",
		Produced: Produced{ByRecord, "a sandbox has no cert-manager; internal/why TestCertificate judges its conditions"},
	},
	{
		ID: "certificate-failed", Symptom: "the conditions of a Certificate and of its CertificateRequest; `status.state` of an Order",
		Cause: "the issuer refused the request, or the order failed; cert-manager tries again after an hour, and then ever more rarely",
		Fix:   "do what the message says; then `cmctl renew NAME -n NAMESPACE` tries again at once",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/",
		Produced: Produced{ByRecord, "a sandbox has no cert-manager; internal/why TestCertificate judges its conditions"},
	},
}
