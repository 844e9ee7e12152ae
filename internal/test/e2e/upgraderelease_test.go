package e2e

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/document"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/rules/admissionpolicy"
	"croft.dev/croft/internal/walls/wall/network"
)

// release is a released version of croft, as hack/snapshot.sh stored it.
type release struct {
	version string
	// chart is the directory of its chart.
	chart string
	// values is the content of its croft.yaml.
	values string
	// walls are the objects that its operator writes for croft.yaml.
	walls []client.Object
}

// releases is the directory of the kept releases.
const releases = "testdata/releases"

// readRelease reads a release.
func readRelease(t testing.TB, version string) *release {
	t.Helper()
	values, err := os.ReadFile(filepath.Join(releases, version, "croft.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := &release{version: version, chart: filepath.Join(t.TempDir(), "croft"), values: string(values)}
	extractArchive(t, filepath.Join(releases, version, "chart.tgz"), filepath.Dir(r.chart))
	walls, err := io.ReadAll(openGzip(t, filepath.Join(releases, version, "walls.yaml.gz")))
	if err != nil {
		t.Fatal(err)
	}
	r.walls = parseObjects(t, string(walls))
	return r
}

// openGzip opens a gzip file.
func openGzip(t testing.TB, path string) io.Reader {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return content
}

// extractArchive writes the files of an archive below a directory.
func extractArchive(t testing.TB, archive, to string) {
	t.Helper()
	for files := tar.NewReader(openGzip(t, archive)); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v", archive, err)
		}
		path := filepath.Join(to, filepath.FromSlash(header.Name))
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o750)
		}
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// parseObjects returns the objects of a stream, in its order. Namespaces are Go types, from which
// apply recognises tenants' namespaces.
func parseObjects(t testing.TB, stream string) []client.Object {
	t.Helper()
	documents, problems := document.Read("", []byte(stream))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var all []client.Object
	for _, document := range documents {
		var o client.Object = &unstructured.Unstructured{Object: document.Content}
		if o.GetObjectKind().GroupVersionKind().Kind == "Namespace" {
			o = &corev1.Namespace{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(document.Content, o); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, o)
	}
	return all
}

// These are the names of v0.0.9, a fictitious release with differences to this version.
const (
	neverReleased   = "v0.0.9"
	formerIsolation = "croft-deny"
	formerPlacement = "croft-placement"
)

// deriveFormerRelease derives an older release from another: two policies have other names, without
// which a tenant's network is open and its pods are not placed; and a policy and a field of Tenants
// do not exist yet.
func deriveFormerRelease(t testing.TB, r *release) *release {
	t.Helper()
	older := *r
	older.version = neverReleased
	older.walls = nil
	renamed := 0
	for _, o := range r.walls {
		o = o.DeepCopyObject().(client.Object)
		kind := o.GetObjectKind().GroupVersionKind().Kind
		switch {
		case strings.HasPrefix(kind, "ValidatingAdmissionPolicy") && o.GetName() == network.FloorPolicy:
			continue
		case kind == "NetworkPolicy" && o.GetName() == network.IsolationPolicy:
			o.SetName(formerIsolation)
			renamed++
		case strings.HasPrefix(kind, "MutatingAdmissionPolicy") && o.GetName() == admissionpolicy.PodsPolicy:
			o.SetName(formerPlacement)
			renamed++
			if kind == "MutatingAdmissionPolicyBinding" {
				if err := unstructured.SetNestedField(o.(*unstructured.Unstructured).Object, formerPlacement, "spec", "policyName"); err != nil {
					t.Fatal(err)
				}
			}
		}
		older.walls = append(older.walls, o)
	}
	if want := len(teams) + 2; renamed != want || len(r.walls)-len(older.walls) != 2 {
		t.Fatalf("%s differs from %s by %d renamed objects and %d missing ones; want %d and 2", neverReleased, r.version, renamed, len(r.walls)-len(older.walls), want)
	}
	edit := func(name string, change func(string) string) {
		path := filepath.Join(older.chart, name)
		was, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		is := change(string(was))
		if is == string(was) {
			t.Fatalf("nothing changed in %s", name)
		}
		if err := os.WriteFile(path, []byte(is), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	older.chart = filepath.Join(t.TempDir(), "croft")
	if err := os.CopyFS(older.chart, os.DirFS(r.chart)); err != nil {
		t.Fatal(err)
	}
	edit("Chart.yaml", strings.NewReplacer(strings.TrimPrefix(r.version, "v"), strings.TrimPrefix(neverReleased, "v")).Replace)
	edit("crds/tenants.croft.dev.yaml", func(text string) string {
		definition := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &definition); err != nil {
			t.Fatal(err)
		}
		versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
		if err != nil || len(versions) == 0 {
			t.Fatalf("the kind has the versions %v: %v", versions, err)
		}
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties", old)
		if err := unstructured.SetNestedSlice(definition, versions, "spec", "versions"); err != nil {
			t.Fatal(err)
		}
		without, err := yaml.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		return string(without)
	})
	return &older
}

// applyWalls writes the walls like the operator of a release: it applies them, and then deletes
// the walls of other versions. The binary of a release is not kept, but its objects are.
func (r *release) applyWalls(t testing.TB, c *cluster) {
	t.Helper()
	config, err := c.ConfigFor(admissionpolicy.OperatorUser, "system:serviceaccounts", "system:serviceaccounts:"+v1alpha1.SystemNamespace)
	if err != nil {
		t.Fatal(err)
	}
	applier := apply.New(newClient(t, config))
	// v0.1.0 has no rights to ConfigMaps.
	tenantKinds := slices.DeleteFunc(slices.Clone(apply.TenantKinds), func(k schema.GroupVersionKind) bool { return k.Kind == "ConfigMap" })
	awaitCondition(t, patience, "the walls of "+r.version, func(ctx context.Context) error {
		if _, err := applier.Apply(ctx, r.walls...); err != nil {
			return err
		}
		var errs []error
		prune := func(owner apply.Owner, namespace string, kinds ...[]schema.GroupVersionKind) {
			_, err := applier.Prune(ctx, owner, namespace, r.walls, slices.Concat(kinds...)...)
			errs = append(errs, err)
		}
		prune(apply.OfPlatform(), "", apply.PlatformKinds, apply.NativePlatformKinds)
		for _, team := range teams {
			prune(apply.OfPool(team.pool), "", apply.PoolKinds)
			prune(apply.OfAnyTenant(), team.tenant, tenantKinds)
		}
		return errors.Join(errs...)
	})
}

// listRefs returns the references of the walls.
func (r *release) listRefs() map[apply.Ref]bool {
	all := map[apply.Ref]bool{}
	for _, o := range r.walls {
		all[apply.RefOf(o)] = true
	}
	return all
}
