package policy

import (
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/admissionpolicy"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func user(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// personOf returns a member of a tenant, or a service account of a tenant without members.
func personOf(t *estate.Tenant) rbacv1.Subject {
	switch {
	case len(t.Access) == 0:
		return account(t.Namespaces[0], "default")
	case t.Access[0].Group != "":
		return group(t.Access[0].Group)
	default:
		return user(t.Access[0].User)
	}
}

// bindings give other users and service accounts access to the tenant's namespaces.
func (s scene) bindings() []attack.Attack {
	binding := func(name string, subject rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.meta(name),
			Subjects: []rbacv1.Subject{subject},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
		}
	}
	adding := func(subject rbacv1.Subject) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, subject) }
	}
	own := personOf(s.by)
	byEverybody := attack.ByPolicy(RoleBindingsPolicy, EverybodyRule)
	all := attack.Because("a role for everybody is a role for every other tenant", nil,
		attack.Creating("let-everybody-read", "bind a role to everybody who is signed in", byEverybody, binding("let-everybody-read", group("system:authenticated"))),
		attack.Creating("let-strangers-read", "bind a role to everybody who is not signed in", byEverybody, binding("let-strangers-read", group("system:unauthenticated"))),
		attack.Creating("let-anonymous-read", "bind a role to the anonymous user", byEverybody, binding("let-anonymous-read", user("system:anonymous"))),
		attack.Creating("let-every-account-read", "bind a role to every service account of the cluster", byEverybody, binding("let-every-account-read", group("system:serviceaccounts"))),
		attack.ByPlatform(attack.Creating("let-everybody-read-as-platform", "bind a role to everybody who is signed in", attack.Nobody, binding("let-everybody-read-as-platform", group("system:authenticated")))),
		attack.Changing("let-everybody-read-later", "bind a role to everybody by a binding that is there", byEverybody, binding("let-everybody-read-later", own), adding(group("system:authenticated"))),
	)

	byStrangers := attack.ByPolicy(RoleBindingsPolicy, StrangersRule)
	in := func(name, summary string, subject rbacv1.Subject) attack.Attack {
		return attack.Creating(name, summary, byStrangers, binding(name, subject))
	}
	strangers := []attack.Attack{
		in("bind-masters", "bind a role to the administrators of the cluster", group("system:masters")),
		in("bind-nodes", "bind a role to all nodes", group("system:nodes")),
		in("bind-other-accounts", "bind a role to all service accounts of another tenant", group("system:serviceaccounts:"+s.other)),
		in("bind-other-account", "bind a role to a service account of another tenant", account(s.other, "default")),
		in("bind-other-account-as-user", "bind a role to a service account of another tenant, as a user", user("system:serviceaccount:"+s.other+":default")),
		in("bind-system-account", "bind a role to a service account of kube-system", account(metav1.NamespaceSystem, "default")),
		in("bind-scheduler", "bind a role to the scheduler", user("system:kube-scheduler")),
		attack.Changing("bind-other-account-later", "bind a role to a service account of another tenant by a binding that is there", byStrangers,
			binding("bind-other-account-later", own), adding(account(s.other, "default"))),
	}
	if !sharesWith(s.by, v1alpha1.Sharer{Group: s.on.Name + "-strangers"}) {
		strangers = append(strangers,
			in("bind-other-people", "bind a role to a group of another tenant", group(s.on.Name+"-strangers")),
			attack.Changing("bind-other-people-later", "bind a role to a group of another tenant by a binding that is there", byStrangers,
				binding("bind-other-people-later", own), adding(group(s.on.Name+"-strangers"))))
	}
	if !sharesWith(s.by, v1alpha1.Sharer{User: "mallory"}) {
		strangers = append(strangers, in("bind-unknown-user", "bind a role to a user who is not the tenant's", user("mallory")))
	}
	all = append(all, attack.Because("the new subjects get the tenant's rights without the platform's consent", nil, strangers...)...)
	all = append(all,
		attack.Creating("bind-own-people", "bind a role to the tenant's own people", attack.Nobody, binding("bind-own-people", own)),
		attack.Creating("bind-own-account", "bind a role to a service account that is named without its namespace", attack.Nobody, binding("bind-own-account", account("", "default"))),
		attack.Creating("bind-own-accounts", "bind a role to all service accounts of the namespace", attack.Nobody, binding("bind-own-accounts", group("system:serviceaccounts:"+s.own))),
		attack.Creating("bind-own-account-as-user", "bind a role to a service account of the namespace, as a user", attack.Nobody, binding("bind-own-account-as-user", user("system:serviceaccount:"+s.own+":default"))),
	)
	for _, sharer := range s.by.Allowances.ShareWith {
		switch {
		case sharer.Group != "":
			all = append(all, attack.Creating("share-with-group-as-allowed", "bind a role to a group that the tenant may share with", attack.Nobody, binding("share-with-group", group(named(sharer.Group)))))
		case sharer.User != "":
			all = append(all, attack.Creating("share-with-user-as-allowed", "bind a role to a user whom the tenant may share with", attack.Nobody, binding("share-with-user", user(named(sharer.User)))))
		default:
			namespace, name, _ := strings.Cut(sharer.ServiceAccount, "/")
			all = append(all, attack.Creating("share-with-account-as-allowed", "bind a role to a service account that the tenant may share with", attack.Nobody, binding("share-with-account", account(namespace, named(name)))))
		}
	}
	return slices.CompactFunc(all, func(a, b attack.Attack) bool { return a.Name == b.Name })
}

