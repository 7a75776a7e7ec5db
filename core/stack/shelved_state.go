package stack

import (
	"errors"

	"github.com/stackglass/stackglass/core/codec"
)

// ErrShelvedState reports that a state is damaged, or does not fit the spill store.
var ErrShelvedState = errors.New("what was moved out of memory is no longer there as it was; start again")

// run is the blocks that are kept for a state.
type run struct{ number, blocks uint32 }

// Keep returns the state, and makes the store keep what it needs until Keep was called twice
// more: who saves states needs two, since one may be torn.
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
		m.sets.recent.settle()
		for k := range m.sets.recent.lists {
			m.sets.recent.lists[k].code(c, m.stamps.next)
		}
	}
}

// isKept reports whether the blocks of the current run have to stay.
func (m *Shelved) isKept() bool { return m.kept[1] == run{m.run, m.blocks} && m.blocks > 0 }

func (m *Shelved) drop(r run) error {
	for block := range r.blocks {
		if err := m.shelf.Drop(r.number, block); err != nil {
			return err
		}
	}
	return nil
}

// RestoreShelved continues from a state, on the same spill store. It reads all of that.
func RestoreShelved(shelf Shelf, sets bool, state []byte) (*Shelved, error) {
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

// What a state may say follows from the store: a forged state alone allocates or does nothing.
const (
	leastLineBytes = 2  // a line on the shelf
	mostLineBytes  = 15 // the same
	// stampsOfLine is how many stamps a line needs at most: makeRoom makes room for twice the
	// live ones, or for these and four times the joined ones; with sets twice as many.
	stampsOfLine = 9
)

// plausible compares a state, with stamps below next, to the last block in the store. Blocks of
// a run are written in order, so all others should be there.
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

// readStamps makes the stamps of the lines in the spill store live. They are below next.
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

// code codes the lists that have entries: the place and 1, and the entries, newest first
// and below next, each as the difference from the one before, down to 0. A place of 0 is
// behind the last list.
func (l *lists) code(c *codec.Coder, next uint32) {
	for number := 0; ; { // of the list before
		if !c.Reads() {
			number = l.filled(number)
		}
		if codec.Below(c, &number, uint64(len(l.turn))+1); number == 0 {
			return
		}
		place := number - 1
		if c.Reads() {
			l.touch(uint32(place), false) // makes its page
		}
		list, turn := &l.pages[place/pageLists][place%pageLists], l.turn[place]
		last := list[at(turn, 0)]
		codec.Below(c, &last, uint64(next)+1)
		c.Check(last != 0, ErrShelvedState.Error())
		for i := range MaxWays {
			if c.Reads() {
				list[at(turn, i)] = last
			}
			older := uint32(0)
			if i+1 < MaxWays {
				older = list[at(turn, i+1)]
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

// filled returns the number, from 1 on, of the first nonempty list from a place on, or 0.
func (l *lists) filled(place int) (number int) {
	for ; place < len(l.turn); place++ {
		if page := l.pages[place/pageLists]; page != nil && page[place%pageLists][at(l.turn[place], 0)] != 0 {
			return place + 1
		}
	}
	return 0
}
