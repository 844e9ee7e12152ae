//go:build !linux

package supervisor

import "syscall"

// procAttr gives the component a process group of its own, so that a Ctrl-C in
// a terminal does not reach it and a stop reaches all that it started. Without
// the kernel's help the lifeline alone ties the component to its supervisor.
func procAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
