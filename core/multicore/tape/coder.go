package tape

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

// form contains the values that similar rows have in common: the kind, the site, and the number
// of marks before the row.
type form struct {
	kind  trace.Kind
	site  uint32
	marks uint32
}

// firstRow contains the address and attributes of the first row with a form. In each page, the
// predictions for this form start with these values.
type firstRow struct {
	addr  trace.Addr
	bytes uint32
	arg   uint64
	pc    trace.Addr
}

// forms assigns a number to each form of a tape. No row has form 0, but each page is encoded as if
// a row of form 0 preceded it.
type forms struct {
	list   []form
	firsts []firstRow
	number map[form]uint32
}

func newForms() *forms {
	return &forms{list: make([]form, 1), firsts: make([]firstRow, 1), number: map[form]uint32{}}
}

// numberOf returns the number of a form, and adds the form if it is new.
func (f *forms) numberOf(x form, values firstRow) uint32 {
	n, ok := f.number[x]
	if !ok {
		n = uint32(len(f.list))
		f.list, f.firsts = append(f.list, x), append(f.firsts, values)
		f.number[x] = n
	}
	return n
}

// state contains the data from which the next row of a form is predicted.
type state struct {
	// last is the address of the last row with this form. stride is the predicted difference from
	// this address, and link is the predicted difference from the address of the previous
	// reference.
	last, stride, link uint64
	page               uint32 // page for which the state is valid; in other pages, the state must be reset before use
	next, other        uint32 // the two forms that most recently followed this form, the newer form first
	site, bytes, marks uint32
	kind               trace.Kind
	pick               bool // whether the address is predicted by link instead of stride
	sure               bool // whether the last prediction was correct
	arg                uint64
	pc                 trace.Addr
}

// predictedAddr returns the predicted address of the next row with this form. The parameter
// "previous" is the address of the previous reference.
func (s *state) predictedAddr(previous uint64) uint64 {
	if s.pick {
		return previous + s.link
	}
	return s.last + s.stride
}

// formEquals reports whether the form of the state has the given values. The parameter n identifies
// this form (see forms). For form 0, the result is false.
func (s *state) formEquals(n uint32, kind trace.Kind, site, marks uint32) bool {
	return s.kind == kind && s.site == site && s.marks == marks && n != 0
}

// matches reports whether the address and the attributes of a row equal the prediction.
func (s *state) matches(v *firstRow, expected uint64) bool {
	return v.addr == expected && v.bytes == s.bytes && v.arg == s.arg && v.pc == s.pc
}

// coder contains the state of the predictor, which encoder and decoder have in common.
type coder struct {
	forms  *forms
	states []state
	page   uint32
}

