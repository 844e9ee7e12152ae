//go:build !linux

package e2e

import "syscall"

// dieWithParent has an effect on Linux only.
func dieWithParent() *syscall.SysProcAttr { return nil }
