package analysis_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stackglass/stackglass/core/analysis"
	_ "github.com/stackglass/stackglass/core/analysis/structures"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// programWithStructures returns the program of allocatingProgram, but some of its sites and
// variables refer to structures.
func programWithStructures(rng *rand.Rand) *trace.Program {
	p := allocatingProgram()
	pair := trace.Structure{Name: "pair", Bytes: 16, Members: []trace.Member{{Name: "a", Bytes: 8}, {Name: "b", Offset: 8, Bytes: 4}}}
	p.Structures = []trace.Structure{pair,
		{Name: "wide", Bytes: 100, Members: []trace.Member{{Name: "x", Bytes: 4}, {Name: "y", Offset: 4, Bytes: 60}, {Name: "z", Offset: 70, Bytes: 30}}},
		pair, {Name: "none", Bytes: 8}}
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Structure = rng.Uint32N(5); s.Structure > 0 {
			s.Offset = rng.Uint32N(uint32(p.Structures[s.Structure-1].Bytes))
		}
	}
	for i := range p.Objects {
		p.Objects[i].Structure = rng.Uint32N(3)
	}
	return p
}

// naiveData is a direct implementation of the definition of the use of data structures.
type naiveData struct {
	*naiveSites
	now   uint64
	lives map[objectID]*profile.BlockLives
	bytes map[objectID]uint64
	born  map[naiveBlock]uint64
	read  map[uint64]bool // bytes of live blocks
	wrote map[uint64]bool

	visits map[naiveElement][]naiveTouch
	parts  map[naivePart]*naiveMember
	cells  map[objectID][]naiveCell
	used   map[objectID]bool
}

type (
	naivePart struct {
		of        objectID
		structure string
		member    int
	}
	naiveElement struct {
		of        objectID
		structure string
		base      uint64
	}
	naiveTouch struct {
		now     uint64
		members []int
	}
	naiveMember struct {
		loads, stores, cold uint64
		bins                map[int]uint64
	}
	naiveCell struct {
		now, addr uint64
		class     int
	}
)

func (n *naiveData) structure(number uint32) *trace.Structure {
	if number == 0 || len(n.p.Structures[number-1].Members) == 0 {
		return nil
	}
	return &n.p.Structures[number-1]
}

func (n *naiveData) livesOf(id objectID) *profile.BlockLives {
	if n.lives[id] == nil {
		n.lives[id] = &profile.BlockLives{}
	}
	n.used[id] = true
	return n.lives[id]
}

// change applies an event, and records which blocks the event adds and removes.
func (n *naiveData) change(event func()) {
	before := slices.Clone(n.live)
	event()
	for _, b := range before {
		if !slices.Contains(n.live, b) && b.of.kind == profile.HeapObject {
			l := n.livesOf(b.of)
			age := n.now - n.born[b]
			l.Freed++
			l.Longest = max(l.Longest, age)
			l.Lifetimes = append(l.Lifetimes, profile.BinCount{Bin: uint8(profile.SiteBin(uint32(age))), Count: 1})
			n.bytes[b.of] -= b.bytes
			if n.unused(b, l) {
				l.UnreadFreed++
			}
			delete(n.born, b)
		}
	}
	for _, b := range n.live {
		if slices.Contains(before, b) {
			continue
		}
		l := n.livesOf(b.of)
		if b.of.kind != profile.HeapObject {
			continue
		}
		n.born[b] = n.now
		n.bytes[b.of] += b.bytes
		l.PeakBytes = max(l.PeakBytes, n.bytes[b.of])
		for i := range b.bytes {
			delete(n.read, b.from+i)
			delete(n.wrote, b.from+i)
		}
	}
}

func (n *naiveData) unused(b naiveBlock, l *profile.BlockLives) bool {
	unread := uint64(0)
	for i := range b.bytes {
		if !n.read[b.from+i] {
			unread++
		}
		if !n.wrote[b.from+i] {
			l.Unwritten++
		}
	}
	l.Unread += unread
	if unread == b.bytes {
		l.UnreadBlocks++
	}
	return unread == b.bytes
}

// block returns the block or variable that contains an address.
func (n *naiveData) block(addr uint64) (from, bytes uint64) {
	for _, b := range n.live {
		if addr-b.from < b.bytes {
			return b.from, b.bytes
		}
	}
	for _, g := range n.p.Objects {
		if g.Addr != 0 && addr-g.Addr < g.Bytes {
			return g.Addr, g.Bytes
		}
	}
	return 0, 0
}

