package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpenterv1 "sigs.k8s.io/karpenter/pkg/apis/v1"

	"croft.dev/croft/internal/declare/estate"
	"croft.dev/croft/internal/test/sandbox"
)

// documents is the directory with the original manifests of published set-ups.
const documents = "internal/adoption/migrate/testdata/documents"

// migratedDocument is a sandbox with the migrated objects of a document.
type migratedDocument struct {
	*cluster
	estate *estate.Estate
}

func migrateDocument(t *testing.T, name string) *migratedDocument {
	t.Helper()
	c := startWithCroft(t)
	out := filepath.Join(t.TempDir(), "migrated")
	c.runCroft(t, "migrate", "-f", filepath.Join(documents, name), "--cluster-name", "sandbox", "--node-class", "kwok", "-o", out).expectExit(t, 0)
	file := filepath.Join(out, "croft.yaml")
	c.applyFile(t, file)
	return &migratedDocument{c, buildEstate(t, file, readFile(t, file))}
}

// awaitPlacedPods waits until n pods of a namespace run, and fails unless they are on the pool.
func (m *migratedDocument) awaitPlacedPods(t *testing.T, namespace, pool string, n int) {
	t.Helper()
	for _, pod := range m.awaitRunningPods(t, namespace, n) {
		expectPlacement(t, &pod, m.estate.Platform.NodePoolKey, pool)
		m.expectPool(t, m.estate, &pod, pool)
	}
}

// TestMigrateDocuments fails if the result of croft migrate for a published set-up places the
// workloads of that set-up on other nodes than before.
func TestMigrateDocuments(t *testing.T) {
	sandbox.Thorough(t) // internal/adoption/migrate tests the output of migrate; TestTwoTenants places pods
	t.Parallel()        // it mostly waits
	t.Run("000", func(t *testing.T) {
		m := migrateDocument(t, "000")
		for _, namespace := range []string{"tenant-a", "tenant-b"} {
			m.runKubectl(t, "", "create", "deployment", "nginx", "--image=nginx", "--replicas", "3", "-n", namespace).expectExit(t, 0)
			m.runKubectl(t, "", "expose", "deployment", "nginx", "--port=8080", "--target-port=80", "-n", namespace).expectExit(t, 0)
		}
		m.awaitPlacedPods(t, "tenant-a", "pool-a", 3)
		m.awaitPlacedPods(t, "tenant-b", "pool-b", 3)
		m.awaitEndpoints(t, "tenant-a", "nginx", 3)
	})
	t.Run("001", func(t *testing.T) {
		m := migrateDocument(t, "001")
		for _, namespace := range []string{"tenant-a", "tenant-b"} {
			m.runKubectl(t, "", "run", "--image=nginx:alpine", "--namespace", namespace, "nginx").expectExit(t, 0)
		}
		m.awaitPlacedPods(t, "tenant-a", "pool-a", 1)
		m.awaitPlacedPods(t, "tenant-b", "pool-b", 1)

		// A pod that requests an instance type gets it within its pool. It is applied again if
		// the taint eviction controller has deleted it on a new node (see 002).
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant-a", Name: "arm64-spot-test"}}
		awaitCondition(t, patience, "the pod to run", func(ctx context.Context) error {
			m.runKubectl(t, "", "apply", "-f", filepath.Join(documents, "001", "06-pod-arm64-spot-test.yaml")).expectExit(t, 0)
			if err := m.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil {
				return err
			}
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		})
		if got := m.expectPool(t, m.estate, pod, "pool-a").Labels[corev1.LabelInstanceTypeStable]; got != "m5.large" {
			t.Errorf("the pod runs on a %s, and asked for m5.large", got)
		}
	})
	t.Run("002", func(t *testing.T) {
		m := migrateDocument(t, "002")
		for _, team := range []team{
			{"sample-team-gitlab-ci", "sample-team-gitlab-jobs", "oidc:team.devs.platform-access"},
			{"nis-customer-portal", "sample-team-apps", "oidc:team.devs.platform-access"},
		} {
			// A Deployment, not a bare pod: the taint eviction controller may observe a pod on
			// a new node before it observes that Karpenter has removed the taint
			// karpenter.sh/unregistered.
			deployment, _ := newNginxDeployment(team.tenant, 1)
			createObjects(t, m.newMemberClient(t, team.group), deployment)
			m.awaitPlacedPods(t, team.tenant, team.pool, 1)
		}
		createObjects(t, m.admin, newNginxPod("example-tenant", "nginx"))
		m.awaitPlacedPods(t, "example-tenant", "example-pool", 1)
	})
}

