package e2e

import "syscall"

// killWithParent makes the kernel kill a child process when its parent ends without cleaning up,
// as a test does that panics or exceeds its time limit.
func killWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
