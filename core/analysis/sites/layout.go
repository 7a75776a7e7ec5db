package sites

import (
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
)

// Block is a block of memory in a layout.
type Block = contract.Block

// Layout returns where blocks lie, by address, except those that the program's tables declare.
func (a *Analysis) Layout() []Block {
	list := make([]Block, 0, 64)
	for _, piece := range a.memory.placed.pieces {
		for _, p := range piece {
			of := &a.memory.objects[a.memory.objectOf[p.block]]
			if of.kind == profile.GlobalObject {
				continue
			}
			at := a.memory.blocks[p.block]
			b := Block{From: at.from, Bytes: at.bytes, Kind: of.kind, Function: of.function, Name: of.name}
			if of.kind == profile.HeapObject {
				b.Site = of.number
			}
			list = append(list, b)
		}
	}
	return list
}

// Lay has blocks lie as in a layout, of the same trace, on top of what the tables declare.
func (a *Analysis) Lay(layout []Block) {
	a.learn()
	for i := range layout {
		b := &layout[i]
		of := uint32(noObject)
		if b.Kind == profile.HeapObject {
			of = a.memory.object(objectKey{kind: profile.HeapObject, number: b.Site})
		} else {
			of = a.memory.local(b.Function, b.Name)
		}
		a.memory.place(of, b.From, b.Bytes)
	}
}
