// Package gzip lets package open read traces that are compressed with gzip (RFC 1952). It adds 8 KB
// to a compressed WebAssembly module.
package gzip

import (
	"compress/gzip"
	"io"

	"github.com/stackglass/stackglass/core/open"
)

// Packing is the gzip compression.
var Packing = open.Packing{Name: "gzip", New: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) }}
