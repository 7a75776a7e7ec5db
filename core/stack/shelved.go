package stack

import (
	"cmp"
	"errors"
	"slices"

	"github.com/stackglass/stackglass/core/trace"
)

// Shelved is an LRU stack that does not fit in memory. What it takes are segments of
// a trace, each analysed by a model of its own that does: it gives the first touches
// of a segment the distances that they have in the whole, and puts the segment's lines
// on top (MODELS §9).
//
//	m.Join(segment, touched)        // the lines, in the order of their first touches
//	m.Distances(touched, distances) // at once or in parts, in that order
//
// The lines lie on a [Shelf] in ascending order, each with the stamp of its last
// access. One pass over all of them answers for all touches of a segment: they are
// brought into the same order, each finds its line on the way, and gets the segment's
// stamp there. Two things stay in memory, at about a bit and a half a line, and as many
// again of stamps that are not in use: which stamps are live, and counts of them. So a
// distance is what it is for [Exact]: the number of live stamps that are newer, and
// of the touches before.
type Shelved struct {
	shelf  Shelf
	run    uint32 // that holds the lines
	blocks uint32 // of it
	kept   [2]run // by Keep, the older one first
	lines  int
	stamps stamps
	writer shelfWriter
	sets   *shelvedSets // or nil

	touched []touched // of the segment that was joined last, by line
	found   []uint32  // the stamps that they had, in the order of touches; or fresh
	at      int       // how many of them have their distances
	failed  error

	adoptLines int // at a time
}

type touched struct {
	line  trace.Line
	index uint32 // of its first touch
	place uint32 // in the segment's stack, from the bottom
}

func byLine(x, y touched) int  { return cmp.Compare(x.line, y.line) }
func byPlace(x, y touched) int { return cmp.Compare(x.place, y.place) }

// NewShelved makes an empty model on an empty shelf. With sets it counts depths too.
func NewShelved(shelf Shelf, sets bool) *Shelved {
	m := &Shelved{shelf: shelf, writer: shelfWriter{size: shelfBlock}, adoptLines: adoptLines}
	m.stamps.reset(blockStamps, 0)
	if sets {
		m.sets = newShelvedSets()
	}
	return m
}

// Segment is the model of a segment: [Exact] or [Sets].
type Segment interface {
	Model
	// places writes how many lines lie below each of some.
	places(of []touched)
	// collect appends lines from first to last with stamps from begin up to end, unordered,
	// with their places. Lines without a stamp have one just below fresh.
	collect(to []touched, first, last trace.Line, begin, end uint32) []touched
	// split gives lines, ascending, that part all of them into about so many each.
	split(lines int) []trace.Line
	// nextStamp is greater than every stamp.
	nextStamp() uint32
}

var errTooManyLines = errors.New("the trace has more distinct lines than can be told apart: 4,294,000,000; analyse a part of it (--limit), or larger lines (--line)")

// Join reads the store for the lines of a segment, in the order of their first touches. After
// an error the model is of no use.
func (m *Shelved) Join(segment Segment, lines func(yield func(trace.Line) bool)) error {
	if m.failed == nil {
		m.failed = m.join(segment, lines)
	}
	return m.failed
}

// Adopt makes an empty model hold the lines of another one, in stack order, and counts nothing.
// It reads them in parts, so that it needs little more memory than both.
func (m *Shelved) Adopt(from Segment) error {
	if m.failed == nil {
		m.failed = m.adopt(from)
	}
	return m.failed
}

// adoptLines is about how many lines [Shelved.Adopt] takes at a time.
const adoptLines = 1 << 20

