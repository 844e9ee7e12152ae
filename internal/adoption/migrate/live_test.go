package migrate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"croft.dev/croft/internal/adoption/migrate"
	"croft.dev/croft/internal/adoption/migrate/draft"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// TestLiveDialects writes an estate to a cluster that serves every API of network policies, in
// each dialect in turn, and expects the same estate when it reads the objects. It fails if Live
// skips one of those APIs, or reports a policy in both of Calico's APIs twice.
func TestLiveDialects(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts an API server")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	if err := cluster.InstallCRDs(t.Context(), sandbox.Calico, sandbox.CalicoStorage, sandbox.NetworkPolicyAPI, sandbox.AmazonVPC); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, dialect := range dialects {
		t.Run(name, func(t *testing.T) {
			want := buildEstate(t, buildDialectEstate(dialect))
			objects := slices.DeleteFunc(wall.Objects(want), func(o client.Object) bool {
				// These policies would refuse other writers, and contain no information for
				// migrate.
				return findKind(t, c, o).Group == "admissionregistration.k8s.io"
			})
			for _, o := range addStoredPolicies(append(objects, readOwnPolicies(t)...), want.Platform.Network.Calico != nil) {
				if err := c.Create(t.Context(), o); client.IgnoreAlreadyExists(err) != nil {
					t.Fatal(err)
				}
				if findKind(t, c, o).Kind != "Namespace" { // no controller completes the deletion of namespaces here
					defer func() { _ = c.Delete(context.WithoutCancel(t.Context()), o) }()
				}
			}

			read, problems, err := migrate.ReadCluster(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			r := migrate.Migrate(read, problems, draft.Options{ClusterName: want.Platform.ClusterName})
			expectAccounted(t, read, r)
			if err := r.Problems.Err(); err != nil {
				t.Error(err)
			}
			file, err := r.File.YAML()
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, buildEstate(t, file), isSameJSON...); diff != "" {
				t.Errorf("another estate came back (-written +migrated):\n%s", diff)
			}
			reported := map[string]int{}
			for _, f := range r.Findings {
				if strings.HasSuffix(f.Object, "own") && (f.Field == "" || f.Field == "spec") {
					reported[f.Object]++
				}
			}
			policy := "NetworkPolicy/shop/own"
			if want.Platform.Network.Calico != nil {
				policy = "NetworkPolicy/shop/default.own"
			}
			if diff := gocmp.Diff(map[string]int{policy: 1, "ClusterNetworkPolicy/cluster-own": 1, "ClusterNetworkPolicy/amazon-own": 1}, reported); diff != "" {
				t.Errorf("findings about others' policies (-want +got):\n%s", diff)
			}
		})
	}
}

// readOwnPolicies returns hand-written policies.
func readOwnPolicies(t testing.TB) []client.Object {
	t.Helper()
	const own = `
{apiVersion: projectcalico.org/v3, kind: NetworkPolicy, metadata: {name: own, namespace: shop}, spec: {selector: "app == 'db'", ingress: [{action: Allow}]}}
---
{apiVersion: policy.networking.k8s.io/v1alpha2, kind: ClusterNetworkPolicy, metadata: {name: cluster-own}, spec: {tier: Baseline, priority: 1, subject: {namespaces: {}}}}
---
{apiVersion: networking.k8s.aws/v1alpha1, kind: ClusterNetworkPolicy, metadata: {name: amazon-own}, spec: {tier: Baseline, priority: 1, subject: {namespaces: {}}}}
`
	var all []client.Object
	for document := range strings.SplitSeq(own, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// addStoredPolicies adds Calico's stored copies of the policies in its API. If that API is not
// served, it removes the originals.
func addStoredPolicies(objects []client.Object, alone bool) []client.Object {
	var all []client.Object
	for _, o := range objects {
		policy, ok := o.(*unstructured.Unstructured)
		if !ok || policy.GroupVersionKind().Group != "projectcalico.org" {
			all = append(all, o)
			continue
		}
		if !alone {
			all = append(all, o)
		}
		kept := policy.DeepCopy()
		kept.SetAPIVersion("crd.projectcalico.org/v1")
		kept.SetName("default." + policy.GetName())
		all = append(all, kept)
	}
	return all
}

func findKind(t testing.TB, c client.Client, o client.Object) schema.GroupVersionKind {
	t.Helper()
	gvk, err := c.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	return gvk
}
