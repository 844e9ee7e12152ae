package e2e

import "syscall"

// dieWithParent makes the kernel end a process when this one ends without
// cleaning up, as a test does that panics or runs out of time.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
