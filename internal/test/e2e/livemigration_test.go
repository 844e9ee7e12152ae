package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/test/sandbox"
)

// byHand creates the first two published set-ups: two namespaces, each with a pool of its own
// and Gatekeeper Assigns that place the pods there, and the workloads.
func (c *cluster) byHand(t *testing.T) {
	t.Helper()
	c.kubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/nodepools.yaml").exits(t, 0)
	set := filepath.Join(documents, "000")
	for _, letter := range []string{"a", "b"} {
		namespace := "tenant-" + letter
		c.kubectl(t, "", "create", "ns", namespace).exits(t, 0)
		// The file names another namespace than the document's command line.
		denyAll := strings.Replace(read(t, filepath.Join(set, "deny-all.yaml")), "  namespace: default\n", "", 1)
		c.kubectl(t, denyAll, "create", "-n", namespace, "-f", "-").exits(t, 0)
		c.kubectl(t, "", "create", "-n", namespace, "-f", filepath.Join(set, "allow-dns-access.yaml")).exits(t, 0)
		for _, assign := range []string{"selector", "toleration"} {
			c.kubectl(t, "", "create", "-f", filepath.Join(set, "nodepool-"+assign+"-pool-"+letter+".yaml")).exits(t, 0)
		}
	}
	for _, letter := range []string{"a", "b"} {
		c.placesPods(t, "tenant-"+letter, "node-pool", "pool-"+letter)
		c.kubectl(t, "", "create", "deployment", "nginx", "--image=nginx", "--replicas", "3", "-n", "tenant-"+letter).exits(t, 0)
		c.kubectl(t, "", "expose", "deployment", "nginx", "--port=8080", "--target-port=80", "-n", "tenant-"+letter).exits(t, 0)
	}
	c.kubectl(t, "", "create", "-f", filepath.Join(documents, "001", "06-pod-arm64-spot-test.yaml")).exits(t, 0)
	c.running(t, "tenant-a", 4)
	c.running(t, "tenant-b", 3)
}

// TestLiveMigration adopts a cluster that was set up by hand, tenant by tenant, while its
// workloads run, and undoes one adoption. It fails if a pod restarts or a node is deleted, if a
// replaced object remains, or if undoing does not restore the previous state.
func TestLiveMigration(t *testing.T) {
	t.Parallel() // it mostly waits
	sandbox.Thorough(t)
	for _, engine := range []v1alpha1.PlacementEngine{v1alpha1.PlacementNative, v1alpha1.PlacementGatekeeper} {
		t.Run(string(engine), func(t *testing.T) { testLiveMigration(t, engine) })
	}
}

