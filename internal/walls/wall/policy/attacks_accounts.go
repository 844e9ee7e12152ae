package policy

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
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

// buildSharingMirrors bind roles to the tenant's people, and to subjects that it may share with.
func (s scene) buildSharingMirrors() []attack.Attack {
	var all []attack.Attack
	bind := func(name, summary, object string, subject rbacv1.Subject) {
		all = append(all, attack.NewCreate(name, summary, attack.Nobody, &rbacv1.RoleBinding{
			TypeMeta: makeRBACMeta("RoleBinding"), ObjectMeta: s.makeMeta(object), Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "croft-" + string(v1alpha1.RoleViewer)},
		}))
	}
	bind("bind-own-people", "bind a role to the tenant's own people", "bind-own-people", findMember(s.attacker))
	for _, sharer := range s.attacker.Allowances.ShareWith {
		switch {
		case sharer.Group != "":
			bind("share-with-group-as-allowed", "bind a role to a group that the tenant may share with", "share-with-group", makeGroup(nameOrExample(sharer.Group)))
		case sharer.User != "":
			bind("share-with-user-as-allowed", "bind a role to a user whom the tenant may share with", "share-with-user", makeUser(nameOrExample(sharer.User)))
		default:
			namespace, name, _ := strings.Cut(sharer.ServiceAccount, "/")
			bind("share-with-account-as-allowed", "bind a role to a service account that the tenant may share with", "share-with-account", makeAccount(namespace, nameOrExample(name)))
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

// buildIdentityMirrors claim the cloud identities that the tenant may use.
func (s scene) buildIdentityMirrors() []attack.Attack {
	var all []attack.Attack
	for _, identity := range s.attacker.Allowances.CloudIdentities {
		name, summary := "use-cloud-identity-as-allowed", "give a ServiceAccount an identity at a cloud that the tenant may use"
		if beginning, ok := strings.CutSuffix(identity, "*"); ok {
			name, summary, identity = "use-cloud-identity-among-allowed", "give a ServiceAccount one of the identities at a cloud that the tenant may use", beginning+"croft-verify"
		}
		account := &corev1.ServiceAccount{TypeMeta: makeCoreMeta("ServiceAccount"), ObjectMeta: s.makeMeta("use-cloud-identity")}
		account.Annotations = map[string]string{"eks.amazonaws.com/role-arn": identity}
		all = append(all, attack.NewCreate(name, summary, attack.Nobody, account))
	}
	all = slices.CompactFunc(all, func(a, b attack.Attack) bool { return a.Name == b.Name })
	return attack.WithReason("if the cloud's trust policy covers several namespaces, the identity gives access to another's buckets, keys and databases",
		[]string{"https://docs.aws.amazon.com/eks/latest/userguide/associate-service-account-role.html"}, all...)
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
	longest := *s.attacker.Allowances.MaxTokenExpirationSeconds
	return attack.WithReason("a copied token is valid until it expires, also after its owner has left", nil,
		token("take-token-for-long", "ask for a token of a service account for longer than the tenant may", attack.ByPolicy(AccountsPolicy, TokenExpirationRule), longest+1),
		token("take-a-token", "ask for a token of a service account", attack.Nobody, longest))
}
