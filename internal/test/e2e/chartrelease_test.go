package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/test/sandbox"
)

// TestChart installs, upgrades, rolls back and uninstalls the chart as a platform team does.
// The operator runs as the chart's Deployment specifies, with the rights of the chart's service
// account and no others.
func TestChart(t *testing.T) {
	sandbox.Thorough(t) // it needs bin/helm; TestTwoTenants tests the same objects from croft install
	c := startSandbox(t, sandbox.Options{Components: append(slices.Clone(sandbox.WithControllers), "karpenter")})
	c.env = append(c.env, "KUBECONFIG="+c.Kubeconfig)
	// The sandbox comes with the CRDs: unless they are deleted, the chart's own are not
	// installed.
	c.runKubectl(t, "", append([]string{"delete", "crd"}, listChartKinds(t)...)...).expectExit(t, 0)
	pods := c.runPods(t)
	values := readRepositoryFile(t, getExamplePath("two-tenants.yaml"))
	release := func(command string, args ...string) outcome {
		return runHelm(t, c.env, append([]string{command, "croft"}, args...)...).expectExit(t, 0)
	}
	with := func(values string) []string {
		return append([]string{chart, "-f", writeTempFile(t, values), "--wait", "--timeout", patience.String()}, chartImageValues...)
	}

	release("install", with(values)...)
	if ran := pods.listStarted(); !slices.Equal(ran, []string{"croft " + chartImage, "croft " + chartImage}) {
		t.Errorf("the pods that ran are %v", ran)
	}
	for _, team := range teams {
		c.awaitTenantReady(t, team.tenant)
	}
	c.expectWallsHold(t)
	expectOutput(t, c.runCroft(t, "install").expectExit(t, 1), "release croft in namespace default")
	uids := c.listNamespaceUIDs(t)

	t.Run("upgrade", func(t *testing.T) {
		c.removeField(t) // like the CRD of an older version
		release("upgrade", with(strings.Replace(values, "  tenant-a:\n", "  tenant-a:\n    costCode: org7\n    namespaces: [tenant-a, tenant-a-ci]\n", 1))...)
		if ran := pods.listStarted(); !slices.Contains(ran, "croft-kinds "+chartImage) {
			t.Errorf("no Job has upgraded the kinds: %v", ran)
		}
		if missing := c.isFieldMissing(t); missing {
			t.Error("the kinds are as they were")
		}
		c.awaitTenantReady(t, teams[0].tenant)
		for _, name := range []string{"tenant-a", "tenant-a-ci"} {
			namespace := &corev1.Namespace{}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: name}, namespace); err != nil || namespace.Labels[v1alpha1.CostCodeLabel] != "org7" {
				t.Errorf("what is new of a tenant: namespace %s has labels %v: %v", name, namespace.Labels, err)
			}
		}
	})
	t.Run("rollback", func(t *testing.T) {
		release("rollback", "1", "--wait", "--timeout", patience.String())
		c.awaitTenantReady(t, teams[0].tenant)
		tenant := &v1alpha1.Tenant{}
		if err := c.admin.Get(t.Context(), client.ObjectKey{Name: teams[0].tenant}, tenant); err != nil {
			t.Fatal(err)
		}
		if len(tenant.Spec.Namespaces) > 0 {
			t.Errorf("the tenant's namespaces are %v, as before the rollback", tenant.Spec.Namespaces)
		}
		if c.isFieldMissing(t) {
			t.Error("the kinds are older than what is stored")
		}
	})
	t.Run("uninstall", func(t *testing.T) {
		release("uninstall", "--wait", "--timeout", patience.String())
		awaitCondition(t, moments, "the operator to go", func(ctx context.Context) error {
			err := c.admin.Get(ctx, client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: "croft"}, &appsv1.Deployment{})
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %w", err)
			}
			return nil
		})
		for _, team := range teams {
			tenant := &v1alpha1.Tenant{}
			if err := c.admin.Get(t.Context(), client.ObjectKey{Name: team.tenant}, tenant); err != nil || tenant.DeletionTimestamp != nil {
				t.Errorf("tenant %s is not kept: %v", team.tenant, err)
			}
			var policies networkingv1.NetworkPolicyList
			if err := c.admin.List(t.Context(), &policies, client.InNamespace(team.tenant)); err != nil || len(policies.Items) == 0 {
				t.Errorf("%d network policies stand in %s: %v", len(policies.Items), team.tenant, err)
			}
		}
		for name, uid := range c.listNamespaceUIDs(t) {
			if was, ok := uids[name]; ok && was != uid {
				t.Errorf("namespace %s is another one", name)
			}
			delete(uids, name)
		}
		if len(uids) > 0 {
			t.Errorf("namespaces went: %v", uids)
		}
		c.expectWallsHold(t)
	})
	t.Run("install again", func(t *testing.T) {
		// The CRDs still exist, and croft-kinds has written them since Helm did.
		newer := append([]string{c.copyNewerChart(t)}, with(values)[1:]...)
		conflict := runHelm(t, c.env, append([]string{"install", "croft"}, newer...)...).expectExit(t, 1)
		expectOutput(t, conflict, `conflict with "croft"`)
		release("install", append(newer, "--force-conflicts")...)
		for _, team := range teams {
			c.awaitTenantReady(t, team.tenant)
		}
	})
	t.Run("take the walls down", c.uninstallByNotes)
}

