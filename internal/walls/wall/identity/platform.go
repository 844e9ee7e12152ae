package identity

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/declare/rights"
	"croft.dev/croft/internal/rules/attack"
)

// The ClusterRoles of the platform's own users. Each is bound by a ClusterRoleBinding of the
// same name.
const (
	// AdminRole declares the estate and has all permissions of AuditorRole. It is bound to
	// the Platform's admins.
	AdminRole = "croft-admin"
	// AuditorRole reads the objects that croft's commands need. It is bound to the
	// Platform's auditors.
	AuditorRole = "croft-auditor"
	// ClassesRole reads the names of classes. It is bound to the Platform's
	// classReaders.
	ClassesRole = "croft-classes"
	// ApproversRole approves elevations. It is bound to the Platform's
	// elevation.approvers.
	ApproversRole = "croft-approvers"
)

// PlatformRoles are the ClusterRoles that are bound for the whole cluster.
var PlatformRoles = []string{AdminRole, AuditorRole, ClassesRole, ApproversRole}

// audited has the kinds that the commands status, diff, doctor, reach, verify and why read,
// by API group. It has no Secrets: no command reads them.
var audited = []rbacv1.PolicyRule{
	{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{
		"platforms", "pools", "tenants", "secondarynetworks", "tenantrules", "elevations",
		"tenantnamespaces", "tenantcallers",
	}},
	{APIGroups: []string{""}, Resources: []string{
		"namespaces", "nodes", "pods", "services", "events", "resourcequotas", "limitranges", "configmaps",
		"persistentvolumeclaims", "persistentvolumes", "serviceaccounts", "replicationcontrollers",
	}},
	{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}},
	{APIGroups: []string{"apps"}, Resources: []string{"deployments", "replicasets", "statefulsets", "daemonsets"}},
	{APIGroups: []string{"batch"}, Resources: []string{"jobs", "cronjobs"}},
	{APIGroups: []string{"autoscaling"}, Resources: []string{"horizontalpodautoscalers"}},
	{APIGroups: []string{"policy"}, Resources: []string{"poddisruptionbudgets"}},
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingresses", "networkpolicies"}},
	{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{
		"roles", "rolebindings", "clusterroles", "clusterrolebindings",
	}},
	{APIGroups: []string{"source.toolkit.fluxcd.io"}, Resources: []string{"gitrepositories", "ocirepositories"}},
	{APIGroups: []string{"kustomize.toolkit.fluxcd.io"}, Resources: []string{"kustomizations"}},
	{APIGroups: []string{"notification.toolkit.fluxcd.io"}, Resources: []string{"receivers"}},
	{APIGroups: []string{"cert-manager.io"}, Resources: []string{"clusterissuers"}},
	{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"referencegrants"}},
	{APIGroups: []string{"k8s.cni.cncf.io"}, Resources: []string{"network-attachment-definitions"}},
	{APIGroups: []string{"whereabouts.cni.cncf.io"}, Resources: []string{"ippools"}},
	{APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings",
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
		"validatingwebhookconfigurations", "mutatingwebhookconfigurations",
	}},
	{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}},
	{APIGroups: []string{"apiregistration.k8s.io"}, Resources: []string{"apiservices"}},
	{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"csidrivers"}},
	{APIGroups: []string{"karpenter.sh"}, Resources: []string{"nodepools", "nodeclaims"}},
	{APIGroups: []string{"karpenter.kwok.sh"}, Resources: []string{"kwoknodeclasses"}},
	{APIGroups: []string{"karpenter.k8s.aws"}, Resources: []string{"ec2nodeclasses"}},
	{APIGroups: []string{"readiness.node.x-k8s.io"}, Resources: []string{"nodereadinessrules"}},
	{APIGroups: []string{"projectcalico.org"}, Resources: []string{
		"networkpolicies", "globalnetworkpolicies", "networksets", "globalnetworksets", "tiers",
		"tier.networkpolicies", "tier.globalnetworkpolicies",
	}},
	{APIGroups: []string{"crd.projectcalico.org"}, Resources: []string{
		"networkpolicies", "globalnetworkpolicies", "networksets", "globalnetworksets", "tiers",
	}},
	{APIGroups: []string{"policy.networking.k8s.io", "networking.k8s.aws"}, Resources: []string{
		"clusternetworkpolicies",
	}},
	{APIGroups: []string{"mutations.gatekeeper.sh"}, Resources: []string{
		"assign", "modifyset", "assignmetadata", "assignimage",
	}},
	{APIGroups: []string{"templates.gatekeeper.sh"}, Resources: []string{"constrainttemplates"}},
	{APIGroups: []string{"constraints.gatekeeper.sh"}, Resources: []string{
		"croftplacement", "croftservices", "croftingresses", "croftroutes", "croftgateways", "croftcertificates",
		"croftannotations",
	}},
	{APIGroups: []string{"config.gatekeeper.sh"}, Resources: []string{"configs"}},
	{APIGroups: []string{"kyverno.io"}, Resources: []string{"clusterpolicies", "policies"}},
}

