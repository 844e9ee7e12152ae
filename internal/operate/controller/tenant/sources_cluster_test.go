package tenant_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/gitops"
)

// TestSources declares a source before Flux is installed: the walls and people's access are
// written, and the Tenant reports the missing kind. Once the cluster serves Flux' kinds,
// croft's objects are written and admitted. The tenant's people cannot change them; Flux'
// controllers can. It belongs to the second tier: it needs a control plane, but not Flux.
func TestSources(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	f := &fixture{operatortest.Start(t, sandbox.WithControllers)}
	stop := f.Operate()
	defer stop()
	shop := operatortest.NewTenant("shop", "apps")
	shop.Spec.Namespaces = []string{"shop", "shop-dev"}
	// kube-controller-manager takes up to five minutes to count kinds that were installed
	// later. Until then a quota refuses their objects.
	shop.Spec.Quota = corev1.ResourceList{}
	shop.Spec.Sources = map[string]v1alpha1.Source{
		"app":   {Git: "https://git.example.org/shop/deploy", Path: "./deploy"},
		"tools": {OCI: "oci://registry.example.org/shop/tools", Namespace: "shop-dev"},
	}
	f.Create(operatortest.NewPlatform(), operatortest.NewPool("apps"), shop)
	c := f.AwaitCondition(shop, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonApplyFailed)
	if !strings.Contains(c.Message, "does not know the kind GitRepository") || !strings.Contains(c.Message, "install Flux") {
		t.Errorf("the Tenant has the message %q; want it to name the kind and the fix", c.Message)
	}
	f.Await("people's access", func() string {
		if f.CountBindings("shop") < 2 {
			return "no RoleBindings"
		}
		return ""
	})

	if err := f.Cluster.InstallCRDs(t.Context(), sandbox.Flux); err != nil {
		t.Fatal(err)
	}
	f.AwaitReady(shop)
	kustomization := f.awaitFluxObject(gitops.Kustomization, "shop", "croft-app")
	repository := f.awaitFluxObject(gitops.GitRepository, "shop", "croft-app")
	f.awaitFluxObject(gitops.Kustomization, "shop-dev", "croft-tools")
	f.awaitFluxObject(gitops.OCIRepository, "shop-dev", "croft-tools")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: gitops.Deployer}}

	person := f.Impersonate("ann", "shop-devs", "system:authenticated")
	for _, try := range []struct {
		name, patch string
		object      client.Object
	}{
		{"another service account", `{"spec":{"serviceAccountName":"default"}}`, kustomization},
		{"another namespace", `{"spec":{"targetNamespace":"shop-dev"}}`, kustomization},
		{"another repository", `{"spec":{"url":"https://git.example.org/mine"}}`, repository},
		{"no mark", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":null}}}`, kustomization},
		{"a token for pods", `{"automountServiceAccountToken":true}`, account},
	} {
		err := person.Patch(t.Context(), try.object.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, []byte(try.patch)))
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "[managed-objects]") {
			t.Errorf("%s: %v; want it refused by [managed-objects]", try.name, err)
		}
	}
	for _, o := range []client.Object{kustomization, repository, account} {
		if err := person.Delete(t.Context(), o.DeepCopyObject().(client.Object)); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "[managed-objects]") {
			t.Errorf("delete %T %s: %v; want it refused by [managed-objects]", o, o.GetName(), err)
		}
	}

	// Flux' own manifests bind its controllers like this.
	const controller = "system:serviceaccount:flux-system:kustomize-controller"
	f.Create(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-reconciler"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: controller}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	})
	flux := f.Impersonate(controller, "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:flux-system")
	f.Await("Flux' finalizer", func() string {
		err := flux.Patch(t.Context(), kustomization.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["finalizers.fluxcd.io"]}}`)))
		if err != nil {
			return err.Error()
		}
		return ""
	})

	// The deployer has the operator's rights in the tenant's namespaces only.
	deployer := f.Impersonate("system:serviceaccount:shop:"+gitops.Deployer, "system:authenticated", "system:serviceaccounts", "system:serviceaccounts:shop")
	for _, ns := range []string{"shop", "shop-dev"} {
		if err := deployer.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "settings"}}); err != nil {
			t.Error(err)
		}
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
		operatortest.NewNamespace("mine"),
	} {
		if err := deployer.Create(t.Context(), o); !apierrors.IsForbidden(err) {
			t.Errorf("the deployer creates %T: %v; want it forbidden", o, err)
		}
	}

	f.Patch(kustomization, `{"metadata":{"finalizers":null}}`)
	f.Patch(shop, `{"spec":{"sources":null}}`)
	f.AwaitReady(shop)
	for _, o := range []client.Object{kustomization, repository, account} {
		f.AwaitDeletion(o)
	}
}

// awaitFluxObject waits for a Flux object.
func (f *fixture) awaitFluxObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	f.Helper()
	o := f.newFluxObject(kind, namespace, name)
	f.Await(kind.Kind+" "+name, func() string {
		if err := f.Client.Get(f.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); err != nil {
			return err.Error()
		}
		return ""
	})
	return o
}

// newFluxObject returns a Flux object with nothing but its name.
func (f *fixture) newFluxObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}
