package doctor

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/wording"
	"croft.dev/croft/internal/observe/certmanager"
)

// gatherClusterIssuers reads cert-manager's ClusterIssuers.
func (g *gatherer) gatherClusterIssuers(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(certmanager.ClusterIssuer.GroupVersion().WithKind("ClusterIssuerList"))
	g.ReadList(ctx, readClusterIssuers, list)
	g.ClusterIssuers = list.Items
}

// checkSolvers reports ClusterIssuers that make cert-manager create Services which croft
// refuses. A certificate then stays pending, and only cert-manager's own objects show the
// reason.
func checkSolvers(s *Snapshot) []Finding {
	if s.Estate == nil {
		return nil
	}
	var all []Finding
	for i := range s.ClusterIssuers {
		issuer := &s.ClusterIssuers[i]
		for _, serviceType := range listSolverServices(issuer) {
			tenants := findRefusingTenants(s.Estate.Tenants, issuer.GetName(), serviceType)
			if len(tenants) == 0 {
				continue
			}
			all = append(all, newFinding("solver-service", Problem, "ClusterIssuer/"+issuer.GetName(), fmt.Sprintf(
				"an HTTP-01 solver creates Services of type %s, which croft refuses for tenants that may use the issuer: %s", serviceType, wording.FormatFirst(tenants, 5))))
		}
	}
	return all
}

// listSolverServices returns the types of the Services that an issuer's solvers create. The
// default is NodePort.
func listSolverServices(issuer *unstructured.Unstructured) []string {
	var all []string
	for _, solver := range certmanager.ListSolvers(issuer) {
		if serviceType := certmanager.GetServiceType(solver); serviceType != "" && !slices.Contains(all, serviceType) {
			all = append(all, serviceType)
		}
	}
	return all
}

// findRefusingTenants returns the tenants that may use a ClusterIssuer, but not its type of Service.
func findRefusingTenants(tenants []*estate.Tenant, issuer, serviceType string) []string {
	var all []string
	for _, t := range tenants {
		uses := slices.ContainsFunc(t.Allowances.Issuers, func(allowed string) bool {
			return allowed == "*" || allowed == "ClusterIssuer/*" || allowed == "ClusterIssuer/"+issuer
		})
		if uses && !slices.Contains(t.Allowances.ServiceTypes, corev1.ServiceType(serviceType)) {
			all = append(all, t.Name)
		}
	}
	return all
}
