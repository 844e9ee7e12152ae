package e2e

import "syscall"

// dieWithParent makes the kernel kill a child process when its parent ends without cleaning up,
// as a test does that panics or exceeds its time limit.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
