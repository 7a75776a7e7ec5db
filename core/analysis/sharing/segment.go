package sharing

import (
	"github.com/stackglass/stackglass/core/analysis/locality"
	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// segment records, in order, all accesses whose results depend on accesses before the segment
// (MODELS §9). For each core, it records the first touch of each line and the accesses after an
// invalidation. For each line, it records the first store, which invalidates copies from before the
// segment. While there is only one core, the segment records only stores, because package locality
// records the first touches, and no line is invalidated.
type segment struct {
	notes []note
	// the holders of a line are the cores that have touched the line; last is 1 if a core has
	// stored to the line
	lines directory

	open [profile.MaxCores][]int // for each core: notes of accesses whose depths are still unknown
	from int                     // the first note of the current accesses

	touches uint64 // number of first touches while there was only one core
	stores  []store
	recent  [recentStores]uint64 // line + 1 of recent stores
}

const recentStores = 1024 // number of recent stores that are found without a look-up in the hash table

// note consists of a line and a number that encodes three values: operation + 4 × core + 256 ×
// filled. The value filled is a bit set of the numbers of sets for which the access fills a hole of
// the segment.
type note struct {
	line trace.Line
	what uint32
}

const (
	touched = iota // the core's first touch of the line
	again          // the core's access to the line after an invalidation
	stored         // the first store to the line; if the store is also a first touch, this note precedes the note of the touch
)

const everywhere = 1<<stack.SetCounts - 1 // all numbers of sets

func (n note) op() uint32     { return n.what & 3 }
func (n note) core() uint8    { return uint8(n.what >> 2 & 63) }
func (n note) filled() uint32 { return n.what >> 8 }

func noteOf(line trace.Line, op uint32, core uint8, filled uint32) note {
	return note{line, op | uint32(core)<<2 | filled<<8}
}

// store is the first store to a line. Stores are recorded while there is only one core.
type store struct {
	line    trace.Line
	touches uint64 // number of first touches before the store
}

// isFirst reports whether a store to a line is the first store to this line in the segment.
func (g *segment) isFirst(line trace.Line) bool {
	recent := &g.recent[line%recentStores]
	if *recent == line+1 {
		return false
	}
	*recent = line + 1
	e := g.lines.entry(line)
	if e.last != 0 {
		return false
	}
	e.last = 1
	return true
}

// recordStores records the stores of the only core, and counts its first touches.
func (g *segment) recordStores(a *locality.Accesses) {
	for i, line := range a.Lines {
		if trace.WriteKinds.Has(a.Batch.Kind[a.Row(i)]) && g.isFirst(line) {
			g.stores = append(g.stores, store{line, g.touches})
		}
		if a.Distances[i] == cold {
			g.touches++
		}
	}
}

// begin records the accesses of the first core that precede the first access of a second core.
func (g *segment) begin(touches *profile.FirstTouches) {
	g.notes = singleCoreNotes(touches, g.stores)
	for t := range touches.All() {
		g.lines.entry(t.Line).holders = 1
	}
	g.stores, g.touches, g.from = nil, 0, len(g.notes)
}

// singleCoreNotes returns the notes for the accesses of a single core.
func singleCoreNotes(touches *profile.FirstTouches, stores []store) (notes []note) {
	seen := uint64(0)
	for t := range touches.All() {
		for len(stores) > 0 && stores[0].touches == seen {
			notes, stores = append(notes, noteOf(stores[0].line, stored, 0, 0)), stores[1:]
		}
		notes = append(notes, noteOf(t.Line, touched, 0, 0))
		seen++
	}
	for _, s := range stores {
		notes = append(notes, noteOf(s.line, stored, 0, 0))
	}
	return notes
}

// recordAccess records an access by one of several cores.
func (g *segment) recordAccess(line trace.Line, core uint8, writes, missing bool) {
	if writes && g.isFirst(line) {
		g.notes = append(g.notes, noteOf(line, stored, core, 0))
	}
	if !missing {
		return
	}
	op := uint32(again)
	if e := g.lines.entry(line); e.holders>>core&1 == 0 {
		e.holders |= 1 << core
		op = touched
	}
	g.open[core%profile.MaxCores] = append(g.open[core%profile.MaxCores], len(g.notes))
	g.notes = append(g.notes, noteOf(line, op, core, 0))
}

// recordHoles records which holes the accesses of a core have filled.
func (g *segment) recordHoles(core int, filled []uint32) {
	for i, at := range g.open[core] {
		g.notes[at].what |= filled[i] << 8
	}
	g.open[core] = g.open[core][:0]
}

// dropFilled drops the notes of accesses that have filled a hole of the segment for every number of
// sets.
func (g *segment) dropFilled() {
	kept := g.notes[:g.from]
	for _, n := range g.notes[g.from:] {
		if n.dependsOnEarlier() {
			kept = append(kept, n)
		}
	}
	g.notes, g.from = kept, len(kept)
}

// dependsOnEarlier reports whether a note depends on the stack at the beginning of the segment.
func (n note) dependsOnEarlier() bool { return n.op() != again || n.filled() != everywhere }

func codeNotes(c *codec.Coder, notes *[]note) {
	// codec.Slice would allocate the list several times, because the list grows while it is read.
	if n := c.Length(len(*notes), 2); c.Reads() {
		*notes = make([]note, n)
	}
	last := trace.Line(0)
	for i := range *notes {
		c.Near(&(*notes)[i].line, &last)
		codec.Below(c, &(*notes)[i].what, (everywhere+1)<<8)
	}
}

// notes reads notes and derives the states of their lines.
func (r *loader) notes(cores int) (notes []note, lines directory) {
	lines.reset(0)
	codeNotes(r.Coder, &notes)
	for _, n := range notes {
		if !r.failUnless(n.line < 1<<61 && int(n.core()) < cores) {
			return nil, lines
		}
		e := lines.entry(n.line)
		known := e.holders>>n.core()&1 != 0
		switch n.op() {
		case touched:
			e.holders |= 1 << n.core()
			r.failUnless(!known)
		case again:
			r.failUnless(known && n.dependsOnEarlier())
		default:
			r.failUnless(n.op() == stored && n.filled() == 0 && e.last == 0)
			e.last = 1
		}
	}
	return notes, lines
}

func codeStores(c *codec.Coder, stores *[]store) {
	last := store{}
	codec.Slice(c, stores, 2, func(s *store) {
		c.Near(&s.line, &last.line)
		c.Delta(&s.touches, &last.touches)
	})
}

// stores reads the stores of a core that has the given number of first touches.
func (r *loader) stores(touches uint64) (stores []store) {
	var lines directory
	lines.reset(0)
	codeStores(r.Coder, &stores)
	last := uint64(0)
	for _, s := range stores {
		if !r.failUnless(s.line < 1<<61 && s.touches >= last && s.touches <= touches) || !r.failUnless(lines.entry(s.line).last == 0) {
			return nil
		}
		lines.entry(s.line).last, last = 1, s.touches
	}
	return stores
}
