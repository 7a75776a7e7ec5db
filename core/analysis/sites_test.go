package analysis_test

import (
	"bytes"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/tracetest"
)

// allocatingProgram returns a program of references, allocations and releases, with all kinds of
// variables. Each site is in a separate basic block.
func allocatingProgram() *trace.Program {
	p := &trace.Program{
		Modules:   []trace.Module{{Name: "src/a.c", Base: 0x400000, End: 0x500000}},
		Functions: []trace.Function{{Name: "main"}, {Name: "walk"}},
		Objects: []trace.Object{
			{Name: "table", Addr: 1 << 12, Bytes: 300, Type: "[300 x i8]", Place: trace.Place{File: "src/a.h", Line: 3}},
			{Name: "elsewhere", Bytes: 8}, {Name: "odd", Addr: 1<<12 + 1000, Bytes: 13},
		},
		Threads: []trace.Thread{{Number: 1, StackLow: 1 << 13, StackHigh: 1<<13 + 500}, {Number: 2, StackLow: 1<<13 + 1000, StackHigh: 1<<13 + 1100}},
	}
	sites := []trace.Site{
		{Kind: trace.Load, Bytes: 8, Type: "double", Object: "x"}, {Kind: trace.Store, Bytes: 4, Object: "y"},
		{Kind: trace.Modify, Bytes: 1}, {Kind: trace.Fetch, Bytes: 3},
		{Kind: trace.RangeRead, Object: "from"}, {Kind: trace.RangeWrite}, {Kind: trace.Load},
		{Kind: trace.Load, Bytes: 8, Object: "local", Flags: trace.StackSite}, {Kind: trace.Store, Bytes: 8, Object: "local", Flags: trace.StackSite},
		{Kind: trace.Load, Bytes: 8, Object: "elsewhere", Flags: trace.GlobalSite}, {Kind: trace.Load, Bytes: 8, Flags: trace.GlobalSite},
		{Kind: trace.Alloc, Object: "p"}, {Kind: trace.Alloc}, {Kind: trace.Alloc, Bytes: 40, Flags: trace.StackSite, Object: "buffer"},
		{Kind: trace.Free}, {Kind: trace.Free},
	}
	for n, s := range sites {
		s.Block, s.PC = uint32(n), 0x400000+4*trace.Addr(n)
		s.Place = trace.Place{File: "src/a.c", Line: uint32(10 + n/2), Column: uint32(n)}
		p.Sites = append(p.Sites, s)
		p.Blocks = append(p.Blocks, trace.Block{Function: uint32(n % 2), Label: "b", FirstSite: uint32(n), Sites: 1})
	}
	return p
}

// allocatingSteps returns steps of the program in which a few sites access a small range of memory,
// while blocks are allocated in this range.
func allocatingSteps(rng *rand.Rand, p *trace.Program, steps int) (list []tracetest.Step) {
	const from, bytes = 1 << 12, 1<<12 + 2000
	var live []trace.Addr
	var at [16][3]trace.Addr
	for range steps {
		block, thread := rng.Uint32N(uint32(len(p.Blocks))), rng.Uint32N(3)
		site := &p.Sites[block]
		addr := from + rng.Uint64N(bytes)
		switch walk := &at[block][thread]; {
		case site.Kind == trace.Free:
			if len(live) > 0 && rng.IntN(4) > 0 {
				addr = live[rng.IntN(len(live))]
			}
		case site.Kind == trace.Alloc:
			live = append(live, addr)
		case rng.IntN(3) > 0:
			*walk += []trace.Addr{0, 8, 64, 1}[rng.IntN(4)]
			addr = from + *walk%bytes
		default:
			*walk = addr - from
		}
		s := tracetest.Step{Block: block, Thread: thread, Values: []uint64{addr}}
		if site.Values() == 2 {
			s.Values = append(s.Values, rng.Uint64N(1<<rng.UintN(9)))
		}
		list = append(list, s)
	}
	return list
}

// naiveSites is a direct implementation of the definition of the analysis.
type naiveSites struct {
	p    *trace.Program
	spec analysis.Spec
	line uint64

	order naiveStack
	code  map[siteID]*profile.Site
	data  map[objectID]*profile.DataObject
	live  []naiveBlock
	walks map[walkID][]walkAt
	lines map[trace.Line]*naiveLine
	sets  map[[2]uint64][]trace.Line // keyed by cache and set; most recently used line first
	cores map[uint32]*naiveCore
	// The following maps are converted to lists at the end.
	bins   map[any]map[int]uint64
	before map[any]map[siteID]uint64
	cold   map[any]uint64 // this field and the fields below are counted on the coherent stacks of the cores
	depths map[any]map[int]uint64
	lost   map[any]map[int]uint64
	used   map[any][]profile.Utilisation

	coveredCold map[siteID]uint64 // accesses that a prefetcher covers
	covered     map[any]map[int]uint64
}

