package unpack

// Names are the packings that are unpacked in a worker: all but LZ4.
func Names() []string { return []string{"gzip", "zstd", "xz"} }
