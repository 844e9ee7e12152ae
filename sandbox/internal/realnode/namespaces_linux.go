package realnode

import "syscall"

// newInitAttr returns the attributes of a node's first process: namespaces of its own, and the
// end of the process with the thread that starts it.
func newInitAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
}