// TestMigrateLive migrates a cluster without croft, as a user with read access only, and adopts
// it with a running pod. It fails if migrate writes anything, fails on kinds that the cluster
// lacks, or if Karpenter may replace the pod's node.
func TestMigrateLive(t *testing.T) {
	sandbox.Thorough(t) // TestAdopt adopts a cluster; internal/adoption/migrate reads one
	t.Parallel()        // it mostly waits
	c := startSandbox(t, sandbox.Options{})
	c.runKubectl(t, readRepositoryFile(t, "internal/test/e2e/testdata/migrate/live.yaml"), "apply", "-f", "-").expectExit(t, 0)
	running := c.awaitRunning(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "reports", Name: "running"}})

	out := filepath.Join(t.TempDir(), "migrated")
	looker := c.writeUserKubeconfig(t, "larry", "lookers")
	c.runCroft(t, "migrate", "--live", "--kubeconfig", looker, "--cluster-name", "sandbox", "-o", out).expectExit(t, 0)
	file := filepath.Join(out, "croft.yaml")
	e := buildEstate(t, file, readFile(t, file))
	if len(e.Tenants) != 1 || e.Tenants[0].Name != "reports" || !slices.Equal(e.Tenants[0].Pools, []string{"batch"}) ||
		e.Platform.GroupPrefix != "oidc:" || len(e.Tenants[0].Access) != 1 || e.Tenants[0].Access[0].Group != "oidc:reporters" {
		t.Errorf("the cluster migrated to\n%s", readFile(t, file))
	}

	stranger := c.runCroft(t, "migrate", "--live", "--kubeconfig", c.writeUserKubeconfig(t, "eve"), "-o", t.TempDir()).expectExit(t, 2)
	if !strings.Contains(stranger.stderr, "you may not list NodePool") {
		t.Errorf("it does not name what may not be read: %s", stranger)
	}

	// croft adopts the cluster.
	c.startOperator(t, c.installCroft(t))
	c.runKubectl(t, "", "annotate", "namespace", "reports", "croft.dev/adopt=reports", "scheduler.alpha.kubernetes.io/node-selector-").expectExit(t, 0)
	c.applyFile(t, file)
	c.awaitHeldNode(t, "batch")
	later := c.awaitRunning(t, running)
	if later.UID != running.UID || later.Spec.NodeName != running.Spec.NodeName {
		t.Errorf("the pod runs on %s, and ran on %s before croft came", later.Spec.NodeName, running.Spec.NodeName)
	}
	pod := newNginxPod("reports", "new")
	createObjects(t, c.newMemberClient(t, "oidc:reporters"), pod)
	expectPlacement(t, c.awaitRunning(t, pod), "node-pool", "batch")
}

// awaitHeldNode waits until Karpenter reports that a node of a pool has drifted, and that it may
// not disrupt the node.
func (c *cluster) awaitHeldNode(t *testing.T, pool string) {
	t.Helper()
	awaitCondition(t, patience, "Karpenter to hold back", func(ctx context.Context) error {
		var (
			claims karpenterv1.NodeClaimList
			events corev1.EventList
		)
		if err := errors.Join(c.admin.List(ctx, &claims), c.admin.List(ctx, &events)); err != nil {
			return err
		}
		for i := range claims.Items {
			if !claims.Items[i].StatusConditions().Get(karpenterv1.ConditionTypeDrifted).IsTrue() {
				return fmt.Errorf("%s has not drifted", claims.Items[i].Name)
			}
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Name == pool && strings.Contains(e.Message, "disruption reason Drifted due to blocking budget") {
				return nil
			}
		}
		return errors.New("there is no event about the blocking budget")
	})
}

// readFile reads a file outside of the repository.
func readFile(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
