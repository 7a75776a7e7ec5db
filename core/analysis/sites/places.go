package sites

import (
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// places maps sites and objects to indices in profiles, for other analyses.
type places struct {
	codeAt, dataAt []uint32 // of the latest result: 1 + the index in the profile; 0: not there
	slots, objects []uint32 // of the latest profile that was loaded: by index in it
}

// Locate makes the analysis find where the block of each reference begins, or not: see
// [Analysis.Rows].
func (a *Analysis) Locate(begins bool) {
	if !begins {
		a.begins = nil
	} else if a.begins == nil {
		a.begins = make([]trace.Addr, len(a.rows))
	}
}

// Rows returns the pairs of the latest batch's references, and where their blocks of memory
// begin: 0 outside of blocks. Both are nil if the trace tells no sites.
func (a *Analysis) Rows() (pairs []uint32, begins []trace.Addr) {
	if a.absent {
		return nil, nil
	}
	return a.rows, a.begins
}

// Pair gives the slot of a pair's site, and its object.
func (a *Analysis) Pair(number uint32) (slot, object uint32) {
	p := a.pairs[number]
	return p.slot, p.object
}

// PairOf gives the number of a pair, a new one if need be.
func (a *Analysis) PairOf(slot, object uint32) uint32 { return a.pairNumber(pair{slot, object}) }

// Code gives a site's index in the latest result.
func (a *Analysis) Code(slot uint32) uint32 { return indexIn(a.places.codeAt, slot) }

// Data gives an object's index in the latest result.
func (a *Analysis) Data(object uint32) uint32 { return indexIn(a.places.dataAt, object) }

func indexIn(list []uint32, n uint32) uint32 {
	if uint64(n) >= uint64(len(list)) || list[n] == 0 {
		return profile.NoSite
	}
	return list[n] - 1
}

// Slot returns the slot of a site by its index in the profile that was loaded last, noSlot if
// it is not there.
func (a *Analysis) Slot(code uint32) uint32 {
	if uint64(code) < uint64(len(a.places.slots)) {
		return a.places.slots[code]
	}
	return noSlot
}

// Object returns the number of an object in the same way; the rest if the profile has no
// objects.
func (a *Analysis) Object(data uint32) uint32 {
	if uint64(data)+1 < uint64(len(a.places.objects)) {
		return a.places.objects[data+1]
	}
	if a.absent || len(a.places.slots) == 0 {
		return noObject
	}
	return rest
}

// begin returns where the block of a reference begins, 0 outside of named blocks. Its site
// remembers a block.
func (a *Analysis) begin(block uint32, addr trace.Addr) trace.Addr {
	m := &a.memory
	if block == everywhere || !m.holds(block, addr) {
		block = m.blockAt(addr)
	}
	o := &m.objects[m.objectOf[block]]
	if o.kind == profile.OtherObject || o.kind == profile.StackObject && o.function == "" && o.name == "" {
		return 0
	}
	return m.blocks[block].from
}