// naiveCore contains the private caches of a thread, in which stores by other threads invalidate
// lines.
type naiveCore struct {
	stacktest.Holes
	touched map[trace.Line]bool
	lost    map[trace.Line]int // for each line: its depth when it was invalidated

	caches []stacktest.Private // the caches in which line utilisation is measured
	stays  map[trace.Line][]naiveStay
}

type (
	naiveStack struct{ stacktest.Naive }
	siteID     struct {
		number uint32
		pc     uint64
		kind   trace.Kind
	}
	objectID struct {
		kind           profile.ObjectKind
		number         uint32
		function, name string
	}
	naiveBlock struct {
		from, bytes uint64
		of          objectID
	}
	walkID struct {
		site   siteID
		thread uint32
	}
	walkAt    struct{ addr, bytes uint64 }
	naiveStay struct {
		site  siteID
		of    objectID
		bytes map[uint64]bool
	}
	naiveLine struct {
		last  siteID
		stays []naiveStay
	}
)

func sitesByDefinition(p *trace.Program, b *trace.Batch, spec analysis.Spec, lineBytes uint32) *profile.Sites {
	n := &naiveSites{
		p: p, spec: spec, line: uint64(lineBytes), code: map[siteID]*profile.Site{}, data: map[objectID]*profile.DataObject{},
		walks: map[walkID][]walkAt{}, lines: map[trace.Line]*naiveLine{}, sets: map[[2]uint64][]trace.Line{}, bins: map[any]map[int]uint64{}, before: map[any]map[siteID]uint64{},
		cores: map[uint32]*naiveCore{}, cold: map[any]uint64{}, depths: map[any]map[int]uint64{}, lost: map[any]map[int]uint64{}, used: map[any][]profile.Utilisation{},
		coveredCold: map[siteID]uint64{}, covered: map[any]map[int]uint64{},
	}
	for i := range b.Kind {
		switch {
		case b.Kind[i].IsReference() && spec.Kinds.Has(b.Kind[i]):
			n.reference(b, i)
		case !spec.Mergeable && b.Kind[i] == trace.Alloc:
			n.alloc(b, i)
		case !spec.Mergeable && b.Kind[i] == trace.Free:
			n.live = slices.DeleteFunc(n.live, func(at naiveBlock) bool { return at.from == b.Addr[i] && at.of.kind == profile.HeapObject })
		}
	}
	return n.result(spec)
}

func (n *naiveSites) function(number uint32) string {
	return n.p.Functions[n.p.Blocks[n.p.Sites[number].Block].Function].Name
}

func (n *naiveSites) alloc(b *trace.Batch, i int) {
	site := &n.p.Sites[b.Site[i]]
	of := objectID{kind: profile.HeapObject, number: b.Site[i]}
	if site.Flags&trace.StackSite != 0 {
		of = objectID{profile.StackObject, profile.NoSite, n.function(b.Site[i]), site.Object}
	}
	o := n.object(of)
	o.Blocks++
	o.Bytes += b.Arg[i]
	overlaps := func(from, bytes uint64) bool { return from < b.Addr[i]+b.Arg[i] && b.Addr[i] < from+bytes }
	for _, g := range n.p.Objects {
		if g.Addr != 0 && overlaps(g.Addr, g.Bytes) || b.Arg[i] == 0 {
			return
		}
	}
	n.live = slices.DeleteFunc(n.live, func(at naiveBlock) bool { return overlaps(at.from, at.bytes) })
	n.live = append(n.live, naiveBlock{b.Addr[i], b.Arg[i], of})
}

func (n *naiveSites) objectOf(addr uint64, number uint32) objectID {
	hint := &n.p.Sites[number]
	if hint.Flags&trace.StackSite != 0 {
		return objectID{profile.StackObject, profile.NoSite, n.function(number), hint.Object}
	}
	for _, at := range n.live {
		if addr >= at.from && addr < at.from+at.bytes {
			return at.of
		}
	}
	for i, g := range n.p.Objects {
		if g.Addr != 0 && addr >= g.Addr && addr < g.Addr+g.Bytes {
			return objectID{kind: profile.GlobalObject, number: uint32(i)}
		}
	}
	if hint.Flags&trace.GlobalSite != 0 && hint.Object != "" {
		return objectID{profile.GlobalObject, profile.NoSite, "", hint.Object}
	}
	for _, t := range n.p.Threads {
		if addr >= t.StackLow && addr < t.StackHigh {
			return objectID{profile.StackObject, profile.NoSite, "", ""}
		}
	}
	return objectID{kind: profile.OtherObject, number: profile.NoSite}
}

