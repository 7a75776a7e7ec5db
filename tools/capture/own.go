package capture

import (
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// ownKinds are the runtime's own events, a block with one site each, in the order
// of sg_own in runtime/runtime.h.
var ownKinds = [...]trace.Kind{trace.ThreadStart, trace.ThreadEnd, trace.RegionBegin, trace.RegionEnd}

// ownTables is the body of the MODL frame of the runtime's own blocks.
func ownTables() []byte {
	p := &trace.Program{Modules: []trace.Module{{Name: "stackglass runtime"}}}
	for i, kind := range ownKinds {
		p.Blocks = append(p.Blocks, trace.Block{
			Function:  trace.NoFunction,
			Flags:     trace.Synthetic,
			FirstSite: uint32(i),
			Sites:     1,
		})
		p.Sites = append(p.Sites, trace.Site{Kind: kind, Block: uint32(i)})
	}
	return sgt.AppendModule(nil, p)
}
