package sma

import (
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

func load(site uint32, addr uint64, steps ...int64) loops.Item {
	return loops.Leaf(loops.Reference{Site: site, Bytes: 8, Kind: trace.Load}, addr, steps...)
}

// base is the address of the first array in these tests.
const base = 0x10000000
