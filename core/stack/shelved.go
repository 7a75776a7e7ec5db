package stack

import (
	"errors"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Shelved is an LRU stack that may be larger than memory. Shelved receives segments of a trace that
// were analysed by a model in memory. For each segment, Shelved computes the distances of the
// segment's first touches within the whole trace, and puts the segment's lines on top (MODELS §9).
//
//	m.Join(segment, touched)        // the lines, in the order of their first touches
//	m.Distances(touched, distances) // all at once or in parts, in that order
//
// The lines are in a spill store ([Shelf]) in ascending order, each with the stamp of its last
// access. One pass over all lines computes the distances of all first touches of a segment. For
// this pass, the touches are sorted by line. The pass finds the line of each touch in the spill
// store, and replaces the line's stamp by a new stamp. The bitmap of live stamps and its counts
// stay in memory, and take about 1.5 bits for each line and each unused stamp. As in [Exact], a
// distance is the number of newer live stamps, plus the number of earlier touches of the segment.
type Shelved struct {
	shelf  Shelf
	run    uint32 // the run that contains the lines
	blocks uint32 // number of blocks in the run
	kept   [2]run // the runs that Keep retained, the older run first
	lines  int
	stamps stamps
	writer shelfWriter
	sets   *shelvedSets // the depths in sets; nil if they are not counted

	touched []firstTouch // touches of the segment that was joined last, sorted by line
	found   []uint32     // the previous stamp of each line of the segment, or "fresh", in the order of touches
	at      int          // number of touches whose distances are known
	failed  error

	adoptLines int // approximate number of lines that the method Adopt reads at a time
}

type firstTouch struct {
	line     trace.Line
	index    uint32 // index of the line's first touch, in the order of touches
	position uint32 // position of the line in the segment's stack, counted from the bottom
}

// NewShelved returns an empty model on an empty spill store. The model counts depths for the given
// numbers of sets. If the parameter "sets" is 0, the model counts no depths.
func NewShelved(shelf Shelf, sets SetNumbers) *Shelved {
	m := &Shelved{shelf: shelf, writer: shelfWriter{size: shelfBlock}, adoptLines: adoptLines}
	m.stamps.reset(blockStamps, 0)
	if sets != 0 {
		m.sets = new(shelvedSets)
		m.sets.recent.selectLists(sets)
		m.sets.recent.reset()
	}
	return m
}

// Segment is the model of a segment: [Exact] or [Sets].
type Segment interface {
	Model
	base() *Exact
}

func (m *Exact) base() *Exact { return m }
func (m *Sets) base() *Exact  { return &m.exact }

var errTooManyLines = errors.New("the trace has more distinct lines than the limit of 4,294,000,000; analyse a part of the trace (--limit), or use larger lines (--line)")

// Join adds a segment, and reads the spill store once. The iterator "lines" must yield the
// segment's lines in the order of their first touches. After an error, the model must not be used.
func (m *Shelved) Join(segment Segment, lines func(yield func(trace.Line) bool)) error {
	if m.failed == nil {
		m.failed = m.join(segment.base(), lines)
	}
	return m.failed
}

// Adopt copies the lines of another model to m in stack order, without counting accesses. The model
// m must be empty. Adopt copies a limited number of lines at a time, so it needs little memory in
// addition to the two models.
func (m *Shelved) Adopt(from Segment) error {
	if m.failed == nil {
		m.failed = m.adopt(from.base())
	}
	return m.failed
}

const adoptLines = 1 << 20 // approximate number of lines that [Shelved.Adopt] reads at a time

func (m *Shelved) adopt(from *Exact) error {
	if m.lines = from.Lines(); uint64(m.lines) > maxStamps {
		return errTooManyLines
	}
	m.stamps.reset(uint32(min(2*uint64(m.lines)+blockStamps, maxStamps)), uint32(m.lines))
	m.writer.begin(m.shelf, m.run+1)
	var part []firstTouch
	first := trace.Line(0)
	for _, last := range append(from.split(m.adoptLines), noLine) {
		part = from.collect(part[:0], first, last, 0, fresh)
		sort.Slice(part, func(i, j int) bool { return part[i].line < part[j].line })
		for i := range part {
			if err := m.writer.write(part[i].line, part[i].position); err != nil {
				return err
			}
		}
		first = last + 1
	}
	if err := m.writer.flush(); err != nil {
		return err
	}
	m.run, m.blocks = m.run+1, m.writer.block
	if m.sets == nil {
		return nil
	}
	next := from.stamps.next
	for begin, end := uint32(0), uint32(0); end != fresh; begin = end {
		if end = fresh; uint64(begin)+uint64(m.adoptLines) < uint64(next) {
			end = begin + uint32(m.adoptLines)
		}
		part = from.collect(part[:0], 0, noLine, begin, end)
		sort.Slice(part, func(i, j int) bool { return part[i].position < part[j].position })
		m.sets.adopt(part)
	}
	return nil
}

func (m *Shelved) join(segment *Exact, lines func(yield func(trace.Line) bool)) error {
	m.settle()
	m.touched = m.touched[:0]
	for line := range lines {
		m.touched = append(m.touched, firstTouch{line: line, index: uint32(len(m.touched))})
	}
	sort.Slice(m.touched, func(i, j int) bool { return m.touched[i].line < m.touched[j].line })
	segment.computePositions(m.touched)
	before, err := m.makeRoom()
	if err != nil {
		return err
	}
	m.found = slices.Grow(m.found[:0], len(m.touched))[:len(m.touched)]
	m.at = 0
	if err := m.merge(before); err != nil {
		return err
	}
	if m.sets != nil {
		m.sets.begin(m.touched)
	}
	return nil
}

// makeRoom ensures that there are enough free stamps for the joined lines. If it must renumber the
// live stamps, it returns the old stamps.
func (m *Shelved) makeRoom() (before *stamps, err error) {
	need := uint64(len(m.touched))
	if m.sets != nil {
		need *= 2 // the lists also need a number for each touch
	}
	if uint64(m.stamps.next)+need <= uint64(len(m.stamps.blocks))*blockStamps {
		return nil, nil
	}
	live := uint64(m.stamps.live)
	if live+need > maxStamps {
		return nil, errTooManyLines
	}
	old := m.stamps
	m.stamps = stamps{}
	m.stamps.reset(uint32(min(max(2*live, live+4*need), maxStamps)), uint32(live))
	if m.sets != nil {
		m.sets.renumber(&old)
	}
	return &old, nil
}

// merge writes all lines to a new run of the spill store. The joined lines receive new stamps, and
// merge records their previous stamps.
func (m *Shelved) merge(before *stamps) error {
	old := shelfReader{shelf: m.shelf, run: m.run, blocks: m.blocks, keep: m.blocks > 0 && m.kept[1] == run{m.run, m.blocks}}
	m.writer.begin(m.shelf, m.run+1)
	first := m.firstStamp()
	joined := m.touched
	for {
		line, stamp, more, err := old.read()
		if err != nil {
			return err
		}
		for len(joined) > 0 && (!more || joined[0].line < line) {
			m.found[joined[0].index] = fresh
			if err := m.writer.write(joined[0].line, first+joined[0].position); err != nil {
				return err
			}
			joined = joined[1:]
			m.lines++
		}
		if !more {
			break
		}
		if before != nil {
			stamp = before.rank(stamp)
		}
		if len(joined) > 0 && joined[0].line == line {
			m.found[joined[0].index] = stamp
			stamp = first + joined[0].position
			joined = joined[1:]
		}
		if err := m.writer.write(line, stamp); err != nil {
			return err
		}
	}
	m.run, m.blocks = m.run+1, 0
	err := m.writer.flush()
	m.blocks = m.writer.block
	return err
}

// firstStamp returns the new stamp of the lowest line in the stack of the joined segment.
func (m *Shelved) firstStamp() uint32 {
	if m.sets != nil {
		return m.stamps.next + uint32(len(m.touched))
	}
	return m.stamps.next
}

// Distances writes the distances of the joined segment's next touches to out. A distance is a
// number of lines, or [Cold].
func (m *Shelved) Distances(lines []trace.Line, out []uint32) {
	for i := range lines {
		stamp := m.found[m.at]
		out[i] = Cold
		if stamp != fresh {
			out[i] = m.stamps.remove(stamp) + uint32(m.at)
		}
		if m.sets != nil {
			m.sets.touch(lines[i], stamp, m.stamps.next+uint32(m.at), out[i])
		}
		m.at++
	}
	if m.at == len(m.found) {
		m.settle()
	}
}

// settle moves the lines of the joined segment to the top of the stack, unless settle has done so
// already.
func (m *Shelved) settle() {
	if len(m.touched) == 0 {
		return
	}
	if first := m.firstStamp(); m.sets != nil {
		m.sets.push(m.touched, first)
		m.stamps.next = first
	}
	for range m.touched {
		m.stamps.push()
	}
	m.touched = m.touched[:0]
}

// Lines returns the number of distinct lines.
func (m *Shelved) Lines() int { return m.lines }

// Depths returns the numbers of touches by depth in their sets, or nil if depths are not counted.
func (m *Shelved) Depths() *SetDepths {
	if m.sets == nil {
		return nil
	}
	return m.sets.depths()
}

// MemoryBytes estimates the memory that the model needs between two segments.
func (m *Shelved) MemoryBytes() uint64 {
	bytes := uint64(len(m.stamps.blocks)) * blockBytes
	if m.sets != nil {
		bytes += listBytes
	}
	return bytes
}

// SegmentLineBytes is an estimate of the memory per line of a segment, both in the segment's model
// and while the segment is joined.
const SegmentLineBytes = 64

// computePositions sets the position of each touched line in the stack.
func (m *Exact) computePositions(of []firstTouch) {
	sink := m.sink
	for at := 0; at < len(of); at += burstSize {
		few := of[at:min(at+burstSize, len(of))]
		for i := range few {
			sink += m.table.touch(few[i].line)
		}
		for i := range few {
			few[i].position = m.positionOf(few[i].line)
		}
	}
	m.sink = sink
}

// positionOf returns the number of lines below a line in the stack.
func (m *Exact) positionOf(line trace.Line) uint32 {
	e := m.table.find(line)
	if e.stamp != onTop {
		return m.stamps.rank(e.stamp)
	}
	return uint32(m.table.lines - 1 - slices.Index(m.top[:], line))
}

// collect appends the lines in the range from "first" to "last" whose stamps are in [begin, end).
// The lines are in any order, and each line has its position in the stack. If the parameter "end"
// equals the constant "fresh", the lines of the top array, which have no stamps, are included.
func (m *Exact) collect(to []firstTouch, first, last trace.Line, begin, end uint32) []firstTouch {
	for p := range m.table.parts {
		for _, e := range m.table.parts[p].slots {
			if line := e.key - 1; e.key != 0 && e.stamp >= begin && e.stamp < end && line >= first && line <= last {
				to = append(to, firstTouch{line: line, position: m.stamps.rank(e.stamp)})
			}
		}
	}
	if m.stamped || end != fresh {
		return to
	}
	for i, line := range m.top {
		if line != noLine && line >= first && line <= last {
			to = append(to, firstTouch{line: line, position: uint32(m.table.lines - 1 - i)})
		}
	}
	return to
}

// split returns line numbers, in ascending order, that divide the model's lines into ranges of
// about the given number of lines. One part of the hash table serves as a sample of the lines.
func (m *Exact) split(lines int) (at []trace.Line) {
	var sample []trace.Line
	for _, e := range m.table.parts[0].slots {
		if e.key != 0 {
			sample = append(sample, e.key-1)
		}
	}
	slices.Sort(sample)
	parts := m.table.lines/lines + 1
	for i := 1; i < parts && len(sample) >= parts; i++ {
		at = append(at, sample[len(sample)*i/parts])
	}
	return at
}

// shelvedSets counts the depths in sets for the touches of a [Shelved]. Every access moves its line
// in the lists. The number of such a move is the access's stamp plus one.
type shelvedSets struct {
	recent    recency
	tally     nearTally
	order     []trace.Line // the joined lines, in stack order from the bottom
	last      []uint32     // number of each joined line's touch, in stack order from the bottom
	positions []uint32     // position of each line in the segment's stack, in the order of touches
	at        int
}

const listBytes = 18 << 20 // approximate memory of the lists

func (s *shelvedSets) begin(joined []firstTouch) {
	s.order = slices.Grow(s.order[:0], len(joined))[:len(joined)]
	s.last = slices.Grow(s.last[:0], len(joined))[:len(joined)]
	s.positions = slices.Grow(s.positions[:0], len(joined))[:len(joined)]
	s.at = 0
	for i := range joined {
		s.order[joined[i].position] = joined[i].line
		s.positions[joined[i].index] = joined[i].position
	}
}

// touch counts the depth of a line. The parameter "before" is the line's previous stamp.
func (s *shelvedSets) touch(line trace.Line, before, now, distance uint32) {
	after, how := uint32(never), uint32(uncounted)
	s.tally.accesses++
	if s.tally.count(distance); before != fresh {
		after, how = before+2, 0
	}
	s.last[s.positions[s.at]] = now + 1
	s.at++
	s.recent.access(access{after: after, now: now + 1, line: uint32(line)&^(uncounted|marked) | how})
}

// push moves the joined lines to the front of their lists, from the bottom of the segment's stack
// to its top.
func (s *shelvedSets) push(joined []firstTouch, first uint32) {
	for place, line := range s.order[:len(joined)] {
		s.recent.access(access{after: s.last[place] + 1, now: first + uint32(place) + 1, line: uint32(line)&^(uncounted|marked) | uncounted})
	}
	s.recent.settle()
}

// adopt moves new lines to the front of their lists, in ascending order of their positions. The
// position of a line is also its stamp.
func (s *shelvedSets) adopt(lines []firstTouch) {
	for i := range lines {
		s.recent.access(access{after: never, now: lines[i].position + 1, line: uint32(lines[i].line)&^(uncounted|marked) | uncounted})
	}
	s.recent.settle()
}

// renumber replaces the numbers of moves in the lists by their ranks, in the same way as live
// stamps are renumbered. The order of entries does not change, even if the number of an entry is
// not the number of its line's last access.
func (s *shelvedSets) renumber(before *stamps) {
	s.recent.settle()
	for k := range s.recent.lists {
		for _, page := range s.recent.lists[k].pages {
			if page != nil {
				page.renumber(before)
			}
		}
	}
}

func (p *listPage) renumber(before *stamps) {
	for i := range p {
		for j, number := range p[i] {
			if number != 0 {
				p[i][j] = entryOf(before.rank(uint32(number>>numberBit)-1)+1, uint32(number))
			}
		}
	}
}

func (s *shelvedSets) depths() *SetDepths {
	s.recent.settle()
	return s.tally.combine(&s.recent, 0)
}

// ErrShelvedState reports that a state is damaged, or does not match the spill store.
var ErrShelvedState = errors.New("data that did not fit in memory was moved to the spill store, and has since been lost or changed; analyse the trace again from its start")

// run identifies the blocks that the spill store retains for a saved state.
type run struct{ number, blocks uint32 }

// Keep returns the state of the model. The spill store retains the data of this state until Keep
// has been called twice more. A caller that saves states needs the data of the last two states,
// because the newest saved state may be incomplete.
func (m *Shelved) Keep() (state []byte, err error) {
	m.settle()
	if m.failed != nil {
		return nil, m.failed
	}
	now := run{m.run, m.blocks}
	if oldest := m.kept[0]; m.kept[1] != now {
		m.kept = [2]run{m.kept[1], now}
		if err := m.drop(oldest); err != nil {
			m.failed = err
			return nil, err
		}
	}
	c := codec.Writer(nil)
	m.code(c)
	return c.Out, nil
}

func (m *Shelved) code(c *codec.Coder) {
	const limit = maxStamps + 1
	for _, v := range []*uint32{&m.kept[0].number, &m.kept[0].blocks, &m.run, &m.blocks} {
		codec.Below(c, v, limit)
	}
	codec.Below(c, &m.lines, limit)
	codec.Below(c, &m.stamps.next, limit)
	if m.sets != nil {
		m.sets.recent.code(c, m.stamps.next)
	}
}

func (m *Shelved) drop(r run) error {
	for block := range r.blocks {
		if err := m.shelf.Drop(r.number, block); err != nil {
			return err
		}
	}
	return nil
}

// RestoreShelved returns a model that resumes from a saved state, with the same spill store.
// RestoreShelved reads the whole spill store.
func RestoreShelved(shelf Shelf, sets SetNumbers, state []byte) (*Shelved, error) {
	m := NewShelved(shelf, sets)
	c := codec.Reader(state)
	if m.code(c); c.Failed() || c.More() {
		return nil, ErrShelvedState
	}
	m.kept[1] = run{m.run, m.blocks}
	next := m.stamps.next
	if err := m.plausible(next); err != nil {
		return nil, err
	}
	return m, m.readStamps(next)
}

// These constants relate the numbers in a state to the size of the spill store, so that a forged
// state cannot cause large allocations or long loops.
const (
	leastLineBytes = 2  // minimum size of a line in the spill store
	mostLineBytes  = 15 // maximum size of a line in the spill store
	// stampsOfLine is the maximum ratio of stamps to lines. makeRoom creates room for the larger
	// of two numbers of stamps: twice the live stamps, or the live stamps plus four times the
	// joined lines (eight times if depths in sets are counted).
	stampsOfLine = 9
)

// plausible returns an error if the numbers in a state are too large for the state's number of
// blocks, or if the last block is not in the spill store. Blocks of a run are written in order, so
// the other blocks should also be in the store.
func (m *Shelved) plausible(next uint32) error {
	blocks := uint64(m.blocks)
	if uint64(m.lines) > blocks*(shelfBlock+mostLineBytes)/leastLineBytes || uint64(next) > stampsOfLine*uint64(m.lines)+2*blockStamps ||
		uint64(m.kept[0].blocks) > (blocks+1)*(mostLineBytes/leastLineBytes+1) {
		return ErrShelvedState
	}
	if blocks == 0 {
		return nil
	}
	_, err := m.shelf.Read(m.run, m.blocks-1)
	return err
}

// readStamps marks the stamps of the lines in the spill store as live. All stamps must be less
// than the parameter "next".
func (m *Shelved) readStamps(next uint32) error {
	m.stamps.reset(max(next, blockStamps), 0)
	m.stamps.next = next
	all := shelfReader{shelf: m.shelf, run: m.run, blocks: m.blocks, keep: true}
	for n := 0; ; n++ {
		_, stamp, more, err := all.read()
		if err != nil {
			return err
		}
		if !more {
			m.stamps.count()
			if n != m.lines || int(m.stamps.live) != m.lines {
				return ErrShelvedState
			}
			return nil
		}
		if stamp >= next {
			return ErrShelvedState
		}
		m.stamps.blocks[stamp/blockStamps].bits[stamp/64%blockWords] |= 1 << (stamp & 63)
	}
}

func (r *recency) code(c *codec.Coder, next uint32) {
	r.settle()
	active := len(r.lists)
	codec.Below(c, &active, uint64(len(r.kept))+1)
	for len(r.lists) < active {
		r.createLists()
	}
	for k := range r.lists {
		r.lists[k].code(c, next)
	}
}

// code encodes or decodes the nonempty lists. Each list is encoded as its index plus 1, followed by
// the number of the newest entry and then by the entries, newest first. Each entry is encoded as
// the last bits of its line, followed by the entry's number minus the number of the next older
// entry (0 if there is no older entry). No number is greater than the parameter "next". The value 0
// ends the sequence of lists.
func (l *lists) code(c *codec.Coder, next uint32) {
	for number := 0; ; { // the index of the previous list, plus 1
		if !c.Reads() {
			number = l.nextNonempty(number)
		}
		if codec.Below(c, &number, uint64(len(l.turn))+1); number == 0 {
			return
		}
		place := number - 1
		if c.Reads() {
			l.touch(uint32(place)) // this call creates the page of the list
		}
		list, turn := &l.pages[place/pageLists][place%pageLists], l.turn[place]
		last := uint32(list[slot(turn, 0)] >> numberBit)
		codec.Below(c, &last, uint64(next)+1)
		c.Check(last != 0, ErrShelvedState.Error())
		for i := range MaxWays {
			line := uint32(uint16(list[slot(turn, i)]))
			codec.Below(c, &line, 1<<setBits)
			c.Check(l.index(line) == uint32(place), ErrShelvedState.Error())
			if c.Reads() {
				list[slot(turn, i)] = entryOf(last, line)
			}
			older := uint32(0)
			if i+1 < MaxWays {
				older = uint32(list[slot(turn, i+1)] >> numberBit)
			}
			step := last - older
			codec.Below(c, &step, uint64(last)+1)
			if last -= step; last == 0 {
				break
			}
		}
		c.Check(last == 0, ErrShelvedState.Error())
	}
}

// nextNonempty returns the index plus 1 of the first nonempty list at or after a given index. If
// there is no such list, it returns 0.
func (l *lists) nextNonempty(place int) (number int) {
	for ; place < len(l.turn); place++ {
		if page := l.pages[place/pageLists]; page != nil && page[place%pageLists][slot(l.turn[place], 0)] != 0 {
			return place + 1
		}
	}
	return 0
}
