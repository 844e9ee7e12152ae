//go:build !linux

package e2e

import "syscall"

// killWithParent has an effect on Linux only.
func killWithParent() *syscall.SysProcAttr { return nil }
