package trace

// DefaultRows is the number of rows in a batch unless the caller wants another:
// few enough to stay in the first-level cache, many enough that one dynamic
// call a batch costs nothing.
const DefaultRows = 4096

// Batch is a run of rows in columns of equal length. The caller owns it; its
// content is valid until it is filled again, and analyses only read it.
type Batch struct {
	Addr  []Addr   // byte address
	Bytes []uint32 // bytes referenced; 0 where the trace does not say
	Kind  []Kind

	// Columns that not every trace has: nil, or as long as Addr.
	Thread []uint32 // thread number, as the trace gives it
	PC     []Addr   // address of the instruction; 0 where it is not known

	threads []uint32 // storage behind Thread while it is nil
	pcs     []Addr   // storage behind PC while it is nil
}

// NewBatch makes an empty batch with room for rows rows; rows < 1 means
// [DefaultRows].
func NewBatch(rows int) *Batch {
	if rows < 1 {
		rows = DefaultRows
	}
	return &Batch{
		Addr:  make([]Addr, 0, rows),
		Bytes: make([]uint32, 0, rows),
		Kind:  make([]Kind, 0, rows),
	}
}

// Len is the number of rows in the batch.
func (b *Batch) Len() int { return len(b.Addr) }

// Cap is the number of rows that a fill may hold.
func (b *Batch) Cap() int { return cap(b.Addr) }

// Reset empties the batch and drops its optional columns. Readers call it
// first.
func (b *Batch) Reset() {
	b.Resize(0)
	b.Thread, b.PC = nil, nil
}

// Resize sets the number of rows, at most Cap, in every column that is there.
// Rows beyond the old length hold leftovers: a reader that fills by index
// resizes to Cap, writes, and resizes to what it wrote.
func (b *Batch) Resize(rows int) {
	b.Addr, b.Bytes, b.Kind = b.Addr[:rows], b.Bytes[:rows], b.Kind[:rows]
	if b.Thread != nil {
		b.Thread = b.Thread[:rows]
	}
	if b.PC != nil {
		b.PC = b.PC[:rows]
	}
}

// NeedThread makes the thread column present, with zeros in the rows so far.
func (b *Batch) NeedThread() {
	if b.Thread != nil {
		return
	}
	if cap(b.threads) < b.Cap() {
		b.threads = make([]uint32, b.Cap())
	}
	b.Thread = b.threads[:b.Len()]
	clear(b.Thread)
}

// NeedPC makes the PC column present, with zeros in the rows so far.
func (b *Batch) NeedPC() {
	if b.PC != nil {
		return
	}
	if cap(b.pcs) < b.Cap() {
		b.pcs = make([]Addr, b.Cap())
	}
	b.PC = b.pcs[:b.Len()]
	clear(b.PC)
}

// Append adds one row. It is for builders and slow formats; the columns that
// are there get the values, absent ones ignore them.
func (b *Batch) Append(kind Kind, addr Addr, bytes uint32, thread uint32, pc Addr) {
	b.Addr = append(b.Addr, addr)
	b.Bytes = append(b.Bytes, bytes)
	b.Kind = append(b.Kind, kind)
	if b.Thread != nil {
		b.Thread = append(b.Thread, thread)
	}
	if b.PC != nil {
		b.PC = append(b.PC, pc)
	}
}

// Select keeps the rows whose index is in keep, which is ascending, and moves
// them to the front.
func (b *Batch) Select(keep []int32) {
	for to, from := range keep {
		b.Addr[to], b.Bytes[to], b.Kind[to] = b.Addr[from], b.Bytes[from], b.Kind[from]
	}
	if b.Thread != nil {
		for to, from := range keep {
			b.Thread[to] = b.Thread[from]
		}
	}
	if b.PC != nil {
		for to, from := range keep {
			b.PC[to] = b.PC[from]
		}
	}
	b.Resize(len(keep))
}

// Slice narrows the batch to its rows from lo up to hi; the rows before lo are
// gone.
func (b *Batch) Slice(lo, hi int) {
	if lo > 0 {
		copy(b.Addr, b.Addr[lo:hi])
		copy(b.Bytes, b.Bytes[lo:hi])
		copy(b.Kind, b.Kind[lo:hi])
		if b.Thread != nil {
			copy(b.Thread, b.Thread[lo:hi])
		}
		if b.PC != nil {
			copy(b.PC, b.PC[lo:hi])
		}
	}
	b.Resize(hi - lo)
}

// View makes into the rows of b from lo up to hi, shared with b, and returns it.
func (b *Batch) View(into *Batch, lo, hi int) *Batch {
	into.Addr, into.Bytes, into.Kind = b.Addr[lo:hi], b.Bytes[lo:hi], b.Kind[lo:hi]
	into.Thread, into.PC = nil, nil
	if b.Thread != nil {
		into.Thread = b.Thread[lo:hi]
	}
	if b.PC != nil {
		into.PC = b.PC[lo:hi]
	}
	return into
}

// Spoil overwrites every row, so that a consumer that kept a reference to an
// old batch fails its test.
func (b *Batch) Spoil() {
	for i := range b.Addr {
		b.Addr[i], b.Bytes[i], b.Kind[i] = 0xdeaddeaddeaddead, 0xdeaddead, Fetch
	}
	for i := range b.Thread {
		b.Thread[i] = 0xdeaddead
	}
	for i := range b.PC {
		b.PC[i] = 0xdeaddeaddeaddead
	}
}
