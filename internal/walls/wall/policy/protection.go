package policy

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// ProtectionPolicy is the name of the policy that protects croft's objects.
const ProtectionPolicy = "croft-protection"

// ProtectionRule is the name of its only rule.
const ProtectionRule = "managed-objects"

// keptByControllers are the resources of croft's that controllers of the whole cluster
// change, too. Flux' controllers add finalizers, and annotate a source to have it fetched at
// once. The controllers of clouds and of OpenShift annotate service accounts.
var keptByControllers = []string{"serviceaccounts", "gitrepositories", "ocirepositories", "kustomizations"}

// protectObjects allows only the platform to change or delete objects with croft's label, or to
// add the label to others. RBAC alone cannot protect them, because tenants may write other
// objects of the same kinds.
func protectObjects(admins []string) admissionpolicy.Validating {
	operations := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete}
	return admissionpolicy.Validating{
		Name: ProtectionPolicy,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"resourcequotas", "limitranges"}, Operations: operations},
			{Group: "networking.k8s.io", Version: "v1", Resources: []string{"networkpolicies"}, Operations: operations},
			{
				Group: string(v1alpha1.CalicoGroup), Version: "*",
				Resources: []string{"networkpolicies"}, Operations: operations,
			},
			{
				Group: string(v1alpha1.CalicoStorageGroup), Version: "*",
				Resources: []string{"networkpolicies"}, Operations: operations,
			},
			{
				Group: "rbac.authorization.k8s.io", Version: "v1",
				Resources: []string{"rolebindings"}, Operations: operations,
			},
			{
				Group: v1alpha1.GroupVersion.Group, Version: "*",
				Resources: []string{"tenantrules"}, Operations: operations,
			},
			{Version: "v1", Resources: []string{"serviceaccounts"}, Operations: operations},
			{
				Group: "source.toolkit.fluxcd.io", Version: "*",
				Resources: []string{"gitrepositories", "ocirepositories"}, Operations: operations,
			},
			{
				Group: "kustomize.toolkit.fluxcd.io", Version: "*",
				Resources: []string{"kustomizations"}, Operations: operations,
			},
		},
		Selection:          admissionpolicy.Marked,
		IgnoresTenantRules: true,
		MatchConditions:    admissionpolicy.NotByPlatform(admins),
		Rules: []admissionpolicy.Rule{{
			Name:     ProtectionRule,
			Summary:  "only the platform changes, deletes and marks objects with croft's mark",
			FastPath: `false`,
			Expression: `request.operation == "UPDATE" &&
				request.resource.resource in ` + formatQuoted(keptByControllers) + ` && (` + clusterWide + `)`,
			Message: `"objects labelled ` + v1alpha1.ManagedByLabel + `=` + v1alpha1.ManagedBy +
				` are managed by croft: leave " +
				request.resource.resource + "/" + (has(request.name) ? request.name : "") +
				" as it is, or give it another name and label; a platform admin can change tenant " +
				namespaceObject.metadata.labels["` + v1alpha1.TenantLabel + `"]`,
		}},
	}
}
