package identity

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/internal/rules/attack"
)

// buildAuthorizerQuestions ask the cluster's authorizer, as the member, about permissions that no request
// can test. `croft verify` acts as a member by impersonation and cannot impersonate again on
// top of that. The API server checks the permission to escalate only when a role is written.
func buildAuthorizerQuestions(own string) []attack.Attack {
	const rbac, certificates = "rbac.authorization.k8s.io", "certificates.k8s.io"
	cluster := func(group, resource, verb string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb}}
	}
	within := func(resource, subresource, verb string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: own, Resource: resource, Subresource: subresource, Verb: verb}}
	}
	path := func(path string) authorizationv1.SelfSubjectAccessReviewSpec {
		return authorizationv1.SelfSubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"}}
	}
	ownServiceAccounts := within("serviceaccounts", "", "impersonate")
	return []attack.Attack{
		expectDenied("impersonate-users", "impersonate any user", cluster("", "users", "impersonate")),
		expectDenied("impersonate-groups", "impersonate any group, system:masters too", cluster("", "groups", "impersonate")),
		expectDenied("impersonate-service-accounts", "impersonate any service account of the cluster", cluster("", "serviceaccounts", "impersonate")),
		expectDenied("impersonate-own-service-accounts", "impersonate the service accounts of one's own namespace", ownServiceAccounts),
		expectDenied("impersonate-users-in-part", "impersonate any user, by the verb of constrained impersonation", cluster("authentication.k8s.io", "users", "impersonate:user-info")),
		expectDenied("bind-any-role", "bind ClusterRoles with more rights than one's own", cluster(rbac, "clusterroles", "bind")),
		expectDenied("escalate-any-role", "write ClusterRoles with more rights than one's own", cluster(rbac, "clusterroles", "escalate")),
		expectDenied("bind-own-roles", "bind Roles of one's own namespace with more rights than one's own", authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: own, Group: rbac, Resource: "roles", Verb: "bind"}}),
		expectDenied("escalate-own-roles", "write Roles of one's own namespace with more rights than one's own", authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: own, Group: rbac, Resource: "roles", Verb: "escalate"}}),
		expectDenied("approve-certificates", "approve a certificate of any name and group", cluster(certificates, "signers", "approve")),
		expectDenied("sign-certificates", "sign a certificate of any name and group", cluster(certificates, "signers", "sign")),
		expectDenied("read-server-metrics", "read the API server's metrics, which name every tenant's objects", path("/metrics")),
		expectDenied("read-server-logs", "read the API server's logs", path("/logs")),
		expectDenied("profile-the-server", "profile the API server, and read its memory", path("/debug/pprof/heap")),

		expectAllowed("exec-own-pods", "run a command in one's own pod", within("pods", "exec", "create")),
		expectAllowed("forward-own-ports", "forward a port of one's own pod", within("pods", "portforward", "create")),
		expectAllowed("read-own-logs", "read the logs of one's own pod", within("pods", "log", "get")),
		expectAllowed("read-server-version", "ask the API server for its version, as every client does", path("/version")),
		{
			Name: "ask-own-rights", Kind: attack.Mirror, Summary: "ask for the list of one's own rights",
			Request: &attack.Request{Verb: attack.Create, Object: &authorizationv1.SelfSubjectRulesReview{
				TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview"},
				Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: own},
			}},
			Outcome: attack.ExpectType(func(r *authorizationv1.SelfSubjectRulesReview) error {
				if len(r.Status.ResourceRules) == 0 {
					return fmt.Errorf("the answer lists no rights")
				}
				return nil
			}),
		},
		{
			Name: "ask-who-one-is", Kind: attack.Mirror, Summary: "ask the API server for one's own identity",
			Request: &attack.Request{Verb: attack.Create, Object: &authenticationv1.SelfSubjectReview{
				TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectReview"},
			}},
		},
	}
}

// expectDenied expects the authorizer to deny.
func expectDenied(name, summary string, spec authorizationv1.SelfSubjectAccessReviewSpec) attack.Attack {
	a := askAuthorizer(name, summary, spec, false)
	a.Kind, a.StoppedBy = attack.Breach, attack.Stopper{Name: attack.ByRBAC.Name}
	return a
}

// expectAllowed expects the authorizer to allow.
func expectAllowed(name, summary string, spec authorizationv1.SelfSubjectAccessReviewSpec) attack.Attack {
	return askAuthorizer(name, summary, spec, true)
}

func askAuthorizer(name, summary string, spec authorizationv1.SelfSubjectAccessReviewSpec, want bool) attack.Attack {
	return attack.Attack{
		Name: name, Kind: attack.Mirror, Summary: summary + " (asks the authorizer)",
		Request: &attack.Request{Verb: attack.Create, Object: &authorizationv1.SelfSubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview"},
			Spec:     spec,
		}},
		Outcome: attack.ExpectType(func(r *authorizationv1.SelfSubjectAccessReview) error {
			if r.Status.Allowed != want {
				return fmt.Errorf("the authorizer answers allowed: %t %s", r.Status.Allowed, r.Status.Reason)
			}
			return nil
		}),
	}
}