// classes has the cluster-scoped kinds that tenants' objects refer to by name.
var classes = []rbacv1.PolicyRule{
	{APIGroups: []string{"storage.k8s.io"}, Resources: []string{"storageclasses", "volumeattributesclasses"}},
	{APIGroups: []string{"networking.k8s.io"}, Resources: []string{"ingressclasses"}},
	{APIGroups: []string{"gateway.networking.k8s.io"}, Resources: []string{"gatewayclasses"}},
	{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}},
	{APIGroups: []string{"node.k8s.io"}, Resources: []string{"runtimeclasses"}},
	{APIGroups: []string{"resource.k8s.io"}, Resources: []string{"deviceclasses"}},
	{APIGroups: []string{"snapshot.storage.k8s.io"}, Resources: []string{"volumesnapshotclasses"}},
}

// declaring has the writes of croft apply and croft delete. It includes none of Kubernetes'
// own objects, which only the operator writes: permission to write policies, namespaces or
// RoleBindings in the whole cluster would amount to control of the cluster.
var declaring = rbacv1.PolicyRule{
	APIGroups: []string{v1alpha1.GroupVersion.Group},
	Resources: []string{"platforms", "pools", "tenants", "secondarynetworks"},
	Verbs:     []string{"create", "update", "patch", "delete"},
}

// PlatformRules returns the permissions that a role of PlatformRoles grants on a platform.
func PlatformRules(role string, p *estate.Platform) []rbacv1.PolicyRule {
	switch role {
	case ClassesRole:
		return rights.WithVerbs(classes, rights.Read)
	case ApproversRole:
		return []rbacv1.PolicyRule{rights.Elevations("patch")} // approvers write their own names
	case AuditorRole:
		kinds := slices.Concat(audited, classes, buildNodeClassRules(p))
		return append(rights.WithVerbs(kinds, rights.Read), rights.Costs...)
	default:
		return append(PlatformRules(AuditorRole, p), declaring)
	}
}

// buildNodeClassRules returns permission for the kind of a node class that the platform team
// maintains. It names that kind alone because admins choose the API group.
func buildNodeClassRules(p *estate.Platform) []rbacv1.PolicyRule {
	ref := p.NodeClass.Ref
	if ref == nil {
		return nil
	}
	kind, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: ref.Group, Version: "v1", Kind: ref.Kind})
	return []rbacv1.PolicyRule{{APIGroups: []string{ref.Group}, Resources: []string{kind.Resource}}}
}

// buildPlatformRoles returns the ClusterRoles and their bindings to the Platform's groups. Groups
// are bound unchanged, because admission policies compare them unchanged, too: groupPrefix
// applies to tenants' groups only.
func buildPlatformRoles(p *estate.Platform) []client.Object {
	var all []client.Object
	for _, name := range PlatformRoles {
		all = append(all, &rbacv1.ClusterRole{
			TypeMeta: makeRBACMeta("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name},
			Rules: PlatformRules(name, p),
		})
		if groups := listGroups(name, p); len(groups) > 0 {
			all = append(all, buildClusterBinding(name, groups))
		}
	}
	return all
}

func listGroups(role string, p *estate.Platform) []string {
	switch role {
	case AdminRole:
		return p.Admins
	case AuditorRole:
		return p.Auditors
	case ApproversRole:
		if p.Elevation == nil {
			return nil
		}
		return p.Elevation.Approvers
	default:
		return p.ClassReaders
	}
}

func buildClusterBinding(role string, groups []string) *rbacv1.ClusterRoleBinding {
	binding := &rbacv1.ClusterRoleBinding{
		TypeMeta: makeRBACMeta("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	for _, group := range groups {
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{
			APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group,
		})
	}
	return binding
}

// newRuleEvaluator returns a function that evaluates rules as RBAC does.
func newRuleEvaluator(rules []rbacv1.PolicyRule) func(group, resource string, verb attack.Verb) bool {
	has := func(list []string, one string) bool {
		return slices.Contains(list, one) || slices.Contains(list, rbacv1.ResourceAll)
	}
	return func(group, resource string, verb attack.Verb) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return len(r.ResourceNames) == 0 && slices.Contains(r.APIGroups, group) &&
				has(r.Resources, resource) && slices.Contains(r.Verbs, string(verb))
		})
	}
}
