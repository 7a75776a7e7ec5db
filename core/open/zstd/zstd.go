// Package zstd adds the decompression of Zstandard (RFC 8878) to package open. It increases the
// compressed size of a WebAssembly program by 180 KB.
//
// The library checks a frame's checksum before it returns the frame's last block. If the checksum
// is wrong or missing, this block of up to 128 KiB of text is lost.
package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/core/open"
)

// Packing is the Zstandard compression.
var Packing = open.Packing{Name: "zstd", New: newReader}

// windowBytes is the maximum window size: the size that zstd --ultra --long=27 writes, and the
// maximum that zstd -d accepts by default.
const windowBytes = 128 << 20

// newReader returns a reader that decompresses in the caller's goroutine and uses little memory.
func newReader(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowBytes))
}
