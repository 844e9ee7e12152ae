package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/operate/apply"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
	"croft.dev/croft/internal/walls/wall"
)

// envSeed is the environment variable with the seed of a run to repeat. The test prints the
// seed that it used.
const envSeed = "CROFT_E2E_SEED"

// TestKillNine fails if the operator relies on completing a sequence of actions: on a second
// write that marks a namespace's owner, on state in memory, or on cleaning up after itself.
func TestKillNine(t *testing.T) {
	sandbox.Thorough(t) // TestTwoTenants/WithoutOperator stops it once
	t.Parallel()        // it mostly waits
	const (
		pools, tenants = 5, 100
		longestLife    = 1500 * time.Millisecond
	)
	kills := 3
	if sandbox.All() {
		kills = 10
	}
	// No pod is placed, so neither a scheduler nor nodes are needed.
	c := startSandbox(t, sandbox.Options{Components: append(sandbox.WithControllers, "karpenter")})
	declared := buildManyTenants(pools, tenants)
	file := writeTempFile(t, declared)
	kubeconfig := c.installCroft(t)
	c.runCroft(t, "apply", "-f", file, "--wait=false").expectExit(t, 0)

	// The first operator is killed after its first write, however long that takes on a busy
	// machine, and the others at random times.
	started := time.Now()
	operator := c.startOperator(t, kubeconfig)
	awaitCondition(t, patience, "the first namespace", func(ctx context.Context) error {
		namespaces, err := c.listTenantNamespaces(ctx)
		if err == nil && len(namespaces) == 0 {
			err = errors.New("there is none")
		}
		return err
	})
	operator.killProcess(t)
	t.Logf("killed after %s, with %s", time.Since(started), c.describeProgress(t))

	life := newLifetimeGenerator(t, max(longestLife, 2*time.Since(started)))
	for range kills - 1 {
		operator := c.startOperator(t, kubeconfig)
		after := life()
		select {
		case <-time.After(after):
			operator.killProcess(t)
		case <-operator.ended:
			t.Fatalf("the operator ended by itself: %v", operator.err)
		}
		t.Logf("killed after %s, with %s", after, c.describeProgress(t))
	}

	operator = c.startOperator(t, kubeconfig)
	awaitCondition(t, patience, "all tenants to be Ready", func(ctx context.Context) error {
		left, err := c.listNotReady(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("%d are not: %s", len(left), strings.Join(left[:min(5, len(left))], ", "))
		}
		return err
	})
	// apply waits for objects that are not Ready yet. After that, no write is left.
	c.applyFile(t, file)
	if differs := c.runCroft(t, "diff", "-f", file).expectExit(t, 0); differs.stdout != "" {
		t.Errorf("croft would still change something: %s", differs)
	}
	operator.stopProcess(t)

	expectSame(t, "what croft made", c.listDesired(t, file, declared), listReferences(c.listEverything(t, ours)))
	c.expectNothingLeft(t)
}

// newLifetimeGenerator returns a generator of random times, which are the same for the same seed.
func newLifetimeGenerator(t testing.TB, longest time.Duration) func() time.Duration {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv(envSeed); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("%s: %v", envSeed, err)
		}
	}
	t.Logf("%s=%d", envSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	return func() time.Duration { return time.Duration(random.Int64N(int64(longest))) }
}

// describeProgress describes the operators' progress.
func (c *cluster) describeProgress(t testing.TB) string {
	t.Helper()
	namespaces, err := c.listTenantNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, err := c.listNotReady(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d namespaces made and %d tenants not Ready", len(namespaces), len(left))
}

// buildManyTenants returns a croft.yaml with many pools and tenants.
func buildManyTenants(pools, tenants int) string {
	var b strings.Builder
	b.WriteString("platform:\n  clusterName: many\n  tenantDomain: tenants.example.org\n  nodeClass: {kwok: {}}\npools:\n")
	for i := range pools {
		fmt.Fprintf(&b, "  pool-%d: {instances: {instanceTypes: [t3a.large]}}\n", i)
	}
	b.WriteString("tenants:\n")
	for i := range tenants {
		fmt.Fprintf(&b, "  tenant-%d:\n    pool: pool-%d\n    quota: {pods: \"20\"}\n"+
			"    access: [{group: team-%d, role: operator}, {group: auditors, role: viewer}]\n", i, i%pools, i)
	}
	return b.String()
}

// listDesired returns the desired objects: the walls of the declared objects, and croft's
// installation.
func (c *cluster) listDesired(t testing.TB, file, declared string) map[apply.Ref]bool {
	t.Helper()
	installed, err := install.Objects(install.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all := map[apply.Ref]bool{}
	for _, o := range append(installed, wall.Objects(buildEstate(t, file, declared))...) {
		all[apply.RefOf(o)] = true
	}
	return all
}

func listReferences(all objectMetadata) map[apply.Ref]bool {
	there := map[apply.Ref]bool{}
	for ref := range all {
		there[ref] = true
	}
	return there
}

// expectNothingLeft fails if a probe was stored (a pod that should exist only in a dry run), or
// if a namespace that croft created lacks the annotation by which croft recognises it.
func (c *cluster) expectNothingLeft(t testing.TB) {
	t.Helper()
	var pods corev1.PodList
	if err := c.admin.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		t.Errorf("pod %s/%s was left behind", pod.Namespace, pod.Name)
	}
	namespaces, err := c.listTenantNamespaces(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range namespaces {
		if n.Annotations[v1alpha1.CreatedAnnotation] != "true" {
			t.Errorf("croft made namespace %s and does not know it: its annotations are %v", n.Name, n.Annotations)
		}
	}
}
