package supervisor

import "syscall"

// newProcAttr gives the component a process group of its own, so that a Ctrl-C in
// a terminal does not reach it, and a stop also reaches its child processes.
func newProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
