// Package lifeline ties the life of a child process to its parent's by a pipe: the
// parent holds the writing end and never writes; when it ends, for any reason, the
// kernel closes the pipe, and the child reads the end of file.
package lifeline

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// env tells a child the descriptor on which it finds the reading end.
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

// Attach hands the reading end to a command that is about to be started and
// whose environment is set.
func (l *Lifeline) Attach(cmd *exec.Cmd) {
	fd := 3 + len(cmd.ExtraFiles) // after standard input, output and error
	cmd.ExtraFiles = append(cmd.ExtraFiles, l.read)
	cmd.Env = append(cmd.Env, env+"="+strconv.Itoa(fd))
}

// Forward passes the lifeline of this process, if it has one, to a command that outlives
// this process: the command then ends with the holder of the writing end.
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

// Close lets go of the children: those that watch will end themselves.
func (l *Lifeline) Close() {
	_ = l.write.Close() // closing a pipe cannot fail in a way that matters
	_ = l.read.Close()
}

// Watch calls gone once the parent has ended. It does nothing in a process that
// was not given a lifeline.
func Watch(gone func()) {
	fd, err := strconv.Atoi(os.Getenv(env))
	if err != nil {
		return
	}
	// Neither the descriptor nor its number is for this process's own children.
	syscall.CloseOnExec(fd)
	_ = os.Unsetenv(env)
	line := os.NewFile(uintptr(fd), "lifeline")
	go func() {
		_, _ = io.Copy(io.Discard, line)
		gone()
	}()
}
