package doctor

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/declare/estate"
)

// TestSolverServices expects a finding for each ClusterIssuer whose solvers create a
// Service that a tenant may not have. It needs no control plane.
func TestSolverServices(t *testing.T) {
	tenant := func(name string, issuers []string, types ...corev1.ServiceType) *estate.Tenant {
		one := &estate.Tenant{Name: name}
		one.Allowances.Issuers, one.Allowances.ServiceTypes = issuers, types
		return one
	}
	ingress := func(settings map[string]any) map[string]any {
		return map[string]any{"http01": map[string]any{"ingress": settings}}
	}
	every, named := []string{"*"}, []string{"ClusterIssuer/letsencrypt"}
	for _, test := range []struct {
		name   string
		solver map[string]any
		tenant *estate.Tenant
		want   string
	}{
		{"cert-manager's default", ingress(map[string]any{"ingressClassName": "nginx"}), tenant("shop", every, "ClusterIP"), "type NodePort, which croft refuses for tenants that may use the issuer: shop"},
		{"by its name", ingress(map[string]any{}), tenant("shop", named, "ClusterIP"), "NodePort"},
		{"all ClusterIssuers", ingress(map[string]any{}), tenant("shop", []string{"ClusterIssuer/*"}, "ClusterIP"), "NodePort"},
		{"a load balancer", ingress(map[string]any{"serviceType": "LoadBalancer"}), tenant("shop", every, "ClusterIP"), "LoadBalancer"},
		{"of a Gateway", map[string]any{"http01": map[string]any{"gatewayHTTPRoute": map[string]any{}}}, tenant("shop", every, "ClusterIP"), "NodePort"},
		{"a ClusterIP", ingress(map[string]any{"serviceType": "ClusterIP"}), tenant("shop", every, "ClusterIP"), ""},
		{"by DNS", map[string]any{"dns01": map[string]any{"route53": map[string]any{}}}, tenant("shop", every, "ClusterIP"), ""},
		{"a tenant that may have NodePorts", ingress(map[string]any{}), tenant("shop", every, "ClusterIP", "NodePort"), ""},
		{"a tenant of other issuers", ingress(map[string]any{}), tenant("shop", []string{"ClusterIssuer/internal", "Issuer/letsencrypt"}, "ClusterIP"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			issuer := unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"name": "letsencrypt"}, "spec": map[string]any{"acme": map[string]any{"solvers": []any{test.solver}}},
			}}
			found := checkSolvers(&Snapshot{Estate: &estate.Estate{Tenants: []*estate.Tenant{test.tenant}}, ClusterIssuers: []unstructured.Unstructured{issuer}})
			if test.want == "" {
				if len(found) > 0 {
					t.Fatalf("got %+v, want none", found)
				}
				return
			}
			if len(found) != 1 || !strings.Contains(found[0].Message, test.want) || found[0].Fix == "" || found[0].Object != "ClusterIssuer/letsencrypt" {
				t.Fatalf("got %+v, want one with %q and a fix", found, test.want)
			}
		})
	}
}