func (n *naiveSites) object(of objectID) *profile.DataObject {
	o := n.data[of]
	if o != nil {
		return o
	}
	o = &profile.DataObject{Kind: of.kind, Number: of.number, Function: of.function, Name: of.name}
	if of.number != profile.NoSite && of.kind == profile.HeapObject {
		s := &n.p.Sites[of.number]
		o.Name, o.Function, o.File, o.Line = s.Object, n.function(of.number), "a.c", s.Place.Line
	}
	if of.number != profile.NoSite && of.kind == profile.GlobalObject {
		g := &n.p.Objects[of.number]
		o.Name, o.Bytes, o.Line = g.Name, g.Bytes, g.Place.Line
		if g.Place.File != "" {
			o.File = "a.h"
		}
	}
	n.data[of] = o
	o.Reuse = n.emptyReuse()
	return o
}

func (n *naiveSites) emptyReuse() (r profile.Reuse) {
	if len(n.spec.Utilisation) > 0 {
		r.Used = make([]profile.Utilisation, len(n.spec.Utilisation))
	}
	return r
}

func (n *naiveSites) reference(b *trace.Batch, i int) {
	id, number, thread := siteID{number: profile.NoSite, kind: b.Kind[i]}, uint32(profile.NoSite), uint32(0)
	if b.Site != nil {
		number = b.Site[i]
		id = siteID{number: number}
	} else {
		id.pc = b.PC[i]
	}
	if b.Thread != nil {
		thread = b.Thread[i]
	}
	s := n.code[id]
	if s == nil {
		s = &profile.Site{Number: number, PC: id.pc, Kind: id.kind, Bytes: b.Bytes[i], Reuse: n.emptyReuse()}
		if b.Site != nil {
			at := &n.p.Sites[number]
			*s = profile.Site{
				Number: number, PC: at.PC, Module: "a.c", Offset: at.PC - 0x400000, Function: n.function(number), File: "a.c", Line: at.Place.Line,
				Column: at.Place.Column, Kind: at.Kind, Bytes: at.Bytes, Type: at.Type, Variable: at.Object, Reuse: n.emptyReuse(),
			}
		}
		n.code[id] = s
	}
	if b.Site == nil && s.Bytes != b.Bytes[i] {
		s.Bytes = 0
	}
	of := objectID{kind: profile.OtherObject, number: profile.NoSite}
	if b.Site != nil {
		of = n.objectOf(b.Addr[i], number)
	}
	o := n.object(of)
	o.References++
	bytes := uint64(max(b.Bytes[i], 1))
	walk := append(n.walks[walkID{id, thread}], walkAt{b.Addr[i], bytes})
	n.walks[walkID{id, thread}] = walk
	s.Strides[strideOf(walk)]++
	covered := n.follows(walk)
	for line := b.Addr[i] / n.line; line <= (b.Addr[i]+bytes-1)/n.line; line++ {
		n.access(line, b.Addr[i], bytes, id, of, covered)
		covered = (line+1)%(4096/n.line) != 0
		n.accessFrom(thread, line, b.Kind[i] == trace.Store || b.Kind[i] == trace.Modify || b.Kind[i] == trace.RangeWrite, id, of)
		n.useInCore(n.cores[thread], line, b.Addr[i], bytes, id, of)
	}
}

// newCore returns a core with the private caches in which line utilisation is measured.
func (n *naiveSites) newCore() *naiveCore {
	c := &naiveCore{touched: map[trace.Line]bool{}, lost: map[trace.Line]int{}, stays: map[trace.Line][]naiveStay{}}
	for i, bytes := range n.spec.Utilisation {
		cache := stacktest.Private{Sets: 1, Ways: int(bytes / n.line)}
		if ways := waysOf(n.spec, i); ways > 0 {
			cache = stacktest.Private{Sets: cache.Ways / int(ways), Ways: int(ways)}
		}
		c.caches = append(c.caches, cache)
	}
	return c
}

// useInCore marks bytes of a line as used in the private caches of a core. Caches that do not contain
// the line fetch it first.
func (n *naiveSites) useInCore(c *naiveCore, line trace.Line, addr, bytes uint64, id siteID, of objectID) {
	if c.stays[line] == nil {
		c.stays[line] = make([]naiveStay, len(c.caches))
	}
	for i := range c.caches {
		stay := &c.stays[line][i]
		if !c.caches[i].Do(stacktest.Event{Op: stack.AccessOp, Line: line}) {
			n.endInCore(stay, i)
			*stay = naiveStay{id, of, map[uint64]bool{}}
		}
		for b := max(addr, line*n.line); b < min(addr+bytes, (line+1)*n.line); b++ {
			stay.bytes[b] = true
		}
	}
}

// endInCore updates the counts when a line leaves a private cache.
func (n *naiveSites) endInCore(stay *naiveStay, cache int) {
	if stay.bytes == nil {
		return
	}
	for _, who := range []any{stay.site, stay.of} {
		n.usedOf(who)[cache].Fetched++
		n.usedOf(who)[cache].BytesUsed += uint64(len(stay.bytes))
	}
}

