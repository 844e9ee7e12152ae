package me

import (
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"croft.dev/croft/api/v1alpha1"
)

// Ability is an activity of users, and the right that it requires.
type Ability struct {
	Name                  string
	group, resource, verb string
}

// Abilities are rights that differ between roles, in the order of the output.
var Abilities = []Ability{
	{"look", "", "pods", "list"},
	{"read logs", "", "pods/log", "get"},
	{"run workloads", "apps", "deployments", "create"},
	{"exec", "", "pods/exec", "create"},
	{"read Secrets", "", "secrets", "get"},
	{"expose services", "networking.k8s.io", "ingresses", "create"},
	{"write NetworkPolicies", "networking.k8s.io", "networkpolicies", "create"},
	{"let colleagues in", "rbac.authorization.k8s.io", "rolebindings", "create"},
}

// ListAbilities returns the names of the Abilities that rules grant.
func ListAbilities(rules []authorizationv1.ResourceRule) []string {
	names := []string{}
	for _, a := range Abilities {
		if a.isGrantedBy(rules) {
			names = append(names, a.Name)
		}
	}
	return names
}

func (a Ability) isGrantedBy(rules []authorizationv1.ResourceRule) bool {
	return GrantsRight(rules, a.group, a.resource, a.verb)
}

// GrantsRight reports whether rules allow a verb on all objects of a resource.
func GrantsRight(rules []authorizationv1.ResourceRule, group, resource, verb string) bool {
	contains := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	return slices.ContainsFunc(rules, func(r authorizationv1.ResourceRule) bool {
		return contains(r.APIGroups, group) && contains(r.Resources, resource) && contains(r.Verbs, verb) && len(r.ResourceNames) == 0
	})
}

// listMissingAbilities lists the abilities that the caller has in none of the namespaces.
func listMissingAbilities(namespaces []Namespace) []string {
	var all []string
	for _, a := range Abilities {
		if !slices.ContainsFunc(namespaces, func(n Namespace) bool { return slices.Contains(n.Abilities, a.Name) }) {
			all = append(all, a.Name+": no role of yours gives it; ask a platform admin for the role operator")
		}
	}
	return all
}

// listRuleRestrictions lists the exceptions that the rules do not allow.
func listRuleRestrictions(r *v1alpha1.TenantRulesSpec) []string {
	var all []string
	for _, kind := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName} {
		if !slices.Contains(r.ServiceTypes, kind) {
			all = append(all, fmt.Sprintf("Services of type %s: write an Ingress or a Gateway, or ask for policy.serviceTypes", kind))
		}
	}
	if len(r.PriorityClasses) == 0 {
		all = append(all, "pods with a priorityClassName: ask for policy.priorityClasses")
	}
	all = append(all, "RoleBindings to others than your tenant's people"+formatSubjects(r.Subjects)+" and service accounts: ask for policy.shareWith")
	if len(r.CloudIdentities) == 0 {
		all = append(all, "ServiceAccounts that name a role or an account at a cloud: ask for policy.cloudIdentities")
	}
	if !ptr.Deref(r.TokenSecrets, false) {
		all = append(all, "Secrets with tokens of service accounts: use kubectl create token, or ask for policy.tokenSecrets")
	}
	if !ptr.Deref(r.DoNotDisrupt, false) {
		all = append(all, "pods with karpenter.sh/do-not-disrupt: write a PodDisruptionBudget, or ask for policy.doNotDisrupt")
	}
	if r.Egress != "Open" {
		all = append(all, "connections to destinations outside of the tenant, except ["+strings.Join(r.AllowCIDRs, ", ")+"]: ask for network.allowCIDRs")
	}
	return append(all,
		"pods on nodes outside of your pools, or privileged pods",
		"objects labelled app.kubernetes.io/managed-by=croft: only the platform changes them",
		"objects in other tenants' namespaces, and cluster-scoped objects")
}

// formatSubjects formats subjects, such as Group:devs, in parentheses.
func formatSubjects(subjects []string) string {
	if len(subjects) == 0 {
		return ""
	}
	var all []string
	for _, s := range subjects {
		kind, name, _ := strings.Cut(s, ":")
		all = append(all, strings.ToLower(kind)+" "+name)
	}
	return " (" + strings.Join(all, ", ") + ")"
}