// named returns a name, and an example for "*".
func named(name string) string {
	if name == "*" {
		return "croft-verify"
	}
	return name
}

// accounts attack the rules on Roles and service accounts.
func (s scene) accounts() []attack.Attack {
	role := func(name string, labels map[string]string) *rbacv1.Role {
		r := &rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: s.meta(name),
			Rules: []rbacv1.PolicyRule{right("", "configmaps", "get")},
		}
		r.Labels = labels
		return r
	}
	bound := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.meta("bound \x1b[2J"),
		Subjects: []rbacv1.Subject{account(s.own, "default")},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
	}
	aggregates := map[string]string{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
	many := map[string]string{}
	for i := range mostMarks + 1 {
		many[fmt.Sprint("l-", i)] = "x"
	}
	byAggregation := attack.ByPolicy(RolesPolicy, AggregationRule)
	all := attack.Because("control characters in names change the terminal of a user who lists Roles", nil,
		attack.Creating("name-role-by-escapes", "name a Role by what a terminal obeys", attack.ByPolicy(RolesPolicy, RoleNameRule), role("role \x1b[2J", nil)),
		attack.Creating("name-binding-by-escapes", "name a RoleBinding by what a terminal obeys", attack.ByPolicy(RoleBindingsPolicy, RoleNameRule), bound),
		attack.Creating("aggregate-role", "label a Role for aggregation into others", byAggregation, role("aggregate-role", aggregates)),
		attack.Changing("aggregate-role-later", "label a Role that is there for aggregation into others", byAggregation, role("aggregate-role-later", nil),
			func(r *rbacv1.Role) { r.Labels = aggregates }),
		attack.Creating("label-a-role-more", "write a Role with more labels than croft goes through", attack.ByPolicy(RolesPolicy, admissionpolicy.BoundsRule), role("label-a-role-more", many)),
		attack.Creating("name-role-freely", "name a Role as charts do", attack.Nobody, role("gitlab:project_env@42.review", nil)),
	)
	return append(append(all, s.identities()...), s.tokens()...)
}

