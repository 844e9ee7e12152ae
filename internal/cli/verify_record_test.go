package cli

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/prove/verify"
	"croft.dev/croft/internal/test/sandbox"
)

// TestRecord writes a result into a Platform's status next to the operator's own fields.
func TestRecord(t *testing.T) {
	sandbox.EndToEnd(t)
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	if err := recordResults(t.Context(), c, nil); err == nil {
		t.Error("there is no Platform, and no error")
	}
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	platform := newDefaultPlatform()
	if err := c.Create(t.Context(), &platform); err != nil {
		t.Fatal(err)
	}
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":1}}`))
	if err := c.Status().Patch(t.Context(), &platform, status); err != nil {
		t.Fatal(err)
	}
	var results []verify.Result
	for outcome, n := range map[verify.Outcome]int{verify.Held: 4, verify.Breached: 1, verify.BlockedElsewhere: 2, verify.NotTried: 3} {
		for range n {
			results = append(results, verify.Result{Result: outcome})
		}
	}
	if err := recordResults(t.Context(), c, results); err != nil {
		t.Fatal(err)
	}
	var live v1alpha1.Platform
	if err := c.Get(t.Context(), client.ObjectKey{Name: v1alpha1.PlatformName}, &live); err != nil {
		t.Fatal(err)
	}
	v := live.Status.Verify
	if v == nil || v.Held != 4 || v.Breached != 1 || v.BlockedElsewhere != 2 || v.NotTried != 3 || v.Version == "" || time.Since(v.Time.Time) > time.Hour {
		t.Errorf("%+v", v)
	}
	if live.Status.ObservedGeneration != 1 {
		t.Error("what the operator wrote is gone")
	}
}