// begin starts a new page, which invalidates all states.
func (c *coder) begin() {
	if c.page++; c.page == 0 { // the counter has wrapped
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

// stateOf returns the state of form n. It resets the state before its first use in a page.
func (c *coder) stateOf(n uint32) *state {
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

// learn adapts the prediction after a mispredicted address. The parameter "previous" is the address
// of the previous reference.
func (s *state) learn(addr, previous uint64) {
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
	mostToken    = 1 + 10 + 5 + 10 + 1 + 5 + 10 + 10 // maximum size of a token

	// bits that mark the attributes with changed values
	bytesBit = 1 << 0
	argBit   = 1 << 1
	pcBit    = 1 << 2
)

// encoder compresses the rows of one page.
type encoder struct {
	coder
	out      []byte
	run      uint64
	before   uint32 // form of the previous row
	previous uint64 // address of the previous reference
}

func (e *encoder) begin() {
	e.coder.begin()
	e.out, e.run, e.before, e.previous = e.out[:0], 0, 0, 0
}

// addPredicted adds a row only if the row equals the prediction, and reports whether it added the
// row.
func (e *encoder) addPredicted(kind trace.Kind, site, marks uint32, v *firstRow) bool {
	before := &e.states[e.before]
	n := before.next
	s := &e.states[n]
	if before.page != e.page || s.page != e.page || !s.formEquals(n, kind, site, marks) || !s.matches(v, s.predictedAddr(e.previous)) {
		return false
	}
	s.last, s.sure = v.addr, true
	if e.run++; kind < trace.NumKinds {
		e.previous = v.addr
	}
	e.before = n
	return true
}

// add adds a row, whether or not the row equals the prediction.
func (e *encoder) add(kind trace.Kind, site, marks uint32, v firstRow) {
	before := e.stateOf(e.before)
	n, which := before.next, byte(asNext)
	s := e.stateOf(n)
	if !s.formEquals(n, kind, site, marks) {
		n, which = before.other, asOther
		if s = e.stateOf(n); !s.formEquals(n, kind, site, marks) {
			n, which = e.forms.numberOf(form{kind, site, marks}, v), byNumber
			if int(n) >= len(e.states) {
				e.grow()
				before = &e.states[e.before]
			}
			s = e.stateOf(n)
		}
		before.other, before.next = before.next, n
	}
	e.before = n
	expected := s.predictedAddr(e.previous)
	if which == asNext && s.matches(&v, expected) {
		s.last, s.sure = v.addr, true
		e.run++
	} else {
		e.writeToken(which, n, s, v, expected)
	}
	if kind < trace.NumKinds {
		e.previous = v.addr
	}
}

// writeToken writes a token that ends with a mispredicted row.
func (e *encoder) writeToken(which byte, n uint32, s *state, v firstRow, expected uint64) {
	var mask byte
	if v.bytes != s.bytes {
		mask |= bytesBit
	}
	if v.arg != s.arg {
		mask |= argBit
	}
	if v.pc != s.pc {
		mask |= pcBit
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
		s.learn(v.addr, e.previous)
	} else {
		s.last, s.sure = v.addr, true
	}
	if mask == 0 {
		return
	}
	e.out = append(e.out, mask)
	if mask&bytesBit != 0 {
		e.out = binary.AppendUvarint(e.out, uint64(v.bytes))
	}
	if mask&argBit != 0 {
		e.out = binary.AppendUvarint(e.out, v.arg)
	}
	if mask&pcBit != 0 {
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

// decoder decompresses pages.
type decoder struct {
	coder
	data    []byte // the data of the page, followed by padding for one more token
	at      int
	damaged bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data[d.at:])
	if n <= 0 {
		d.damaged = true
		return 0
	}
	d.at += n
	return v
}

func (d *decoder) byte() byte {
	b := d.data[d.at]
	d.at++
	return b
}

// decodePage fills the columns of p from data. The slice "data" must have capacity for one
// more token.
func (d *decoder) decodePage(p *Page, data []byte, rows int) error {
	d.begin()
	d.data, d.at, d.damaged = data[:len(data)+mostToken], 0, false
	b := &p.Batch
	b.Resize(rows)
	addr, bytes, kind, site := b.Addr[:rows], b.Bytes[:rows], b.Kind[:rows], b.Site[:rows]
	p.Marks = p.Marks[:0]
	states := d.states
	before, previous, row := uint32(0), uint64(0), 0
	for row < rows {
		run, head := uint64(rows-row), byte(0)
		if d.at < len(data) {
			head = d.byte()
			if run = uint64(head >> runShift); run == longestRun {
				run += d.uvarint()
			}
		}
		if d.damaged || run > uint64(rows-row) {
			return errDamaged{}
		}
		for end := row + int(run); row < end; row++ {
			s := &states[before]
			if s.page != d.coder.page {
				d.reset(s, before)
			}
			before = s.next
			if s = &states[before]; s.page != d.coder.page {
				d.reset(s, before)
			}
			a := s.predictedAddr(previous)
			s.last, s.sure = a, true
			addr[row], bytes[row], kind[row], site[row] = a, s.bytes, s.kind, s.site
			if s.kind < trace.NumKinds {
				previous = a
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
		}
		if row == rows {
			break
		}
		before = d.readToken(head, before, previous)
		if d.damaged || d.at > len(data) {
			return errDamaged{}
		}
		s := &states[before]
		p.setRow(row, s)
		if s.kind < trace.NumKinds {
			previous = s.last
		}
		row++
	}
	if d.at != len(data) {
		return errDamaged{}
	}
	return nil
}

// readToken reads the part of a token that describes the mispredicted row, sets the state of the row's
// form to the values of the row, and returns the form.
func (d *decoder) readToken(head byte, before uint32, previous uint64) (form uint32) {
	last := d.stateOf(before)
	form = last.next
	switch head & 3 {
	case asOther:
		form = last.other
	case byNumber:
		v := d.uvarint()
		d.damaged = d.damaged || v >= uint64(len(d.states))
		form = uint32(v)
	case 3:
		d.damaged = true
	}
	if d.damaged {
		return 0
	}
	if head&3 != asNext {
		last.other, last.next = last.next, form
	}
	s := d.stateOf(form)
	if head&addressBit != 0 {
		v := d.uvarint()
		s.learn(s.last+(v>>1^-(v&1)), previous)
	} else {
		s.last, s.sure = s.predictedAddr(previous), true
	}
	if head&attributeBit != 0 {
		mask := d.byte()
		if mask&bytesBit != 0 {
			s.bytes = uint32(d.uvarint())
		}
		if mask&argBit != 0 {
			s.arg = d.uvarint()
		}
		if mask&pcBit != 0 {
			s.pc = d.uvarint()
		}
	}
	return form
}

// setRow sets one row of the page to the values in s.
func (p *Page) setRow(row int, s *state) {
	p.Addr[row], p.Bytes[row], p.Kind[row], p.Site[row] = s.last, s.bytes, s.kind, s.site
	if s.marks != 0 {
		p.mark(row, s.marks)
	}
	if p.Arg != nil {
		p.Arg[row] = s.arg
	}
	if p.PC != nil {
		p.PC[row] = s.pc
	}
}