func (n *naiveSites) usedOf(who any) []profile.Utilisation {
	if n.used[who] == nil {
		n.used[who] = make([]profile.Utilisation, len(n.spec.Utilisation))
	}
	return n.used[who]
}

// accessFrom performs an access by a thread that has its own core.
func (n *naiveSites) accessFrom(thread uint32, line trace.Line, write bool, id siteID, of objectID) {
	if n.cores[thread] == nil {
		n.cores[thread] = n.newCore()
	}
	for other, c := range n.cores {
		if write && other != thread {
			for i := range c.caches {
				c.caches[i].Do(stacktest.Event{Op: stack.LoseOp, Line: line})
			}
			if depth := c.Do(stacktest.Event{Op: stack.LoseOp, Line: line}); depth >= 0 {
				c.lost[line] = depth
			}
		}
	}
	c := n.cores[thread]
	depth, lostAt, lost := c.Do(stacktest.Event{Op: stack.AccessOp, Line: line}), 0, false
	if lostAt, lost = c.lost[line]; lost {
		delete(c.lost, line)
	}
	for _, who := range []any{id, of} {
		switch {
		case lost:
			count(n.lost, who, profile.SiteBin(uint32(lostAt)))
		case c.touched[line]:
			count(n.depths, who, profile.SiteBin(uint32(depth)))
		default:
			n.cold[who]++
		}
	}
	c.touched[line] = true
}

func strideOf(walk []walkAt) profile.Stride {
	last := len(walk) - 1
	if last == 0 {
		return profile.IrregularStride
	}
	step := walk[last].addr - walk[last-1].addr
	switch {
	case step == 0:
		return profile.ZeroStride
	case step == walk[last].bytes, -step == walk[last].bytes:
		return profile.UnitStride
	case last > 1 && step == walk[last-1].addr-walk[last-2].addr:
		return profile.ConstantStride
	}
	return profile.IrregularStride
}

// follows reports whether the last reference of a walk moves to another line of the same page, by as
// many lines as the walk's previous move, or by one line more or less.
func (n *naiveSites) follows(walk []walkAt) bool {
	var moves []int64
	for i := 1; i < len(walk); i++ {
		if from, to := walk[i-1].addr/n.line, walk[i].addr/n.line; from != to {
			moves = append(moves, int64(to)-int64(from))
		} else if i == len(walk)-1 {
			return false
		}
	}
	if len(moves) < 2 {
		return false
	}
	longer := moves[len(moves)-1] - moves[len(moves)-2]
	return longer >= -1 && longer <= 1 && walk[len(walk)-1].addr/4096 == walk[len(walk)-2].addr/4096
}

func (n *naiveSites) access(line trace.Line, addr, bytes uint64, id siteID, of objectID, covered bool) {
	var out [1]uint32
	n.order.Distances([]trace.Line{line}, out[:])
	d := out[0]
	s, o := &n.code[id].Reuse, &n.data[of].Reuse
	switch {
	case covered && d == stack.Cold:
		n.coveredCold[id]++
	case covered:
		count(n.covered, any(id), profile.SiteBin(d))
	}
	at := n.lines[line]
	if at == nil {
		at = &naiveLine{stays: make([]naiveStay, len(n.spec.Utilisation))}
		n.lines[line] = at
	}
	if d == stack.Cold {
		s.Cold++
		o.Cold++
	} else {
		bin := profile.SiteBin(d)
		count(n.bins, any(id), bin)
		count(n.bins, any(of), bin)
		if d >= profile.PreviousFrom && n.spec.Previous {
			count(n.before, any(id), at.last)
			count(n.before, any(of), at.last)
		}
	}
	at.last = id
	for c, capacity := range n.spec.Utilisation {
		missed := uint64(d) >= capacity/n.line
		if ways := waysOf(n.spec, c); ways > 0 {
			missed = n.accessSet(c, line, capacity/n.line/ways, ways)
		}
		if missed {
			n.end(at, c, d == stack.Cold)
			at.stays[c] = naiveStay{id, of, map[uint64]bool{}}
		}
		for b := max(addr, line*n.line); b < min(addr+bytes, (line+1)*n.line); b++ {
			at.stays[c].bytes[b] = true
		}
	}
}

// accessSet simulates an access to a line in a set-associative cache, and reports whether the access
// misses.
func (n *naiveSites) accessSet(c int, line trace.Line, sets, ways uint64) bool {
	key := [2]uint64{uint64(c), line % sets}
	at := slices.Index(n.sets[key], line)
	held := slices.DeleteFunc(n.sets[key], func(l trace.Line) bool { return l == line })
	n.sets[key] = append([]trace.Line{line}, held[:min(len(held), int(ways)-1)]...)
	return at < 0
}

