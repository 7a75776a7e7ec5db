// Package sites splits the histogram of stack distances by the source location of each line access,
// and by the accessed data (MODELS §15).
//
// A site is a load or a store in the code. Some traces number their sites, for example traces
// recorded with "stackglass cc" or "stackglass trace". In other traces, a site is the address of an
// instruction together with the kind of its reference. For each site, the analysis reports
//
//   - the number of accesses at each stack distance, in bins: one bin for cold accesses, and four
//     bins per power of two (profile.SiteBin). The sum over all sites is the histogram of the
//     trace. The misses of a site in a fully associative LRU cache are exact if the capacity is a
//     bin boundary. Package attribution estimates the misses for other capacities.
//   - the strides: the address of each reference minus the previous address of the same site in the
//     same thread. A stride is zero, unit (to the adjacent bytes in either direction), constant
//     (equal to the previous stride), or irregular. The first stride of a site counts as irregular.
//   - the accesses that a prefetcher covers (prefetch.go), in the same bins.
//   - on request, the line utilisation in chosen LRU caches: the bytes of a fetched line that are
//     used before the line misses again or the trace ends, attributed to the site that fetched the
//     line. The misses of each site in the chosen caches are therefore exact, even for
//     set-associative caches.
//   - on request, for distances of 16 or more, the sites that made the previous access to the same
//     line. Kulkarni (section 4.1.1) calls this information "what was executed between use and
//     reuse".
//
// If the trace has several cores, accesses are also counted on the coherent stack of their core
// (cores.go; package sharing). Three kinds of accesses are counted: a core's first accesses to
// lines; coherence misses, by the depth at which another core's store invalidated the line; and all
// other accesses, by their depth. From these counts, the misses of each site in private caches can
// be computed. corelines.go measures line utilisation in private caches.
//
// All of these results except strides are also reported for data objects:
//
//   - heap blocks, by allocation site, from their allocation to their release;
//   - global variables with an address;
//   - local variables, by name if the code names the accessed variable. Accesses to local arrays
//     and structures are also recognised by address, from the entry of the function until the
//     memory is reused. Every other access to a call stack is attributed to one object, the call
//     stack of the thread;
//   - all other data, as one object.
//
// If only part of a trace is analysed, heap blocks that were allocated before this part belong to
// the object for all other data. A mergeable profile can be joined with the profiles of other
// segments of the trace. Mergeable profiles do not distinguish heap blocks, because a segment does
// not contain the allocations of earlier heap blocks.
//
// # Method
//
// [Analysis.Consume] reads references and allocations in order. Consume finds the site and the
// object of each reference, and assigns a number to each pair of a site and an object. Successive
// references of a site usually belong to the same pair, because their addresses lie in the same
// object. Package locality then divides these references into line accesses, and computes the
// distance of each access. [Analysis.Follow] counts the distances for each pair of a site and an
// object. The results of sites and objects are sums over these pairs.
//
// MODELS §1 defines how fetches, modifies and ranges are counted. Segments are joined as in
// MODELS §9 (state.go).
package sites

