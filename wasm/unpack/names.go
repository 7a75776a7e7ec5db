package unpack

// Names are the packings that are unpacked in a worker. Gzip, which traces are
// packed in more often, stays with the page: its decoder is a fortieth of this
// program.
func Names() []string { return []string{"zstd", "xz"} }

// Description is no packing, but goes the same way: what goes in is a file that
// describes a hierarchy of caches, what comes out one cache a line, and notes
// behind #. Its readers are as large as half of the decoders, and as seldom
// needed.
const Description = "description"

// Export goes the same way: what goes in is an export.Request as bytes, what comes
// out the file that it asks for.
const Export = "export"

// Models is what the global scopes of workers are called in which the same program is a
// workers.ModelHost: the compute-node models are as large as the decoders, and as seldom
// needed.
const Models = "models"
