package capture

import "io/fs"

// Sources has the runtime's sources in folder runtime, for others who write
// containers from C.
func Sources() fs.FS { return sources }

// Caches are the folders that may keep what is compiled once, the best first.
func Caches() []string { return caches() }
