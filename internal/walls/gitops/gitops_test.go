package gitops_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/walls/gitops"
)

// TestObjects expects the required kinds for each source, in its namespace. All tests of
// this package run without a control plane.
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
			for _, o := range gitops.Objects(&estate.Platform{}, tenant, "croft-operator") {
				got = append(got, fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName()))
				expectConfined(t, tenant, o)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v\nwant %v", got, test.want)
			}
		})
	}
}

// expectConfined fails if Flux would apply as another user, to another namespace, or from another
// source.
func expectConfined(t *testing.T, tenant *estate.Tenant, o client.Object) {
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
			t.Errorf("the spec of the Kustomization %s is %v", o.GetName(), spec)
		}
		ref, _ := spec["sourceRef"].(map[string]any)
		if _, crosses := ref["namespace"]; crosses || spec["kubeConfig"] != nil {
			t.Errorf("the Kustomization %s reaches beyond its namespace or its cluster: %v", o.GetName(), spec)
		}
	}
}

// TestArgoCD expects for each tenant with sources a project with only its repositories and
// namespaces, and Applications of that project that are applied with the tenant's service
// account. It needs no control plane.
func TestArgoCD(t *testing.T) {
	app := v1alpha1.Source{Git: "https://git.example.org/a", Branch: "main", Path: "./", Namespace: "shop"}
	dev := v1alpha1.Source{Git: "https://git.example.org/a", Tag: "v1", Path: "./deploy", Namespace: "shop-dev"}
	platform := &estate.Platform{}
	platform.GitOps = v1alpha1.GitOpsArgoCD
	shop := &estate.Tenant{Name: "shop", Namespaces: []string{"shop", "shop-dev", "shop-test"}, Sources: []estate.Source{{Name: "app", Source: app}, {Name: "dev", Source: dev}}}
	// Joined by hyphens, these names would be the same.
	a := &estate.Tenant{Name: "a", Namespaces: []string{"a"}, Sources: []estate.Source{{Name: "b-c", Source: v1alpha1.Source{Git: app.Git, Branch: "b", Path: "./", Namespace: "a"}}}}
	ab := &estate.Tenant{Name: "a-b", Namespaces: []string{"a-b"}, Sources: []estate.Source{{Name: "c", Source: v1alpha1.Source{Git: app.Git, Branch: "b", Path: "./", Namespace: "a-b"}}}}
	without := &estate.Tenant{Name: "without", Namespaces: []string{"without"}}

	if kinds := gitops.Kinds(platform, shop); len(kinds) > 0 {
		t.Errorf("the operator needs %v", kinds)
	}
	for _, o := range gitops.Objects(platform, shop, "croft-operator") {
		if _, ok := o.(*unstructured.Unstructured); ok {
			t.Errorf("the operator writes %s %s", o.GetObjectKind().GroupVersionKind().Kind, o.GetName())
		}
	}

	names, projects := map[string]bool{}, map[string]map[string]any{}
	applications := 0
	for _, o := range gitops.ArgoCD(&estate.Estate{Platform: *platform, Tenants: []*estate.Tenant{a, ab, shop, without}}, "argocd") {
		u, ok := o.(*unstructured.Unstructured)
		if !ok || u.GetNamespace() != "argocd" || names[u.GetKind()+u.GetName()] || len(u.GetFinalizers()) > 0 {
			t.Fatalf("%s %s/%s is there twice, is elsewhere, or would delete what it has applied", u.GetKind(), u.GetNamespace(), u.GetName())
		}
		names[u.GetKind()+u.GetName()] = true
		spec, _ := u.Object["spec"].(map[string]any)
		if u.GroupVersionKind() == gitops.AppProject {
			projects[u.GetName()] = spec
			continue
		}
		applications++
		project, _ := spec["project"].(string)
		expectAdmitted(t, u.GetName(), projects[project], spec)
	}
	if len(projects) != 3 || applications != 4 {
		t.Errorf("%d projects and %d Applications, want 3 and 4", len(projects), applications)
	}
	const server = "https://kubernetes.default.svc"
	to := func(ns string) any { return map[string]any{"server": server, "namespace": ns} }
	as := func(ns string) any {
		return map[string]any{"server": server, "namespace": ns, "defaultServiceAccount": gitops.Deployer}
	}
	want := map[string]any{
		"description": "Sources of tenant shop", "sourceRepos": []any{app.Git}, "clusterResourceWhitelist": []any{},
		"destinations":               []any{to("shop"), to("shop-dev"), to("shop-test")},
		"destinationServiceAccounts": []any{as("shop"), as("shop-dev")},
	}
	if diff := cmp.Diff(want, projects["croft-shop"]); diff != "" {
		t.Errorf("the project of shop (-want +got):\n%s", diff)
	}
}

// expectAdmitted fails if an Application reaches beyond its project, or has no service account
// there.
func expectAdmitted(t *testing.T, name string, project, spec map[string]any) {
	t.Helper()
	within := func(list, field string, of any) bool {
		entries, _ := project[list].([]any)
		return slices.ContainsFunc(entries, func(entry any) bool {
			m, ok := entry.(map[string]any)
			return ok && m[field] == of
		})
	}
	source, _ := spec["source"].(map[string]any)
	destination, _ := spec["destination"].(map[string]any)
	repositories, _ := project["sourceRepos"].([]any)
	if !slices.Contains(repositories, source["repoURL"]) || !within("destinations", "namespace", destination["namespace"]) ||
		!within("destinationServiceAccounts", "namespace", destination["namespace"]) {
		t.Errorf("the Application %s is not of its project %v: %v", name, project, spec)
	}
}
