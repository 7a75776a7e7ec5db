package interleave

import (
	"io"
	"math/bits"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// strip is the number of rows whose order is determined before they are copied. All columns of a
// strip fit in the first-level cache.
const strip = 1024

// Merger merges the rows of several streams, phase by phase. Cores take turns. The policy
// determines what a turn is:
//
//   - RoundRobin, Uniform: a turn is one reference and the events before it, or the remaining
//     events at the end of the stream.
//   - ByBlock, ByTime: a turn is one execution of a block: all rows from its BlockEntry up to the
//     next BlockEntry. Before the first BlockEntry of a phase, a turn is one reference.
//
// The policy also determines the core of the next turn:
//
//   - RoundRobin, ByBlock: the next core with rows left, in the order of [Merger.Begin]. Each phase
//     begins with the first core.
//   - Uniform: a random core with rows left. The sequence of random numbers continues from phase
//     to phase.
//   - ByTime: the core with the earliest clock, or the first of several such cores. A turn advances
//     the clock of its core by the block's Cycles, or by one cycle for each reference. All clocks
//     are 0 at the beginning of a phase, because cores leave a barrier together.
//
// A Merger can be used for any number of phases, and allocates no memory from its second phase on.
type Merger struct {
	order  Order
	lanes  []lane   // one for each core of the phase
	live   []*lane  // lanes with remaining rows, in order
	next   int      // index, in the slice "live", of the lane whose turn it is
	inTurn bool     // whether the turn of live[next] has begun
	fresh  bool     // whether no stream of the phase has been read yet
	random splitmix // generator of the random numbers for Uniform
}

// lane is one core's stream.
type lane struct {
	core   uint32
	stream Stream

	// The rows of batch from index "at" onwards have been read from the stream, but are not ordered
	// yet. kinds contains the kinds of the rows of the batch. The field "waiting" is the number of
	// rows directly before index "at" that are ordered, but have not been copied yet.
	batch     *trace.Batch
	kinds     []trace.Kind
	at        int
	plain     int // if plain > at, all rows with indices from at to plain-1 are references
	waiting   int
	positions [strip]uint16 // positions of the waiting rows within the strip

	inBlock    bool // whether a BlockEntry has been seen in this phase
	block      uint32
	references uint64 // number of references in the turn
	clock      float64
}

// New returns a Merger for a valid order (see [Order.Check]).
func New(order Order) *Merger {
	return &Merger{order: order, random: splitmix(order.Seed)}
}

// Begin starts a phase. The stream of core cores[i] is streams[i]. The cores take turns in the
// order in which they are listed. Begin discards the remaining rows of the previous phase.
func (m *Merger) Begin(cores []uint32, streams []Stream) {
	if n := len(streams); cap(m.lanes) < n {
		m.lanes, m.live = make([]lane, n), make([]*lane, 0, n)
	}
	m.lanes, m.live = m.lanes[:len(streams)], m.live[:0]
	for i := range streams {
		l := &m.lanes[i]
		l.core, l.stream, l.batch, l.kinds, l.at, l.plain, l.waiting = cores[i], streams[i], nil, nil, 0, 0, 0
		l.inBlock, l.block, l.references, l.clock = false, 0, 0, 0
		m.live = append(m.live, l)
	}
	m.next, m.inTurn, m.fresh = 0, false, true
}

// Fill appends rows to b, up to its capacity. Fill sets Thread to the core's number, and adds the
// optional columns of the appended rows to b. Fill returns io.EOF if it appended nothing because no
// stream has rows left. If a stream returns an error, the batch b contains the rows before the
// error.
func (m *Merger) Fill(b *trace.Batch) error {
	b.NeedThread()
	begin, end := b.Len(), b.Cap()
	b.Resize(end)
	at := begin
	for _, l := range m.live {
		if l.batch != nil {
			b.NeedLike(l.batch)
		}
	}
	var err error
	if m.fresh {
		err = m.start(b)
	}
	for err == nil && at < end && len(m.live) > 0 {
		at, err = m.fillStrip(b, at, min(at+strip, end))
	}
	b.Resize(at)
	if err == nil && at == begin && at < end {
		return io.EOF
	}
	return err
}

// start reads the first rows of every stream.
func (m *Merger) start(b *trace.Batch) error {
	m.fresh = false
	for i := 0; i < len(m.live); {
		left, err := m.live[i].refill(b, 0)
		if err != nil {
			return err
		}
		if left {
			i++
		} else {
			m.live = slices.Delete(m.live, i, i+1)
		}
	}
	m.chooseCore()
	return nil
}

// fillStrip copies rows to b, beginning at position base and stopping before position end at the
// latest. The result is the position after the last copied row.
func (m *Merger) fillStrip(b *trace.Batch, base, end int) (at int, err error) {
	var used int
	if m.order.Policy <= Uniform {
		used, err = m.byReferences(b, base, end-base)
	} else {
		used, err = m.byBlocks(b, base, end-base)
	}
	for _, l := range m.live {
		l.copyWaiting(b, base)
	}
	return base + used, err
}

// byReferences determines the order of at most "room" rows, for policies whose turns are
// references. For speed, everything happens in a single loop.
func (m *Merger) byReferences(b *trace.Batch, base, room int) (used int, err error) {
	try := 0 // number of copied rows at which fullRounds is called next
	if m.order.Policy != RoundRobin {
		try = room
	}
	for used < room && len(m.live) > 0 {
		if used >= try && m.next == 0 {
			if n := m.fullRounds(room - used); n >= fewRounds {
				m.copyRounds(b, base, used, n)
				used += n * len(m.live)
				continue
			}
			try = used + 4*fewRounds*len(m.live)
		}
		l := m.live[m.next]
		at, waiting, over := l.at, l.waiting, false
		for kinds := l.kinds; ; {
			over = kinds[at].IsReference()
			l.positions[waiting&(strip-1)] = uint16(used)
			at, waiting, used = at+1, waiting+1, used+1
			if over || at == len(kinds) || used == room {
				break
			}
		}
		l.at, l.waiting = at, waiting
		if at == len(l.kinds) {
			left, err := l.refill(b, base)
			if err != nil {
				return used, err
			}
			if !left {
				m.endTurn(l, false)
				continue
			}
		}
		switch {
		case !over:
		case m.order.Policy == Uniform:
			m.chooseCore()
		default:
			if m.next++; m.next == len(m.live) {
				m.next = 0
			}
		}
	}
	return used, nil
}

// fewRounds is the minimum number of rounds that are copied lane by lane. Copying fewer rounds in
// this way is slower.
const fewRounds = 8

// fullRounds returns the number of rounds in which every core makes one reference. These rounds
// copy at most "room" rows, and leave at least one row of each core.
func (m *Merger) fullRounds(room int) int {
	n := room / len(m.live)
	for _, l := range m.live {
		if n < fewRounds {
			break
		}
		if l.plain <= l.at {
			for l.plain = l.at; l.plain < len(l.kinds) && l.kinds[l.plain].IsReference(); l.plain++ {
			}
		}
		n = min(n, min(l.plain, len(l.kinds)-1)-l.at)
	}
	return n
}

// copyRounds copies the given number of rounds to b. In a round, each lane supplies one reference.
func (m *Merger) copyRounds(b *trace.Batch, base, used, rounds int) {
	lanes := len(m.live)
	for i, l := range m.live {
		l.copyWaiting(b, base)
		from, at, end := l.at, base+used+i, base+used+rounds*lanes
		l.at += rounds
		copyStrided(b.Addr[at:end], l.batch.Addr[from:l.at], lanes)
		copyStrided(b.Bytes[at:end], l.batch.Bytes[from:l.at], lanes)
		copyStrided(b.Kind[at:end], l.batch.Kind[from:l.at], lanes)
		for to := at; to < end; to += lanes {
			b.Thread[to] = l.core
		}
		copyStridedOptional(b.Site, l.batch.Site, at, end, from, l.at, lanes)
		copyStridedOptional(b.Arg, l.batch.Arg, at, end, from, l.at, lanes)
		copyStridedOptional(b.PC, l.batch.PC, at, end, from, l.at, lanes)
	}
}

// copyStrided copies the elements of a column to the indices 0, lanes, 2*lanes and so on of the
// slice "to".
func copyStrided[T trace.Kind | uint32 | uint64](to, of []T, lanes int) {
	at := 0
	for _, x := range of {
		to[at] = x
		at += lanes
	}
}

// copyStridedOptional works like copyStrided, but for an optional column. If the stream does not
// have the column, copyStridedOptional writes zeros.
func copyStridedOptional[T uint32 | uint64](to, of []T, at, end, from, upto, lanes int) {
	switch {
	case to == nil:
	case of == nil:
		for ; at < end; at += lanes {
			to[at] = 0
		}
	default:
		copyStrided(to[at:end], of[from:upto], lanes)
	}
}

// byBlocks works like byReferences, but for policies whose turns are executions of blocks.
func (m *Merger) byBlocks(b *trace.Batch, base, room int) (used int, err error) {
	for used < room && len(m.live) > 0 {
		l := m.live[m.next]
		var over bool
		used, over = l.orderBlock(used, room, m.inTurn)
		left := true
		if l.at == len(l.kinds) {
			if left, err = l.refill(b, base); err != nil {
				break
			}
		}
		if m.inTurn = left && !over && l.kinds[l.at] != trace.BlockEntry; !m.inTurn {
			m.endTurn(l, left)
		}
	}
	return used, err
}

// endTurn ends the turn of l, and chooses the next core. If hasRows is false, l has reached the end
// of its stream.
func (m *Merger) endTurn(l *lane, hasRows bool) {
	if m.order.Policy == ByTime {
		if int(l.block) < len(m.order.Cycles) && l.inBlock {
			l.clock += m.order.Cycles[l.block]
		} else {
			l.clock += float64(l.references)
		}
	}
	l.references = 0
	if hasRows {
		m.next++
	} else {
		m.live = slices.Delete(m.live, m.next, m.next+1)
	}
	m.chooseCore()
}

// chooseCore sets m.next to the core that has the next turn.
func (m *Merger) chooseCore() {
	if len(m.live) == 0 {
		return
	}
	switch m.order.Policy {
	case Uniform:
		// Multiplying instead of computing a remainder causes a bias of less than 2^-57 for 64
		// cores.
		hi, _ := bits.Mul64(m.random.next(), uint64(len(m.live)))
		m.next = int(hi)
	case ByTime:
		m.next = 0
		for i, l := range m.live {
			if l.clock < m.live[m.next].clock {
				m.next = i
			}
		}
	default:
		if m.next >= len(m.live) {
			m.next = 0
		}
	}
}

// refill copies the waiting rows, and reads the next rows of the stream. At the end of the stream,
// refill returns false.
func (l *lane) refill(b *trace.Batch, base int) (bool, error) {
	l.copyWaiting(b, base)
	for {
		batch, from, to, err := l.stream.Next()
		if err == io.EOF {
			l.batch = nil
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if from == to {
			continue
		}
		l.batch, l.kinds, l.at, l.plain = batch, batch.Kind[:to], from, 0
		b.NeedLike(batch)
		return true, nil
	}
}

// orderBlock orders the rows before the first row of the next block. It orders only rows that are
// already in the batch, and no more than room - used rows. The result "over" reports whether the
// turn certainly ends after these rows. If "over" is false, the next row determines whether the
// turn ends. If inTurn is true, the turn has begun already, so a BlockEntry in the next row ends
// it.
func (l *lane) orderBlock(used, room int, inTurn bool) (at int, over bool) {
	kinds := l.kinds[l.at:]
	n := min(len(kinds), room-used)
	if !inTurn && kinds[0] == trace.BlockEntry {
		l.inBlock = true
		l.block = ^uint32(0)
		if l.batch.Site != nil {
			l.block = l.batch.Site[l.at]
		}
	}
	for i, k := range kinds[:n] {
		over := k == trace.BlockEntry && (inTurn || i > 0)
		if !over {
			l.positions[(l.waiting+i)&(strip-1)] = uint16(used + i)
			if !k.IsReference() {
				continue
			}
			l.references++
			if l.inBlock {
				continue
			}
			over, i = true, i+1
		}
		l.at, l.waiting = l.at+i, l.waiting+i
		return used + i, true
	}
	l.at, l.waiting = l.at+n, l.waiting+n
	return used + n, false
}

// copyWaiting copies the waiting rows to their positions in b, relative to base, the start of the
// strip.
func (l *lane) copyWaiting(b *trace.Batch, base int) {
	if l.waiting == 0 {
		return
	}
	positions, from, to := l.positions[:l.waiting], l.at-l.waiting, l.at
	l.waiting = 0
	addresses, sizes, kinds := l.batch.Addr[from:to], l.batch.Bytes[from:to], l.batch.Kind[from:to]
	toAddr, toBytes, toKind, toThread := b.Addr[base:], b.Bytes[base:], b.Kind[base:], b.Thread[base:]
	for i, p := range positions {
		toAddr[p], toBytes[p], toKind[p], toThread[p] = addresses[i], sizes[i], kinds[i], l.core
	}
	scatter(b.Site, l.batch.Site, base, from, positions)
	scatter(b.Arg, l.batch.Arg, base, from, positions)
	scatter(b.PC, l.batch.PC, base, from, positions)
}

// scatter copies an optional column to the given positions. If the stream does not have the column,
// scatter writes zeros.
func scatter[T uint32 | uint64](to, of []T, base, from int, positions []uint16) {
	switch {
	case to == nil:
	case of == nil:
		to = to[base:]
		for _, p := range positions {
			to[p] = 0
		}
	default:
		to, of = to[base:], of[from:from+len(positions)]
		for i, p := range positions {
			to[p] = of[i]
		}
	}
}

// splitmix is SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), which generates the same numbers on
// every platform.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