func (m *Shelved) adopt(from Segment) error {
	if m.lines = from.Lines(); uint64(m.lines) > maxStamps {
		return errTooManyLines
	}
	m.stamps.reset(uint32(min(2*uint64(m.lines)+blockStamps, maxStamps)), uint32(m.lines))
	m.writer.begin(m.shelf, m.run+1)
	var part []touched
	first := trace.Line(0)
	for _, last := range append(from.split(m.adoptLines), noLine) {
		part = from.collect(part[:0], first, last, 0, fresh)
		slices.SortFunc(part, byLine)
		for i := range part {
			if err := m.writer.write(part[i].line, part[i].place); err != nil {
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
	next := from.nextStamp()
	for begin, end := uint32(0), uint32(0); end != fresh; begin = end {
		if end = fresh; uint64(begin)+uint64(m.adoptLines) < uint64(next) {
			end = begin + uint32(m.adoptLines)
		}
		part = from.collect(part[:0], 0, noLine, begin, end)
		slices.SortFunc(part, byPlace)
		m.sets.adopt(part)
	}
	return nil
}

func (m *Shelved) join(segment Segment, lines func(yield func(trace.Line) bool)) error {
	m.settle()
	m.touched = m.touched[:0]
	for line := range lines {
		m.touched = append(m.touched, touched{line: line, index: uint32(len(m.touched))})
	}
	slices.SortFunc(m.touched, byLine)
	segment.places(m.touched)
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

// makeRoom makes room for the stamps of joined lines. If it renumbers, it returns the old
// stamps.
func (m *Shelved) makeRoom() (before *stamps, err error) {
	need := uint64(len(m.touched))
	if m.sets != nil {
		need *= 2 // and for the touches, for the time of the lists
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

// merge writes all lines to a new run, with new stamps for the joined ones, and records their
// old ones.
func (m *Shelved) merge(before *stamps) error {
	old := shelfReader{shelf: m.shelf, run: m.run, blocks: m.blocks, keep: m.isKept()}
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
			if err := m.writer.write(joined[0].line, first+joined[0].place); err != nil {
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
			stamp = first + joined[0].place
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

// firstStamp returns the stamp of the lowest line of the segment that is being joined.
func (m *Shelved) firstStamp() uint32 {
	if m.sets != nil {
		return m.stamps.next + uint32(len(m.touched))
	}
	return m.stamps.next
}

// Distances gives the next of the joined touches their distances, or [Cold], in lines.
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

// settle puts the joined lines on top, unless they are there.
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

// Lines is the number of distinct lines.
func (m *Shelved) Lines() int { return m.lines }

// Depths gives what was counted in sets, of the touches alone; nil where nothing is.
func (m *Shelved) Depths() *SetDepths {
	if m.sets == nil {
		return nil
	}
	return m.sets.depths()
}

// MemoryBytes estimates the model's memory between two segments, without the segment's lines.
func (m *Shelved) MemoryBytes() uint64 {
	bytes := uint64(len(m.stamps.blocks)) * blockBytes
	if m.sets != nil {
		bytes += listBytes
	}
	return bytes
}

// SegmentLineBytes estimates the memory of a line of a segment, in its model and while it is
// joined.
const SegmentLineBytes = 64

func (m *Exact) places(of []touched) {
	sink := m.sink
	for at := 0; at < len(of); at += burst {
		few := of[at:min(at+burst, len(of))]
		for i := range few {
			sink += m.table.touch(few[i].line)
		}
		for i := range few {
			few[i].place = m.place(few[i].line)
		}
	}
	m.sink = sink
}

// place returns the number of lines below a line.
func (m *Exact) place(line trace.Line) uint32 {
	e := m.table.find(line)
	if e.stamp != onTop {
		return m.stamps.rank(e.stamp)
	}
	return uint32(m.table.lines - 1 - slices.Index(m.top[:], line))
}

func (m *Sets) places(of []touched) { m.exact.places(of) }

func (m *Exact) collect(to []touched, first, last trace.Line, begin, end uint32) []touched {
	for p := range m.table.parts {
		for _, e := range m.table.parts[p].slots {
			if line := e.key - 1; e.key != 0 && e.stamp >= begin && e.stamp < end && line >= first && line <= last {
				to = append(to, touched{line: line, place: m.stamps.rank(e.stamp)})
			}
		}
	}
	if m.stamped || end != fresh {
		return to
	}
	for i, line := range m.top {
		if line != noLine && line >= first && line <= last {
			to = append(to, touched{line: line, place: uint32(m.table.lines - 1 - i)})
		}
	}
	return to
}

// split implements [Segment]. A part of the table is a sample of the lines.
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

func (m *Exact) nextStamp() uint32 { return m.stamps.next }

func (m *Sets) collect(to []touched, first, last trace.Line, begin, end uint32) []touched {
	return m.exact.collect(to, first, last, begin, end)
}
func (m *Sets) split(lines int) []trace.Line { return m.exact.split(lines) }
func (m *Sets) nextStamp() uint32            { return m.exact.nextStamp() }
