// Package unpack reads less common compression formats in a separate worker, the decompressor.
//
// The decoders would add a tenth to the download of every first visit. So they are in a second
// program, unpack.wasm (./program), which the analysis worker starts if a file needs it, from the
// same site and under the same policy. [Workers] is the side of the analysis worker, [Serve] that
// of the decompressor.
//
// Both sides are sequential: each computes until it needs a message, and then waits for one, in
// order. Two bounded streams connect them:
//
//	analysis                      decompressor
//	begin (the compression) ───→
//	                        ←───  ready (the version of this protocol)
//	packed (64 KiB)         ───→
//	                        ←───  took: a compressed part was begun, send another
//	                        ←───  unpacked (256 KiB)
//	more                    ───→  a decompressed part was read, send another
//	ended, or broken        ───→  no compressed bytes follow
//	                        ←───  whole, cut, damaged or stopped: the end
//
// At most four parts are in transit in either direction, which limits the memory of both sides. A
// paused run reads nothing, which stops its decompressor. Neither side polls for messages; each
// only waits for the next one. So the position in the file, which checkpoints record, depends only
// on the position in the trace and not on which side is faster (G. Kahn, "The semantics of a simple
// language for parallel programming", 1974).
//
// The analysis worker reads the file itself, so hashing, resuming and disk errors work as for other
// files. A stream ends as [open.Packing] specifies. Cut or damaged data result in a
// [trace.DamageError], and a missing or dead decompressor in an [open.UnpackerError]. Ending the
// analysis worker also ends its decompressors.
package unpack
