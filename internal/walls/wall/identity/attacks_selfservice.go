package identity

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildSelfServiceAttacks request namespaces that must not be granted. The tests of package
// operator cover the refusals of the controller alone.
func buildSelfServiceAttacks(by, on *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	request := func(namespace, name string) *v1alpha1.TenantNamespace {
		return &v1alpha1.TenantNamespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantNamespace"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}
	}
	policy := func(rule string) attack.Stopper { return attack.ByPolicy(SelfServicePolicy, rule) }
	granted := attack.NewUpdate("forge-grant", "set the status of a TenantNamespace to granted", attack.ByRBAC,
		request(own, by.Name+"-forged"), func(r *v1alpha1.TenantNamespace) { r.Status.Tenant = by.Name })
	granted.Request.Verb, granted.Request.Subresource = attack.Patch, "status"
	all := []attack.Attack{
		makeBreach("request-namespace-elsewhere", "request a namespace in another tenant", attack.Create,
			request(on.Namespaces[0], on.Name+"-more")),
		sendAsViewer(makeBreach("viewer-requests-namespace", "request a namespace as a viewer", attack.Create,
			request(own, by.Name+"-more"))),
		sendAsViewer(makeMirror("viewer-lists-requested", "list the namespaces that one's tenant requests, as a viewer",
			attack.List, request(own, ""))),
		attack.SendOutsideTenants(own, attack.NewCreate("free-request", "request a namespace of any name", attack.Nobody,
			request("", "payments")), rbacv1.PolicyRule{
			APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"tenantnamespaces"}, Verbs: []string{"create"},
		}),
	}
	if by.MayRequest == 0 {
		all = append(all, attack.NewCreate("request-namespace-unasked",
			"request a namespace as a tenant that may not request any", policy(SelfServiceRule),
			request(own, by.Name+"-more")))
		return attack.WithReason(whySelfService, nil, all...)
	}
	all = append(all,
		// A tenant without self-service cannot create the TenantNamespace that this attack
		// changes.
		granted,
		attack.NewCreate("request-namespace-without-prefix", "request a namespace of any name", policy(RequestedNameRule),
			request(own, "payments")),
		attack.NewCreate("request-namespace-of-prefix", "request a namespace whose name begins with the tenant's name, but without a hyphen",
			policy(RequestedNameRule), request(own, by.Name+"s")),
		attack.NewCreate("request-system-namespace", "request a namespace of Kubernetes", policy(RequestedNameRule),
			request(own, metav1.NamespaceSystem)),
		attack.NewCreate("request-namespace", "request a namespace whose name begins with the tenant's name and a hyphen", attack.Nobody,
			request(own, by.Name+"-more")),
	)
	if requested := slices.Sorted(maps.Keys(by.Requested)); len(requested) > 0 {
		all = append(all, attack.NewCreate("request-namespace-in-requested",
			"request a namespace in a requested namespace", policy(SelfServiceRule), request(requested[0], by.Name+"-more")))
	}
	return attack.WithReason(whySelfService, nil, all...)
}

const whySelfService = "croft creates namespaces with rights of the whole cluster: without limits on names, a tenant " +
	"could take names of other tenants and of the platform"