func waysOf(spec analysis.Spec, c int) uint64 {
	if c < len(spec.UtilisationWays) {
		return uint64(spec.UtilisationWays[c])
	}
	return 0
}

func count[K comparable](counts map[any]map[K]uint64, of any, what K) {
	if counts[of] == nil {
		counts[of] = map[K]uint64{}
	}
	counts[of][what]++
}

func (n *naiveSites) end(at *naiveLine, c int, first bool) {
	if first {
		return
	}
	for _, u := range []*profile.Utilisation{&n.code[at.stays[c].site].Reuse.Used[c], &n.data[at.stays[c].of].Reuse.Used[c]} {
		u.Fetched++
		u.BytesUsed += uint64(len(at.stays[c].bytes))
	}
}

func (n *naiveSites) result(spec analysis.Spec) *profile.Sites {
	out := &profile.Sites{LineBytes: uint32(n.line), Previous: spec.Previous}
	for c, capacity := range spec.Utilisation {
		out.Capacities, out.Ways = append(out.Capacities, capacity/n.line), append(out.Ways, uint32(waysOf(spec, c)))
		for _, at := range n.lines {
			n.end(at, c, false)
		}
	}
	var ids []siteID
	for id := range n.code {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b siteID) int { return profile.CompareSites(n.code[a], n.code[b]) })
	if len(ids) == 0 {
		return nil
	}
	for _, id := range ids {
		s := n.code[id]
		n.lists(&s.Reuse, id, ids)
		out.Code = append(out.Code, *s)
		out.Covered = append(out.Covered, profile.Reuse{Cold: n.coveredCold[id], Bins: binCounts(n.covered[id])})
	}
	for id, o := range n.data {
		n.lists(&o.Reuse, id, ids)
		out.Data = append(out.Data, *o)
	}
	slices.SortFunc(out.Data, func(a, b profile.DataObject) int { return profile.CompareObjects(&a, &b) })
	if len(out.Data) == 1 && out.Data[0].Kind == profile.OtherObject {
		out.Data = nil
	}
	if len(n.cores) > 1 {
		out.Coherent = n.coherent(out, ids)
	}
	return out
}

func (n *naiveSites) coherent(of *profile.Sites, ids []siteID) *profile.CoherentSites {
	measured := len(n.spec.Utilisation) > 0 && !n.spec.Mergeable
	for _, c := range n.cores {
		for _, stays := range c.stays {
			for i := range stays {
				n.endInCore(&stays[i], i)
			}
		}
	}
	reuse := func(who any) profile.CoherentReuse {
		r := profile.CoherentReuse{Cold: n.cold[who], Bins: binCounts(n.depths[who]), Lost: binCounts(n.lost[who])}
		if measured {
			r.Used = n.usedOf(who)
		}
		return r
	}
	out := &profile.CoherentSites{Code: make([]profile.CoherentReuse, len(of.Code)), Measured: measured}
	for i, id := range ids {
		out.Code[i] = reuse(id)
	}
	for i := range of.Data {
		o := &of.Data[i]
		id := objectID{o.Kind, o.Number, o.Function, o.Name}
		if o.Number != profile.NoSite {
			id.function, id.name = "", ""
		}
		out.Data = append(out.Data, reuse(id))
	}
	return out
}

func binCounts(counts map[int]uint64) (list []profile.BinCount) {
	for bin := range profile.SiteBins {
		if c := counts[bin]; c != 0 {
			list = append(list, profile.BinCount{Bin: uint8(bin), Count: c})
		}
	}
	return list
}

func (n *naiveSites) lists(r *profile.Reuse, of any, ids []siteID) {
	r.Bins = binCounts(n.bins[of])
	for i, id := range ids {
		if c := n.before[of][id]; c != 0 {
			r.Before = append(r.Before, profile.SiteCount{Site: uint32(i), Count: c})
		}
	}
}

// sitesSpec returns random options for one line size.
func sitesSpec(rng *rand.Rand) analysis.Spec {
	line := uint32(1) << (4 + rng.UintN(7))
	spec := analysis.Spec{Kinds: trace.AllKinds, LineBytes: []uint32{line}, Previous: rng.IntN(2) == 0}
	if rng.IntN(3) > 0 {
		spec.Utilisation = []uint64{uint64(line) * 2, uint64(line) * 6, uint64(line) * 40, uint64(line) * 40}[:1+rng.IntN(4)]
		spec.UtilisationWays = [][]uint32{nil, {1}, {0, 2}, {1, 3, 1, 8}}[rng.IntN(min(4, len(spec.Utilisation)+1))]
		if len(spec.Utilisation) == 4 {
			spec.UtilisationWays = []uint32{1, 0, 2, 8}
		} else if len(spec.UtilisationWays) > len(spec.Utilisation) {
			spec.UtilisationWays = nil
		}
	}
	return spec
}

