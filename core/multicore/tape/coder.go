package tape

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

// form is what rows of one kind have in common: kind, site, and how many marks stand
// before each.
type form struct {
	kind  trace.Kind
	site  uint32
	marks uint32
}

// first are the values of the first row of a form, with which each page begins.
type first struct {
	addr  trace.Addr
	bytes uint32
	arg   uint64
	pc    trace.Addr
}

// forms numbers all forms that a tape has had. Number 0 is none; each page begins as if
// it had come before.
type forms struct {
	list   []form
	firsts []first
	number map[form]uint32
}

func newForms() *forms {
	return &forms{list: make([]form, 1), firsts: make([]first, 1), number: map[form]uint32{}}
}

// of gives a form's number, a new one if need be.
func (f *forms) of(x form, values first) uint32 {
	n, ok := f.number[x]
	if !ok {
		n = uint32(len(f.list))
		f.list, f.firsts = append(f.list, x), append(f.firsts, values)
		f.number[x] = n
	}
	return n
}

// state is what the coder predicts of a form's next row.
type state struct {
	last, stride, link uint64
	page               uint32 // that it is of; another one: as at the beginning of a page
	next, other        uint32 // forms
	site, bytes, marks uint32
	kind               trace.Kind
	pick, sure         bool
	arg                uint64
	pc                 trace.Addr
}

// coder is the predictions, for writing or for reading.
type coder struct {
	forms  *forms
	states []state
	page   uint32
}

// begin forgets all: a page begins.
func (c *coder) begin() {
	if c.page++; c.page == 0 { // after 2^32 pages
		clear(c.states)
		c.page = 1
	}
	c.grow()
}

func (c *coder) grow() {
	for n := len(c.states); n < len(c.forms.list); n++ {
		c.states = append(c.states, state{})
	}
}

// fresh is the state of a form in this page.
func (c *coder) fresh(n uint32) *state {
	s := &c.states[n]
	if s.page != c.page {
		c.reset(s, n)
	}
	return s
}

func (c *coder) reset(s *state, n uint32) {
	x, v := &c.forms.list[n], &c.forms.firsts[n]
	*s = state{last: v.addr, page: c.page, next: n, other: n, site: x.site, bytes: v.bytes, marks: x.marks, kind: x.kind, arg: v.arg, pc: v.pc}
}

// missed takes in an address that is not as predicted. previous is that of the
// reference before.
func (s *state) missed(addr, previous uint64) {
	d := addr - s.last
	switch {
	case !s.pick && addr == previous+s.link:
		s.pick = true
	case s.pick && addr == s.last+s.stride:
		s.pick = false
	}
	if s.sure {
		s.sure = false
	} else {
		s.stride = d
	}
	s.link, s.last = addr-previous, addr
}

const (
	asNext = iota
	asOther
	byNumber
	addressBit   = 1 << 2
	attributeBit = 1 << 3
	runShift     = 4
	longestRun   = 15
	mostToken    = 1 + 10 + 5 + 10 + 1 + 5 + 10 + 10 // bytes of a token
)

// encoder packs the rows of one page.
type encoder struct {
	coder
	out      []byte
	run      uint64
	before   uint32 // form of the row before
	previous uint64 // address of the reference before
}

func (e *encoder) begin() {
	e.coder.begin()
	e.out, e.run, e.before, e.previous = e.out[:0], 0, 0, 0
}

// expects packs a row if it is as predicted.
func (e *encoder) expects(kind trace.Kind, site, marks uint32, v *first) bool {
	before := &e.states[e.before]
	n := before.next
	s := &e.states[n]
	if before.page != e.page || s.page != e.page || s.kind != kind || s.site != site || s.marks != marks || n == 0 {
		return false
	}
	expected := s.last + s.stride
	if s.pick {
		expected = e.previous + s.link
	}
	if v.addr != expected || v.bytes != s.bytes || v.arg != s.arg || v.pc != s.pc {
		return false
	}
	s.last, s.sure = v.addr, true
	if e.run++; kind < trace.NumKinds {
		e.previous = v.addr
	}
	e.before = n
	return true
}

// add packs a row.
func (e *encoder) add(kind trace.Kind, site, marks uint32, v first) {
	before := e.fresh(e.before)
	n, which := before.next, byte(asNext)
	s := e.fresh(n)
	if s.kind != kind || s.site != site || s.marks != marks || n == 0 {
		n, which = before.other, asOther
		if s = e.fresh(n); s.kind != kind || s.site != site || s.marks != marks || n == 0 {
			n, which = e.forms.of(form{kind, site, marks}, v), byNumber
			if int(n) >= len(e.states) {
				e.grow()
				before = &e.states[e.before]
			}
			s = e.fresh(n)
		}
		before.other, before.next = before.next, n
	}
	e.before = n
	expected := s.last + s.stride
	if s.pick {
		expected = e.previous + s.link
	}
	if which == asNext && v.addr == expected && v.bytes == s.bytes && v.arg == s.arg && v.pc == s.pc {
		s.last, s.sure = v.addr, true
		e.run++
	} else {
		e.token(which, n, s, v, expected)
	}
	if kind < trace.NumKinds {
		e.previous = v.addr
	}
}

