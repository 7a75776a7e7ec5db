package misses

import (
	"math"

	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/trace"
)

// engine runs a tree through a state.
type engine struct {
	tree    *loops.Tree
	blocks  *blocks
	shift   uint
	sets    uint64
	state   state
	tally   tally
	columns []uint32 // of each reference: its array's
	reads   []loops.Addresses
	nodes   int // counts before those of references at the top

	plain  bool // every iteration is run: what results are held against
	queue  []access
	weight uint64 // of what is run
	depth  int
	curs   [][]uint64 // parameters of the loops that run, by depth
	plans  []*plan
	done   uint64 // accesses made
	cost   uint64 // of a checkpoint, in accesses
	*pauses
}

const queued = 512

func newEngine(t *loops.Tree, lineBytes, sets, ways uint64) *engine {
	shift := uint(0)
	for lineBytes>>shift > 1 {
		shift++
	}
	e := &engine{tree: t, blocks: newBlocks(t, lineBytes), shift: shift, sets: sets, state: newState(sets, ways), weight: 1, pauses: new(pauses)}
	for n := range t.Nodes() {
		if n.IsLoop() {
			e.nodes += e.blocks.of(n).nodes
		}
	}
	refs := len(t.References())
	e.tally.arrays = newArrays(t, e.blocks, shift)
	e.tally.counts = make([]hits, e.nodes+refs)
	e.tally.out = make([]uint64, e.tally.arrays.shown*e.tally.arrays.shown)
	e.columns = make([]uint32, refs)
	e.reads = make([]loops.Addresses, refs)
	for ref := range refs {
		if s := e.tally.arrays.byRef[ref]; s >= 0 {
			e.columns[ref] = e.tally.arrays.number[s]
		}
		e.reads[ref] = t.Addresses(ref)
	}
	e.queue = make([]access, 0, queued)
	return e
}

// run runs the whole tree.
func (e *engine) run() {
	e.cost = uint64(e.state.lines() + len(e.tally.out) + len(e.tally.depths))
	at := 0
	for n := range e.tree.Nodes() {
		if e.over {
			return
		}
		b, p := e.blocks.of(n), n.Params()
		if !b.loop {
			e.leaf(b, p[0], e.nodes+b.ref)
			continue
		}
		if !b.events || b.wilds {
			e.loop(b, p, at)
		}
		at += b.nodes
	}
	e.flush()
}

// flush makes the accesses that wait.
func (e *engine) flush() {
	e.state.touch(e.queue, &e.tally)
	e.done += uint64(len(e.queue))
	e.spend(len(e.queue))
	e.queue = e.queue[:0]
}

// leaf makes the accesses of a reference, one a line, in ascending order.
func (e *engine) leaf(b *block, addr trace.Addr, at int) {
	if !b.counted {
		if b.wild {
			e.reads[b.ref].Next()
		}
		return
	}
	if b.wild {
		addr, _ = e.reads[b.ref].Next()
	}
	line, last := addr>>e.shift, (addr+b.bytes-1)>>e.shift
	for {
		if len(e.queue) == queued {
			e.flush()
		}
		e.queue = append(e.queue, access{line, e.weight, uint32(at), e.columns[b.ref]})
		if line >= last {
			return
		}
		line++
	}
}

// enter gives room for the parameters of a body.
func (e *engine) enter(start []uint64) []uint64 {
	if e.depth == len(e.curs) {
		e.curs = append(e.curs, nil)
		e.plans = append(e.plans, new(plan))
	}
	cur := append(e.curs[e.depth][:0], start...)
	e.curs[e.depth] = cur
	e.depth++
	return cur
}

// loop runs a loop; its count is number at.
func (e *engine) loop(b *block, p []uint64, at int) {
	if int64(p[0]) < 1 {
		return
	}
	trips := p[0]
	cur := e.enter(p[1:])
	w := e.plans[e.depth-1]
	w.begin(e, b, cur, trips)
	still := b.slow && !b.wilds && !b.varies && !e.plain
	for i := uint64(0); i < trips && !e.over; {
		if i == w.next {
			if jump := w.look(e, b, cur, i, trips, at); jump > 0 {
				advance(cur, b.steps, jump)
				i += jump
				continue
			}
		}
		n := uint64(1)
		if still {
			n = b.linger(cur, min(trips, w.next)-i)
		}
		e.body(b, cur, at)
		if n < 3 {
			n = 1
		} else {
			// What follows finds the lines as this iteration left them, n - 1 times.
			outside := e.weight
			e.weight *= n - 1
			e.body(b, cur, at)
			e.weight = outside
		}
		advance(cur, b.steps, n)
		i += n
	}
	w.finish(b)
	e.depth--
}

// advance goes so many iterations on.
func advance(cur, steps []uint64, iterations uint64) {
	for i, step := range steps {
		cur[i] += step * iterations
	}
}

// body runs an iteration.
func (e *engine) body(b *block, cur []uint64, at int) {
	for i := range b.items {
		it := &b.items[i]
		switch {
		case !it.loop:
			e.leaf(it.block, cur[it.at], at+it.node)
		case !it.events || it.wilds:
			e.loop(it.block, cur[it.at:it.at+it.n], at+it.node)
		}
	}
}

// amount is about how many references an iteration of a loop makes.
func (b *block) amount(cur []uint64) (n float64) {
	for i := range b.items {
		it := &b.items[i]
		switch {
		case it.loop && !it.events:
			n += float64(max(0, int64(cur[it.at]))) * it.amount(cur[it.at+1:it.at+it.n])
		case it.counted:
			n++
		}
	}
	return n
}

// never is no iteration.
const never = math.MaxUint64
