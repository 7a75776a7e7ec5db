// Package structures measures how a run uses its data structures (MODELS §15.3): the lifetimes of
// memory blocks, the accesses to each member of a structure, the members that are used together,
// and the accesses to each data structure by address and time.
//
// The analysis reads every record in order (see [contract.RowAppender]). The analysis therefore
// needs its own LRU stack, but no code for joining segments. Programs that run this analysis must
// import the package: see [contract.NewData].
//
//   - structures.go: the loop over the records of a batch
//   - lives.go: the lifetimes of memory blocks, and which of their bytes were read and written
//   - visits.go: which members of an element are used together
//   - maps.go: accesses by address and time
//   - result.go: the result, and the state of saved runs
package structures

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/sites"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// Analysis measures the use of data structures for one line size. Use [New] to create one; the zero
// value is not usable.
type Analysis struct {
	lineBytes uint32
	shift     uint
	program   func() *trace.Program
	finder    *sites.Finder
	absent    bool   // rows have no sites
	now       uint64 // number of references so far

	structures []structure  // distinct structures
	canonical  []uint32     // for each structure of the program: 1 + its index in the list of distinct structures
	roles      []accessRole // indexed by the finder's slot of the site

	uses     []dataUse // indexed by the number of the data structure
	elements []elements
	lives    blockTracker
	visits   visits
	maps     accessMaps

	model     *stack.Exact
	lines     []trace.Line // line accesses whose distances have not been computed yet
	owners    []owner      // the owner of each of these line accesses
	distances []uint32
}

// structure is a structure type, with a map from each byte of the structure to the member that
// contains the byte.
type structure struct {
	trace.Structure
	memberAt []uint16 // for each byte: the index of its member, or len(Members) for padding
}

// accessRole describes the structure member that a site accesses, as far as the code shows it, and
// the target of the site's latest reference.
type accessRole struct {
	structure, offset uint32 // 1 + the structure that the site accesses, or 0, and the offset of the access in the structure

	object, of, elements uint32 // elements is 1 + the index in Analysis.elements for this object and structure
}

type dataUse struct {
	known    bool
	heap     bool
	looked   bool   // the field declared has been determined
	declared uint32 // 1 + the structure of the elements if the program declares it, or 0
	lives    profile.BlockLives
	bytes    uint64   // number of bytes that are currently allocated
	ages     []uint64 // number of released blocks, by bin of lifetimes
	elements []uint32 // indices, in Analysis.elements, of the counts for this data structure
}

// elements counts the accesses to the elements of one structure type in one data structure.
type elements struct {
	object, structure uint32 // index in Analysis.structures
	starts            []uint64
	visits            uint64
	members           []member
	together          []uint64
}

type member struct {
	loads, stores, visits uint64
	bins                  *bins // nil: no line access so far
}

// bins counts line accesses by profile.SiteBin. The last bin counts cold accesses.
type bins [profile.SiteBins + 1]uint64

// owner identifies the counters for a line access: 1 + an index in Analysis.elements, or 0 if there
// is none; the member; and the cell of a map.
type owner struct {
	elements uint32
	member   uint16
	cell     cell
}

const pending = 4096 // number of line accesses whose distances are computed at the same time

var (
	_ contract.Analysis    = (*Analysis)(nil)
	_ contract.RowAppender = (*Analysis)(nil)
)

func init() {
	contract.NewData = func(lineBytes uint32, program func() *trace.Program) contract.Analysis {
		return New(lineBytes, program)
	}
}

// New returns an analysis for a line size in bytes, which must be a power of two. The function
// program returns the code that the trace's tables have described so far, or nil.
func New(lineBytes uint32, program func() *trace.Program) *Analysis {
	a := &Analysis{
		lineBytes: lineBytes, shift: uint(bits.TrailingZeros32(lineBytes)), program: program,
		model: stack.NewExact(), distances: make([]uint32, pending),
	}
	a.finder = sites.NewFinder(program, (*watcher)(a))
	a.visits.init()
	a.maps.init()
	return a
}

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	return contract.LayoutEvents, true, true
}

// Reads implements [contract.RowAppender].
func (a *Analysis) Reads() bool { return true }

// AppendRows implements [contract.RowAppender].
func (a *Analysis) AppendRows(b *trace.Batch) error { return a.Consume(b) }

// Append does nothing, because AppendRows receives the rows of the segment.
func (a *Analysis) Append(*profile.Profile) error { return nil }

// Close does nothing, because the result needs all data.
func (a *Analysis) Close() {}

