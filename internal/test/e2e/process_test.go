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
)

// process is a process that runs in the background of a test.
type process struct {
	cmd *exec.Cmd
	// ended is closed when the process has ended; err is its error.
	ended chan struct{}
	err   error
}

// startProcess starts a process. The test's clean-up kills it if it still runs.
func startProcess(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	cmd.SysProcAttr = killWithParent()
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// The parent-death signal is sent when the thread ends that started the process.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.killProcess(t) })
	return p
}

// startCroft starts croft. Its log is written next to the logs of the sandbox's components,
// which a failed test shows.
func (c *cluster) startCroft(t testing.TB, log string, args ...string) *process {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(c.Dir, "logs", log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd := exec.Command(findCroftBinary(t), args...)
	cmd.Stdout, cmd.Stderr = file, file
	return startProcess(t, cmd)
}

// killProcess ends the process with SIGKILL, and returns when it has ended.
func (p *process) killProcess(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-p.ended
}

// stopProcess ends the process with SIGTERM.
func (p *process) stopProcess(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%s has ended by itself: %v", p.cmd, err)
	}
	select {
	case <-p.ended:
		if p.err != nil {
			t.Errorf("%s was asked to stop, and failed: %v", p.cmd, p.err)
		}
	case <-time.After(patience):
		t.Errorf("%s was asked to stop, and runs on", p.cmd)
	}
}
