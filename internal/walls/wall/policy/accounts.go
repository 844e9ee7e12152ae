package policy

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
)

// AccountsPolicy is the name of the policy on service accounts and tokens.
const AccountsPolicy = "croft-accounts"

// The names of its rules.
const (
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
