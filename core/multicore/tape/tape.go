package tape

import (
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Options say where a tape's rows lie.
type Options struct {
	// MemoryBytes is the most that packed pages take in memory; 0: 256 MiB.
	MemoryBytes int
	Store       Store // for what is more; nil: none
	// Readers is the number of places that are read at the same time: so many pages,
	// and some more, are kept unpacked.
	Readers int
	// Args, PCs: rows have these columns.
	Args, PCs bool
	// Sort, if not nil, is called for each page that was unpacked: it sets Page.Private.
	Sort func(*Page)
}

// defaultMemory is that of packed pages.
const defaultMemory = 256 << 20

// arenaBytes is how much memory is taken for packed pages at once. A page is smaller.
const arenaBytes = 1 << 20

// Tape is a list of rows, with marks between them: first written, then, once sealed,
// read at any place. It can be written anew.
type Tape struct {
	options Options
	e       encoder
	d       decoder
	inPage  int
	marks   uint32 // that wait for the next row
	owners  []uint8
	waiting []uint8 // owners of those
	pages   []page
	rows    uint64
	marked  uint64
	arenas  [][]byte
	used    int // arenas that are in memory, the last of them being written
	stored  int64
	scratch []byte
	loaded  []*Page
	slots   []*Page
	hand    int
}

// page is where a packed page lies.
type page struct {
	firstMark uint64
	at        int64 // in the store, or in its arena
	arena     int32 // -1: in the store
	bytes     uint32
	owners    uint32 // of bytes, behind the rows
	check     uint32
}

// New makes an empty tape.
func New(o Options) *Tape {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemory
	}
	f := newForms()
	t := &Tape{options: o, e: encoder{coder: coder{forms: f}}, d: decoder{coder{forms: f}}}
	t.Reset()
	return t
}

// Reset empties the tape, for writing. No page may be in use.
func (t *Tape) Reset() {
	for _, p := range t.slots {
		if p.number >= 0 {
			t.loaded[p.number], p.number = nil, -1
		}
	}
	t.pages, t.rows, t.marked, t.used, t.stored = t.pages[:0], 0, 0, 0, 0
	t.inPage, t.marks, t.waiting = 0, 0, t.waiting[:0]
}

// Rows is the number of rows on the tape.
func (t *Tape) Rows() uint64 { return t.rows }

// Marks is the number of marks that were set.
func (t *Tape) Marks() uint64 { return t.marked + uint64(t.marks) }

// Followed is the number of marks that a row follows. Those behind them are on no page.
func (t *Tape) Followed() uint64 { return t.marked }

// NeedPC says that rows to be added have PCs; those so far get 0.
func (t *Tape) NeedPC() { t.options.PCs = true }

// Bytes is how much the packed rows take, in memory and in the store.
func (t *Tape) Bytes() (n int64) {
	for i := range t.pages {
		n += int64(t.pages[i].bytes)
	}
	return n
}

// Mark sets a mark behind the last row, with its owner.
func (t *Tape) Mark(owner uint8) {
	t.marks++
	t.waiting = append(t.waiting, owner)
}

