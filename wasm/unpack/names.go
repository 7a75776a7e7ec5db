package unpack

// Names are the packings that are unpacked in a worker. Gzip, which traces are
// packed in more often, stays with the page: its decoder is a fortieth of this
// program.
func Names() []string { return []string{"zstd", "xz"} }