func (n *naiveData) reference(b *trace.Batch, i int) {
	addr, bytes, kind, site := b.Addr[i], uint64(max(b.Bytes[i], 1)), b.Kind[i], &n.p.Sites[b.Site[i]]
	n.now++
	id := n.objectOf(addr, b.Site[i])
	n.livesOf(id)
	from, size := n.block(addr)
	if site.Flags&trace.StackSite != 0 {
		from, size = 0, 0
	}
	loads, stores := kind != trace.Store && kind != trace.RangeWrite, kind == trace.Store || kind == trace.RangeWrite || kind == trace.Modify
	if id.kind == profile.HeapObject {
		for at := addr; at < addr+bytes && at < from+size; at++ {
			n.read[at] = n.read[at] || loads
			n.wrote[at] = n.wrote[at] || stores
		}
	}
	var declared uint32
	switch {
	case id.number == profile.NoSite:
	case id.kind == profile.HeapObject:
		declared = n.p.Sites[id.number].Structure
	case id.kind == profile.GlobalObject:
		declared = n.p.Objects[id.number].Structure
	}
	s, base := n.structure(declared), uint64(0)
	if s != nil && size > 0 && size%s.Bytes == 0 {
		base = addr - (addr-from)%s.Bytes
	} else if s = n.structure(site.Structure); s != nil {
		base = addr - uint64(site.Offset)
	}
	part := func(member int) *naiveMember {
		p := naivePart{id, s.Name, member}
		if n.parts[p] == nil {
			n.parts[p] = &naiveMember{bins: map[int]uint64{}}
		}
		return n.parts[p]
	}
	if s != nil {
		offset := addr - base
		var members []int
		for i, m := range s.Members {
			if offset+bytes <= s.Bytes && offset < uint64(m.Offset+m.Bytes) && uint64(m.Offset) < offset+bytes {
				members = append(members, i)
			}
		}
		counted := members
		if len(members) == 0 {
			counted = []int{len(s.Members)}
		}
		for _, i := range counted {
			if loads {
				part(i).loads++
			}
			if stores {
				part(i).stores++
			}
		}
		if offset+bytes <= s.Bytes {
			e := naiveElement{id, s.Name, base}
			n.visits[e] = append(n.visits[e], naiveTouch{n.now, members})
		}
	}
	for line := addr / n.line; line <= (addr+bytes-1)/n.line; line++ {
		var out [1]uint32
		n.order.Distances([]trace.Line{line}, out[:])
		d := out[0]
		at := max(addr, line*n.line)
		class := profile.MapClasses - 1
		if d != stack.Cold {
			class = profile.MapClass(d)
		}
		n.cells[id] = append(n.cells[id], naiveCell{n.now, at, class})
		if s == nil {
			continue
		}
		member := len(s.Members)
		for i, m := range slices.Backward(s.Members) {
			if at-base >= uint64(m.Offset) && at-base < uint64(m.Offset+m.Bytes) {
				member = i
			}
		}
		if p := part(member); d == stack.Cold {
			p.cold++
		} else {
			p.bins[profile.SiteBin(d)]++
		}
	}
}

// dataByDefinition computes the use of the data structures of a profile according to the
// definition.
func dataByDefinition(p *trace.Program, b *trace.Batch, of *profile.Sites) *profile.Data {
	n := &naiveData{
		naiveSites: &naiveSites{p: p, line: uint64(of.LineBytes), data: map[objectID]*profile.DataObject{}},
		lives:      map[objectID]*profile.BlockLives{}, bytes: map[objectID]uint64{}, born: map[naiveBlock]uint64{}, read: map[uint64]bool{}, wrote: map[uint64]bool{},
		visits: map[naiveElement][]naiveTouch{}, parts: map[naivePart]*naiveMember{}, cells: map[objectID][]naiveCell{}, used: map[objectID]bool{},
	}
	for i, k := range b.Kind {
		switch {
		case k.IsReference():
			n.reference(b, i)
		case k == trace.Alloc:
			n.change(func() { n.alloc(b, i) })
		case k == trace.Free:
			n.change(func() {
				n.live = slices.DeleteFunc(n.live, func(at naiveBlock) bool { return at.from == b.Addr[i] && at.of.kind == profile.HeapObject })
			})
		}
	}
	for _, b := range n.live {
		if b.of.kind == profile.HeapObject {
			l := n.livesOf(b.of)
			l.Kept++
			l.KeptBytes += b.bytes
			n.unused(b, l)
		}
	}
	d := &profile.Data{LineBytes: of.LineBytes, ColumnReferences: 256}
	for (n.now-1)/d.ColumnReferences >= profile.MapColumns {
		d.ColumnReferences *= 2
	}
	names := map[string]bool{}
	for part := range n.parts {
		names[part.structure] = true
	}
	for _, s := range []trace.Structure{p.Structures[0], p.Structures[1]} { // sorted by name
		if names[s.Name] {
			d.Structures = append(d.Structures, s)
		}
	}
	for i := range of.Data {
		o := &of.Data[i]
		id := objectID{kind: o.Kind, number: o.Number}
		if o.Number == profile.NoSite && o.Kind != profile.OtherObject {
			id.function, id.name = o.Function, o.Name
		}
		if n.used[id] {
			d.Uses = append(d.Uses, n.use(uint32(i), id, d))
		}
	}
	return d
}

