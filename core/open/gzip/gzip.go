// Package gzip adds gzip decompression (RFC 1952) to package open. The package increases the
// compressed size of a WebAssembly program by 8 KB.
package gzip

import (
	"compress/gzip"
	"io"

	"github.com/stackglass/stackglass/core/open"
)

// Packing is the gzip compression.
var Packing = open.Packing{Name: "gzip", New: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
