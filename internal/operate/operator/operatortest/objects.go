package operatortest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
)

// NewPlatform returns a Platform whose nodes are simulated.
func NewPlatform() *v1alpha1.Platform {
	return &v1alpha1.Platform{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.PlatformName},
		Spec: v1alpha1.PlatformSpec{
			ClusterName: "demo", TenantDomain: "tenants.example.org", NodeClass: v1alpha1.NodeClass{Kwok: &v1alpha1.KwokNodeClass{}},
		},
	}
}

// NewPool returns a Pool with defaults.
func NewPool(name string) *v1alpha1.Pool {
	return &v1alpha1.Pool{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// NewTenant returns a Tenant whose group, named after it with the suffix -devs, has the role
// operator.
func NewTenant(name, pool string) *v1alpha1.Tenant {
	return &v1alpha1.Tenant{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TenantSpec{Pool: pool, Access: []v1alpha1.Access{{Group: name + "-devs", Role: v1alpha1.RoleOperator}}},
	}
}

// NewNamespace returns a Namespace.
func NewNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// NewTenantNamespace returns a request for a namespace, in the namespace anchor.
func NewTenantNamespace(anchor, name string) *v1alpha1.TenantNamespace {
	return &v1alpha1.TenantNamespace{ObjectMeta: metav1.ObjectMeta{Namespace: anchor, Name: name}}
}

// NewTenantCaller returns a consent to connections from a tenant on port 443 of a namespace's pods.
func NewTenantCaller(namespace, name, tenant string) *v1alpha1.TenantCaller {
	return &v1alpha1.TenantCaller{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.TenantCallerSpec{Tenant: tenant, Ports: v1alpha1.ConsentPorts{intstr.FromInt32(443)}},
	}
}

// Create creates objects.
func (f *Fixture) Create(objects ...client.Object) {
	f.Helper()
	for _, o := range objects {
		if err := f.Client.Create(f.Context(), o); err != nil {
			f.Fatal(err)
		}
	}
}

// Delete deletes an object.
func (f *Fixture) Delete(o client.Object) {
	f.Helper()
	if err := f.Client.Delete(f.Context(), o); err != nil {
		f.Fatal(err)
	}
}

// Patch changes an object by a merge patch, as the field manager "somebody".
func (f *Fixture) Patch(o client.Object, patch string) {
	f.Helper()
	if err := f.Client.Patch(f.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")); err != nil {
		f.Fatal(err)
	}
}

// PatchStatus changes an object's status by a merge patch.
func (f *Fixture) PatchStatus(o client.Object, patch string) {
	f.Helper()
	if err := f.Client.Status().Patch(f.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		f.Fatal(err)
	}
}

// MoveEnd moves the end of an elevation into the past.
func (f *Fixture) MoveEnd(e *v1alpha1.Elevation, ago time.Duration) {
	f.Helper()
	f.PatchStatus(e, `{"status":{"until":"`+time.Now().Add(-ago).UTC().Format(time.RFC3339)+`"}}`)
}

// CountBindings returns the number of RoleBindings in a namespace.
func (f *Fixture) CountBindings(namespace string) int {
	f.Helper()
	var list rbacv1.RoleBindingList
	if err := f.Client.List(f.Context(), &list, client.InNamespace(namespace)); err != nil {
		f.Fatal(err)
	}
	return len(list.Items)
}

// ListPolicies returns the NetworkPolicies in a namespace.
func (f *Fixture) ListPolicies(namespace string) []networkingv1.NetworkPolicy {
	f.Helper()
	var list networkingv1.NetworkPolicyList
	if err := f.Client.List(f.Context(), &list, client.InNamespace(namespace)); err != nil {
		f.Fatal(err)
	}
	return list.Items
}