import (
	"math/bits"

	"github.com/stackglass/stackglass/core/analysis/branches"
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Options selects the measurements.
type Options struct {
	LineBytes  uint32
	Capacities []uint64           // ascending capacities, in lines, of the caches in which line utilisation is measured; at most profile.MaxCapacities
	Ways       []uint32           // number of ways of each cache; 0: fully associative
	Previous   bool               // record which site made the previous access to a line
	Mergeable  bool               // record the data that Append needs
	Cores      bool               // package sharing reports the depths of accesses on the stacks of cores
	Callers    *branches.Analysis // determines the call paths of references; nil: paths are not counted
	// Follows is true if the framework will call Lay, so that the analysis of a segment can
	// distinguish objects.
	Follows bool
	Segment bool // the analysis does not begin at the start of the trace
	// Unfed is true if package locality does not pass its accesses to the analysis, which then only
	// finds the sites and data objects of references.
	Unfed bool
	// TimelinePlaces limits the size of the timeline: see [profile.MostTimelinePlaces]. 0 means that
	// accesses are not counted over time.
	TimelinePlaces int
}

// Analysis implements the analysis of sites. Analysis receives line accesses with their stack
// distances from package locality.
type Analysis struct {
	options Options
	program func() *trace.Program
	known   *trace.Program // the program, as far as it is known

	code    code
	memory  memory
	near    []lastTarget // indexed by slot
	pairs   []pair
	pairOf  map[pair]uint32
	partner []uint32 // for each pair: the pair that differs only in the field covered; 0: not created yet

	slots    []uint32           // slot of the site of each row in the batch
	rows     []uint32           // pair of each reference in the batch
	begins   []trace.Addr       // first address of each reference's memory block; nil: not requested
	pending  []pendingAccess    // accesses of the batch that a prefetcher may cover, depending on the previous segment
	split    []uint32           // pair of each line access, if references make several accesses
	latest   []uint32           // pair of each of the latest accesses that Follow has received
	accesses *locality.Accesses // the latest accesses, kept until FollowCores has processed them
	last     int                // the row of the last access

	bins    bins
	cores   *cores   // counts on the coherent stacks of the cores; nil: there is only one core
	extra   []uint64 // for each pair: number of accesses, apart from the first access of each reference
	threads strides
	lines   *lines // state of each line; nil: no measurement needs it

	absent bool // rows have neither sites nor PCs
	// uncovered is true if it is unknown which accesses a prefetcher covers, because an earlier version
	// has analysed a part of the run.
	uncovered bool
	lineShift uint

	paths    *pathCounts // counts by call path; nil: call paths are not known
	timeline *timeline   // counts over time; nil: not requested

	joining joining // the segment that is being appended
	places  profileIndices
}

// pair is a combination of a site, identified by its slot, and an object. Slot 0 means no site, and
// object 0 means no object. Such pairs exist because a profile that is restored or appended
// contains separate counts by site and by object. The accesses that a prefetcher covers have separate
// pairs.
type pair struct {
	slot, object uint32
	covered      bool
}

// lastTarget describes the target of the last reference of a site.
type lastTarget struct {
	block  uint32 // the memory block
	object uint32 // the object to which the site refers
	pair   uint32 // the pair of the site and the object, for accesses that no prefetcher covers
}

// New returns an analysis. The function program returns the code that the trace's tables have
// described so far, or nil.
func New(o Options, program func() *trace.Program) *Analysis {
	a := &Analysis{options: o, program: program, pairOf: map[pair]uint32{}, near: make([]lastTarget, 1), timeline: newTimeline(o), lineShift: uint(bits.TrailingZeros32(o.LineBytes))}
	if len(o.Capacities) > 0 || o.Previous {
		a.lines = newLines(o)
	}
	a.code.init()
	a.memory.init()
	a.pairNumber(pair{})
	if o.Callers != nil {
		a.paths = &pathCounts{callers: o.Callers}
	}
	return a
}

// Takes implements [contract.Analysis].
func (a *Analysis) Takes() (events trace.Kinds, sites, pcs bool) {
	if a.options.Mergeable && !a.options.Follows {
		return 0, true, true
	}
	return contract.LayoutEvents, true, true
}

var (
	_ contract.Analysis       = (*Analysis)(nil)
	_ contract.Joiner         = (*Analysis)(nil)
	_ contract.LayoutFollower = (*Analysis)(nil)
)

// Move updates the layout of memory blocks from the rows, without counting references.
func (a *Analysis) Move(b *trace.Batch) {
	a.addProgram()
	for i, k := range b.Kind {
		if contract.LayoutEvents.Has(k) {
			a.event(b, i, false)
		}
	}
}

// Succeed takes over the memory blocks of an analysis of another segment. The other analysis must
// not be used afterwards.
func (a *Analysis) Succeed(before contract.LayoutFollower) {
	a.memory = before.(*Analysis).memory
	for i := range a.memory.objects {
		o := &a.memory.objects[i]
		o.blocks, o.bytes, o.before, o.file = 0, 0, nil, ""
	}
}

// Close implements [contract.Analysis]. Close does nothing, because results need all data.
func (a *Analysis) Close() {}

// Consume implements [contract.Analysis]. Consume must be called before the locality analysis
// consumes the same batch.
func (a *Analysis) Consume(b *trace.Batch) error {
	a.last, a.joining.part = -1, nil
	if a.absent = a.absent || b.Site == nil && b.PC == nil; a.absent {
		return nil
	}
	a.addProgram()
	if len(a.slots) < b.Len() {
		a.slots, a.rows = make([]uint32, b.Len()), make([]uint32, b.Len())
		if a.begins != nil {
			a.begins = make([]trace.Addr, b.Len())
		}
	}
	if err := a.code.findSlots(b, a.slots[:b.Len()]); err != nil {
		return err
	}
	for len(a.near) < len(a.code.list) {
		a.near = append(a.near, lastTarget{})
	}
	references := 0
	a.pending = a.pending[:0]
	for lo := 0; lo < b.Len(); {
		hi, thread := b.Len(), uint32(0)
		if b.Thread != nil {
			thread = b.Thread[lo]
			for hi = lo + 1; hi < b.Len() && b.Thread[hi] == thread; hi++ {
			}
		}
		references = a.processThread(b, lo, hi, a.threads.walksOf(thread, len(a.code.list), a.options.Mergeable), references)
		lo = hi
	}
	a.countPaths(b, references)
	return nil
}

// addProgram adds the variables and files that the trace has described since the last call.
func (a *Analysis) addProgram() {
	p := a.program()
	if p == nil {
		return
	}
	a.known, a.code.program = p, p
	a.memory.addProgram(p)
}

// processThread processes rows [lo, hi), which belong to one thread: it counts the strides and finds
// the pair of each reference. The parameter references is the number of references before row lo in
// the batch.
func (a *Analysis) processThread(b *trace.Batch, lo, hi int, w *walks, references int) int {
	strides, shift := w.sites, a.lineShift
	addrs := b.Addr[lo:hi]
	kinds, sizes, slots := b.Kind[lo:hi][:len(addrs)], b.Bytes[lo:hi][:len(addrs)], a.slots[lo:hi][:len(addrs)]
	blocks := a.memory.blocks
	for i, addr := range addrs {
		if kinds[i] >= trace.NumKinds {
			if contract.LayoutEvents.Has(kinds[i]) {
				a.event(b, lo+i, true)
				blocks = a.memory.blocks
			}
			continue
		}
		slot := slots[i]
		at := &a.near[slot]
		if block := &blocks[at.block]; addr-block.from >= block.bytes {
			a.findBlock(slot, addr)
			blocks = a.memory.blocks
		}
		if a.begins != nil {
			a.begins[references] = a.blockBegin(at.block, addr)
			blocks = a.memory.blocks
		}
		if w.starts != nil {
			a.noteStart(w, slot, addr, sizes[i], references)
		}
		number := at.pair
		if strides[slot].add(addr, sizes[i], shift) {
			number = a.coveredPair(number)
		}
		a.rows[references] = number
		references++
	}
	return references
}

// findBlock finds the memory block and the object of the current reference of a site.
func (a *Analysis) findBlock(slot uint32, addr trace.Addr) {
	at, h := &a.near[slot], &a.code.list[slot].hint
	object := a.memory.granules.object(addr)
	switch {
	case object == noObject || h.local || h.global && a.memory.objects[object].kind == profile.StackObject:
		at.block, object = a.memory.findObject(addr, h)
	case object != at.object:
		at.block = noBlock // the remembered block belongs to the previous object
	}
	if at.object != object {
		at.object, at.pair = object, a.pairNumber(pair{slot: slot, object: object})
	}
}

// pairNumber returns the number of a pair. pairNumber assigns a number to a new pair.
func (a *Analysis) pairNumber(p pair) uint32 {
	n, known := a.pairOf[p]
	if !known {
		n = a.addPair(p)
		a.pairOf[p] = n
	}
	return n
}

func (a *Analysis) addPair(p pair) (number uint32) {
	a.pairs = append(a.pairs, p)
	a.bins.addList()
	a.cores.addList()
	a.extra, a.partner = append(a.extra, 0), append(a.partner, 0)
	if a.lines != nil {
		a.lines.addPair()
	}
	return uint32(len(a.pairs) - 1)
}

// event processes an allocation or a release. If the parameter counted is false, allocations are
// not counted.
func (a *Analysis) event(b *trace.Batch, i int, counted bool) {
	switch b.Kind[i] {
	case trace.Alloc:
		if b.Site == nil || b.Arg == nil || a.known == nil || uint64(b.Site[i]) >= uint64(len(a.known.Sites)) {
			return
		}
		number := b.Site[i]
		site := &a.known.Sites[number]
		of := uint32(noObject)
		if site.Flags&trace.StackSite != 0 {
			of = a.memory.local(a.code.functionName(site), site.Object)
		} else {
			of = a.memory.object(objectKey{kind: profile.HeapObject, number: number})
		}
		a.memory.alloc(of, b.Addr[i], b.Arg[i], counted)
	case trace.Free:
		a.memory.free(b.Addr[i])
	}
}

// Follow implements locality.Follower.
func (a *Analysis) Follow(x *locality.Accesses) {
	if a.absent {
		return
	}
	pairs := a.rows[x.First:]
	if x.Rows != nil {
		pairs = a.accessPairs(x)
	}
	pairs = pairs[:len(x.Distances)]
	a.latest, a.accesses = pairs, x
	if a.timeline.counting() {
		a.timeline.prepare(a, x.Reference)
		a.timeline.countByThread(x)
	}
	if paths := a.pathsOf(x); paths != nil {
		a.bins.addBoth(pairs, paths, x.Distances)
	} else {
		a.bins.add(pairs, x.Distances)
	}
	if a.lines != nil {
		a.lines.recordAccesses(x, pairs, a.pairs)
	}
	if a.options.Mergeable {
		a.locatePending(x)
		a.joining.firsts = appendCold(a.joining.firsts, pairs, x.Distances)
	}
}

// accessPairs returns the pair of each line access, if references make several accesses.
func (a *Analysis) accessPairs(x *locality.Accesses) []uint32 {
	if len(a.split) < len(x.Rows) {
		a.split = make([]uint32, len(x.Rows))
	}
	pairs := a.split[:len(x.Rows)]
	for i, row := range x.Rows {
		reference := x.First + int(row)
		pairs[i] = a.rows[reference]
		if reference == a.last {
			if pairs[i] = a.plainPair(pairs[i]); !a.startsPage(x.Lines[i]) {
				pairs[i] = a.coveredPair(pairs[i])
			}
			a.extra[pairs[i]]++
		}
		a.last = reference
	}
	return pairs
}

// Block is a memory block in a layout.
type Block = contract.Block

// Layout returns the current memory blocks, sorted by address, except for blocks that the program's
// tables declare.
func (a *Analysis) Layout() []Block {
	list := make([]Block, 0, 64)
	for _, piece := range a.memory.placed.chunks {
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

// Lay adds the memory blocks of a layout to the blocks that the tables declare. The layout must
// belong to the same trace.
func (a *Analysis) Lay(layout []Block) {
	a.addProgram()
	for i := range layout {
		b := &layout[i]
		of := uint32(noObject)
		if b.Kind == profile.HeapObject {
			of = a.memory.object(objectKey{kind: profile.HeapObject, number: b.Site})
		} else {
			of = a.memory.local(b.Function, b.Name)
		}
		a.memory.addBlock(of, b.From, b.Bytes)
	}
}