func (n *naiveData) use(i uint32, id objectID, d *profile.Data) profile.DataUse {
	u := profile.DataUse{Object: i, Lives: *n.lives[id]}
	sum := map[int]uint64{}
	for _, b := range u.Lives.Lifetimes {
		sum[int(b.Bin)]++
	}
	u.Lives.Lifetimes = binCounts(sum)
	for number := range d.Structures {
		s := &d.Structures[number]
		e := profile.ElementUse{Structure: uint32(number), Starts: make([]uint64, n.line/profile.StartBytes), Together: make([]uint64, profile.Pairs(len(s.Members)))}
		touched := false
		for m := range len(s.Members) + 1 {
			of := profile.MemberUse{}
			if p := n.parts[naivePart{id, s.Name, m}]; p != nil {
				touched = true
				of = profile.MemberUse{Loads: p.loads, Stores: p.stores, Reuse: profile.Reuse{Cold: p.cold, Bins: binCounts(p.bins)}}
			}
			e.Members = append(e.Members, of)
		}
		for of, touches := range n.visits {
			if of.of != id || of.structure != s.Name {
				continue
			}
			for from := 0; from < len(touches); {
				members, to := map[int]bool{}, from
				for ; to == from || to < len(touches) && touches[to].now-touches[to-1].now < profile.VisitReferences; to++ {
					for _, m := range touches[to].members {
						members[m] = true
					}
				}
				from = to
				e.Visits++
				e.Starts[of.base%n.line/profile.StartBytes]++
				for m := range members {
					e.Members[m].Visits++
					for other := range members {
						if other < m {
							e.Together[profile.Pairs(m)+other]++
						}
					}
				}
			}
		}
		if touched {
			u.Elements = append(u.Elements, e)
		}
	}
	if cells := n.cells[id]; len(cells) > 0 {
		u.Map = n.addressMap(cells, d.ColumnReferences)
	}
	return u
}

func (n *naiveData) addressMap(cells []naiveCell, references uint64) (m profile.AddressMap) {
	low, high := uint64(math.MaxUint64), uint64(0)
	for _, c := range cells {
		low, high = min(low, c.addr), max(high, c.addr)
	}
	m.RowBytes = n.line
	for high/m.RowBytes-low/m.RowBytes >= profile.MapRows {
		m.RowBytes *= 2
	}
	m.Rows = uint32(high/m.RowBytes - low/m.RowBytes + 1)
	counts := map[[2]uint64]map[int]uint64{}
	for _, c := range cells {
		at := [2]uint64{(c.now - 1) / references, c.addr/m.RowBytes - low/m.RowBytes}
		if counts[at] == nil {
			counts[at] = map[int]uint64{}
		}
		counts[at][c.class]++
	}
	for column := range uint64(profile.MapColumns) {
		for row := range uint64(m.Rows) {
			if c := counts[[2]uint64{column, row}]; c != nil {
				m.Cells = append(m.Cells, profile.MapCell{Column: uint8(column), Row: uint8(row), Counts: binCounts(c)})
			}
		}
	}
	return m
}

func dataSteps(rng *rand.Rand, p *trace.Program) []tracetest.Step {
	steps := allocatingSteps(rng, p, 1+rng.IntN(4000))
	if rng.IntN(4) == 0 { // long enough for columns to be combined
		steps = append(steps, loopingSteps(rng, p, 60_000)...)
	}
	return steps
}

