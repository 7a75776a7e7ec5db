// Package unpack reads less common compression formats in a separate worker, the decompressor.
//
// The decoders for these formats would make the download of every first visit 10 % larger. The
// decoders are therefore in a second program, unpack.wasm (./program), which is served by the same
// site and has the same content security policy. The analysis worker starts this program if a file
// needs it. [Workers] implements the analysis worker's side, and [Serve] the decompressor's.
//
// Both sides are sequential: each side computes until it needs a message, then waits for the next
// message, and handles messages in order. Two bounded streams connect the two sides:
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
// paused run reads nothing, so its decompressor also stops. Neither side polls for messages. The
// position in the file therefore depends only on the position in the trace, and not on the relative
// speed of the two sides. Checkpoints require this determinism, which is a property of Kahn process
// networks (G. Kahn, "The semantics of a simple language for parallel programming", 1974).
//
// The analysis worker reads the file itself, so checksums, resuming and disk errors work as for
// other files. A stream ends as [open.Packing] specifies. Truncated or damaged data results in a
// [trace.DamageError]; a missing or dead decompressor results in an [open.UnpackerError]. Ending
// the analysis worker also ends its decompressors.
package unpack
