// Package zstd adds Zstandard decompression (RFC 8878) to package open. The package increases the
// compressed size of a WebAssembly program by 180 KB.
//
// The imported library verifies a frame's checksum before it returns the frame's last block. If the
// checksum is wrong or missing, the last block, with up to 128 KiB of text, is lost.
package zstd

import (
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/stackglass/stackglass/core/open"
)

// Packing is the Zstandard compression.
var Packing = open.Packing{Name: "zstd", New: newReader}

// windowBytes is the maximum window size: zstd --ultra --long=27 writes windows of this size, and
// zstd -d accepts no larger windows by default.
const windowBytes = 128 << 20

// newReader returns a reader that decompresses in the caller's goroutine and uses little memory.
func newReader(r io.Reader) (io.Reader, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(windowBytes))
}