// Consume implements [contract.Analysis].
func (a *Analysis) Consume(b *trace.Batch) error {
	if a.absent = a.absent || b.Site == nil; a.absent {
		return nil
	}
	a.addProgram()
	if err := a.finder.Begin(b); err != nil {
		return err
	}
	for i, kind := range b.Kind {
		switch {
		case kind.IsReference():
			a.reference(b, i, kind)
		case contract.LayoutEvents.Has(kind):
			a.finder.Event(b, i)
		}
	}
	a.computeDistances()
	return nil
}

// addProgram adds the structures that the trace has described since the last call.
func (a *Analysis) addProgram() {
	p := a.program()
	if p == nil {
		return
	}
	for n := len(a.canonical); n < len(p.Structures); n++ {
		a.canonical = append(a.canonical, a.structure(p.Structures[n])+1)
	}
}

// structure returns the index of a structure, and adds the structure if necessary.
func (a *Analysis) structure(s trace.Structure) uint32 {
	for i := range a.structures {
		if a.structures[i].Equal(s) {
			return uint32(i)
		}
	}
	of := structure{Structure: s, memberAt: make([]uint16, min(s.Bytes, profile.MostStructureBytes))}
	for i := range of.memberAt {
		of.memberAt[i] = uint16(len(s.Members))
	}
	for i, m := range s.Members {
		for at := m.Offset; at < m.Offset+m.Bytes && uint64(at) < uint64(len(of.memberAt)); at++ {
			if of.memberAt[at] == uint16(len(s.Members)) {
				of.memberAt[at] = uint16(i)
			}
		}
	}
	a.structures = append(a.structures, of)
	return uint32(len(a.structures) - 1)
}

// countedStructure returns 1 + the index of a structure, or 0 if the structure's members are not
// counted. The parameter is 1 + the number of the structure in the program.
func (a *Analysis) countedStructure(number uint32) uint32 {
	if number == 0 || uint64(number) > uint64(len(a.canonical)) {
		return 0
	}
	n := a.canonical[number-1]
	if s := &a.structures[n-1]; s.Bytes == 0 || s.Bytes > profile.MostStructureBytes || len(s.Members) == 0 || len(s.Members) >= profile.MostStructureBytes {
		return 0
	}
	return n
}

func (a *Analysis) roleOf(b *trace.Batch, i int) *accessRole {
	slot := a.finder.Slot(i)
	for uint64(slot) >= uint64(len(a.roles)) {
		a.roles = append(a.roles, accessRole{object: profile.NoSite})
	}
	r := &a.roles[slot]
	if r.object == profile.NoSite {
		r.object = 0
		if p := a.program(); p != nil && uint64(b.Site[i]) < uint64(len(p.Sites)) {
			r.structure, r.offset = a.countedStructure(p.Sites[b.Site[i]].Structure), p.Sites[b.Site[i]].Offset
		}
	}
	return r
}

// useOf returns the use of a data structure.
func (a *Analysis) useOf(object uint32) *dataUse {
	for uint64(object) >= uint64(len(a.uses)) {
		a.uses = append(a.uses, make([]dataUse, a.finder.Objects()-len(a.uses))...)
	}
	u := &a.uses[object]
	if !u.looked {
		a.findStructure(u, object)
	}
	return u
}

// findStructure determines the structure of a data structure's elements. findStructure is called
// for references, not when a saved run is restored, because the program is still unknown at that
// time.
func (a *Analysis) findStructure(u *dataUse, object uint32) {
	kind, number := a.finder.Describe(object)
	u.known, u.heap = true, kind == profile.HeapObject
	p := a.program()
	if p == nil {
		return
	}
	a.addProgram()
	switch {
	case u.heap && uint64(number) < uint64(len(p.Sites)):
		u.declared = a.countedStructure(p.Sites[number].Structure)
	case kind == profile.GlobalObject && uint64(number) < uint64(len(p.Objects)):
		u.declared = a.countedStructure(p.Objects[number].Structure)
	case number != profile.NoSite:
		return
	}
	u.looked = true
}

func (a *Analysis) reference(b *trace.Batch, i int, kind trace.Kind) {
	addr, bytes := b.Addr[i], uint64(max(b.Bytes[i], 1))
	if addr+bytes < addr {
		bytes = 1
	}
	object, block := a.finder.Find(i, addr)
	u := a.useOf(object)
	if a.now++; a.maps.isColumnFull(a.now) {
		a.computeDistances() // count the pending accesses before the column ends
		a.maps.nextColumn()
	}
	if u.heap && block != sites.Nowhere {
		a.lives.recordReference(a.finder, block, addr, bytes, kind)
	}
	base, of := a.elementAt(a.roleOf(b, i), u, object, block, addr)
	if of != 0 {
		a.countElement(of-1, base, addr, bytes, kind)
	} else {
		a.visits.skipReference(a)
	}
	last := (addr + bytes - 1) >> a.shift
	for line := addr >> a.shift; ; line++ {
		if len(a.lines) == pending {
			a.computeDistances()
		}
		first := max(addr, line<<a.shift)
		to := owner{elements: of, cell: a.maps.cellOf(a, object, first)}
		if of != 0 {
			to.member = a.structures[a.elements[of-1].structure].member(first - base)
		}
		a.lines, a.owners = append(a.lines, line), append(a.owners, to)
		if line == last {
			return
		}
	}
}

