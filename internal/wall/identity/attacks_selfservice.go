package identity

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/attack"
	"croft.dev/croft/internal/estate"
)

// selfServiceAttacks request namespaces that must not be granted. The tests of package
// operator cover the refusals of the controller alone.
func selfServiceAttacks(by, on *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	request := func(namespace, name string) *v1alpha1.TenantNamespace {
		return &v1alpha1.TenantNamespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantNamespace"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}
	}
	policy := func(rule string) attack.Stopper { return attack.ByPolicy(SelfServicePolicy, rule) }
	granted := attack.Changing("forge-grant", "write into a TenantNamespace that it is granted", attack.ByRBAC,
		request(own, by.Name+"-forged"), func(r *v1alpha1.TenantNamespace) { r.Status.Tenant = by.Name })
	granted.Request.Verb, granted.Request.Subresource = attack.Patch, "status"
	all := []attack.Attack{
		breach("request-namespace-elsewhere", "ask for a namespace in another tenant", attack.Create,
			request(on.Namespaces[0], on.Name+"-more")),
		asViewer(breach("viewer-requests-namespace", "ask for a namespace as a viewer", attack.Create,
			request(own, by.Name+"-more"))),
		asViewer(mirror("viewer-lists-requested", "list the namespaces that one's tenant asks for, as a viewer",
			attack.List, request(own, ""))),
		attack.InNobodys(own, attack.Creating("free-request", "ask for a namespace of any name", attack.Nobody,
			request("", "payments")), rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantnamespaces"}, Verbs: []string{"create"},
		}),
	}
	if by.MayRequest == 0 {
		all = append(all, attack.Creating("request-namespace-unasked",
			"ask for a namespace as a tenant that may have none of its own", policy(SelfServiceRule),
			request(own, by.Name+"-more")))
		return attack.Because(whySelfService, nil, all...)
	}
	all = append(all,
		// A tenant without self-service cannot create the TenantNamespace that this attack
		// changes.
		granted,
		attack.Creating("request-namespace-without-prefix", "ask for a namespace of any name", policy(RequestedNameRule),
			request(own, "payments")),
		attack.Creating("request-namespace-of-prefix", "ask for a namespace of which the tenant's name is the beginning",
			policy(RequestedNameRule), request(own, by.Name+"s")),
		attack.Creating("request-system-namespace", "ask for a namespace of Kubernetes", policy(RequestedNameRule),
			request(own, metav1.NamespaceSystem)),
		attack.Creating("request-namespace", "ask for a namespace that begins with the tenant's name", attack.Nobody,
			request(own, by.Name+"-more")),
	)
	if requested := slices.Sorted(maps.Keys(by.Requested)); len(requested) > 0 {
		all = append(all, attack.Creating("request-namespace-in-requested",
			"ask for a namespace in one that was asked for", policy(SelfServiceRule), request(requested[0], by.Name+"-more")))
	}
	return attack.Because(whySelfService, nil, all...)
}

const whySelfService = "croft creates namespaces with rights of the whole cluster: without limits on names, a tenant " +
	"could take other tenants' and the platform's"
