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

// createManualSetup creates the first two published set-ups: two namespaces, each with a pool of
// its own and Gatekeeper Assigns that place the pods there, and the workloads.
func (c *cluster) createManualSetup(t *testing.T) {
	t.Helper()
	c.runKubectl(t, "", "create", "-f", "internal/test/e2e/testdata/adopt/nodepools.yaml").expectExit(t, 0)
	set := filepath.Join(documents, "000")
	for _, letter := range []string{"a", "b"} {
		namespace := "tenant-" + letter
		c.runKubectl(t, "", "create", "ns", namespace).expectExit(t, 0)
		// The file names another namespace than the document's command line.
		denyAll := strings.Replace(readRepositoryFile(t, filepath.Join(set, "deny-all.yaml")), "  namespace: default\n", "", 1)
		c.runKubectl(t, denyAll, "create", "-n", namespace, "-f", "-").expectExit(t, 0)
		c.runKubectl(t, "", "create", "-n", namespace, "-f", filepath.Join(set, "allow-dns-access.yaml")).expectExit(t, 0)
		for _, assign := range []string{"selector", "toleration"} {
			c.runKubectl(t, "", "create", "-f", filepath.Join(set, "nodepool-"+assign+"-pool-"+letter+".yaml")).expectExit(t, 0)
		}
	}
	for _, letter := range []string{"a", "b"} {
		c.awaitPlacement(t, "tenant-"+letter, "node-pool", "pool-"+letter)
		c.runKubectl(t, "", "create", "deployment", "nginx", "--image=nginx", "--replicas", "3", "-n", "tenant-"+letter).expectExit(t, 0)
		c.runKubectl(t, "", "expose", "deployment", "nginx", "--port=8080", "--target-port=80", "-n", "tenant-"+letter).expectExit(t, 0)
	}
	c.runKubectl(t, "", "create", "-f", filepath.Join(documents, "001", "06-pod-arm64-spot-test.yaml")).expectExit(t, 0)
	c.awaitRunningPods(t, "tenant-a", 4)
	c.awaitRunningPods(t, "tenant-b", 3)
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
	c.createManualSetup(t)
	steady := c.watchSteadiness(t)
	before := c.recordState(t)

	out := filepath.Join(t.TempDir(), "migrated")
	c.runCroft(t, "migrate", "--live", "--cluster-name", "sandbox", "-o", out).expectExit(t, 0)
	file := filepath.Join(out, "croft.yaml")
	content := strings.Replace(readFile(t, file), "  clusterName: sandbox\n", "  clusterName: sandbox\n  placement: "+string(engine)+"\n", 1)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}

	plan := c.runCroft(t, "adopt", "tenant", "tenant-a", "-f", file, "--dry-run").expectExit(t, 0)
	for _, line := range []string{
		"Deployment/nginx", "Pod/arm64-spot-test", "stays on pool-a", "deleted with --remove-old", "Assign nodepool-selector-pool-a",
		"its budget prevents the replacement of running nodes",
	} {
		if !strings.Contains(plan.stdout, line) {
			t.Errorf("the plan does not contain %q: %s", line, plan)
		}
	}
	expectSame(t, "a dry run changed something", before, c.recordState(t))

	c.runCroft(t, "adopt", "tenant", "tenant-a", "-f", file, "--yes", "--remove-old").expectExit(t, 0)
	// --remove-old deletes the old objects of tenant-a. The objects of tenant-b are still
	// unchanged.
	if marks := listMarks(c.getNamespace(t, "tenant-b")); len(marks) > 0 {
		t.Errorf("tenant-b was touched before its turn: %v", marks)
	}
	now := c.recordState(t)
	c.runCroft(t, "adopt", "tenant", "tenant-b", "-f", file, "--dry-run").expectExit(t, 0)
	expectSame(t, "a dry run that tries the rules left something", now, c.recordState(t))
	c.runCroft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes").expectExit(t, 0)
	c.awaitPlacement(t, "tenant-b", "node-pool", "pool-b")
	if result := c.runCroft(t, "adopt", "tenant", "tenant-b", "-f", file, "--yes", "--remove-old").expectExit(t, 0); !strings.Contains(result.stdout, "already belongs to the tenant") {
		t.Errorf("the second run does not report the first: %s", result)
	}

	c.expectOldObjectsDeleted(t, "tenant-a", "tenant-b")
	for _, letter := range []string{"a", "b"} {
		pod := newNginxPod("tenant-"+letter, "new")
		createObjects(t, c.admin, pod)
		expectPlacement(t, c.awaitRunning(t, pod), "node-pool", "pool-"+letter)
	}
	awaitCondition(t, patience, "every wall to hold", func(context.Context) error {
		if result := c.runCroft(t, "verify"); result.status != 0 {
			return errors.New(result.String())
		}
		return nil
	})

	c.runCroft(t, "adopt", "tenant", "tenant-a", "--undo", "--yes").expectExit(t, 0)
	expectSame(t, "tenant-a after --undo", selectTenantState(before, "tenant-a", "pool-a"), selectTenantState(c.recordState(t), "tenant-a", "pool-a"))
	if marks := listMarks(c.getNamespace(t, "tenant-a")); len(marks) > 0 {
		t.Errorf("tenant-a was given back with %v", marks)
	}
	if left := c.listEverything(t, ours).selectNamespace("tenant-a"); len(left) > 0 {
		t.Errorf("tenant-a was given back with %s", left)
	}
	c.awaitPlacement(t, "tenant-a", "node-pool", "pool-a")
	pod := newNginxPod("tenant-a", "newer")
	createObjects(t, c.admin, pod)
	expectPlacement(t, c.awaitRunning(t, pod), "node-pool", "pool-a")
	steady.expectSteady(t)
}

// recordState returns the content of all objects that users or croft write: a dry run must not
// change them. Objects that components write constantly are left out.
func (c *cluster) recordState(t *testing.T) map[apply.Ref]string {
	t.Helper()
	state := map[apply.Ref]string{}
	for ref, o := range c.listEverything(t) {
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

// selectTenantState returns the objects of a namespace and the Assigns of its pool, without the
// resource versions, which a write and its undoing change.
func selectTenantState(all map[apply.Ref]string, namespace, pool string) map[apply.Ref]string {
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

func (c *cluster) getNamespace(t *testing.T, name string) *corev1.Namespace {
	t.Helper()
	var live corev1.Namespace
	c.getObject(t, "", name, &live)
	return &live
}

// expectOldObjectsDeleted fails the test if an object that the walls replace still exists.
func (c *cluster) expectOldObjectsDeleted(t *testing.T, namespaces ...string) {
	t.Helper()
	for ref, o := range c.listEverything(t) {
		old := ref.Kind == "Assign" || ref.Kind == "NetworkPolicy" && slices.Contains(namespaces, ref.Namespace)
		if old && o.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedBy {
			t.Errorf("%s is still there", ref)
		}
	}
}
