package capture

import "io/fs"

// IsOwn reports whether a file belongs to the user. On Windows, each user has a separate folder for
// temporary files.
func IsOwn(fs.FileInfo) bool { return true }
