package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"croft.dev/croft/sandbox/internal/lifeline"
)

// launcher starts processes such that they do not outlive this one, however it
// ends. Two nets hold, since neither catches everything:
//
//   - the kernel kills the children when the thread that started them ends
//     (Linux only; see procAttr), so all starts are made from one OS thread
//     that lives as long as the launcher does;
//   - every child inherits the reading end of a pipe of which only this process
//     holds the writing end: components that watch it end themselves.
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
	cmd.SysProcAttr = procAttr()
	r := launch{cmd: cmd, done: make(chan error, 1)}
	l.requests <- r
	return <-r.done
}

func (l *launcher) close() {
	close(l.requests)
	l.lifeline.Close()
}
