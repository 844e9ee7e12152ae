package policy

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/rules/attack"
)

// makeCertificate returns a Certificate of a ClusterIssuer that the tenant may use.
func (s scene) makeCertificate(name string, names []any) *unstructured.Unstructured {
	return attack.NewCustomObject("cert-manager.io/v1", "Certificate", s.own, "croft-"+name, map[string]any{
		"secretName": "croft-verify", "dnsNames": names, "issuerRef": map[string]any{"name": s.findIssuer(), "kind": "ClusterIssuer", "group": "cert-manager.io"},
	})
}

// findIssuer returns the name of a ClusterIssuer that the tenant may use.
func (s scene) findIssuer() string {
	for _, i := range s.attacker.Allowances.Issuers {
		if name, ok := strings.CutPrefix(i, "ClusterIssuer/"); ok && name != "*" {
			return name
		}
	}
	return "letsencrypt"
}

// buildRequestAttacks request certificates in a form that no policy can read.
func (s scene) buildRequestAttacks() []attack.Attack {
	return attack.WithReason("the holder of the certificate can impersonate the host to clients that trust it", nil,
		attack.NewCreate("request-certificate", "ask cert-manager for a certificate without a Certificate, by a request that no policy can read", attack.ByRBAC,
			attack.NewCustomObject("cert-manager.io/v1", "CertificateRequest", s.own, "croft-request", map[string]any{
				"request": "Zm9yZ2Vk", "issuerRef": map[string]any{"name": "letsencrypt", "kind": "ClusterIssuer", "group": "cert-manager.io"},
			})))
}
