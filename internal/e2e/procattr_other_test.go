//go:build !linux

package e2e

import "syscall"

// dieWithParent is for kernels that can do so.
func dieWithParent() *syscall.SysProcAttr { return nil }
