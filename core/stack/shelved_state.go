package stack

import (
	"encoding/binary"
	"errors"
)

// ErrShelvedState tells that a state is not one that a model was in, or that its shelf
// does not hold what it did.
var ErrShelvedState = errors.New("what was moved out of memory is no longer there as it was; start again")

// runs are blocks that are kept for a state.
type run struct{ number, blocks uint32 }

// Keep gives the state of the model, and has the shelf keep what that needs until Keep
// was called twice more: whoever stores states needs two, since one may be torn.
// The lines stay where they are.
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
	for _, v := range []uint32{m.kept[0].number, m.kept[0].blocks, m.run, m.blocks, uint32(m.lines), m.stamps.next} {
		state = binary.AppendUvarint(state, uint64(v))
	}
	if m.sets != nil {
		state = m.sets.appendState(state)
	}
	return state, nil
}

// isKept tells whether the blocks of the current run have to stay.
func (m *Shelved) isKept() bool { return m.kept[1] == run{m.run, m.blocks} && m.blocks > 0 }

func (m *Shelved) drop(r run) error {
	for block := range r.blocks {
		if err := m.shelf.Drop(r.number, block); err != nil {
			return err
		}
	}
	return nil
}

// RestoreShelved makes a model go on from a state, on the shelf that it was kept on. It
// reads all of that.
func RestoreShelved(shelf Shelf, sets bool, state []byte) (*Shelved, error) {
	m := NewShelved(shelf, sets)
	var fields [6]uint32
	for i := range fields {
		v, n := binary.Uvarint(state)
		if n <= 0 || v > maxStamps {
			return nil, ErrShelvedState
		}
		fields[i], state = uint32(v), state[n:]
	}
	m.kept = [2]run{{fields[0], fields[1]}, {fields[2], fields[3]}}
	m.run, m.blocks, m.lines = fields[2], fields[3], int(fields[4])
	if m.sets != nil {
		if state = m.sets.restore(state, fields[5]); state == nil {
			return nil, ErrShelvedState
		}
	}
	if len(state) != 0 {
		return nil, ErrShelvedState
	}
	if err := m.plausible(fields[5]); err != nil {
		return nil, err
	}
	return m, m.readStamps(fields[5])
}

// What a state may say follows from what the shelf holds: nothing is made, or done,
// that a forged one asks for alone.
const (
	leastLineBytes = 2  // a line on the shelf
	mostLineBytes  = 15 // the same
	// stampsOfLine is how many stamps a line needs at most: makeRoom makes room for
	// twice what is live, or for that and four times what is joined, with sets twice as
	// many.
	stampsOfLine = 9
)

// plausible compares a state, with stamps below next, to the last block on the shelf.
// Blocks of a run are written in order, so that all others should be there.
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

// readStamps makes those stamps live that the lines on the shelf have: below next.
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

// appendState writes the lists: for each number of sets, the sets that have entries,
// and these, newest first.
func (s *shelvedSets) appendState(state []byte) []byte {
	s.recent.settle()
	for k := range s.recent.lists {
		l := &s.recent.lists[k]
		for place := range l.turn {
			page := l.pages[place/pageLists]
			if page == nil {
				continue
			}
			list, turn := &page[place%pageLists], l.turn[place]
			last := uint32(0)
			for i := range MaxWays {
				number := list[at(turn, i)]
				if number == 0 {
					break
				}
				if i == 0 {
					state = binary.AppendUvarint(state, uint64(place)+1)
					state = binary.AppendUvarint(state, uint64(number))
				} else {
					state = binary.AppendUvarint(state, uint64(last-number))
				}
				last = number
			}
			if last != 0 {
				state = binary.AppendUvarint(state, uint64(last)) // would be below 1: ends the set
			}
		}
		state = binary.AppendUvarint(state, 0)
	}
	return state
}

// restore reads what appendState wrote and gives the rest, or nil where that is wrong.
func (s *shelvedSets) restore(state []byte, next uint32) []byte {
	number := func() (v uint64, ok bool) {
		v, n := binary.Uvarint(state)
		if n <= 0 || v > maxStamps {
			return 0, false
		}
		state = state[n:]
		return v, true
	}
	for k := range s.recent.lists {
		l := &s.recent.lists[k]
		for {
			place, ok := number()
			if !ok || place > uint64(len(l.turn)) {
				return nil
			}
			if place == 0 {
				break
			}
			l.touch(uint32(place-1), false) // makes its page
			list := &l.pages[(place-1)/pageLists][(place-1)%pageLists]
			newest, ok := number()
			if !ok || newest == 0 || newest > uint64(next) {
				return nil
			}
			list[at(0, 0)] = uint32(newest)
			for i := 1; ; i++ {
				step, ok := number()
				if !ok || step > newest || i > MaxWays {
					return nil
				}
				if newest -= step; newest == 0 {
					break
				}
				if i == MaxWays {
					return nil
				}
				list[at(0, i)] = uint32(newest)
			}
		}
	}
	if state == nil {
		state = []byte{}
	}
	return state
}
