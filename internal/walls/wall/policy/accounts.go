package policy

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// The names of the policies on the subjects and identities that act in a tenant's namespaces.
const (
	RoleBindingsPolicy = "croft-role-bindings"
	RolesPolicy        = "croft-roles"
	AccountsPolicy     = "croft-accounts"
)

// The names of their rules.
const (
	EverybodyRule       = "everybody"
	StrangersRule       = "strangers"
	RoleNameRule        = "printable-name"
	AggregationRule     = "aggregation"
	CloudIdentityRule   = "cloud-identity"
	TokenExpirationRule = "token-expiration"
	TokenSecretRule     = "token-secret"
	BootstrapTokenRule  = "bootstrap-token"
)

// listAllowedSubjects returns the subjects that a tenant's RoleBindings may bind: the tenant's users and
// groups, and the subjects of shareWith.
func listAllowedSubjects(t *estate.Tenant) []string {
	all := []string{}
	add := func(kind, name string) {
		if subject := kind + ":" + name; name != "" && !slices.Contains(all, subject) {
			all = append(all, subject)
		}
	}
	for _, a := range t.Access {
		add("Group", a.Group)
		add("User", a.User)
	}
	for _, s := range t.Allowances.ShareWith {
		add("Group", s.Group)
		add("User", s.User)
		add("ServiceAccount", s.ServiceAccount)
	}
	return all
}

// readSubjects returns an expression for the subjects of a RoleBinding in the format of
// TenantRules. Users and groups that denote service accounts are written as service accounts.
func readSubjects(binding string) string {
	return replaceWords(`(has(BINDING.subjects) ? BINDING.subjects.map(s,
		s.kind == "ServiceAccount" ?
			"ServiceAccount:" +
				(has(s.namespace) && s.namespace != "" ? s.namespace : request.namespace) + "/" + s.name :
		s.kind == "User" && s.name.startsWith("system:serviceaccount:") ?
			"ServiceAccount:" + s.name.substring(22).replace(":", "/") :
		s.kind == "Group" && s.name.startsWith("system:serviceaccounts:") ?
			"ServiceAccount:" + s.name.substring(23) + "/*" :
		s.kind + ":" + s.name) : [])`, "BINDING", binding)
}

// refusedSubjects is the expression for the new subjects that the tenant may not bind. A star
// in shareWith allows all subjects of a kind except Kubernetes' own.
const refusedSubjects = `variables.subjects.filter(s,
	!(s in variables.everybody) && !(s in params.spec.subjects) && !(
		s.startsWith("ServiceAccount:") ?
			s.substring(15).split("/")[0] in params.spec.namespaces ||
			s.split("/")[0] + "/*" in params.spec.subjects :
		s.startsWith("Group:") ?
			"Group:*" in params.spec.subjects && !s.startsWith("Group:system:") :
			"User:*" in params.spec.subjects && !s.startsWith("User:system:")))`

// checkRoleBindings prevents tenants from binding subjects outside of the tenant, unless
// shareWith allows them. RoleBindings with croft's label are exempt: the protection policy
// covers them, and they are written before the TenantRules exist.
func checkRoleBindings(admins []string) admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:            RoleBindingsPolicy,
		Selection:       admissionpolicy.Unmarked,
		MatchConditions: admissionpolicy.NotByPlatform(admins),
		Resources: []admissionpolicy.Resource{
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resources: []string{"rolebindings"}, Operations: write},
		},
		Bounds: subjectBounds,
		Variables: []admissionpolicy.Variable{
			{Name: "everybody", Expression: `["Group:system:authenticated", "Group:system:unauthenticated",
				"User:system:anonymous", "Group:system:serviceaccounts"]`},
			{Name: "same", Expression: readBefore(`has(object.subjects) == has(oldObject.subjects) &&
				(!has(object.subjects) || object.subjects == oldObject.subjects)`, `false`)},
			{Name: "before", Expression: readBefore(readSubjects("oldObject"), `[]`)},
			{Name: "subjects", Expression: `variables.same ? [] :
				` + readSubjects("object") + `.filter(s, !(s in variables.before))`},
			{Name: "strangers", Expression: refusedSubjects},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name: EverybodyRule, Summary: "roles are bound to named subjects, not to all users",
				Expression: `variables.subjects.all(s, !(s in variables.everybody))`,
				Message: `"subjects: " +
					variables.everybody.transformList(i, s, s.split(":", 2)[1]).join(", ") +
					" include all users, also of other tenants: name a group, a user or a service account"`,
			},
			{
				Name: StrangersRule,
				Summary: "roles are bound to the tenant's own people and service accounts, " +
					"and to subjects in its shareWith",
				Expression: `variables.strangers.size() == 0 || ` + clusterWide,
				Exception:  "policy.shareWith",
				Message: `"subjects: " + ` + formatFirst("variables.strangers", 3) +
					` + " does not belong to tenant " + params.spec.tenant +
					": name its own service accounts, or " + ` + formatAllowed("subjects") +
					` + "; a platform admin allows others by policy.shareWith"`,
			},
			buildNameRule(),
		},
	}
}

