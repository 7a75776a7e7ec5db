// Package unpack reads packings that few files have, in a worker of their own.
//
// Their decoders would be a tenth of what every first visit loads. So they are
// in a second program, unpack.wasm (./program), which the analysis worker starts
// when a file turns out to need it, from the same site and under the same
// policy. [Workers] is the analysis worker's side, [Serve] the other's.
//
// Both sides are sequential: each computes until it needs a message, and then
// waits for one, in order. Between them run two bounded streams:
//
//	analysis                      unpacker
//	begin (the packing)   ───→
//	                      ←───    ready (the version of this protocol)
//	packed (64 KiB)       ───→
//	                      ←───    took: a packed part was begun, send another
//	                      ←───    unpacked (256 KiB)
//	more                  ───→    an unpacked part was read, send another
//	ended, or broken      ───→    no packed bytes follow
//	                      ←───    whole, cut, damaged or stopped: the end
//
// No more than four parts are under way in either direction, so the memory of
// both sides is bounded whatever is unpacked; a run that is paused reads nothing
// and so stops its unpacker, too. Because neither side ever looks whether there
// is a message, but only waits for the next, how far the file is read depends on
// how much of the trace was (G. Kahn, "The semantics of a simple language for
// parallel programming", 1974), and not on which side is faster: checkpoints
// note how far the file was read.
//
// The analysis worker reads the file itself, as for any other packing, so
// hashing it, going on in it and errors of its disk work as they do there. An
// end is told in the terms of [open.Packing], so that it becomes the same
// [trace.DamageError]; an unpacker that cannot be had, or dies, is an
// [open.UnpackerError]. Whoever ends the analysis worker ends its unpackers.
package unpack
