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
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/rules/attack"
)

func makeGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func makeUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func makeAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// findMember returns a member of a tenant, or a service account of a tenant without members.
func findMember(t *estate.Tenant) rbacv1.Subject {
	switch {
	case len(t.Access) == 0:
		return makeAccount(t.Namespaces[0], "default")
	case t.Access[0].Group != "":
		return makeGroup(t.Access[0].Group)
	default:
		return makeUser(t.Access[0].User)
	}
}

// buildBindingAttacks give other users and service accounts access to the tenant's namespaces.
func (s scene) buildBindingAttacks() []attack.Attack {
	binding := func(name string, subject rbacv1.Subject) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.makeMeta(name),
			Subjects: []rbacv1.Subject{subject},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
		}
	}
	adding := func(subject rbacv1.Subject) func(*rbacv1.RoleBinding) {
		return func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, subject) }
	}
	own := findMember(s.attacker)
	byEverybody := attack.ByPolicy(RoleBindingsPolicy, EverybodyRule)
	all := attack.WithReason("a role for everybody is a role for every other tenant", nil,
		attack.NewCreate("let-everybody-read", "bind a role to everybody who is signed in", byEverybody, binding("let-everybody-read", makeGroup("system:authenticated"))),
		attack.NewCreate("let-strangers-read", "bind a role to everybody who is not signed in", byEverybody, binding("let-strangers-read", makeGroup("system:unauthenticated"))),
		attack.NewCreate("let-anonymous-read", "bind a role to the anonymous user", byEverybody, binding("let-anonymous-read", makeUser("system:anonymous"))),
		attack.NewCreate("let-every-account-read", "bind a role to every service account of the cluster", byEverybody, binding("let-every-account-read", makeGroup("system:serviceaccounts"))),
		attack.SendAsAdmin(attack.NewCreate("let-everybody-read-as-platform", "bind a role to everybody who is signed in", attack.Nobody, binding("let-everybody-read-as-platform", makeGroup("system:authenticated")))),
		attack.NewUpdate("let-everybody-read-later", "bind a role to everybody by an existing binding", byEverybody, binding("let-everybody-read-later", own), adding(makeGroup("system:authenticated"))),
	)

	byStrangers := attack.ByPolicy(RoleBindingsPolicy, StrangersRule)
	in := func(name, summary string, subject rbacv1.Subject) attack.Attack {
		return attack.NewCreate(name, summary, byStrangers, binding(name, subject))
	}
	strangers := []attack.Attack{
		in("bind-masters", "bind a role to the administrators of the cluster", makeGroup("system:masters")),
		in("bind-nodes", "bind a role to all nodes", makeGroup("system:nodes")),
		in("bind-other-accounts", "bind a role to all service accounts of another tenant", makeGroup("system:serviceaccounts:"+s.other)),
		in("bind-other-account", "bind a role to a service account of another tenant", makeAccount(s.other, "default")),
		in("bind-other-account-as-user", "bind a role to a service account of another tenant, as a user", makeUser("system:serviceaccount:"+s.other+":default")),
		in("bind-system-account", "bind a role to a service account of kube-system", makeAccount(metav1.NamespaceSystem, "default")),
		in("bind-scheduler", "bind a role to the scheduler", makeUser("system:kube-scheduler")),
		attack.NewUpdate("bind-other-account-later", "bind a role to a service account of another tenant by an existing binding", byStrangers,
			binding("bind-other-account-later", own), adding(makeAccount(s.other, "default"))),
	}
	if !sharesWith(s.attacker, v1alpha1.Sharer{Group: s.target.Name + "-strangers"}) {
		strangers = append(strangers,
			in("bind-other-people", "bind a role to a group of another tenant", makeGroup(s.target.Name+"-strangers")),
			attack.NewUpdate("bind-other-people-later", "bind a role to a group of another tenant by an existing binding", byStrangers,
				binding("bind-other-people-later", own), adding(makeGroup(s.target.Name+"-strangers"))))
	}
	if !sharesWith(s.attacker, v1alpha1.Sharer{User: "mallory"}) {
		strangers = append(strangers, in("bind-unknown-user", "bind a role to a user who is not the tenant's", makeUser("mallory")))
	}
	all = append(all, attack.WithReason("the new subjects get the tenant's rights without the platform's consent", nil, strangers...)...)
	all = append(all,
		attack.NewCreate("bind-own-people", "bind a role to the tenant's own people", attack.Nobody, binding("bind-own-people", own)),
		attack.NewCreate("bind-own-account", "bind a role to a service account that is named without its namespace", attack.Nobody, binding("bind-own-account", makeAccount("", "default"))),
		attack.NewCreate("bind-own-accounts", "bind a role to all service accounts of the namespace", attack.Nobody, binding("bind-own-accounts", makeGroup("system:serviceaccounts:"+s.own))),
		attack.NewCreate("bind-own-account-as-user", "bind a role to a service account of the namespace, as a user", attack.Nobody, binding("bind-own-account-as-user", makeUser("system:serviceaccount:"+s.own+":default"))),
	)
	for _, sharer := range s.attacker.Allowances.ShareWith {
		switch {
		case sharer.Group != "":
			all = append(all, attack.NewCreate("share-with-group-as-allowed", "bind a role to a group that the tenant may share with", attack.Nobody, binding("share-with-group", makeGroup(nameOrExample(sharer.Group)))))
		case sharer.User != "":
			all = append(all, attack.NewCreate("share-with-user-as-allowed", "bind a role to a user whom the tenant may share with", attack.Nobody, binding("share-with-user", makeUser(nameOrExample(sharer.User)))))
		default:
			namespace, name, _ := strings.Cut(sharer.ServiceAccount, "/")
			all = append(all, attack.NewCreate("share-with-account-as-allowed", "bind a role to a service account that the tenant may share with", attack.Nobody, binding("share-with-account", makeAccount(namespace, nameOrExample(name)))))
		}
	}
	return slices.CompactFunc(all, func(a, b attack.Attack) bool { return a.Name == b.Name })
}

