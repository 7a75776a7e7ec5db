//go:build unix

package folder

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file until it is closed. The error is [ErrOwned] if another process has locked
// it.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return ErrOwned
	}
	return err
}

// syncNames flushes the names in a folder to the disk, if the system supports it.
func syncNames(folder *os.File) error {
	err := folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
