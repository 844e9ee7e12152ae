// Package e2e tests croft as people use it: the built binaries, on real control planes
// with real Karpenter, as an administrator and as members of tenants. A test checks
// croft's promises, not its implementation, and names the change of croft that would
// make it fail.
//
// The parts of one Test function share a sandbox and take turns on it. The parts of
// TestTwoTenants are independent of one another, so each may be run by itself:
//
//	go test ./internal/e2e -run TestTwoTenants/Drift
package e2e

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/internal/sandbox"
	"croft.dev/croft/internal/scheme"
)

const (
	// root is the repository: go test starts in the directory of the package.
	root = "../.."
	// patience is the time limit for anything that takes seconds on an idle machine. It
	// is longer than the five minutes after which kube-scheduler
	// (podMaxInUnschedulablePodsDuration) and Karpenter (its drift controller's requeue)
	// retry an object whose event they have missed.
	patience = 7 * time.Minute
	// moments is the time limit for immediate effects: as long as a machine may be busy
	// with other work.
	moments = 2 * time.Minute
	// interval is how soon a condition is looked at again for the first time, and
	// longestInterval for the last: many conditions run a command, which takes half a
	// second of a core.
	interval, longestInterval = 100 * time.Millisecond, time.Second
)

// cluster is a sandbox that is up, and its administrator's client.
type cluster struct {
	*sandbox.Cluster
	admin client.Client
	// env is croft's environment apart from the kubeconfig.
	env []string
}

// start starts a sandbox for a test and those within it.
func start(t *testing.T, o sandbox.Options) *cluster {
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
	return start(t, sandbox.Options{Croft: croftBinary(t)})
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

// member is a client of a user in a group, with the group's rights and no others.
func (c *cluster) member(t testing.TB, group string) client.Client {
	t.Helper()
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{group, "system:authenticated"}}
	return newClient(t, config)
}

// eventually waits until a condition holds, that is until it returns nil, and
// otherwise ends the test with what kept it from holding.
func eventually(t testing.TB, within time.Duration, what string, holds func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(within)
	for pause := interval; ; pause = min(pause*3/2, longestInterval) {
		// Not a context that ends with the wait: an interrupted request would report
		// that, and not the reason why the condition does not hold.
		last := holds(t.Context())
		if last == nil {
			return
		}
		if time.Now().After(deadline) || t.Context().Err() != nil {
			t.Fatalf("waited %s for %s: %v", within, what, last)
		}
		time.Sleep(pause)
	}
}

// example is the path of an example, as the README writes it: commands run in
// the repository's root.
func example(name string) string { return filepath.Join("examples", name) }