// checkRoles has the rules on Roles that RBAC lacks. Kubernetes allows any characters except
// slashes in their names, so a tenant could write control characters to the terminal of a user
// who lists Roles.
func checkRoles() admissionpolicy.Validating {
	return admissionpolicy.Validating{
		Name:               RolesPolicy,
		IgnoresTenantRules: true,
		Resources: []admissionpolicy.Resource{
			{Group: "rbac.authorization.k8s.io", Version: "v1", Resources: []string{"roles"}, Operations: write},
		},
		Bounds: roleBounds,
		Rules: []admissionpolicy.Rule{
			buildNameRule(),
			{
				Name: AggregationRule, Summary: "Roles have no labels for aggregation, which are for ClusterRoles",
				Expression: `!has(object.metadata.labels) || object.metadata.labels.all(k,
					!k.startsWith("rbac.authorization.k8s.io/") ||
					request.operation == "UPDATE" && has(oldObject.metadata.labels) && k in oldObject.metadata.labels)`,
				Message: `"metadata.labels: labels below rbac.authorization.k8s.io/ aggregate ClusterRoles, ` +
					`and have no effect on a Role: remove them"`,
			},
		},
	}
}

func buildNameRule() admissionpolicy.Rule {
	return admissionpolicy.Rule{
		Name: RoleNameRule, Summary: "names of Roles and RoleBindings are printable, without spaces",
		Expression: `request.operation != "CREATE" || object.metadata.name.matches("^[!-~]+$")`,
		Message: `"metadata.name: it contains spaces, control characters or letters beyond ASCII, ` +
			`which terminals and logs may interpret: use letters, digits and -.:_@"`,
	}
}

// cloudIdentities are the annotations of a ServiceAccount by which the webhooks and metadata
// servers of clouds give its pods a cloud identity.
var cloudIdentities = []string{
	"eks.amazonaws.com/role-arn",
	"iam.gke.io/gcp-service-account",
	"azure.workload.identity/client-id",
	"pod-identity.alibabacloud.com/role-name",
}

const (
	tokenSecretType     = "kubernetes.io/service-account-token"
	bootstrapSecretType = "bootstrap.kubernetes.io/token"
)

// concernsIdentity is the condition that a request is for a Secret with a token, for a token
// and not from a kubelet, or for a service account with a cloud identity.
var concernsIdentity = `request.resource.resource == "secrets" ?
		[dyn(object)].exists(o,
			has(o.type) && o.type in ` + formatQuoted([]string{tokenSecretType, bootstrapSecretType}) + `) :
	has(request.subResource) && request.subResource == "token" ?
		!("system:nodes" in request.userInfo.groups) :
		has(object.metadata.annotations) &&
		` + formatQuoted(cloudIdentities) + `.exists(k, k in object.metadata.annotations)`

// refusedIdentities is the expression for a service account's new cloud identities that the
// tenant may not use. An empty annotation names no identity.
var refusedIdentities = `variables.isSecret || variables.isToken ? [] :
	` + formatQuoted(cloudIdentities) + `.filter(k, k in object.metadata.annotations)
	.filter(k, !(k in variables.before && variables.before[k] == object.metadata.annotations[k]))` +
	`.map(k, object.metadata.annotations[k])
	.filter(v, v != "" &&
		!params.spec.cloudIdentities.exists(i,
			i == v || i.endsWith("*") && v.startsWith(i.substring(0, i.size() - 1))))`