// nameOrExample returns a name, and an example for "*".
func nameOrExample(name string) string {
	if name == "*" {
		return "croft-verify"
	}
	return name
}

// buildAccountAttacks attack the rules on Roles and service accounts.
func (s scene) buildAccountAttacks() []attack.Attack {
	role := func(name string, labels map[string]string) *rbacv1.Role {
		r := &rbacv1.Role{
			TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: s.makeMeta(name),
			Rules: []rbacv1.PolicyRule{makePolicyRule("", "configmaps", "get")},
		}
		r.Labels = labels
		return r
	}
	bound := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.makeMeta("bound \x1b[2J"),
		Subjects: []rbacv1.Subject{makeAccount(s.own, "default")},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
	}
	aggregates := map[string]string{"rbac.authorization.k8s.io/aggregate-to-admin": "true"}
	many := map[string]string{}
	for i := range mostMarks + 1 {
		many[fmt.Sprint("l-", i)] = "x"
	}
	byAggregation := attack.ByPolicy(RolesPolicy, AggregationRule)
	all := attack.WithReason("control characters in names act on the terminal of a user who lists Roles", nil,
		attack.NewCreate("name-role-by-escapes", "name a Role with control characters of a terminal", attack.ByPolicy(RolesPolicy, RoleNameRule), role("role \x1b[2J", nil)),
		attack.NewCreate("name-binding-by-escapes", "name a RoleBinding with control characters of a terminal", attack.ByPolicy(RoleBindingsPolicy, RoleNameRule), bound),
		attack.NewCreate("aggregate-role", "label a Role for aggregation into others", byAggregation, role("aggregate-role", aggregates)),
		attack.NewUpdate("aggregate-role-later", "label an existing Role for aggregation into others", byAggregation, role("aggregate-role-later", nil),
			func(r *rbacv1.Role) { r.Labels = aggregates }),
		attack.NewCreate("label-a-role-more", "write a Role with more labels than croft evaluates", attack.ByPolicy(RolesPolicy, admissionpolicy.BoundsRule), role("label-a-role-more", many)),
		attack.NewCreate("name-role-freely", "name a Role as charts do", attack.Nobody, role("gitlab:project_env@42.review", nil)),
	)
	return append(append(all, s.buildIdentityAttacks()...), s.buildTokenAttacks()...)
}