func TestDataEqualsNaive(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 61))
		p := programWithStructures(rng)
		whole := tracetest.Rows(p, dataSteps(rng, p)...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Data | analysis.Sites, LineBytes: []uint32{[]uint32{16, 64, 128}[rng.IntN(3)]}}
		got, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 1+rng.IntN(4096)))
		if got.Data == nil {
			if got.Sites != nil && got.Sites.Data != nil {
				t.Fatalf("seed %d: the profile has no result for data structures", seed)
			}
			continue
		}
		want := dataByDefinition(p, whole, got.Sites)
		if len(got.Data.Uses) != len(want.Uses) {
			t.Fatalf("seed %d: %d data structures, want %d", seed, len(got.Data.Uses), len(want.Uses))
		}
		for i := range want.Uses {
			if g, w := got.Data.Uses[i], want.Uses[i]; !reflect.DeepEqual(g, w) {
				t.Fatalf("seed %d, data structure %d:\ngot  %+v\nwant %+v", seed, i, g, w)
			}
		}
		if !reflect.DeepEqual(got.Data, want) {
			t.Fatalf("seed %d: got\n%+v\nwant\n%+v", seed, got.Data, want)
		}
	}
}

func TestDataWithAnyNumberOfWorkers(t *testing.T) {
	joined := 0
	for seed := range uint64(25) {
		rng := rand.New(rand.NewPCG(seed, 62))
		p := programWithStructures(rng)
		steps := dataSteps(rng, p)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Data | analysis.Sites | analysis.Counters}
		file := container(t, rng, p, steps)
		want, _ := analyseSequentially(t, spec, readerOf(file))
		for _, workers := range []int{2, 3} {
			if got := toItsEnd(t, divided(t, spec, file, workers, 1+rng.IntN(4000), countingHelpers(&joined))); !bytes.Equal(got, want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers that read the trace themselves differs from the result of one worker", seed, workers)
			}
		}
		whole := tracetest.Rows(p, steps...)
		want, _ = analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		for _, workers := range []int{2, 3, 8} {
			if got, _ := analyseInParallel(t, spec, tracetest.NewProgramReader(p, whole, 4096), workers, 1+rng.IntN(4000)); !bytes.Equal(got.Encode(), want.Encode()) {
				t.Fatalf("seed %d: the result of %d workers differs from the result of one worker", seed, workers)
			}
		}
	}
	if joined < 20 {
		t.Errorf("%d segments were joined, want at least 20", joined)
	}
}

func TestDataResumes(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 63))
		p := programWithStructures(rng)
		whole := tracetest.Rows(p, dataSteps(rng, p)...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Data | analysis.Sites}
		want, _ := analyseSequentially(t, spec, tracetest.NewProgramReader(p, whole, 4096))
		got := interrupted(t, rng, spec, 8, func() trace.Reader { return tracetest.NewProgramReader(p, whole, 1+rng.IntN(1000)) }, nil)
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the profile of an interrupted run differs from the profile of an uninterrupted run", seed)
		}
	}
}

// A saved run with a damaged section on data structures is either rejected or continued, without a
// panic.
func TestDataRejectsDamagedState(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 64))
	p := programWithStructures(rng)
	whole := tracetest.Rows(p, allocatingSteps(rng, p, 3000)...)
	spec := analysis.Spec{Kinds: trace.AllKinds, Analyses: analysis.Data | analysis.Sites}
	state, saved, head := stateAfterStep(t, spec, tracetest.NewProgramReader(p, whole, 1500))
	rejected := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 65))
		q := *saved
		segment, data := *saved.Segment, *saved.Data
		q.Segment, q.Data = &segment, &data
		switch rng.IntN(3) {
		case 0:
			segment.Structures = slices.Clone(segment.Structures)
			segment.Structures[rng.IntN(len(segment.Structures))] ^= 1 << rng.IntN(8)
		case 1:
			segment.Structures = segment.Structures[:rng.IntN(len(segment.Structures))]
		case 2:
			data.Uses = slices.Clone(data.Uses)
			u := &data.Uses[rng.IntN(len(data.Uses))]
			u.Object += rng.Uint32N(3)
			u.Map.Rows += rng.Uint32N(3)
			u.Lives.Kept += rng.Uint64N(2)
		}
		if !canContinue(t, spec, tracetest.NewProgramReader(p, whole, 500), append(state[:head:head], q.Encode()...)) {
			rejected++
		}
	}
	if rejected < 100 {
		t.Errorf("%d of 300 damaged states were rejected, want at least 100", rejected)
	}
}