// checkAccounts limits a service account's cloud identities and the lifetime of its tokens.
// Kubelets are exempt: they request the tokens that pods mount, which expire with the pod.
func checkAccounts() admissionpolicy.Validating {
	create := []admissionv1.OperationType{admissionv1.Create}
	return admissionpolicy.Validating{
		Name: AccountsPolicy,
		Resources: []admissionpolicy.Resource{
			{Version: "v1", Resources: []string{"serviceaccounts"}, Operations: write},
			{Version: "v1", Resources: []string{"serviceaccounts/token", "secrets"}, Operations: create},
		},
		MatchConditions: map[string]string{"concerns-identity": concernsIdentity},
		Variables: []admissionpolicy.Variable{
			{Name: "object", Expression: `dyn(object)`},
			{Name: "isSecret", Expression: `request.resource.resource == "secrets"`},
			{Name: "isToken", Expression: `has(request.subResource) && request.subResource == "token"`},
			{Name: "before", Expression: readBefore(`(has(oldObject.metadata.annotations) ?
				oldObject.metadata.annotations : {})`, `{}`)},
			{Name: "identities", Expression: refusedIdentities},
			{Name: "seconds", Expression: `variables.isToken && has(variables.object.spec.expirationSeconds) ?
				variables.object.spec.expirationSeconds : 0`},
		},
		Rules: []admissionpolicy.Rule{
			{
				Name:       CloudIdentityRule,
				Summary:    "service accounts use only cloud identities of the tenant's cloudIdentities",
				Expression: `variables.identities.size() == 0`,
				Exception:  "policy.cloudIdentities",
				Message: `"metadata.annotations: " + ` + formatFirst("variables.identities", 3) +
					` + " is not among the cloud identities of tenant " + params.spec.tenant + ": " + ` +
					formatAllowed("cloudIdentities") +
					` + "; a platform admin allows others by policy.cloudIdentities"`,
			},
			{
				Name:       TokenExpirationRule,
				Summary:    "tokens that users request expire within the tenant's maxTokenExpirationSeconds",
				Expression: `variables.seconds <= params.spec.maxTokenExpirationSeconds`,
				Exception:  "policy.maxTokenExpirationSeconds",
				Message: `"spec.expirationSeconds: " + string(variables.seconds) +
					" is more than the " + string(params.spec.maxTokenExpirationSeconds) +
					" seconds for which a token of tenant " + params.spec.tenant + " may be valid: ` +
					`request a shorter time; ` +
					`a platform admin allows more by policy.maxTokenExpirationSeconds"`,
			},
			{
				Name: TokenSecretRule,
				Summary: "Secrets contain no tokens of service accounts, which would never expire, " +
					"unless the tenant's tokenSecrets allows them",
				Expression: `!variables.isSecret || variables.object.type != "` + tokenSecretType + `" ||
					params.spec.tokenSecrets`,
				Exception: "policy.tokenSecrets",
				Message: `"type: a Secret of type ` + tokenSecretType + ` contains a token that never expires: ` +
					`request one by kubectl create token, or mount one into a pod; ` +
					`a platform admin allows them for tenant " +
					params.spec.tenant + " by policy.tokenSecrets"`,
			},
			{
				Name:       BootstrapTokenRule,
				Summary:    "Secrets contain no bootstrap tokens, with which nodes join the cluster",
				Expression: `!variables.isSecret || variables.object.type != "` + bootstrapSecretType + `"`,
				Message: `"type: ` + bootstrapSecretType + ` is for tokens with which nodes join the cluster, ` +
					`only in kube-system: use another type"`,
			},
		},
	}
}

// sharesWith reports whether a tenant may bind a subject in the format of TenantRules.
func sharesWith(t *estate.Tenant, subject v1alpha1.Sharer) bool {
	return slices.ContainsFunc(t.Allowances.ShareWith, func(s v1alpha1.Sharer) bool {
		return s == subject || subject.Group != "" && s.Group == "*" || subject.User != "" && s.User == "*"
	})
}
