package folder

import (
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// tryLock locks a file until it is closed. The error is [ErrOwned] if another process has locked
// it.
func tryLock(file *os.File) error {
	const failAtOnce, exclusive, allBytes = 1, 2, ^uint32(0)
	const lockViolation = syscall.Errno(33)
	var from syscall.Overlapped
	done, _, err := lockFileEx.Call(file.Fd(), failAtOnce|exclusive, 0, uintptr(allBytes), uintptr(allBytes), uintptr(unsafe.Pointer(&from)))
	switch {
	case done != 0:
		return nil
	case err == lockViolation || err == syscall.ERROR_IO_PENDING:
		return ErrOwned
	}
	return err
}

// syncNames does nothing: Windows cannot flush folders, and keeps a journal of names.
func syncNames(*os.File) error { return nil }
