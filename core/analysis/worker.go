package analysis

import (
	"github.com/stackglass/stackglass/core/analysis/contract"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

type worker struct {
	p      *Parallel
	header *trace.Header           // of the rows that are being analysed
	before contract.LayoutFollower // knows where blocks of memory lie at block at; nil: none yet
	at     int
}

// moves are the rows that say where blocks of memory lie, and what the trace told meanwhile, as
// far back as a worker needs them.
type moves struct {
	wanted    trace.Kinds // 0: nobody does
	list      []move
	latest    *trace.Header
	followers []*worker
}

type move struct {
	block  int
	rows   *trace.Batch // nil: none
	header *trace.Header
}

// note records what a block tells.
func (m *moves) note(number int, b *block) {
	if m.wanted == 0 || !b.moves && b.header == m.latest {
		return
	}
	m.latest = b.header
	one := move{block: number, header: b.header}
	if b.moves {
		one.rows = only(b.rows, m.wanted)
	}
	m.list = append(m.list, one)
}

// only copies the events of these kinds.
func only(b *trace.Batch, kinds trace.Kinds) *trace.Batch {
	some := &trace.Batch{}
	for i, k := range b.Kind {
		if !kinds.Has(k) {
			continue
		}
		some.Kind, some.Addr = append(some.Kind, k), append(some.Addr, b.Addr[i])
		if b.Site != nil {
			some.Site = append(some.Site, b.Site[i])
		}
		if b.Arg != nil {
			some.Arg = append(some.Arg, b.Arg[i])
		}
	}
	return some
}

// since returns the moves from one block up to another, and forgets those that everybody knows.
func (m *moves) since(from, to int) (list []move) {
	known := to
	for _, w := range m.followers {
		known = min(known, w.at)
	}
	n := 0
	for n < len(m.list) && m.list[n].block < known {
		n++
	}
	m.list = m.list[n:]
	for _, one := range m.list {
		if one.block >= from && one.block < to {
			list = append(list, one)
		}
	}
	return list
}

func (w *worker) work() {
	for c := w.claim(); c != nil; c = w.claim() {
		w.analyse(c)
	}
}

// claim waits for a claim; nil if there are no more.
func (w *worker) claim() *claim {
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && !p.alone {
		end := p.at + len(p.blocks)
		if from, to := p.claims.next(p.at, end, p.ended != nil); to > from && p.joining {
			c := &claim{from: from, to: to, blocks: p.blocks[from-p.at : to-p.at], lone: p.lone}
			p.claims.list = append(p.claims.list, c)
			w.follow(from)
			return c
		}
		if w.at+maxBehind < p.at {
			w.follow(p.at)
			continue
		}
		p.changed.Wait()
	}
	return nil
}

// maxBehind is how many blocks an idle worker may be behind in following moves.
const maxBehind = 256

// follow makes the worker know where blocks of memory lie at a block. It releases the lock
// meanwhile.
func (w *worker) follow(to int) {
	list := w.p.moves.since(w.at, to)
	w.at = to
	if len(list) == 0 {
		return
	}
	w.p.mu.Unlock()
	defer w.p.mu.Lock()
	if w.before == nil {
		w.before = w.p.spec.newLayout(w.program)
	}
	for _, one := range list {
		w.header = one.header
		if one.rows == nil {
			one.rows = &trace.Batch{}
		}
		w.before.Move(one.rows)
	}
}

// program returns what the trace had told at the current rows.
func (w *worker) program() *trace.Program { return w.header.Program }

// analyse analyses a claim as a segment.
func (w *worker) analyse(c *claim) {
	first := &c.blocks[0]
	w.header = first.header
	spec := w.p.spec
	spec.Start += first.first
	f := feed{analyses: spec.segmentTable(w.program, c.lone)}
	f.ask()
	blocks, follows := find[contract.LayoutFollower](f.analyses)
	if follows && w.before != nil {
		blocks.Succeed(w.before)
	}
	done, ok := 0, true
	for ; ok && done < len(c.blocks) && !c.cut.Load(); done++ {
		b := &c.blocks[done]
		w.header, f.batch, f.mixed, f.next = b.header, b.rows, b.mixed, 0
		ok = f.all() == nil
		c.done.Add(1)
	}
	var result *profile.Profile
	if ok {
		result = f.profile(&spec, *w.header, profile.Totals{}, profile.State{}, true)
	}
	p := w.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if follows {
		w.before = blocks
	}
	c.to, c.result, c.ended = c.from+done, result, true
	w.at = c.to
	p.notify()
}

// all analyses the rest of the batch.
func (f *feed) all() error {
	for f.pending() || f.rest.pending() {
		if f.rest.pending() {
			f.rest.consume()
		} else if err := f.consume(); err != nil {
			return err
		}
	}
	return nil
}
