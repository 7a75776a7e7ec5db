//go:build !linux

package pool

import "syscall"

// dieWithParent has no counterpart here: a worker ends when its control
// connection breaks.
func dieWithParent() *syscall.SysProcAttr { return nil }