// asPCs replaces the sites of rows with instruction addresses. asPCs returns the new rows and a
// reader of these rows.
func asPCs(p *trace.Program, b *trace.Batch, rows int) (*trace.Batch, trace.Reader) {
	only := rowsOfKinds(b, trace.AllKinds)
	only.Arg, only.PC = nil, make([]trace.Addr, only.Len())
	for i, n := range only.Site {
		only.PC[i] = 0x1000 + trace.Addr(n)/2*7 // each instruction address stands for two sites, sometimes of the same kind
	}
	only.Site = nil
	return only, tracetest.NewReader(only, rows)
}

func TestSitesEqualNaive(t *testing.T) {
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 20))
		p := allocatingProgram()
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 1+rng.IntN(1500))...)
		spec := sitesSpec(rng)
		spec.Mergeable = rng.IntN(3) == 0
		rows := 1 + rng.IntN(2000)
		reader := trace.Reader(tracetest.NewProgramReader(p, whole, rows))
		if seed%3 == 0 {
			whole, reader = asPCs(p, whole, rows)
		}
		got := resultOf(t, spec, reader)
		want := sitesByDefinition(p, whole, spec, spec.LineBytes[0])
		equalSites(t, fmt.Sprint("seed ", seed), got.Sites, want)
	}
}

func equalSites(t *testing.T, name string, got, want *profile.Sites) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	if got == nil || want == nil || len(got.Code) != len(want.Code) || len(got.Data) != len(want.Data) {
		t.Fatalf("%s: got\n%+v\nwant\n%+v", name, got, want)
	}
	for i := range got.Code {
		if !reflect.DeepEqual(got.Code[i], want.Code[i]) {
			t.Fatalf("%s: site %d is\n%+v\nwant\n%+v", name, i, got.Code[i], want.Code[i])
		}
	}
	for i := range got.Data {
		if !reflect.DeepEqual(got.Data[i], want.Data[i]) {
			t.Fatalf("%s: object %d is\n%+v\nwant\n%+v", name, i, got.Data[i], want.Data[i])
		}
	}
	t.Fatalf("%s: got\n%+v\nwant\n%+v", name, got, want)
}

// The number of lines that a cache fetches equals the number of its misses.
func TestUtilisationCountsMisses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 21))
		p := allocatingProgram()
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 1+rng.IntN(500))...)
		lines := uint64(rapid.IntRange(1, 100).Draw(rt, "lines"))
		got := resultOf(t, analysis.Spec{Kinds: trace.AllKinds, Utilisation: []uint64{64 * lines}}, tracetest.NewProgramReader(p, whole, 0))
		var fetched, used uint64
		if got.Sites == nil {
			return
		}
		for i := range got.Sites.Code {
			fetched += got.Sites.Code[i].Reuse.Used[0].Fetched
			used += got.Sites.Code[i].Reuse.Used[0].BytesUsed
		}
		curve := profile.NewCurve(got.Locality[0].Histogram(trace.AllKinds))
		if fetched != curve.Misses(lines) || used > 64*fetched || used < fetched {
			rt.Fatalf("%d lines were fetched and %d bytes used, want %d lines, one for each miss", fetched, used, curve.Misses(lines))
		}
	})
}

// A run that is saved and resumed any number of times has the same result as an uninterrupted run.
func TestSitesSaveRestore(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 22))
		p := allocatingProgram()
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 1+rng.IntN(4000))...)
		spec := sitesSpec(rng)
		spec.Mergeable = rng.IntN(3) == 0
		open := func() trace.Reader {
			if seed%3 == 0 {
				_, r := asPCs(p, whole, 1+rng.IntN(500))
				return r
			}
			return tracetest.NewProgramReader(p, whole, 1+rng.IntN(500))
		}
		want := resultOf(t, spec, open())
		got := interrupted(t, rng, spec, 8, open, nil)
		equalSites(t, fmt.Sprint("seed ", seed), got.Sites, want.Sites)
		if !bytes.Equal(got.Encode(), want.Encode()) {
			t.Fatalf("seed %d: the result of the resumed run differs from the result of the uninterrupted run", seed)
		}
	}
}

