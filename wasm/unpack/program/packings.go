package main

import (
	"github.com/stackglass/stackglass/core/trace/open"
	"github.com/stackglass/stackglass/core/trace/open/xz"
	"github.com/stackglass/stackglass/core/trace/open/zstd"
)

// packings are those of unpack.Names.
var packings = []open.Packing{zstd.Packing, xz.Packing}