// Add appends those rows of b from from up to to that are of some kinds.
func (t *Tape) Add(b *trace.Batch, from, to int, kinds trace.Kinds) error {
	addr, bytes, kind := b.Addr[:to], b.Bytes[:to], b.Kind[:to]
	for row := from; row < to; row++ {
		k := kind[row]
		if kinds>>k&1 == 0 {
			continue
		}
		if t.inPage == 0 {
			t.e.begin()
			t.owners = t.owners[:0]
			t.pages = append(t.pages, page{firstMark: t.marked})
		}
		v := first{addr: addr[row], bytes: bytes[row]}
		if b.Arg != nil {
			v.arg = b.Arg[row]
		}
		if b.PC != nil {
			v.pc = b.PC[row]
		}
		site := uint32(0)
		if b.Site != nil {
			site = b.Site[row]
		}
		if !t.e.expects(k, site, t.marks, &v) {
			t.e.add(k, site, t.marks, v)
		}
		if t.marks != 0 {
			t.owners = append(t.owners, t.waiting...)
			t.marked += uint64(t.marks)
			t.marks, t.waiting = 0, t.waiting[:0]
		}
		t.rows++
		if t.inPage++; t.inPage == PageRows {
			if err := t.Seal(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Seal ends writing, until Reset.
func (t *Tape) Seal() error {
	if t.inPage == 0 {
		return nil
	}
	t.inPage = 0
	p := &t.pages[len(t.pages)-1]
	if slices.ContainsFunc(t.owners, func(o uint8) bool { return o != 0 }) {
		p.owners = uint32(len(t.owners))
	} else {
		t.owners = t.owners[:0]
	}
	t.e.out = append(t.e.out, t.owners...)
	p.bytes = uint32(len(t.e.out))
	p.check = crc32.Checksum(t.e.out, castagnoli)
	return t.keep(p, t.e.out)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// keep puts a packed page where there is room.
func (t *Tape) keep(p *page, data []byte) error {
	if t.used == 0 || len(t.arenas[t.used-1])+len(data) > cap(t.arenas[t.used-1]) {
		if (t.used+1)*arenaBytes > t.options.MemoryBytes && t.used > 0 {
			if t.options.Store == nil {
				return ErrFull
			}
			p.arena, p.at = -1, t.stored
			t.stored += int64(len(data))
			_, err := t.options.Store.WriteAt(data, p.at)
			return err
		}
		if t.used == len(t.arenas) {
			t.arenas = append(t.arenas, nil)
		}
		if t.used++; cap(t.arenas[t.used-1]) < len(data) {
			t.arenas[t.used-1] = make([]byte, 0, max(arenaBytes, len(data)))
		}
		t.arenas[t.used-1] = t.arenas[t.used-1][:0]
	}
	a := &t.arenas[t.used-1]
	p.arena, p.at = int32(t.used-1), int64(len(*a))
	*a = append(*a, data...)
	return nil
}

// Page is a page that is unpacked.
type Page struct {
	trace.Batch // its rows; their threads are left out
	Row         uint64
	// Marks are the rows of the batch that marks stand before, ascending; the first is
	// number Mark.
	Marks []uint16
	Mark  uint64
	// Owners are those of Marks; empty: all are 0.
	Owners []uint8
	// Private has a 1 for each row that Options.Sort says so of; empty: for none.
	Private []uint8

	number int // -1: none
	users  int
	recent bool
}

// End is the row behind the page's last.
func (p *Page) End() uint64 { return p.Row + uint64(p.Len()) }

func (p *Page) mark(row int, n uint32) {
	for ; n > 0; n-- {
		p.Marks = append(p.Marks, uint16(row))
	}
}

// Page gives the page of a row, which the tape has, once it is sealed. Every one is to be
// given back by Release.
func (t *Tape) Page(row uint64) (*Page, error) {
	n := int(row / PageRows)
	for len(t.loaded) < len(t.pages) {
		t.loaded = append(t.loaded, nil)
	}
	p := t.loaded[n]
	if p == nil {
		p = t.slot()
		if err := t.unpack(p, n); err != nil {
			return nil, err
		}
		p.number, t.loaded[n] = n, p
	}
	p.users++
	p.recent = true
	return p, nil
}

// Release gives a page back.
func (t *Tape) Release(p *Page) { p.users-- }

// PageOfMark gives the page of a row that a mark stands before.
func (t *Tape) PageOfMark(mark uint64) (*Page, error) {
	n := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].firstMark > mark }) - 1
	return t.Page(uint64(n) * PageRows)
}

// slot is a page that is not in use, the one that was not asked for longest, about.
func (t *Tape) slot() *Page {
	const spare = 8
	for looked := 0; len(t.slots) >= 2*t.options.Readers+spare && looked < 2*len(t.slots); looked++ {
		p := t.slots[t.hand]
		t.hand = (t.hand + 1) % len(t.slots)
		if p.users > 0 || p.recent {
			p.recent = false
			continue
		}
		if p.number >= 0 {
			t.loaded[p.number], p.number = nil, -1
		}
		return p
	}
	p := &Page{Batch: *trace.NewBatch(PageRows), number: -1}
	p.NeedSite()
	if t.options.Args {
		p.NeedArg()
	}
	t.slots = append(t.slots, p)
	return p
}

// unpack fills p with page n.
func (t *Tape) unpack(p *Page, n int) error {
	at := &t.pages[n]
	if cap(t.scratch) < int(at.bytes)+mostToken {
		t.scratch = make([]byte, 2*(int(at.bytes)+mostToken))
	}
	data := t.scratch[:at.bytes]
	if at.arena >= 0 {
		copy(data, t.arenas[at.arena][at.at:])
	} else if m, err := t.options.Store.ReadAt(data, at.at); m < len(data) {
		if err == nil || err == io.EOF {
			err = errDamaged{}
		}
		return err
	} else if crc32.Checksum(data, castagnoli) != at.check {
		return errDamaged{}
	}
	p.Row, p.Mark = uint64(n)*PageRows, at.firstMark
	rows := int(min(PageRows, t.rows-p.Row))
	owners := data[at.bytes-at.owners:]
	p.Owners = append(p.Owners[:0], owners...)
	packed := data[:at.bytes-at.owners]
	clear(t.scratch[len(packed):][:mostToken])
	if t.options.PCs {
		p.NeedPC()
	}
	if err := t.d.page(p, packed, rows); err != nil {
		return err
	}
	if len(p.Owners) > 0 && len(p.Marks) != len(p.Owners) {
		return errDamaged{}
	}
	p.Private = p.Private[:0]
	if t.options.Sort != nil {
		t.options.Sort(p)
	}
	return nil
}

// Grow makes room for Private and gives it.
func (p *Page) Grow() []uint8 {
	p.Private = slices.Grow(p.Private[:0], p.Len())[:p.Len()]
	return p.Private
}