func testLiveMigration(t *testing.T, engine v1alpha1.PlacementEngine) {
	c := startWithGatekeeper(t)
	c.byHand(t)
	steady := c.steady(t)
	before := c.left(t)

	out := filepath.Join(t.TempDir(), "migrated")
	c.croft(t, "migrate", "--live", "--cluster-name", "sandbox", "-o", out).exits(t, 0)
	file := filepath.Join(out, "croft.yaml")
	content := strings.Replace(readFile(t, file), "  clusterName: sandbox\n", "  clusterName: sandbox\n  placement: "+string(engine)+"\n", 1)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	said := c.croft(t, "adopt", "tenant", "tenant-a", "-f", file, "--dry-run").exits(t, 0)
	for _, line := range []string{
		"Deployment/nginx", "Pod/arm64-spot-test", "stays on pool-a", "deleted with --remove-old", "Assign nodepool-selector-pool-a",
		"its budget prevents the replacement of running nodes",
	} {
		if !strings.Contains(said.stdout, line) {
			t.Errorf("the plan does not say %q: %s", line, said)
		}
	}
	areSame(t, "a dry run changed something", before, c.left(t))

	c.croft(t, "adopt", "tenant", "tenant-a", "-f", file, "--yes", "--remove-old").exits(t, 0)
	// --remove-old deletes the old objects of tenant-a. The objects of tenant-b are still
	// unchanged.
	if marks := marksOf(c.namespace(t, "tenant-b")); len(marks) > 0 {
		t.Errorf("tenant-b was touched before its turn: %v", marks)
	}
	now := c.left(t)
	c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--dry-run").exits(t, 0)
	areSame(t, "a dry run that tries the rules left something", now, c.left(t))
	c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes").exits(t, 0)
	c.placesPods(t, "tenant-b", "node-pool", "pool-b")
	if said := c.croft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes", "--remove-old").exits(t, 0); !strings.Contains(said.stdout, "already belongs to the tenant") {
		t.Errorf("the second go does not know of the first: %s", said)
	}

	c.gone(t, "tenant-a", "tenant-b")
	for _, letter := range []string{"a", "b"} {
		pod := nginx("tenant-"+letter, "new")
		create(t, c.admin, pod)
		isPlaced(t, c.runs(t, pod), "node-pool", "pool-"+letter)
	}
	eventually(t, patience, "every wall to hold", func(context.Context) error {
		if said := c.croft(t, "verify"); said.status != 0 {
			return errors.New(said.String())
		}
		return nil
	})

	c.croft(t, "adopt", "tenant", "tenant-a", "--undo", "--yes").exits(t, 0)
	areSame(t, "tenant-a after --undo", about(before, "tenant-a", "pool-a"), about(c.left(t), "tenant-a", "pool-a"))
	if marks := marksOf(c.namespace(t, "tenant-a")); len(marks) > 0 {
		t.Errorf("tenant-a was given back with %v", marks)
	}
	if left := c.everything(t, ours).in("tenant-a"); len(left) > 0 {
		t.Errorf("tenant-a was given back with %s", left)
	}
	c.placesPods(t, "tenant-a", "node-pool", "pool-a")
	pod := nginx("tenant-a", "newer")
	create(t, c.admin, pod)
	isPlaced(t, c.runs(t, pod), "node-pool", "pool-a")
	steady.end(t)
}

// left returns the content of all objects that users or croft write: a dry run must not change
// them. Objects that components write constantly are left out.
func (c *cluster) left(t *testing.T) map[apply.Ref]string {
	t.Helper()
	state := map[apply.Ref]string{}
	for ref, o := range c.everything(t) {
		switch ref.Kind {
		case "Event", "Lease", "Node", "NodeClaim", "CSINode", "PodMetrics", "NodeMetrics", "Endpoints", "EndpointSlice", "NodePool", "Pod", "ReplicaSet",
			"MutatorPodStatus", "ConstraintPodStatus", "ConstraintTemplatePodStatus", "ConfigPodStatus", "APIService", "ControllerRevision":
			continue
		}
		state[ref] = fmt.Sprintf("generation %d, labels %v, annotations %v", o.Generation, o.Labels, o.Annotations)
		if ref.Kind == "Namespace" || ref.Kind == "ConfigMap" {
			state[ref] += ", version " + o.ResourceVersion
		}
	}
	return state
}

// about returns the objects of a namespace and the Assigns of its pool, without the resource
// versions, which a write and its undoing change.
func about(all map[apply.Ref]string, namespace, pool string) map[apply.Ref]string {
	some := maps.Clone(all)
	for ref, state := range some {
		if ref.Namespace != namespace && (ref.Name != namespace || ref.Kind != "Namespace") && (ref.Kind != "Assign" || !strings.HasSuffix(ref.Name, pool)) ||
			strings.HasPrefix(ref.Kind, "PodTemplate") {
			delete(some, ref)
			continue
		}
		some[ref], _, _ = strings.Cut(state, ", version")
	}
	return some
}

func (c *cluster) namespace(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	var live corev1.Namespace
	c.get(t, "", name, &live)
	return &live
}

// gone fails the test if an object that the walls replace still exists.
func (c *cluster) gone(t *testing.T, namespaces ...string) {
	t.Helper()
	for ref, o := range c.everything(t) {
		old := ref.Kind == "Assign" || ref.Kind == "NetworkPolicy" && slices.Contains(namespaces, ref.Namespace)
		if old && o.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			t.Errorf("%s is still there", ref)
		}
	}
}
