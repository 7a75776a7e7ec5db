package simulate

import (
	"math/rand/v2"

	"github.com/stackglass/stackglass/core/trace"
)

// placed implements replacement policies in which each line stays in one frame until it is removed.
// A look-up searches the frames of the set if there are few ways, and otherwise uses a table.
type placed struct {
	index
	ways   uint64
	frames []frame               // frames of all sets, set by set
	at     map[trace.Line]uint64 // the frame of each line; nil for few ways
	empty  []uint32              // empty ways, set by set; the last way of a set is used next
	left   []uint32              // number of empty ways in each set
}

func newPlaced(where index, ways uint64) placed {
	lines := where.sets * ways
	p := placed{index: where, ways: ways, frames: emptyFrames(lines), empty: make([]uint32, lines), left: make([]uint32, where.sets)}
	for i := range p.empty {
		p.empty[i] = uint32(ways - 1 - uint64(i)%ways)
	}
	for i := range p.left {
		p.left[i] = uint32(ways)
	}
	if ways > fewWays {
		p.at = map[trace.Line]uint64{}
	}
	return p
}

// find returns the set of a line and the line's way in that set.
func (p *placed) find(line trace.Line) (set, way uint64, found bool) {
	set = p.set(line)
	base := set * p.ways
	if p.at != nil {
		at, found := p.at[line]
		return set, at - base, found
	}
	for i, f := range p.frames[base : base+p.ways] {
		if f.line() == line {
			return set, uint64(i), true
		}
	}
	return set, 0, false
}

func (p *placed) touch(line trace.Line, dirty bool) bool {
	set, way, found := p.find(line)
	if found && dirty {
		p.frames[set*p.ways+way] |= 1
	}
	return found
}

// takeEmpty returns an empty way of a set. The result "found" is false if the set is full.
func (p *placed) takeEmpty(set uint64) (way uint64, found bool) {
	if p.left[set] == 0 {
		return 0, false
	}
	p.left[set]--
	return uint64(p.empty[set*p.ways+uint64(p.left[set])]), true
}

// replace stores a line in a way, and returns the line that was in this way.
func (p *placed) replace(line trace.Line, dirty bool, set, way uint64) (victim trace.Line, victimDirty, evicted bool) {
	at := set*p.ways + way
	old := p.frames[at]
	p.frames[at] = frameOf(line, dirty)
	if p.at != nil {
		delete(p.at, old.line())
		p.at[line] = at
	}
	return old.line(), old.dirty(), old != emptyFrame
}

func (p *placed) remove(line trace.Line) (present, dirty bool) {
	set, way, found := p.find(line)
	if !found {
		return false, false
	}
	at := set*p.ways + way
	dirty = p.frames[at].dirty()
	p.frames[at] = emptyFrame
	if p.at != nil {
		delete(p.at, line)
	}
	p.empty[set*p.ways+uint64(p.left[set])] = uint32(way)
	p.left[set]++
	return true, dirty
}

func (p *placed) peek(line trace.Line) (present, dirty bool) {
	set, way, found := p.find(line)
	return found, found && p.frames[set*p.ways+way].dirty()
}

func (p *placed) markClean(line trace.Line) {
	if set, way, found := p.find(line); found {
		p.frames[set*p.ways+way] &^= 1
	}
}

func (p *placed) cleanAll(back func(trace.Line)) { cleanFrames(p.frames, back) }

func (p *placed) each(f func(trace.Line)) { eachFrame(p.frames, f) }

func (p *placed) resident() uint64 {
	lines := uint64(len(p.frames))
	for _, n := range p.left {
		lines -= uint64(n)
	}
	return lines
}

// tree implements tree-PLRU. The ways of a set, whose number is a power of two, are the leaves of a
// binary tree. Nodes are numbered from 1: node n has the children 2n and 2n+1, and way w is node
// ways+w. The bit of each inner node selects the half from which a line is evicted.
type tree struct {
	placed
	// whether a node selects the half with the higher way numbers; each set has one element per way,
	// the first of which is unused
	points []bool
}

func newTree(where index, ways uint64) *tree {
	return &tree{placed: newPlaced(where, ways), points: make([]bool, where.sets*ways)}
}

func (t *tree) touch(line trace.Line, dirty bool) bool {
	set, way, found := t.find(line)
	if found {
		if dirty {
			t.frames[set*t.ways+way] |= 1
		}
		t.protect(set, way)
	}
	return found
}

// protect makes each node on the path to a way select the half that does not contain this way.
func (t *tree) protect(set, way uint64) {
	points := t.points[set*t.ways : (set+1)*t.ways]
	for n := t.ways + way; n > 1; n /= 2 {
		points[n/2] = n&1 == 0
	}
}

func (t *tree) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := t.set(line)
	way, found := t.takeEmpty(set)
	if !found {
		way = t.victimWay(set)
	}
	t.protect(set, way)
	return t.replace(line, dirty, set, way)
}

// victimWay returns the way that the bits of a set's tree select.
func (t *tree) victimWay(set uint64) uint64 {
	points := t.points[set*t.ways : (set+1)*t.ways]
	n := uint64(1)
	for n < t.ways {
		n *= 2
		if points[n/2] {
			n++
		}
	}
	return n - t.ways
}

type random struct {
	placed
	draw *rand.Rand
}

func newRandom(where index, ways, seed uint64) *random {
	return &random{placed: newPlaced(where, ways), draw: rand.New(rand.NewPCG(seed, 0))}
}

func (t *random) insert(line trace.Line, dirty bool) (victim trace.Line, victimDirty, evicted bool) {
	set := t.set(line)
	way, found := t.takeEmpty(set)
	if !found {
		way = t.draw.Uint64N(t.ways)
	}
	return t.replace(line, dirty, set, way)
}
