package operator_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"croft.dev/croft/internal/declare/version"
	"croft.dev/croft/internal/operate/heartbeat"
	"croft.dev/croft/internal/operate/install"
	"croft.dev/croft/internal/operate/operator/operatortest"
	"croft.dev/croft/internal/test/sandbox"
)

// TestHeartbeat fails if an operator with the rights that Install grants does not write its
// heartbeat, does not remove it when it stops, or repeatedly logs that it cannot write it.
func TestHeartbeat(t *testing.T) {
	sandbox.EndToEnd(t)
	f := operatortest.New(t, sandbox.Start(t, sandbox.Options{Components: sandbox.APIOnly}))
	c := f.Client
	beats := func(what string, good func(heartbeat.Beat) bool) {
		t.Helper()
		f.Await(what, func() string {
			beat, err := heartbeat.Read(t.Context(), c)
			if err != nil || !good(beat) {
				return fmt.Sprintf("%s (%+v, %v)", beat.Describe(time.Now()), beat, err)
			}
			return ""
		})
	}
	alive := func(b heartbeat.Beat) bool { return b.IsAlive(time.Now()) }

	var logged atomic.Int64
	keeper := &heartbeat.Keeper{Client: c, Holder: "here", Version: "v1", Every: 20 * time.Millisecond,
		Log: funcr.New(func(_, args string) {
			logged.Add(1)
			if !strings.Contains(args, "croft-system") {
				t.Errorf("logged: %s", args)
			}
		}, funcr.Options{})}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- keeper.Start(ctx) }()
	f.Await("the keeper to log that there is no namespace", func() string {
		if logged.Load() == 0 {
			return "it is silent"
		}
		return ""
	})
	if _, err := install.Install(t.Context(), c, install.Options{}); err != nil {
		t.Fatal(err)
	}
	beats("a heartbeat", func(b heartbeat.Beat) bool { return alive(b) && b.Holder == "here" && b.Version == "v1" })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := logged.Load(); n != 1 {
		t.Errorf("%d lines were logged, want one", n)
	}
	beats("no heartbeat", func(b heartbeat.Beat) bool { return !alive(b) })

	stop := f.Operate()
	defer stop()
	beats("the operator's heartbeat", func(b heartbeat.Beat) bool { return alive(b) && b.Version == version.String() })
	stop()
	if beat, err := heartbeat.Read(t.Context(), c); err != nil || alive(beat) {
		t.Errorf("the operator has stopped, but its heartbeat is %s (%v)", beat.Describe(time.Now()), err)
	}
}
