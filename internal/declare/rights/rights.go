// Package rights defines the possible rights of tenants' members, as data: the roles viewer
// and operator, and the limits of the Platform's own roles.
package rights

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"croft.dev/croft/api/v1alpha1"
)

// OwnRolePrefix begins the names of the ClusterRoles for the Platform's own roles, so that they
// differ from the names of croft's roles.
const OwnRolePrefix = "croft-role-"

// Copier is the name of the service account of `croft copy-secrets` in croft's namespace, of its
// ClusterRole, and the prefix of the RoleBindings to it in tenants' namespaces.
const Copier = "croft-secrets"

// NameClusterRole returns the name of the ClusterRole for a role in a Tenant's access.
func NameClusterRole(role v1alpha1.Role) string {
	if role == v1alpha1.RoleViewer || role == v1alpha1.RoleOperator {
		return "croft-" + string(role)
	}
	return OwnRolePrefix + string(role)
}

// team lists the kinds that teams work with, by API group: the viewer reads them, the
// operator writes them. Kinds that a cluster does not serve are harmless here.
//
// These are left out on purpose: Endpoints and EndpointSlices, which could direct a Service
// to any address (CVE-2021-25740); ResourceQuotas, LimitRanges and TenantRules, which croft
// manages; pods/binding, which the scheduler uses; CertificateRequests, whose encoded names
// no policy can read; and all cluster-scoped kinds.
var team = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods", "services", "configmaps", "persistentvolumeclaims", "serviceaccounts", "replicationcontrollers", "replicationcontrollers/scale", "podtemplates"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale", "statefulsets", "statefulsets/scale", "replicasets", "replicasets/scale", "daemonsets", "controllerrevisions"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}},
	{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}},
	{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles", "rolebindings"}},
	{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gateways", "listenersets", "httproutes", "grpcroutes", "tlsroutes", "referencegrants"}},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"certificates", "issuers"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"resourceclaims", "resourceclaimtemplates"}},
	{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories", "ocirepositories", "helmrepositories", "helmcharts", "buckets"}},
	{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}},
	{APIGroups: []string{"helm.toolkit.fluxcd.io"}, Resources: []string{"helmreleases"}},
	{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantnamespaces", "tenantcallers"}},
}

// readOnly lists further kinds that both roles may read and neither may write.
var readOnly = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"pods/log", "pods/status", "events", "endpoints", "resourcequotas", "limitranges"}},
	{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}},
	{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"certificaterequests"}},
	{APIGroups: []string{"acme.cert-manager.io"}, Resources: []string{"challenges", "orders"}},
	{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{"pods"}},
	{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantrules"}},
}

// ownNamespace lets both roles get the Namespace that they are bound in, and no other.
// kubectl, Helm and dashboards get it by name. A list of namespaces would reveal the names
// of all tenants.
var ownNamespace = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}

// Costs lets users read costs from croft ledger, of their tenant or, with a ClusterRoleBinding, of
// the cluster. No object of this kind exists.
var Costs = []rbacv1.PolicyRule{
	{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"costs"}, Verbs: []string{"get"}},
}

