// Package unpack reads compressions that few files have, in a worker of their own, the decompressor.
//
// The decoders would be a tenth of the bytes of every first visit. So they are in a second program,
// unpack.wasm (./program), which the analysis worker starts if a file needs it, from the same site and under
// the same policy. [Workers] is the analysis worker's side, [Serve] the other's.
//
// Both sides are sequential: each computes until it needs a message, and then waits for one, in order.
// Between them run two bounded streams:
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
// At most four parts are in transit in either direction, which limits the memory of both sides; a paused run
// reads nothing and so stops its decompressor. Neither side polls for messages; each only waits for the next.
// So the position in the file depends only on the position in the trace (G. Kahn, "The semantics of a simple
// language for parallel programming", 1974), and not on which side is faster. Checkpoints record it.
//
// The analysis worker reads the file itself, so hashing it, resuming in it and errors of its disk work as for
// other files. The ends are as in [open.Packing], and cut or damaged data become a [trace.DamageError]; a
// decompressor that is missing or dies is an [open.UnpackerError]. Whoever ends the analysis worker ends its
// decompressors.
package unpack
