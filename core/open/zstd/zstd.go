// Package zstd lets package open read traces that are compressed with Zstandard (RFC 8878). It adds
// 180 KB to a compressed WebAssembly module.
//
// The library checks a frame's checksum before it returns the frame's last block, up to 128 KiB of
// text, which is lost if the checksum is wrong or cut off.
package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/core/open"
)

// Packing is Zstandard.
var Packing = open.Packing{Name: "zstd", New: newReader}

// windowBytes is the largest window that is read: the largest that zstd --ultra --long=27 writes and
// zstd -d reads by default.
const windowBytes = 128 << 20

// newReader decompresses in the caller's goroutine, with little memory.
func newReader(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowBytes))
}