// If a trace is divided into segments and the segments are joined in any grouping, the result
// equals the result of the whole trace.
func TestSitesAppend(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 23))
		p := allocatingProgram()
		whole := tracetest.Rows(p, allocatingSteps(rng, p, 1+rng.IntN(3000))...)
		spec := sitesSpec(rng)
		spec.Mergeable = true
		reader := func(b *trace.Batch) trace.Reader {
			if seed%3 == 0 {
				_, r := asPCs(p, b, 1+rng.IntN(500))
				return r
			}
			return tracetest.NewProgramReader(p, b, 1+rng.IntN(500))
		}
		want := analysis.AsSegment(resultOf(t, spec, reader(whole)))
		var parts []*profile.Profile
		for lo := 0; lo < whole.Len(); {
			hi := min(whole.Len(), lo+rng.IntN(2+whole.Len()/2)) // the part may contain no rows
			part := spec
			part.Start = referencesBefore(whole, lo)
			parts = append(parts, resultOf(t, part, reader(tracetest.Part(whole, lo, hi))))
			lo = hi
		}
		got, err := appended(t, rng, spec, parts)
		if err != nil {
			t.Fatal(err)
		}
		equalSites(t, fmt.Sprint("seed ", seed), got.Sites, want.Sites)
		if !bytes.Equal(analysis.AsSegment(got).Encode(), want.Encode()) {
			t.Fatalf("seed %d: the joined profile differs from the profile of the whole trace", seed)
		}
	}
}

// Files with the same name in different folders are distinguished, for any folder paths and any
// division of the trace.
func TestSitesInFilesWithSameName(t *testing.T) {
	var first *profile.Profile
	for _, folder := range []string{"/one/place/", "/another/", ""} {
		p := allocatingProgram()
		for n := range p.Sites {
			p.Sites[n].Place.File = folder + []string{"a/util.c", "b/util.c", "main.c"}[n%3]
		}
		p.Objects[0].Place.File, p.Objects[2].Place.File = folder+"a/table.h", folder+"b/table.h"
		whole := tracetest.Rows(p, allocatingSteps(rand.New(rand.NewPCG(1, 30)), p, 2000)...)
		spec := analysis.Spec{Kinds: trace.AllKinds, Mergeable: true}
		got := analysis.AsSegment(resultOf(t, spec, tracetest.NewProgramReader(p, whole, 100)))
		for i := range got.Sites.Code {
			s := &got.Sites.Code[i]
			if want := strings.TrimPrefix(p.Sites[s.Number].Place.File, folder); s.File != want {
				t.Fatalf("site %d is in %q, want %q", s.Number, s.File, want)
			}
		}
		objects := 0
		for i := range got.Sites.Data {
			if o := &got.Sites.Data[i]; o.Name == "table" && o.File == "a/table.h" || o.Name == "odd" && o.File == "b/table.h" {
				objects++
			}
		}
		if objects != 2 {
			t.Errorf("the objects are %+v, want objects in a/table.h and in b/table.h", got.Sites.Data)
		}
		if first == nil {
			first = got
		}
		equalSites(t, "in "+folder, got.Sites, first.Sites)
		for _, cut := range []int{1, 700, whole.Len() - 1} {
			behind := spec
			behind.Start = referencesBefore(whole, cut)
			joined, err := analysis.Append(spec, resultOf(t, spec, tracetest.NewProgramReader(p, tracetest.Part(whole, 0, cut), 100)),
				resultOf(t, behind, tracetest.NewProgramReader(p, tracetest.Part(whole, cut, whole.Len()), 100)))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(joined.Encode(), got.Encode()) {
				t.Errorf("if the trace is cut at row %d, the joined profile differs from the profile of the whole trace", cut)
			}
		}
	}
}

// If there are several line sizes, sites are analysed for lines of 64 bytes or, if 64 is not among
// the sizes, for the first size.
func TestSitesLineSize(t *testing.T) {
	p := allocatingProgram()
	whole := tracetest.Rows(p, allocatingSteps(rand.New(rand.NewPCG(1, 1)), p, 300)...)
	for _, c := range []struct {
		lines []uint32
		want  uint32
	}{{[]uint32{32, 64, 128}, 64}, {[]uint32{16, 256}, 16}} {
		if got := resultOf(t, analysis.Spec{LineBytes: c.lines}, tracetest.NewProgramReader(p, whole, 0)); got.Sites.LineBytes != c.want {
			t.Errorf("with line sizes %v, sites were analysed for lines of %d bytes, want %d", c.lines, got.Sites.LineBytes, c.want)
		}
	}
}

// The profile of a trace without code contains all results except sites.
func TestNoSites(t *testing.T) {
	whole := randomTrace(rand.New(rand.NewPCG(1, 24)), 5000)
	with := resultOf(t, analysis.Spec{Analyses: analysis.Sites, Utilisation: []uint64{1 << 15}, Previous: true}, tracetest.NewReader(whole, 0))
	without := resultOf(t, analysis.Spec{Analyses: analysis.Locality}, tracetest.NewReader(whole, 0))
	if with.Sites != nil || with.Digest() != without.Digest() {
		t.Errorf("a trace without code has sites %+v, or its profile differs", with.Sites)
	}
}

