package cli_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/test/sandbox"
)

// skewedCluster is a cluster whose operator has another version than croft.
type skewedCluster struct {
	*sandbox.Cluster
	admin client.Client
}

// TestVersions fails if an older croft overwrites a newer one's objects without permission,
// if the difference of versions is not reported, if a dry run of install writes or leaves
// out an object, or if a downgrade replaces the kinds.
func TestVersions(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	admin, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	s := &skewedCluster{cluster, admin}
	was := version.Version
	t.Cleanup(func() { version.Version = was })

	version.Version = "v0.1.0"
	if sandbox.All() {
		s.testNewCluster(t)
	}
	s.expectCroft(t, "install --image croft:v0.1.0", 0)
	s.expectCroft(t, "install --image croft:v0.1.0 --dry-run", 0, "0 objects would be created, 0 changed")
	s.expectCroft(t, "install --image croft:v0.2.0 --dry-run", 0, "-        image: croft:v0.1.0", "+        image: croft:v0.2.0", "0 objects would be created, 1 changed")
	file := writeConfig(t, good)
	s.expectCroft(t, "apply --wait=false -f "+file, 0)
	s.expectCroft(t, "version", 0, "croft v0.1.0", "operator unknown: no operator has run yet")

	s.writeHeartbeat(t, "v0.2.0")
	s.removeField(t)
	newer := "the operator is croft v0.2.0, and this is the older croft v0.1.0"
	s.expectCroft(t, "version", 0, "operator v0.2.0", "this croft is v0.1.0, and the operator is v0.2.0: use the operator's version of croft")
	s.expectCroft(t, "version -o json", 0, `"operator": "v0.2.0"`, `"skew": "this croft is`)
	s.expectCroft(t, "version --client", 0, "croft v0.1.0")
	s.expectCroft(t, "status", 1, "SKEW       this croft is v0.1.0, and the operator is v0.2.0")
	s.expectCroft(t, "doctor", 1, "use croft v0.2.0 here")
	for _, command := range []string{"install --image croft:v0.1.0", "install --image croft:v0.1.0 --dry-run", "install --kinds", "apply --wait=false -f " + file} {
		s.expectCroft(t, command, 1, newer, "--allow-downgrade")
	}
	for _, command := range []string{"install --image croft:v0.0.9", "install --kinds", "apply --wait=false -f " + file} {
		s.expectCroft(t, command+" --allow-downgrade", 0)
	}
	if s.hasField(t) {
		t.Error("a downgrade has changed the kinds")
	}

	s.writeHeartbeat(t, "v0.1.1")
	s.expectCroft(t, "apply --wait=false -f "+file, 0)
	s.expectCroft(t, "install --image croft:v0.1.0", 1, "the operator is croft v0.1.1")

	version.Version = "v0.3.0"
	s.expectCroft(t, "status", 1, "SKEW", "upgrade the operator")
	s.expectCroft(t, "apply --wait=false -f "+file, 0)
	s.expectCroft(t, "install --kinds --dry-run", 0, "+              "+field+":", "0 objects would be created, 1 changed")
	s.expectCroft(t, "install --image croft:v0.3.0", 0)
	if !s.hasField(t) {
		t.Error("an upgrade has not changed the kinds")
	}
}

// testNewCluster deletes croft's kinds, which the sandbox installs, and fails if a dry run of
// install needs them or writes an object.
func (s *skewedCluster) testNewCluster(t *testing.T) {
	t.Helper()
	s.deleteKinds(t)
	s.expectCroft(t, "install --image croft:v0.1.0 --dry-run", 0, "+  name: croft-pods", "nothing was written")
	s.expectCroft(t, "status", 1, "this cluster does not know croft's kinds") // the dry run has not written the kinds
	if err := s.admin.Get(t.Context(), client.ObjectKey{Name: v1alpha1.SystemNamespace}, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
	}); err == nil {
		t.Error("the dry run has made the operator's namespace")
	}
}

// expectCroft runs croft, and expects an exit status and texts in its output.
func (s *skewedCluster) expectCroft(t *testing.T, line string, want int, words ...string) {
	t.Helper()
	args := strings.Fields(line)
	if !strings.Contains(line, "--client") {
		args = append(args, "--kubeconfig", s.Kubeconfig)
	}
	status, stdout, stderr := runCroft(t, "", args...)
	if status != want {
		t.Errorf("croft %s: exit status %d, want %d:\n%s%s", line, status, want, stdout, stderr)
	}
	for _, word := range words {
		if !strings.Contains(stdout+stderr, word) {
			t.Errorf("croft %s does not print %q:\n%s%s", line, word, stdout, stderr)
		}
	}
}

// writeHeartbeat writes the heartbeat of an operator of the given version.
func (s *skewedCluster) writeHeartbeat(t *testing.T, version string) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.SystemNamespace, Name: heartbeat.Name}}
	if err := client.IgnoreNotFound(s.admin.Delete(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
	lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: lease.Namespace, Name: lease.Name, Annotations: map[string]string{heartbeat.VersionAnnotation: version}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("croft-0"), RenewTime: ptr.To(metav1.NewMicroTime(time.Now().Add(time.Hour)))},
	}
	if err := s.admin.Create(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

// deleteKinds deletes croft's kinds.
func (s *skewedCluster) deleteKinds(t *testing.T) {
	t.Helper()
	kinds := func(do func(*apiextensionsv1.CustomResourceDefinition)) error {
		var all apiextensionsv1.CustomResourceDefinitionList
		err := s.admin.List(t.Context(), &all)
		for i := range all.Items {
			if all.Items[i].Spec.Group == v1alpha1.GroupVersion.Group {
				do(&all.Items[i])
			}
		}
		return err
	}
	if err := kinds(func(d *apiextensionsv1.CustomResourceDefinition) {
		if err := s.admin.Delete(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	tries := 0
	awaitCondition(t, "croft's kinds are deleted", func(context.Context) error {
		var left []string
		tries++
		if err := kinds(func(d *apiextensionsv1.CustomResourceDefinition) {
			left = append(left, fmt.Sprint(d.Name, d.Status.Conditions))
			s.touchDefinition(t, d, tries)
		}); err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("left: %s", left)
		}
		_, _, stderr := runCroft(t, "", "status", "--kubeconfig", s.Kubeconfig)
		if !strings.Contains(stderr, "does not know croft's kinds") {
			return errors.New(stderr)
		}
		return nil
	})
}

// touchDefinition changes a kind that is being deleted. An API server that fails to list the kind's
// objects, because their storage is not ready yet, tries again. If it does so with an older
// version of the kind, it gets a conflict and waits for a change of the kind other than in
// its condition Terminating (CRDFinalizer.sync and updateCustomResourceDefinition of
// k8s.io/apiextensions-apiserver). Without this change the wait takes up to five minutes.
func (s *skewedCluster) touchDefinition(t *testing.T, d *apiextensionsv1.CustomResourceDefinition, try int) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {"test": "%d"}}}`, try)
	if err := s.admin.Patch(t.Context(), d, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// field is a field of Tenants that an older version of their kind does not have.
const field = "costCode"

// removeField removes the field from the kind.
func (s *skewedCluster) removeField(t *testing.T) {
	t.Helper()
	patch := `[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/` + field + `"}]`
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tenants.croft.dev"}}
	if err := s.admin.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (s *skewedCluster) hasField(t *testing.T) bool {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := s.admin.Get(t.Context(), client.ObjectKey{Name: "tenants.croft.dev"}, definition); err != nil {
		t.Fatal(err)
	}
	_, has := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties[field]
	return has
}
