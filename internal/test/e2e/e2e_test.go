// Package e2e tests croft as users run it: the built binaries, on real control planes with real
// Karpenter, as an administrator and as members of tenants. A test checks croft's documented
// guarantees, not its implementation, and its comment names the defect that makes it fail.
//
// The subtests of one Test function share a sandbox and run in sequence. The subtests of
// TestTwoTenants do not depend on one another, so each can be run on its own:
//
//	CROFT_TEST_E2E=1 go test ./internal/test/e2e -run TestTwoTenants/Drift
package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/test/sandbox"
)

const (
	// root is the repository's root: go test starts in the package's directory.
	root = "../../.."
	// patience is the time limit for conditions that take seconds on an idle machine. It is
	// longer than the five minutes after which kube-scheduler
	// (podMaxInUnschedulablePodsDuration) and Karpenter (its drift controller's requeue) retry
	// an object whose event they have missed.
	patience = 7 * time.Minute
	// moments is the time limit for immediate effects. It allows for a machine that is busy
	// with other work.
	moments = 2 * time.Minute
	// interval is the first pause between two checks of a condition, and longestInterval the
	// maximum: many conditions run a command, which takes half a second of a core.
	interval, longestInterval = 100 * time.Millisecond, time.Second
)

// cluster is a running sandbox with an administrator's client.
type cluster struct {
	*sandbox.Cluster
	admin client.Client
	// env is croft's environment apart from the kubeconfig.
	env []string
	// localVolumes makes provision create volumes on the nodes' disks, which real kubelets mount.
	localVolumes bool
}

// startSandbox starts a sandbox for a test and its subtests.
func startSandbox(t *testing.T, o sandbox.Options) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	o.Timeout = patience
	box := sandbox.Start(t, o)
	return &cluster{Cluster: box, admin: newClient(t, box.Config)}
}

// startWithCroft starts a full sandbox with croft's operator in it.
func startWithCroft(t *testing.T) *cluster {
	t.Helper()
	return startSandbox(t, sandbox.Options{Croft: findCroftBinary(t)})
}

func newClient(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = rest.NoWarnings{}
	config.Timeout = moments
	c, err := client.New(config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newMemberClient returns a client that impersonates a user of the group.
func (c *cluster) newMemberClient(t testing.TB, group string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{group, "system:authenticated"}}
	return newClient(t, config)
}

// awaitCondition waits until a condition returns nil. At the time limit it ends the test with the
// condition's last error.
func awaitCondition(t testing.TB, within time.Duration, what string, condition func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pause := interval; ; pause = min(pause*3/2, longestInterval) {
		// The context does not end with the wait: an interrupted request would report the
		// interruption instead of the reason.
		last := condition(t.Context())
		if last == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("waited %s for %s: %v", within, what, last)
		}
		time.Sleep(pause)
	}
}

// getExamplePath returns the path of an example as in the README: commands run in the repository's
// root.
func getExamplePath(name string) string { return filepath.Join("examples", name) }
