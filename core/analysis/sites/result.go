package sites

import (
	"cmp"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Result implements [contract.Analysis].
func (a *Analysis) Result(p *profile.Profile, state bool) {
	if a.absent || len(a.code.list) == 1 {
		return // there are no references, or the trace has no sites
	}
	a.addProgram()
	a.code.nameFiles()
	s := summary{a: a, bySlot: make([][]uint32, len(a.code.list)), byObject: make([][]uint32, len(a.memory.objects))}
	s.group()
	p.Sites = &profile.Sites{
		LineBytes: a.options.LineBytes, Capacities: slices.Clone(a.options.Capacities), Ways: slices.Clone(a.options.Ways), Previous: a.options.Previous,
		Code: s.code(), Data: s.data(),
	}
	p.Sites.Covered = s.covered()
	p.Sites.Coherent = s.coherent(p.Sites)
	p.Calls = a.calls(state)
	if a.timeline.counting() {
		p.Timeline = a.timeline.result(&s, p)
	}
	a.places.codeAt, a.places.dataAt = s.codeAt, s.dataAt
	if state {
		s.numberPaths()
		p.Segment.Sites, p.Segment.Moves = s.state(p.Sites, p.Calls)
	}
}

// summary adds up the counts of pairs by site and by object.
type summary struct {
	a                *Analysis
	bySlot, byObject [][]uint32 // pairs of each site and of each object
	used             []profile.Utilisation
	before           [][]beforeCount // indexed by pair

	order  []uint32          // the slot of each site, in the order of the profile
	codeAt []uint32          // for each slot: 1 + the index of the site in the profile
	pathAt map[uint32]uint32 // for each list of bins that belongs to a call path: the index of the call path in the profile
	// for each object: 1 + its index in the profile; 0 for the object rest if there is no other
	// object
	dataAt []uint32
}

type beforeCount struct {
	slot  uint32
	count uint64
}

func (s *summary) group() {
	for n, p := range s.a.pairs {
		s.bySlot[p.slot] = append(s.bySlot[p.slot], uint32(n))
		s.byObject[p.object] = append(s.byObject[p.object], uint32(n))
	}
	if l := s.a.lines; l != nil {
		s.used = l.utilisation()
		s.before = make([][]beforeCount, len(s.a.pairs))
		for key, n := range l.before {
			s.before[key.pair] = append(s.before[key.pair], beforeCount{key.slot, n})
		}
	}
}

func (s *summary) code() []profile.Site {
	list := s.a.code.list
	for slot := range list[1:] {
		s.order = append(s.order, uint32(slot+1))
	}
	sort.Slice(s.order, func(a, b int) bool {
		x, y := &list[s.order[a]], &list[s.order[b]]
		return cmp.Or(cmp.Compare(x.number, y.number), cmp.Compare(x.pc, y.pc), cmp.Compare(x.kind, y.kind)) < 0
	})
	s.codeAt = make([]uint32, len(list))
	for i, slot := range s.order {
		s.codeAt[slot] = uint32(i + 1)
	}
	out := make([]profile.Site, len(s.order))
	for i, slot := range s.order {
		out[i] = s.a.code.describe(slot)
		out[i].Strides = list[slot].base
		for c, n := range s.a.threads.counts(slot) {
			out[i].Strides[c] += n
		}
		out[i].Reuse = s.reuse(s.bySlot[slot])
	}
	return out
}

func (s *summary) reuse(pairs []uint32) profile.Reuse {
	var sum [coldBin + 1]uint64
	for _, n := range pairs {
		s.a.bins.addTo(&sum, n)
	}
	r := reuse(&sum)
	if s.used == nil {
		return r
	}
	if len(s.a.options.Capacities) > 0 {
		r.Used = s.sumUtilisation(pairs, s.used)
	}
	before := map[uint32]uint64{}
	for _, n := range pairs {
		for _, b := range s.before[n] {
			before[s.codeAt[b.slot]-1] += b.count
		}
	}
	for site, n := range before {
		if n != 0 {
			r.Before = append(r.Before, profile.SiteCount{Site: site, Count: n})
		}
	}
	sort.Slice(r.Before, func(i, j int) bool { return r.Before[i].Site < r.Before[j].Site })
	return r
}

// sumUtilisation adds up the line utilisation of pairs for each capacity. The parameter used is
// indexed by pair and capacity.
func (s *summary) sumUtilisation(pairs []uint32, used []profile.Utilisation) []profile.Utilisation {
	sum := make([]profile.Utilisation, len(s.a.options.Capacities))
	for _, n := range pairs {
		addUsed(sum, used[int(n)*len(sum):][:len(sum)])
	}
	return sum
}

func addUsed(to, used []profile.Utilisation) {
	for c, u := range used {
		to[c].Fetched += u.Fetched
		to[c].BytesUsed += u.BytesUsed
	}
}

// data returns the objects, or nil if there is no object other than the object rest.
func (s *summary) data() []profile.DataObject {
	var list []profile.DataObject
	var objects []uint32
	for n := rest; n < len(s.a.memory.objects); n++ {
		o := s.object(uint32(n))
		if o.Reuse.Accesses() != 0 || s.a.memory.objects[n].blocks != 0 || s.a.options.Unfed && len(s.byObject[n]) > 0 {
			list, objects = append(list, o), append(objects, uint32(n))
		}
	}
	s.dataAt = make([]uint32, len(s.a.memory.objects))
	if len(objects) == 0 || len(objects) == 1 && objects[0] == rest {
		return nil
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(i, j int) bool { return profile.CompareObjects(&list[order[i]], &list[order[j]]) < 0 })
	sorted := make([]profile.DataObject, len(list))
	for at, i := range order {
		sorted[at] = list[i]
		s.dataAt[objects[i]] = uint32(at + 1)
	}
	return sorted
}

func (s *summary) object(n uint32) profile.DataObject {
	out := s.a.memory.describe(n, &s.a.code)
	out.Reuse = s.reuse(s.byObject[n])
	out.References = out.Reuse.Accesses()
	for _, pair := range s.byObject[n] {
		out.References -= s.a.extra[pair]
	}
	return out
}

func (m *memory) describe(n uint32, c *code) profile.DataObject {
	o := &m.objects[n]
	out := profile.DataObject{Kind: o.kind, Number: o.number, Function: o.function, Name: o.name, Blocks: o.blocks, Bytes: o.bytes}
	switch {
	case o.before != nil:
		out = *o.before
		out.Reuse = profile.Reuse{}
		if o.kind != profile.GlobalObject {
			out.Blocks, out.Bytes = o.blocks, o.bytes
		}
	case o.number == profile.NoSite:
	case o.kind == profile.HeapObject:
		about := &c.program.Sites[o.number]
		out.Name, out.Function, out.Line = about.Object, c.functionName(about), about.Place.Line
	case o.kind == profile.GlobalObject:
		about := &c.program.Objects[o.number]
		out.Name, out.Bytes, out.Line = about.Name, about.Bytes, about.Place.Line
	}
	out.File = c.objectFile(o)
	return out
}

// objectFile returns the file name of an allocation or a global variable. If the program is
// unknown, it returns the name from the restored run or from an appended segment.
func (c *code) objectFile(o *object) string {
	switch p := c.program; {
	case p == nil:
	case o.kind == profile.HeapObject && uint64(o.number) < uint64(len(p.Sites)):
		return c.names[p.Sites[o.number].Place.File]
	case o.kind == profile.GlobalObject && uint64(o.number) < uint64(len(p.Objects)):
		return c.names[p.Objects[o.number].Place.File]
	}
	return o.file
}

// profileIndices maps sites and objects to their indices in profiles, for other analyses.
type profileIndices struct {
	codeAt, dataAt []uint32 // 1 + the index in the latest profile that was computed; 0: not in this profile
	slots, objects []uint32 // slots and objects by their indices in the profile that was loaded last
}

// Locate sets whether the analysis determines the first address of each reference's memory block:
// see [Analysis.Rows].
func (a *Analysis) Locate(begins bool) {
	if !begins {
		a.begins = nil
	} else if a.begins == nil {
		a.begins = make([]trace.Addr, len(a.rows))
	}
}

// Rows returns two lists with an element for each reference of the latest batch. The first list,
// pairs, contains the number of the reference's pair of site and data object. The second list,
// begins, contains the first address of the accessed memory block, or 0 if the reference accesses
// no block. Both lists are nil if the trace has no sites.
func (a *Analysis) Rows() (pairs []uint32, begins []trace.Addr) {
	if a.absent {
		return nil, nil
	}
	return a.rows, a.begins
}

// Pair returns the members of a pair: the slot of the site, and the data object.
func (a *Analysis) Pair(number uint32) (slot, object uint32) {
	p := a.pairs[number]
	return p.slot, p.object
}

// Plain returns the pair with the same members for accesses that no prefetcher covers.
func (a *Analysis) Plain(number uint32) uint32 { return a.plainPair(number) }

// PairOf returns the number of the pair of a slot and an object. PairOf assigns a number to a new
// pair.
func (a *Analysis) PairOf(slot, object uint32) uint32 {
	return a.pairNumber(pair{slot: slot, object: object})
}

// Code returns the index of a site in the latest result.
func (a *Analysis) Code(slot uint32) uint32 { return indexIn(a.places.codeAt, slot) }

// Data returns the index of an object in the latest result.
func (a *Analysis) Data(object uint32) uint32 { return indexIn(a.places.dataAt, object) }

func indexIn(list []uint32, n uint32) uint32 {
	if uint64(n) >= uint64(len(list)) || list[n] == 0 {
		return profile.NoSite
	}
	return list[n] - 1
}

// Slot returns the slot of the site with the given index in the profile that was loaded last, or
// noSlot.
func (a *Analysis) Slot(code uint32) uint32 {
	if uint64(code) < uint64(len(a.places.slots)) {
		return a.places.slots[code]
	}
	return noSlot
}

// Object returns the number of the object with the given index in the profile that was loaded last.
// If the profile has no such object, Object returns the number of the object for all other data.
func (a *Analysis) Object(data uint32) uint32 {
	if uint64(data)+1 < uint64(len(a.places.objects)) {
		return a.places.objects[data+1]
	}
	if a.absent || len(a.places.slots) == 0 {
		return noObject
	}
	return rest
}

// blockBegin returns the first address of a reference's memory block, or 0 if the reference is
// outside all blocks with names. The parameter block is the block that the site of the reference
// remembers.
func (a *Analysis) blockBegin(block uint32, addr trace.Addr) trace.Addr {
	m := &a.memory
	if block == everywhere || !m.contains(block, addr) {
		block = m.blockAt(addr)
	}
	o := &m.objects[m.objectOf[block]]
	if o.kind == profile.OtherObject || o.kind == profile.StackObject && o.function == "" && o.name == "" {
		return 0
	}
	return m.blocks[block].from
}