// If a row refers to a site that is not in the tables, the error contains the site's number.
func TestUnknownSite(t *testing.T) {
	p := allocatingProgram()
	whole := tracetest.Rows(p, tracetest.Step{Block: 0, Values: []uint64{64}})
	whole.Site[whole.Len()-1] = 99
	r, err := analysis.NewRunner(analysis.Spec{Analyses: analysis.Sites}, &copier{rows: whole, p: p})
	for err == nil {
		err = r.Step()
	}
	if want := "a record refers to site 99, but the trace's tables contain only 16; the file is damaged, or was concatenated from parts; record the program again, or analyse the trace without sites"; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// untilLongWindows is the number of batches after which a window of the timeline is longer than a
// batch. Until then, some windows end within a batch, and the end of a window allocates memory.
const untilLongWindows = 2500

func TestSitesAllocateNothing(t *testing.T) {
	program, steps := tracetest.Multiplication(16)
	whole := tracetest.Rows(program, slices.Repeat(steps, 20)...)
	for _, spec := range []analysis.Spec{{}, {Analyses: analysis.Sites, Utilisation: []uint64{1 << 10}, Previous: true}} {
		r, err := analysis.NewRunner(spec, &copier{rows: whole, p: program, endless: true})
		if err != nil {
			t.Fatal(err)
		}
		allocatesNothing(t, r, untilLongWindows)
	}
}

// FuzzSitesState checks that a saved run with damaged sites is either rejected or continued,
// without a panic.
func FuzzSitesState(f *testing.F) {
	p := allocatingProgram()
	specs := []analysis.Spec{
		{Kinds: trace.AllKinds, Utilisation: []uint64{128}, Previous: true},
		{Kinds: trace.AllKinds, Mergeable: true, LineBytes: []uint32{128}, Utilisation: []uint64{256}},
	}
	whole := tracetest.Rows(p, allocatingSteps(rand.New(rand.NewPCG(1, 25)), p, 60)...)
	saved := make([][]byte, len(specs))
	for i, spec := range specs {
		r, err := analysis.NewRunner(spec, tracetest.NewProgramReader(p, whole, 0))
		if err != nil {
			f.Fatal(err)
		}
		if err := r.Step(); err != nil {
			f.Fatal(err)
		}
		saved[i] = r.Save()
		at, err := profile.Decode(saved[i][savedHead(saved[i]):])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), at.Segment.Sites)
	}
	f.Fuzz(func(t *testing.T, which uint8, state []byte) {
		i := int(which) % len(specs)
		head := savedHead(saved[i])
		at, err := profile.Decode(saved[i][head:])
		if err != nil {
			t.Fatal(err)
		}
		at.Segment.Sites = state
		canContinue(t, specs[i], tracetest.NewProgramReader(p, whole, 0), append(slices.Clone(saved[i][:head]), at.Encode()...))
	})
}

// savedHead returns the number of bytes before the profile in a saved run.
func savedHead(saved []byte) int { return bytes.Index(saved, []byte("\x89SGP")) }

func TestDistanceBins(t *testing.T) {
	for _, d := range []uint32{0, 3, 4, 5, 15, 16, 19, 20, 1 << 20, 1<<32 - 2} {
		bin := profile.SiteBin(d)
		if width := profile.SiteBinFrom(bin+1) - profile.SiteBinFrom(bin); d >= 4 && width != 1<<(bits.Len32(d)-3) {
			t.Errorf("the bin of distance %d has a width of %d, want %d", d, width, 1<<(bits.Len32(d)-3))
		}
	}
}

// TestMeasuredCaches checks the list of measured caches. Each cache is listed once, in an order
// that does not depend on the order in which the caches are added. Caches that cannot be measured
// are omitted, and the spec remains valid.
func TestMeasuredCaches(t *testing.T) {
	type cache struct {
		bytes uint64
		ways  uint32
	}
	rapid.Check(t, func(t *rapid.T) {
		spec := analysis.Spec{Utilisation: []uint64{32 << 10}}
		want := map[cache]bool{{32 << 10, 0}: true}
		for range rapid.IntRange(0, 12).Draw(t, "caches") {
			c := cache{rapid.SampledFrom([]uint64{0, 1000, 4 << 10, 32 << 10, 48 << 10, 1 << 20}).Draw(t, "bytes"), rapid.SampledFrom([]uint32{0, 1, 7, 8, 12}).Draw(t, "ways")}
			spec.Measure(c.bytes, c.ways)
			if c.bytes%64 == 0 && profile.ValidUtilisation(c.bytes/64, c.ways) && len(want) < profile.MaxCapacities {
				want[c] = true
			}
		}
		if err := spec.Check(); err != nil {
			t.Fatal(err)
		}
		for i, n := range spec.Utilisation {
			c := cache{bytes: n}
			if i < len(spec.UtilisationWays) {
				c.ways = spec.UtilisationWays[i]
			}
			if !want[c] {
				t.Fatalf("cache %v is measured, want it to be omitted", c)
			}
			delete(want, c)
		}
		if len(want) > 0 {
			t.Fatalf("caches %v are not measured", want)
		}
	})
}
