package tape

import (
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Options defines where and how a tape stores its rows.
type Options struct {
	// MemoryBytes is the maximum size of the compressed pages in memory, in bytes. The value 0
	// means 256 MiB.
	MemoryBytes int
	Store       Store // stores further pages; may be nil
	// Readers is the number of concurrent readers. This number limits how many pages are kept
	// decompressed.
	Readers   int
	Args, PCs bool // whether rows have arguments and PCs
	// If Mark is not nil, it is called for each decompressed page, and sets Page.Private.
	Mark func(*Page)
}

const (
	defaultMemory = 256 << 20
	// arenaBytes is the size of an arena, which contains several compressed pages. Every
	// compressed page is smaller than an arena.
	arenaBytes = 1 << 20
)

// Tape is a list of rows with marks between them. A tape is first written and sealed, and can
// then be read from any row. After Reset, the tape can be written again.
type Tape struct {
	options Options
	e       encoder
	d       decoder
	inPage  int
	marks   uint32 // number of marks before the next row
	owners  []uint8
	waiting []uint8 // owners of the marks after the last row
	pages   []pageInfo
	rows    uint64
	marked  uint64
	arenas  [][]byte
	used    int // number of arenas in use; the last arena is being written
	stored  int64
	scratch []byte
	loaded  []*Page
	slots   []*Page
	hand    int
}

// pageInfo contains the position and size of a compressed page.
type pageInfo struct {
	firstMark uint64
	at        int64 // offset of the page in the store or arena
	arena     int32 // number of the arena; -1 if the page is in the store
	bytes     uint32
	owners    uint32 // number of bytes that contain the owners of marks; these bytes follow the encoded rows
	check     uint32
}

// New returns an empty tape.
func New(o Options) *Tape {
	if o.MemoryBytes == 0 {
		o.MemoryBytes = defaultMemory
	}
	f := newForms()
	t := &Tape{options: o, e: encoder{coder: coder{forms: f}}, d: decoder{coder: coder{forms: f}}}
	t.Reset()
	return t
}

// Reset empties the tape. No page may be in use during Reset.
func (t *Tape) Reset() {
	for _, p := range t.slots {
		if p.number >= 0 {
			t.loaded[p.number], p.number = nil, -1
		}
	}
	t.pages, t.rows, t.marked, t.used, t.stored = t.pages[:0], 0, 0, 0, 0
	t.inPage, t.marks, t.waiting = 0, 0, t.waiting[:0]
}

// Rows returns the number of rows.
func (t *Tape) Rows() uint64 { return t.rows }

// Marks returns the number of marks.
func (t *Tape) Marks() uint64 { return t.marked + uint64(t.marks) }

// Followed returns the number of marks before the last row. Marks after the last row belong to no
// page.
func (t *Tape) Followed() uint64 { return t.marked }

// NeedPC adds the PC column to the tape. In rows that were added earlier, the PC is 0.
func (t *Tape) NeedPC() { t.options.PCs = true }

// Bytes returns the total compressed size in memory and in the store.
func (t *Tape) Bytes() (n int64) {
	for i := range t.pages {
		n += int64(t.pages[i].bytes)
	}
	return n
}

// Mark adds a mark with an owner after the last row.
func (t *Tape) Mark(owner uint8) {
	t.marks++
	t.waiting = append(t.waiting, owner)
}

// Add appends the rows of the given kinds that are in the range [from, to) of batch b.
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
			t.pages = append(t.pages, pageInfo{firstMark: t.marked})
		}
		v := firstRow{addr: addr[row], bytes: bytes[row]}
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
		if !t.e.addPredicted(k, site, t.marks, &v) {
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

// Seal completes the current page. Nothing can be written to a sealed tape until Reset.
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
	return t.storePage(p, t.e.out)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// storePage stores a compressed page in an arena or, beyond the memory limit, in the store.
func (t *Tape) storePage(p *pageInfo, data []byte) error {
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

// Page is a decompressed page.
type Page struct {
	trace.Batch        // the rows, without the column Thread
	Row         uint64 // number of the first row
	// Marks contains the indices of the rows that follow a mark, in ascending order. The field Mark
	// is the number of the first mark in the page.
	Marks   []uint16
	Mark    uint64
	Owners  []uint8 // owners of Marks; empty if all are 0
	Private []uint8 // by row: 1 if the row has a private address; empty if no row has one

	number int // page number; -1 if the slot is empty
	users  int
	recent bool
}

// End returns the number of the first row after the page.
func (p *Page) End() uint64 { return p.Row + uint64(p.Len()) }

func (p *Page) mark(row int, n uint32) {
	for ; n > 0; n-- {
		p.Marks = append(p.Marks, uint16(row))
	}
}

// Page returns the page that contains the given row of a sealed tape. Call Release after use.
func (t *Tape) Page(row uint64) (*Page, error) {
	n := int(row / PageRows)
	for len(t.loaded) < len(t.pages) {
		t.loaded = append(t.loaded, nil)
	}
	p := t.loaded[n]
	if p == nil {
		p = t.slot()
		if err := t.decompress(p, n); err != nil {
			return nil, err
		}
		p.number, t.loaded[n] = n, p
	}
	p.users++
	p.recent = true
	return p, nil
}

// Release ends the use of a page that Page or PageOfMark returned.
func (t *Tape) Release(p *Page) { p.users-- }

// PageOfMark returns the page that contains the first row after a mark.
func (t *Tape) PageOfMark(mark uint64) (*Page, error) {
	n := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].firstMark > mark }) - 1
	return t.Page(uint64(n) * PageRows)
}

// slot returns a page that is not in use: approximately the least recently used page, or a new
// page.
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

// decompress decodes page n of the tape into p.
func (t *Tape) decompress(p *Page, n int) error {
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
	if err := t.d.decodePage(p, packed, rows); err != nil {
		return err
	}
	if len(p.Owners) > 0 && len(p.Marks) != len(p.Owners) {
		return errDamaged{}
	}
	p.Private = p.Private[:0]
	if t.options.Mark != nil {
		t.options.Mark(p)
	}
	return nil
}

// Grow resizes Private to one value per row and returns Private.
func (p *Page) Grow() []uint8 {
	p.Private = slices.Grow(p.Private[:0], p.Len())[:p.Len()]
	return p.Private
}