// buildIdentityAttacks claim cloud identities.
func (s scene) buildIdentityAttacks() []attack.Attack {
	annotated := func(name, key, value string) *corev1.ServiceAccount {
		o := &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: s.makeMeta(name)}
		if key != "" {
			o.Annotations = map[string]string{key: value}
		}
		return o
	}
	var all []attack.Attack
	for _, identity := range s.attacker.Allowances.CloudIdentities {
		name, summary := "use-cloud-identity-as-allowed", "give a ServiceAccount an identity at a cloud that the tenant may use"
		if beginning, ok := strings.CutSuffix(identity, "*"); ok {
			name, summary, identity = "use-cloud-identity-among-allowed", "give a ServiceAccount one of the identities at a cloud that the tenant may use", beginning+"croft-verify"
		}
		all = append(all, attack.NewCreate(name, summary, attack.Nobody, annotated("use-cloud-identity", cloudIdentities[0], identity)))
	}
	all = slices.CompactFunc(all, func(a, b attack.Attack) bool { return a.Name == b.Name })
	if slices.Contains(s.attacker.Allowances.CloudIdentities, "*") {
		return all
	}
	by := attack.ByPolicy(AccountsPolicy, CloudIdentityRule)
	for _, cloud := range []struct{ name, key, identity string }{
		{"aws-role", cloudIdentities[0], "arn:aws:iam::123456789012:role/croft-verify-other"},
		{"google-account", cloudIdentities[1], "croft-verify-other@example.iam.gserviceaccount.com"},
		{"azure-client", cloudIdentities[2], "00000000-0000-0000-0000-000000000000"},
		{"alibaba-role", cloudIdentities[3], "croft-verify-other"},
	} {
		all = append(all, attack.NewCreate("take-"+cloud.name, "give a ServiceAccount an identity at a cloud that is not the tenant's, by "+cloud.key, by, annotated("take-"+cloud.name, cloud.key, cloud.identity)))
	}
	return attack.WithReason("if the cloud's trust policy covers several namespaces, the identity gives access to another's buckets, keys and databases",
		[]string{"https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html"},
		append(all, attack.NewUpdate("take-aws-role-later", "give an existing ServiceAccount a role at AWS that is not the tenant's", by, annotated("take-aws-role-later", "", ""),
			func(o *corev1.ServiceAccount) {
				o.Annotations = map[string]string{cloudIdentities[0]: "arn:aws:iam::123456789012:role/croft-verify-other"}
			}))...)
}

// buildTokenAttacks outlive their owner's access.
func (s scene) buildTokenAttacks() []attack.Attack {
	token := func(name, summary string, by attack.Stopper, seconds int64) attack.Attack {
		owner := &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: s.makeMeta(name)}
		a := attack.NewCreate(name, summary, by, owner)
		a.Setup = []client.Object{owner}
		a.Request.Subresource = "token"
		a.Request.Body = &authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
		}
		return a
	}
	secret := func(name string, kind corev1.SecretType) *corev1.Secret {
		o := &corev1.Secret{TypeMeta: makeCoreMeta("Secret"), ObjectMeta: s.makeMeta(name), Type: kind}
		o.Annotations = map[string]string{corev1.ServiceAccountNameKey: "default"}
		return o
	}
	longest := *s.attacker.Allowances.MaxTokenExpirationSeconds
	all := []attack.Attack{
		token("take-token-for-long", "ask for a token of a service account for longer than the tenant may", attack.ByPolicy(AccountsPolicy, TokenExpirationRule), longest+1),
		token("take-a-token", "ask for a token of a service account", attack.Nobody, longest),
		attack.NewCreate("write-bootstrap-token", "write a token with which nodes join the cluster", attack.ByPolicy(AccountsPolicy, BootstrapTokenRule), secret("write-bootstrap-token", bootstrapSecretType)),
	}
	if *s.attacker.Allowances.TokenSecrets {
		all = append(all, attack.NewCreate("keep-token-as-allowed", "have a token of a service account written into a Secret, as the tenant may", attack.Nobody, secret("keep-token", tokenSecretType)))
	} else {
		all = append(all, attack.NewCreate("keep-token-for-ever", "have a token of a service account that never expires written into a Secret", attack.ByPolicy(AccountsPolicy, TokenSecretRule), secret("keep-token-for-ever", tokenSecretType)))
	}
	return attack.WithReason("a copied token is valid until it expires, also after its owner has left", nil, all...)
}
