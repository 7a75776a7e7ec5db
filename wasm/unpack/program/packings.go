package main

import (
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/open/gzip"
	"github.com/stackglass/stackglass/core/open/snappy"
	"github.com/stackglass/stackglass/core/open/xz"
	"github.com/stackglass/stackglass/core/open/zip"
	"github.com/stackglass/stackglass/core/open/zstd"
)

// packings lists the decoders in the order of unpack.Names.
var packings = []open.Packing{gzip.Packing, zstd.Packing, xz.Packing, zip.Packing, snappy.Packing}
