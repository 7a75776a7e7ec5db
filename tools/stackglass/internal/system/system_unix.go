//go:build unix

package system

import (
	"errors"
	"os"
	"syscall"
)

var (
	fullErrors  = [...]syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.ENOMEM}
	inUseErrors = [...]syscall.Errno{syscall.EADDRINUSE}
)

// TryLock locks a file until it is closed. The error is [ErrLocked] if another process has locked
// the file.
func TryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return ErrLocked
	}
	return err
}

// RemoveLocked removes a file that this process has locked, and then closes it. The file is removed
// first, because another process could lock the file as soon as this process closes it.
func RemoveLocked(file *os.File) {
	_ = os.Remove(file.Name())
	file.Close()
}

// SyncNames flushes the file names in a folder to the disk, if the system supports this.
func SyncNames(folder *os.File) error {
	err := folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
