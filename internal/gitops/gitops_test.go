package gitops_test

import (
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/estate"
	"croft.dev/croft/internal/gitops"
)

// TestObjects wants of each source the kinds that it needs, in its namespace. It is of
// the first tier, as all tests of this package: it runs without a control plane.
func TestObjects(t *testing.T) {
	git := v1alpha1.Source{Git: "https://git.example.org/a", Branch: "main", Path: "./", Interval: "1m", Timeout: "5m", Namespace: "shop"}
	hooked := git
	hooked.Webhook = &v1alpha1.SourceWebhook{Type: "github", SecretRef: v1alpha1.SourceSecret{Name: "hook"}}
	dev := v1alpha1.Source{OCI: "oci://registry.example.org/a", Tag: "latest", Path: "./", Interval: "1m", Timeout: "5m", Namespace: "shop-dev"}
	for _, test := range []struct {
		name    string
		sources []estate.Source
		want    []string
	}{
		{"none", nil, nil},
		{"a repository", []estate.Source{{Name: "app", Source: git}}, []string{
			"ServiceAccount shop/croft-deployer", "RoleBinding shop/croft-deployer", "RoleBinding shop-dev/croft-deployer",
			"GitRepository shop/croft-app", "Kustomization shop/croft-app"}},
		{"one that calls", []estate.Source{{Name: "app", Source: hooked}}, []string{
			"ServiceAccount shop/croft-deployer", "RoleBinding shop/croft-deployer", "RoleBinding shop-dev/croft-deployer",
			"GitRepository shop/croft-app", "Kustomization shop/croft-app", "Receiver shop/croft-app"}},
		{"in two namespaces", []estate.Source{{Name: "app", Source: git}, {Name: "dev", Source: dev}}, []string{
			"ServiceAccount shop/croft-deployer", "ServiceAccount shop-dev/croft-deployer", "RoleBinding shop/croft-deployer", "RoleBinding shop-dev/croft-deployer",
			"GitRepository shop/croft-app", "Kustomization shop/croft-app", "OCIRepository shop-dev/croft-dev", "Kustomization shop-dev/croft-dev"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := &estate.Tenant{Name: "shop", Namespaces: []string{"shop", "shop-dev"}, Sources: test.sources}
			var got []string
			for _, o := range gitops.Objects(tenant, "croft-operator") {
				got = append(got, fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()))
				holds(t, tenant, o)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v\nwant %v", got, test.want)
			}
		})
	}
}

// holds fails if Flux would apply as anybody else, anywhere else, or from anywhere else.
func holds(t *testing.T, tenant *estate.Tenant, o client.Object) {
	t.Helper()
	if !slices.Contains(tenant.Namespaces, o.GetNamespace()) {
		t.Errorf("%s is in %s, which is not the tenant's", o.GetName(), o.GetNamespace())
	}
	switch o := o.(type) {
	case *rbacv1.RoleBinding:
		if o.RoleRef.Name != "croft-operator" {
			t.Errorf("the deployer has the role %s", o.RoleRef.Name)
		}
		for _, s := range o.Subjects {
			if s.Kind != rbacv1.ServiceAccountKind || s.Name != gitops.Deployer || !slices.Contains(tenant.Namespaces, s.Namespace) {
				t.Errorf("%v has the deployer's rights", s)
			}
		}
	case *unstructured.Unstructured:
		if o.GroupVersionKind() != gitops.Kustomization {
			return
		}
		spec, _ := o.Object["spec"].(map[string]any)
		if spec["serviceAccountName"] != gitops.Deployer || spec["targetNamespace"] != o.GetNamespace() || spec["prune"] != true || spec["deletionPolicy"] != "Orphan" {
			t.Errorf("the Kustomization %s says %v", o.GetName(), spec)
		}
		ref, _ := spec["sourceRef"].(map[string]any)
		if _, crosses := ref["namespace"]; crosses || spec["kubeConfig"] != nil {
			t.Errorf("the Kustomization %s reaches beyond its namespace or its cluster: %v", o.GetName(), spec)
		}
	}
}
