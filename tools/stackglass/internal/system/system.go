// Package system contains the code that differs between operating systems: file locks and error
// numbers.
package system

import (
	"errors"
	"slices"
	"syscall"
)

// ErrLocked means that another process has locked a file.
var ErrLocked = errors.New("the file is locked by another process")

// IsFull reports whether err means that a disk, a quota or the memory is full.
func IsFull(err error) bool { return isOneOf(err, fullErrors[:]) }

// IsAddressInUse reports whether err means that another program is listening on the address.
func IsAddressInUse(err error) bool { return isOneOf(err, inUseErrors[:]) }

func isOneOf(err error, numbers []syscall.Errno) bool {
	return slices.ContainsFunc(numbers, func(number syscall.Errno) bool { return errors.Is(err, number) })
}
