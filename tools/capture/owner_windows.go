package capture

import "io/fs"

// isOwn reports whether a file belongs to the user. On Windows, each user has a separate folder for
// temporary files.
func isOwn(fs.FileInfo) bool { return true }