// copyNewerChart returns a copy of the chart in which a CRD has another description.
func (c *cluster) copyNewerChart(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "croft")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, chart))); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("crds", "tenants.croft.dev.yaml")
	definition := readRepositoryFile(t, filepath.Join(chart, file))
	newer := strings.Replace(definition, "description: ", "description: In a newer version, ", 1)
	if newer == definition {
		t.Fatal("the kind has no description")
	}
	if err := os.WriteFile(filepath.Join(dir, file), []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// listChartKinds returns the names of the chart's CRDs.
func listChartKinds(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, chart, "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the chart has no definitions: %v", err)
	}
	for i := range files {
		files[i] = strings.TrimSuffix(filepath.Base(files[i]), ".yaml")
	}
	return files
}

// uninstallByNotes follows the chart's notes, and fails if an object of croft is left.
func (c *cluster) uninstallByNotes(t *testing.T) {
	notes := runHelm(t, c.env, "get", "notes", "croft").expectExit(t, 0).stdout
	commands := 0
	for line := range strings.Lines(notes) {
		line, _, _ = strings.Cut(line, "#")
		switch words := strings.Fields(line); {
		case strings.HasPrefix(line, "  kubectl delete"):
			commands++
			c.runKubectl(t, "", words[1:]...).expectExit(t, 0)
		case strings.HasPrefix(line, "  helm uninstall"):
			commands++
			runHelm(t, c.env, append(words[1:], "--wait", "--timeout", patience.String())...).expectExit(t, 0)
		}
	}
	if commands < 8 {
		t.Fatalf("the notes have only %d commands:\n%s", commands, notes)
	}
	// Namespaces are kept on purpose. croft's CRDs are deleted, but kubectl may have them
	// cached.
	kinds := c.runKubectl(t, "", "api-resources", "--verbs=list,delete", "-o", "name").expectExit(t, 0).stdout
	all := strings.Join(slices.DeleteFunc(strings.Fields(kinds), func(kind string) bool {
		return kind == "namespaces" || strings.HasSuffix(kind, "."+v1alpha1.GroupVersion.Group)
	}), ",")
	left := c.runKubectl(t, "", "get", all, "-A", "-l", "app.kubernetes.io/managed-by=croft", "-o", "name").expectExit(t, 0)
	if left.stdout != "" {
		t.Errorf("what is left of croft:\n%s", left.stdout)
	}
}

// awaitTenantReady waits until a tenant is Ready.
func (c *cluster) awaitTenantReady(t testing.TB, name string) {
	t.Helper()
	awaitCondition(t, patience, "tenant "+name+" to be Ready", func(ctx context.Context) error {
		tenant := &v1alpha1.Tenant{}
		if err := c.admin.Get(ctx, client.ObjectKey{Name: name}, tenant); err != nil {
			return err
		}
		for _, condition := range tenant.Status.Conditions {
			if condition.Type == v1alpha1.ConditionReady && condition.Status == "True" && condition.ObservedGeneration == tenant.Generation {
				return nil
			}
		}
		return fmt.Errorf("%+v", tenant.Status.Conditions)
	})
}

// expectWallsHold fails unless attacks from inside each tenant are refused and legitimate requests
// succeed.
func (c *cluster) expectWallsHold(t testing.TB) {
	t.Helper()
	for _, team := range teams {
		c.runCroft(t, "verify", "--tenant", team.tenant, "--attack", "tolerate-later,run-a-pod,be-called-by-other-tenant").expectExit(t, 0)
	}
}

// old is a field of Tenants that the CRD of an older version does not have.
const old = "costCode"

// removeField removes the field from the CRD.
func (c *cluster) removeField(t testing.TB) {
	t.Helper()
	patch := `[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/` + old + `"}]`
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "tenants.croft.dev"
	if err := c.admin.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
	if !c.isFieldMissing(t) {
		t.Fatal("the kind is not older")
	}
}

// isFieldMissing reports whether the CRD lacks the field.
func (c *cluster) isFieldMissing(t testing.TB) bool {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := c.admin.Get(t.Context(), client.ObjectKey{Name: "tenants.croft.dev"}, definition); err != nil {
		t.Fatal(err)
	}
	_, has := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[old]
	return !has
}

// TestChartFromGit fails if Flux's CRDs refuse the example that installs the chart.
// TestArgoCDSchemas tests the example for Argo CD.
func TestChartFromGit(t *testing.T) {
	sandbox.Thorough(t) // it downloads the definitions
	t.Parallel()
	c := startSandbox(t, sandbox.Options{Components: sandbox.APIOnly})
	if err := c.InstallCRDs(t.Context(), sandbox.Flux); err != nil {
		t.Fatal(err)
	}
	createObjects(t, c.admin, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}})
	c.runKubectl(t, "", "apply", "--server-side", "--validate=strict", "-f", getExamplePath("gitops/helmrelease.yaml")).expectExit(t, 0)
}
