package gitops_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/gitops"
)

// These are the version of Argo CD whose CRDs the test reads, and the checksum of its
// module.
const (
	argoCDVersion = "github.com/argoproj/argo-cd/v3@v3.5.7"
	argoCDSum     = "h1:Xm1BF+I5OgDKUG3SDK49vn2/Y5AMyaNVko+/JT08gj0="
)

// TestArgoCDSchemas expects Argo CD's own CRDs to accept croft's objects and the example
// that installs the chart, and to contain every field of them. It runs in make test-all
// only: it downloads Argo CD's module. TestArgoCD checks the fields themselves.
func TestArgoCDSchemas(t *testing.T) {
	sandbox.Thorough(t)
	dir := findArgoCD(t)
	source := v1alpha1.Source{Git: "https://git.example.org/a", Branch: "main", Path: "./", Namespace: "shop"}
	tenant := &estate.Tenant{
		Name: "shop", Namespaces: []string{"shop", "shop-dev"},
		Sources: []estate.Source{{Name: "app", Source: source}},
	}
	objects := gitops.ArgoCD(&estate.Estate{Tenants: []*estate.Tenant{tenant}}, "argocd")
	for i, file := range []string{"appproject-crd.yaml", "application-crd.yaml"} {
		content, err := os.ReadFile(filepath.Join(dir, "manifests", "crds", file))
		if err != nil {
			t.Fatal(err)
		}
		o, ok := objects[i].(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("%T", objects[i])
		}
		expectAccepted(t, content, o)
		if i == 1 {
			expectAccepted(t, content, readChartExample(t))
		}
	}
	if len(objects) != 2 {
		t.Errorf("%d objects, of which 2 were looked at", len(objects))
	}
}

// readChartExample returns the example of an Application that installs croft's chart.
func readChartExample(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile("../../../examples/gitops/application.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(content, &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// findArgoCD returns the directory of Argo CD's module.
func findArgoCD(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", argoCDVersion)
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(bytes.TrimSpace(out), &module); err != nil {
		t.Fatal(err)
	}
	if module.Sum != argoCDSum {
		t.Fatalf("%s has the checksum %s, want %s", argoCDVersion, module.Sum, argoCDSum)
	}
	return module.Dir
}

// expectAccepted fails if a definition rejects an object, or lacks one of its fields.
func expectAccepted(t *testing.T, definition []byte, o *unstructured.Unstructured) {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
		t.Fatal(err)
	}
	version := crd.Spec.Versions[0]
	kind := o.GroupVersionKind()
	if crd.Spec.Group != kind.Group || crd.Spec.Names.Kind != kind.Kind || version.Name != kind.Version {
		t.Fatalf("%s is not the definition of %s", crd.Name, kind)
	}
	var schema apiextensions.JSONSchemaProps
	convert := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps
	if err := convert(version.Schema.OpenAPIV3Schema, &schema, nil); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&schema)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range validation.ValidateCustomResource(nil, o.Object, validator) {
		t.Errorf("%s %s: %s", o.GetKind(), o.GetName(), problem)
	}
	structure, err := structural.NewStructural(&schema)
	if err != nil {
		t.Fatal(err)
	}
	pruned := o.DeepCopy()
	pruning.Prune(pruned.Object, structure, true)
	if diff := cmp.Diff(o.Object, pruned.Object); diff != "" {
		t.Errorf("%s has no such fields (-printed +known):\n%s", crd.Name, diff)
	}
}