// operatorOnly lists rights of the operator for kinds that the viewer may not even read.
var operatorOnly = []rbacv1.PolicyRule{
	{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: slices.Concat(Read, Write)},
	// The verbs are the same as in Kubernetes' own role edit, since charts write such
	// Roles.
	{APIGroups: []string{""}, Resources: []string{"pods/exec", "pods/attach", "pods/portforward"}, Verbs: slices.Concat(Read, Write)},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch", "update"}},
	{APIGroups: []string{""}, Resources: []string{"pods/eviction", "serviceaccounts/token"}, Verbs: []string{"create"}},
	{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers", "pods/resize"}, Verbs: []string{"get", "update", "patch"}},
}

// Read and Write are the verbs for reading and for writing.
var (
	Read  = []string{"get", "list", "watch"}
	Write = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// ForRole returns the rights of the roles viewer and operator on a platform. They include the
// rights to its add-ons, to the policies of its network dialect and to elevations.
func ForRole(role v1alpha1.Role, p *v1alpha1.PlatformSpec) []rbacv1.PolicyRule {
	if role == v1alpha1.RoleViewer {
		return slices.Concat(Viewer(), listCalicoRules(&p.Network, false), Addons(p.Addons, false), listElevationRules(p))
	}
	writing := p.Network.Calico != nil && p.Network.Calico.TenantPolicies
	return slices.Concat(Operator(), listCalicoRules(&p.Network, writing), Addons(p.Addons, true), listElevationRules(p))
}

// Viewer returns the rights of the role viewer.
func Viewer() []rbacv1.PolicyRule {
	return slices.Concat(WithVerbs(team, Read), WithVerbs(readOnly, Read), ownNamespace, Costs)
}

// Operator returns the rights of the role operator, which are the maximum for a tenant's
// members.
func Operator() []rbacv1.PolicyRule {
	return slices.Concat(WithVerbs(team, listReadWriteVerbs()), WithVerbs(readOnly, Read), operatorOnly, ownNamespace, Costs)
}

// listCalicoRules returns the rights to read the policies of the dialect Calico and, if the platform
// enables it, to write them. Calico's API server also requires the right to a policy's
// tier: croft grants the right to the default tier, within the namespace.
func listCalicoRules(n *v1alpha1.PlatformNetwork, writing bool) []rbacv1.PolicyRule {
	if n.Dialect != v1alpha1.DialectCalico {
		return nil
	}
	group := v1alpha1.CalicoGroup
	if n.Calico != nil && n.Calico.APIGroup != "" {
		group = n.Calico.APIGroup
	}
	verbs := Read
	if writing {
		verbs = listReadWriteVerbs()
	}
	rules := []rbacv1.PolicyRule{{
		APIGroups: []string{string(group)}, Resources: []string{"networkpolicies"}, Verbs: verbs,
	}}
	if group == v1alpha1.CalicoGroup {
		rules = append(rules, rbacv1.PolicyRule{
			APIGroups: []string{string(group)}, Resources: []string{"tier.networkpolicies"},
			ResourceNames: []string{"default.*"}, Verbs: verbs,
		})
	}
	return rules
}

// listElevationRules lets members of a tenant read and request elevations, if the Platform enables
// elevations.
func listElevationRules(p *v1alpha1.PlatformSpec) []rbacv1.PolicyRule {
	if p.Elevation == nil {
		return nil
	}
	return []rbacv1.PolicyRule{Elevations("create")}
}

// Elevations returns the right to read elevations, with additional verbs.
func Elevations(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"elevations"}, Verbs: slices.Concat(Read, verbs),
	}
}

// Addons returns the rights to the kinds of add-ons that a Platform gives to tenants.
func Addons(addons []v1alpha1.Addon, writing bool) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, addon := range addons {
		verbs := Read
		if writing && !addon.ReadOnly {
			verbs = listReadWriteVerbs()
		}
		all = append(all, rbacv1.PolicyRule{APIGroups: []string{addon.APIGroup}, Resources: addon.Resources, Verbs: verbs})
	}
	return all
}

// FindUngranted returns the first right in a rule that within does not grant, or "" if it grants
// all.
func FindUngranted(rule v1alpha1.RoleRule, within []rbacv1.PolicyRule) string {
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				given := slices.ContainsFunc(within, func(r rbacv1.PolicyRule) bool {
					return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
				})
				if given {
					continue
				}
				if group == "" {
					return fmt.Sprintf("%s %s", verb, resource)
				}
				return fmt.Sprintf("%s %s.%s", verb, resource, group)
			}
		}
	}
	return ""
}

// WithVerbs returns rules with these verbs.
func WithVerbs(rules []rbacv1.PolicyRule, verbs []string) []rbacv1.PolicyRule {
	all := slices.Clone(rules)
	for i := range all {
		all[i].Verbs = verbs
	}
	return all
}

func listReadWriteVerbs() []string { return slices.Concat(Read, Write) }