// elementAt returns the address of the element that a reference accesses, and 1 + an index in
// a.elements, or 0 if there is no element. If the program declares the structure of the block's
// elements, the address determines the element. Otherwise, the code determines the element.
func (a *Analysis) elementAt(r *accessRole, u *dataUse, object, block uint32, addr trace.Addr) (base trace.Addr, of uint32) {
	n := uint32(0)
	if u.declared != 0 && block != sites.Nowhere {
		size := a.structures[u.declared-1].Bytes
		if from, bytes, _ := a.finder.Block(block); bytes%size == 0 {
			n, base = u.declared, addr-(addr-from)%size
		}
	}
	if n == 0 {
		if r.structure == 0 {
			return 0, 0
		}
		n, base = r.structure, addr-trace.Addr(r.offset)
	}
	if r.elements == 0 || r.object != object || r.of != n {
		r.object, r.of, r.elements = object, n, a.elementsOf(u, object, n-1)+1
	}
	return base, r.elements
}

// elementsOf returns the index, in a.elements, of the counts for the elements of the given
// structure type in a data structure. It creates the counts if necessary.
func (a *Analysis) elementsOf(u *dataUse, object, structure uint32) uint32 {
	for _, n := range u.elements {
		if a.elements[n].structure == structure {
			return n
		}
	}
	s := &a.structures[structure]
	a.elements = append(a.elements, elements{
		object: object, structure: structure,
		starts: make([]uint64, a.lineBytes/profile.StartBytes), members: make([]member, len(s.Members)+1),
		together: make([]uint64, profile.Pairs(min(len(s.Members), profile.MostPaired))),
	})
	n := uint32(len(a.elements) - 1)
	u.elements = append(u.elements, n)
	return n
}

// member returns the index of the member that contains an offset, or the number of members if no
// member contains it.
func (s *structure) member(offset uint64) uint16 {
	if offset < uint64(len(s.memberAt)) {
		return s.memberAt[offset]
	}
	return uint16(len(s.Members))
}

// countElement counts a reference to an element. A reference to several members counts once for
// each of them.
func (a *Analysis) countElement(n uint32, base, addr trace.Addr, bytes uint64, kind trace.Kind) {
	e := &a.elements[n]
	s := &a.structures[e.structure]
	offset, rest := addr-base, len(s.Members)
	// the reference accesses several elements, or no element
	if offset >= s.Bytes || bytes > s.Bytes-offset {
		e.members[rest].count(kind)
		a.visits.skipReference(a)
		return
	}
	var used memberSet
	to := int(s.memberAt[offset])
	if to == rest || offset+bytes > uint64(s.Members[to].Offset)+uint64(s.Members[to].Bytes) {
		for i := range s.Members {
			if m := &s.Members[i]; offset < uint64(m.Offset)+uint64(m.Bytes) && uint64(m.Offset) < offset+bytes {
				e.members[i].count(kind)
				used.add(i)
				to = i
			}
		}
	} else {
		used.add(to)
		e.members[to].count(kind)
	}
	if to == rest { // padding
		e.members[rest].count(kind)
	}
	a.visits.recordElement(a, n, base, used)
}

func (m *member) count(kind trace.Kind) {
	switch kind {
	case trace.Store, trace.RangeWrite:
		m.stores++
	case trace.Modify:
		m.loads++
		m.stores++
	default:
		m.loads++
	}
}

// computeDistances computes the distances of the pending line accesses, and counts the accesses.
func (a *Analysis) computeDistances() {
	distances := a.distances[:len(a.lines)]
	a.model.Distances(a.lines, distances)
	for i, d := range distances {
		o := &a.owners[i]
		if o.elements != 0 {
			m := &a.elements[o.elements-1].members[o.member]
			if m.bins == nil {
				m.bins = new(bins)
			}
			if d == stack.Cold {
				m.bins[profile.SiteBins]++
			} else {
				m.bins[profile.SiteBin(d)]++
			}
		}
		a.maps.count(o.cell, d)
	}
	a.lines, a.owners = a.lines[:0], a.owners[:0]
}
