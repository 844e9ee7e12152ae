package identity

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/rules/attack"
)

// buildCallerAttacks consent to connections in the name of another tenant, or of the operator. The network
// wall has the attacks on the connections themselves.
func buildCallerAttacks(by, on *estate.Tenant) []attack.Attack {
	own := by.Namespaces[0]
	caller := func(namespace, name, tenant string) *v1alpha1.TenantCaller {
		return &v1alpha1.TenantCaller{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "TenantCaller"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       v1alpha1.TenantCallerSpec{Tenant: tenant, Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}},
		}
	}
	// The operator opens a connection only with these two fields.
	forged := attack.NewUpdate("forge-consent", "record the two tenants in the status of a TenantCaller", attack.ByRBAC,
		caller(own, "croft-verify-forged", on.Name), func(o *v1alpha1.TenantCaller) { o.Status.Giver, o.Status.Receiver = by.Name, on.Name })
	forged.Request.Verb, forged.Request.Subresource = attack.Patch, "status"
	return attack.WithReason("a consent opens a tenant's pods to another tenant", nil,
		makeBreach("accept-caller-elsewhere", "accept oneself as a caller, in another tenant's namespace", attack.Create,
			caller(on.Namespaces[0], "croft-verify-accepted", by.Name)),
		makeBreach("list-callers-elsewhere", "list the TenantCallers of another tenant", attack.List, caller(on.Namespaces[0], "", by.Name)),
		sendAsViewer(makeBreach("viewer-accepts-caller", "accept a caller as a viewer", attack.Create, caller(own, "croft-verify-accepted", on.Name))),
		sendAsViewer(makeBreach("viewer-withdraws-consent", "delete a TenantCaller as a viewer", attack.Delete, caller(own, "croft-verify-accepted", on.Name))),
		forged,
		sendAsViewer(makeMirror("viewer-lists-callers", "list the TenantCallers of one's own namespace, as a viewer", attack.List, caller(own, "", on.Name))),
		makeMirror("accept-caller", "accept a caller in one's own namespace", attack.Create, caller(own, "croft-verify-accepted", on.Name)),
	)
}
