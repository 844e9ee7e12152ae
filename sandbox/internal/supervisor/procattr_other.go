//go:build !linux

package supervisor

import "syscall"

// procAttr gives the component a process group of its own, so that a Ctrl-C in
// a terminal does not reach it, and a stop also reaches its child processes. These
// kernels have no parent-death signal: only the lifeline ends the component with its
// supervisor.
func procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
