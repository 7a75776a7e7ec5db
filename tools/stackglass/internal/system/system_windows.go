package system

import (
	"os"
	"syscall"
	"unsafe"
)

// Error numbers for which package syscall defines no names. Windows never returns the constants of
// that package, such as syscall.ENOSPC.
const (
	errorLockViolation    = syscall.Errno(33)
	errorHandleDiskFull   = syscall.Errno(39)
	errorDiskFull         = syscall.Errno(112)
	errorNotEnoughMemory  = syscall.Errno(8)
	errorDiskQuota        = syscall.Errno(1295)
	errorCommitmentLimit  = syscall.Errno(1455)
	errorFileTooLarge     = syscall.Errno(223)
	socketAddressInUse    = syscall.Errno(10048)
	socketAddressReserved = syscall.Errno(10013) // the port is reserved, or in exclusive use
)

var (
	fullErrors = [...]syscall.Errno{errorHandleDiskFull, errorDiskFull, errorDiskQuota, errorFileTooLarge,
		errorNotEnoughMemory, errorCommitmentLimit, syscall.ENOSPC}
	inUseErrors = [...]syscall.Errno{socketAddressInUse, socketAddressReserved}
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

// TryLock locks a file until it is closed. The error is [ErrLocked] if another process has locked
// the file.
func TryLock(file *os.File) error {
	const failAtOnce, exclusive, allBytes = 1, 2, ^uint32(0)
	var from syscall.Overlapped
	done, _, err := lockFileEx.Call(file.Fd(), failAtOnce|exclusive, 0, uintptr(allBytes), uintptr(allBytes), uintptr(unsafe.Pointer(&from)))
	switch {
	case done != 0:
		return nil
	case err == errorLockViolation || err == syscall.ERROR_IO_PENDING:
		return ErrLocked
	}
	return err
}

// RemoveLocked closes a file that this process has locked, and removes it. Windows does not remove
// open files. If another process has opened the file in the meantime, that process removes it
// later.
func RemoveLocked(file *os.File) {
	file.Close()
	_ = os.Remove(file.Name())
}

// SyncNames does nothing. Windows cannot flush folders, and protects file names by a journal.
func SyncNames(*os.File) error { return nil }
