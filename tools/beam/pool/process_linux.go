package pool

import "syscall"

// dieWithParent asks the kernel to kill the process when the thread that
// started it ends; see worker.run, which holds that thread.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
