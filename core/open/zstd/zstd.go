// Package zstd lets package open read traces that are packed with Zstandard
// (RFC 8878). It is apart because it adds 180 KB to a compressed WebAssembly
// module.
//
// The library checks a frame's checksum before it hands out the frame's last
// block, up to 128 KiB of text, which is therefore not read when the checksum is
// wrong or cut off.
package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/core/open"
)

// Packing is Zstandard.
var Packing = open.Packing{Name: "zstd", New: newReader}

// windowBytes is the largest window that is read: what zstd --ultra --long=27
// writes at most and zstd -d reads without being told to.
const windowBytes = 128 << 20

// newReader unpacks in the caller's goroutine, with little memory.
func newReader(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowBytes))
}
