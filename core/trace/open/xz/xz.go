// Package xz lets package open read traces that are packed with xz. It is apart
// because it adds 120 KB to a compressed WebAssembly module.
package xz

import (
	"io"

	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/ulikunitz/xz"
)

// Packing is xz.
var Packing = open.Packing{Name: "xz", New: func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) }}
