package catalog

// certificateRows are causes that prevent cert-manager from issuing a certificate. A further
// one is solver-service.
var certificateRows = []Row{
	{
		ID: "certificate-issuer", Symptom: "`spec.issuerRef` of a Certificate; the condition Ready of its Issuer or ClusterIssuer",
		Cause: "the Certificate's issuer does not exist or is not ready, so no certificate is issued",
		Fix:   "correct `issuerRef`: `croft me` lists the issuers that a tenant may use. If the issuer is not ready, its condition gives the reason, usually a wrong server or a wrong Secret of the account",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/",
	},
	{
		ID: "certificate-challenge", Symptom: "`status.reason` and `status.state` of a Challenge",
		Cause: "the ACME server, or cert-manager's own check before it, does not get the response to the challenge",
		Fix:   "follow the reason; for HTTP-01, the domain must lead to the ingress controller, whose pods must reach the solver's pod; for DNS-01, the record must be public",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/acme/",
	},
	{
		ID: "certificate-failed", Symptom: "the conditions of a Certificate and of its CertificateRequest; `status.state` of an Order",
		Cause: "the issuer refused the request, or the order failed; cert-manager retries after an hour, and then at growing intervals",
		Fix:   "follow the message; then `cmctl renew NAME -n NAMESPACE` retries at once",
		Who:   Team, Link: "https://cert-manager.io/docs/troubleshooting/",
	},
}
