// Package lifeline ends child processes with their parent, by a pipe. The parent has the
// writing end and never writes to it. When the parent ends, for any reason, the kernel closes
// the pipe, and the child reads an end of file.
package lifeline

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// env is the environment variable with the child's descriptor of the reading end.
const env = "CROFT_SANDBOX_LIFELINE"

// Lifeline is the parent's side.
type Lifeline struct {
	read, write *os.File
}

// New makes a lifeline that any number of children can share.
func New() (*Lifeline, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &Lifeline{read: r, write: w}, nil
}

// Attach passes the reading end to a command that has not started yet, and
// whose environment is set.
func (l *Lifeline) Attach(cmd *exec.Cmd) {
	fd := 3 + len(cmd.ExtraFiles) // after standard input, output and error
	cmd.ExtraFiles = append(cmd.ExtraFiles, l.read)
	cmd.Env = append(cmd.Env, env+"="+strconv.Itoa(fd))
}

// Forward passes the lifeline of this process, if it has one, to a command that outlives
// this process: the command then ends with the process that has the writing end.
func Forward(cmd *exec.Cmd) {
	fd, err := strconv.Atoi(os.Getenv(env))
	if err != nil {
		return
	}
	_ = os.Unsetenv(env)
	l := &Lifeline{read: os.NewFile(uintptr(fd), "lifeline")}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	l.Attach(cmd)
}

// Close closes the pipe: children that watch it end themselves.
func (l *Lifeline) Close() {
	_ = l.write.Close() // closing a pipe cannot fail in a way that matters
	_ = l.read.Close()
}

// Watch calls ended once the parent has ended. It does nothing in a process without a
// lifeline.
func Watch(ended func()) {
	fd, err := strconv.Atoi(os.Getenv(env))
	if err != nil {
		return
	}
	// This process's own children must inherit neither the descriptor nor its number.
	syscall.CloseOnExec(fd)
	_ = os.Unsetenv(env)
	line := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, line)
		ended()
	}()
}