// token writes a row that is not as predicted.
func (e *encoder) token(which byte, n uint32, s *state, v first, expected uint64) {
	var mask byte
	if v.bytes != s.bytes {
		mask |= 1
	}
	if v.arg != s.arg {
		mask |= 2
	}
	if v.pc != s.pc {
		mask |= 4
	}
	head := which
	if v.addr != expected {
		head |= addressBit
	}
	if mask != 0 {
		head |= attributeBit
	}
	e.head(head)
	if which == byNumber {
		e.out = binary.AppendUvarint(e.out, uint64(n))
	}
	if v.addr != expected {
		d := int64(v.addr - s.last)
		e.out = binary.AppendUvarint(e.out, uint64(d<<1)^uint64(d>>63))
		s.missed(v.addr, e.previous)
	} else {
		s.last, s.sure = v.addr, true
	}
	if mask == 0 {
		return
	}
	e.out = append(e.out, mask)
	if mask&1 != 0 {
		e.out = binary.AppendUvarint(e.out, uint64(v.bytes))
	}
	if mask&2 != 0 {
		e.out = binary.AppendUvarint(e.out, v.arg)
	}
	if mask&4 != 0 {
		e.out = binary.AppendUvarint(e.out, v.pc)
	}
	s.bytes, s.arg, s.pc = v.bytes, v.arg, v.pc
}

func (e *encoder) head(b byte) {
	if e.run < longestRun {
		e.out = append(e.out, b|byte(e.run)<<runShift)
	} else {
		e.out = append(e.out, b|longestRun<<runShift)
		e.out = binary.AppendUvarint(e.out, e.run-longestRun)
	}
	e.run = 0
}

// decoder unpacks pages.
type decoder struct{ coder }

// page fills the columns of p from data, behind which there is room for a token.
func (d *decoder) page(p *Page, data []byte, rows int) error {
	d.begin()
	b := &p.Batch
	b.Resize(rows)
	addr, bytes, kind, site := b.Addr[:rows], b.Bytes[:rows], b.Kind[:rows], b.Site[:rows]
	p.Marks = p.Marks[:0]
	states := d.states
	padded := data[:len(data)+mostToken]
	before, previous, at, row := uint32(0), uint64(0), 0, 0
	for row < rows {
		run, head := uint64(rows-row), byte(0)
		if at < len(data) {
			head = padded[at]
			at++
			if run = uint64(head >> runShift); run == longestRun {
				extra, n := binary.Uvarint(padded[at:])
				if n <= 0 {
					return errDamaged{}
				}
				at, run = at+n, run+extra
			}
		}
		if run > uint64(rows-row) {
			return errDamaged{}
		}
		for end := row + int(run); row < end; row++ {
			s := &states[before]
			if s.page != d.coder.page {
				d.reset(s, before)
			}
			n := s.next
			if s = &states[n]; s.page != d.coder.page {
				d.reset(s, n)
			}
			a := s.last + s.stride
			if s.pick {
				a = previous + s.link
			}
			s.last, s.sure = a, true
			addr[row], bytes[row], kind[row], site[row] = a, s.bytes, s.kind, s.site
			if s.kind < trace.NumKinds {
				previous = a
			}
			if s.marks != 0 {
				p.mark(row, s.marks)
			}
			before = n
			if b.Arg != nil {
				b.Arg[row] = s.arg
			}
			if b.PC != nil {
				b.PC[row] = s.pc
			}
		}
		if row == rows {
			break
		}
		last := d.fresh(before)
		n := last.next
		switch head & 3 {
		case asOther:
			n = last.other
		case byNumber:
			v, k := binary.Uvarint(padded[at:])
			if k <= 0 || v >= uint64(len(states)) {
				return errDamaged{}
			}
			n, at = uint32(v), at+k
		case 3:
			return errDamaged{}
		}
		if head&3 != asNext {
			last.other, last.next = last.next, n
		}
		s := d.fresh(n)
		if head&addressBit != 0 {
			v, k := binary.Uvarint(padded[at:])
			if k <= 0 {
				return errDamaged{}
			}
			at += k
			s.missed(s.last+(v>>1^-(v&1)), previous)
		} else {
			if s.pick {
				s.last = previous + s.link
			} else {
				s.last += s.stride
			}
			s.sure = true
		}
		if head&attributeBit != 0 {
			mask := padded[at]
			at++
			var values [3]uint64
			for i := range values {
				if mask>>i&1 != 0 {
					v, k := binary.Uvarint(padded[at:])
					if k <= 0 {
						return errDamaged{}
					}
					values[i], at = v, at+k
				}
			}
			if mask&1 != 0 {
				s.bytes = uint32(values[0])
			}
			if mask&2 != 0 {
				s.arg = values[1]
			}
			if mask&4 != 0 {
				s.pc = values[2]
			}
		}
		if at > len(data) {
			return errDamaged{}
		}
		addr[row], bytes[row], kind[row], site[row] = s.last, s.bytes, s.kind, s.site
		if s.kind < trace.NumKinds {
			previous = s.last
		}
		if s.marks != 0 {
			p.mark(row, s.marks)
		}
		if b.Arg != nil {
			b.Arg[row] = s.arg
		}
		if b.PC != nil {
			b.PC[row] = s.pc
		}
		before = n
		row++
	}
	if at != len(data) {
		return errDamaged{}
	}
	return nil
}