// identities claim cloud identities.
func (s scene) identities() []attack.Attack {
	annotated := func(name, key, value string) *corev1.ServiceAccount {
		o := &corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: s.meta(name)}
		if key != "" {
			o.Annotations = map[string]string{key: value}
		}
		return o
	}
	var all []attack.Attack
	for _, identity := range s.by.Allowances.CloudIdentities {
		name, summary := "use-cloud-identity-as-allowed", "give a ServiceAccount an identity at a cloud that the tenant may use"
		if beginning, ok := strings.CutSuffix(identity, "*"); ok {
			name, summary, identity = "use-cloud-identity-among-allowed", "give a ServiceAccount one of the identities at a cloud that the tenant may use", beginning+"croft-verify"
		}
		all = append(all, attack.Creating(name, summary, attack.Nobody, annotated("use-cloud-identity", cloudIdentities[0], identity)))
	}
	all = slices.CompactFunc(all, func(a, b attack.Attack) bool { return a.Name == b.Name })
	if slices.Contains(s.by.Allowances.CloudIdentities, "*") {
		return all
	}
	by := attack.ByPolicy(AccountsPolicy, CloudIdentityRule)
	for _, cloud := range []struct{ name, key, identity string }{
		{"aws-role", cloudIdentities[0], "arn:aws:iam::123456789012:role/croft-verify-other"},
		{"google-account", cloudIdentities[1], "croft-verify-other@example.iam.gserviceaccount.com"},
		{"azure-client", cloudIdentities[2], "00000000-0000-0000-0000-000000000000"},
		{"alibaba-role", cloudIdentities[3], "croft-verify-other"},
	} {
		all = append(all, attack.Creating("take-"+cloud.name, "give a ServiceAccount an identity at a cloud that is not the tenant's, by "+cloud.key, by, annotated("take-"+cloud.name, cloud.key, cloud.identity)))
	}
	return attack.Because("if the cloud's trust policy covers several namespaces, the identity gives access to another's buckets, keys and databases",
		[]string{"https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html"},
		append(all, attack.Changing("take-aws-role-later", "give a ServiceAccount that is there a role at AWS that is not the tenant's", by, annotated("take-aws-role-later", "", ""),
			func(o *corev1.ServiceAccount) {
				o.Annotations = map[string]string{cloudIdentities[0]: "arn:aws:iam::123456789012:role/croft-verify-other"}
			}))...)
}

// tokens outlive their owner's access.
func (s scene) tokens() []attack.Attack {
	token := func(name, summary string, by attack.Stopper, seconds int64) attack.Attack {
		owner := &corev1.ServiceAccount{TypeMeta: core("ServiceAccount"), ObjectMeta: s.meta(name)}
		a := attack.Creating(name, summary, by, owner)
		a.Setup = []client.Object{owner}
		a.Request.Subresource = "token"
		a.Request.Body = &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
		}
		return a
	}
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		o := &corev1.Secret{TypeMeta: core("Secret"), ObjectMeta: s.meta(name), Type: kind}
		o.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		return o
	}
	longest := *s.by.Allowances.MaxTokenExpirationSeconds
	all := []attack.Attack{
		token("take-token-for-long", "ask for a token of a service account for longer than the tenant may", attack.ByPolicy(AccountsPolicy, TokenExpirationRule), longest+1),
		token("take-a-token", "ask for a token of a service account", attack.Nobody, longest),
		attack.Creating("write-bootstrap-token", "write a token by which nodes join the cluster", attack.ByPolicy(AccountsPolicy, BootstrapTokenRule), secret("write-bootstrap-token", bootstrapSecretType)),
	}
	if *s.by.Allowances.TokenSecrets {
		all = append(all, attack.Creating("keep-token-as-allowed", "have a token of a service account written into a Secret, as the tenant may", attack.Nobody, secret("keep-token", tokenSecretType)))
	} else {
		all = append(all, attack.Creating("keep-token-for-ever", "have a token of a service account that never expires written into a Secret", attack.ByPolicy(AccountsPolicy, TokenSecretRule), secret("keep-token-for-ever", tokenSecretType)))
	}
	return attack.Because("a copied token is valid until it expires, also after its owner has left", nil, all...)
}
