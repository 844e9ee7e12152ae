package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"croft.dev/croft/internal/admissionpolicy"
)

// operator is one that the test runs itself: a process like any other, with the
// rights that `croft install` gives to the operator and no more.
type operator struct {
	cmd *exec.Cmd
	// ended is closed when the process has ended, with err.
	ended chan struct{}
	err   error
}

// install puts croft's kinds, rights and policies into the cluster, and returns
// the operator's kubeconfig.
func (c *cluster) install(t testing.TB) (kubeconfig string) {
	t.Helper()
	c.croft(t, "install").exits(t, 0)
	return c.kubeconfigOf(t, admissionpolicy.OperatorUser, "system:serviceaccounts", "system:serviceaccounts:croft-system")
}

// operate starts an operator. If the test does not end it, its clean-up does.
func (c *cluster) operate(t testing.TB, kubeconfig string) *operator {
	t.Helper()
	// Beside the logs of the sandbox's own components, which a failed test shows.
	log, err := os.OpenFile(filepath.Join(c.Dir, "logs", "croft-of-the-test.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(croftBinary(t), "operator", "--kubeconfig", kubeconfig,
		"--health-addr", "0", "--metrics-addr", "0", "--leader-elect=false")
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, dieWithParent()
	o := &operator{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// What dies with its parent dies with the thread that started it.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			o.err = cmd.Wait()
		}
		close(o.ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.kill(t) })
	return o
}

// kill ends the operator as kill -9 does, and returns when it is gone.
func (o *operator) kill(t testing.TB) {
	t.Helper()
	if err := o.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-o.ended
}

// stop ends the operator in order.
func (o *operator) stop(t testing.TB) {
	t.Helper()
	if err := o.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("the operator has ended by itself: %v", err)
	}
	select {
	case <-o.ended:
		if o.err != nil {
			t.Errorf("the operator was asked to stop, and failed: %v", o.err)
		}
	case <-time.After(patience):
		t.Errorf("the operator was asked to stop, and runs on")
	}
}
