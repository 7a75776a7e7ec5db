//go:build unix

package capture

import (
	"io/fs"
	"os"
	"syscall"
)

// IsOwn reports whether a file belongs to the user.
func IsOwn(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Getuid()
}
