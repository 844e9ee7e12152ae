package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"croft.dev/croft/sandbox/internal/lifeline"
)

// launcher starts processes that do not outlive this process, however it ends. It uses two
// mechanisms, since neither covers all cases:
//
//   - the kernel kills the children when the thread that started them ends
//     (Linux only), so the launcher starts all of them from one OS thread that
//     lives as long as the launcher;
//   - every child inherits the reading end of a pipe whose writing end only this
//     process has: components that watch the pipe end themselves.
type launcher struct {
	requests chan launch
	lifeline *lifeline.Lifeline
}

type launch struct {
	cmd  *exec.Cmd
	done chan error
}

func newLauncher() (*launcher, error) {
	line, err := lifeline.New()
	if err != nil {
		return nil, fmt.Errorf("make the lifeline of the components: %w", err)
	}
	l := &launcher{requests: make(chan launch), lifeline: line}
	go l.serve()
	return l, nil
}

// serve never unlocks its thread: the Go runtime ends a thread whose goroutine returns
// while locked, which must happen only after the last child.
func (l *launcher) serve() {
	runtime.LockOSThread()
	for r := range l.requests {
		r.done <- r.cmd.Start()
	}
}

func (l *launcher) start(cmd *exec.Cmd) error {
	if len(cmd.ExtraFiles) > 0 {
		return errors.New("a component cannot have extra files: the first is the lifeline")
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	l.lifeline.Attach(cmd)
	cmd.SysProcAttr = newProcAttr()
	r := launch{cmd: cmd, done: make(chan error, 1)}
	l.requests <- r
	return <-r.done
}

func (l *launcher) close() {
	close(l.requests)
	l.lifeline.Close()
}
