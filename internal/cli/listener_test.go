package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"croft.dev/croft/api/v1alpha1"
	"croft.dev/croft/internal/declare/scheme"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/test/sandbox"
)

// TestListener fails if apply keeps waiting for a missing operator, or does not wait for
// one that is starting.
func TestListener(t *testing.T) {
	sandbox.EndToEnd(t)
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	cluster := sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly})
	c, err := client.New(cluster.Config, client.Options{Scheme: scheme.New()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	silent := func(since time.Duration) error {
		t.Helper()
		l, err := newListener(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		l.since = time.Now().Add(-since)
		return l.checkOperator(t.Context(), newProgress(&out))
	}
	wants := func(err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), "the objects were written, but have no effect yet: no operator has run yet: `croft install --image") {
			t.Errorf("got %v", err)
		}
	}

	if err := silent(grace / 2); err != nil {
		t.Errorf("before the grace is over: %v", err)
	}
	wants(silent(grace))

	if _, err := install.Install(t.Context(), c, install.Options{Image: "croft:test"}); err != nil {
		t.Fatal(err)
	}
	if err := silent(grace); err != nil || !strings.Contains(out.String(), "Deployment croft-system/croft has no pod available yet") {
		t.Errorf("with a Deployment that starts: %v; the output is %q", err, out.String())
	}
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.SystemNamespace, Name: v1alpha1.ManagedBy}, &d); err != nil {
		t.Fatal(err)
	}
	d.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := c.Status().Update(t.Context(), &d); err != nil {
		t.Fatal(err)
	}
	wants(silent(grace))

	acting := &listener{client: c, since: time.Now().Add(-time.Hour), changed: true}
	if err := acting.checkOperator(t.Context(), newProgress(&out)); err != nil {
		t.Errorf("something became of what was declared: %v", err)
	}
	late := &listener{client: c, since: time.Now().Add(-time.Hour), first: heartbeat.Beat{At: time.Now().Add(-time.Hour), Holder: "croft-0"}}
	late.last = heartbeat.Beat{At: late.first.At.Add(heartbeat.Interval), Holder: "croft-0"}
	late.readAt = time.Now()
	if err := late.checkOperator(t.Context(), newProgress(&out)); err != nil {
		t.Errorf("a clock that is an hour late, and a new sign: %v", err)
	}
}
