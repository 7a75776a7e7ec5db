package trace

// DefaultRows is the default number of rows in a batch. A batch of this size fits in the
// second-level cache, and is large enough to make the cost of one dynamic call per batch
// negligible.
const DefaultRows = 4096

// Batch contains records of a trace, stored as columns of equal length. Each row is one record. The
// caller of a reader owns the batch. The rows are valid until the batch is filled again, and
// analyses must not change them.
type Batch struct {
	Addr  []Addr   // byte address
	Bytes []uint32 // number of bytes that the reference accesses; 0 if unknown
	Kind  []Kind

	// The following columns are optional. Each column is nil or has the same length as Addr.
	Thread []uint32 // thread number in the trace
	PC     []Addr   // address of the instruction; 0 if unknown
	Site   []uint32 // index in Program.Sites, or in Program.Blocks for blocks, calls and returns
	Arg    []uint64 // second value of events; see [Kind]

	// These fields retain the memory of removed optional columns, so that it can be reused.
	threads, sites []uint32
	pcs            []Addr
	args           []uint64
}

// NewBatch returns an empty batch with the given capacity in rows, or [DefaultRows] if rows < 1.
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

// Len returns the number of rows in the batch.
func (b *Batch) Len() int { return len(b.Addr) }

// Cap returns the maximum number of rows of the batch.
func (b *Batch) Cap() int { return cap(b.Addr) }

// Reset removes all rows and optional columns. Readers call Reset before they fill a batch.
func (b *Batch) Reset() {
	b.Resize(0)
	b.Thread, b.PC, b.Site, b.Arg = nil, nil, nil, nil
}

// Resize sets the length of every column to the given number of rows, which must be at most Cap.
// The contents of added rows are undefined. A reader that fills rows by index first resizes the
// batch to Cap, then writes rows, and finally resizes the batch to the number of rows written.
func (b *Batch) Resize(rows int) {
	b.Addr, b.Bytes, b.Kind = b.Addr[:rows], b.Bytes[:rows], b.Kind[:rows]
	b.Thread, b.PC = part(b.Thread, 0, rows), part(b.PC, 0, rows)
	b.Site, b.Arg = part(b.Site, 0, rows), part(b.Arg, 0, rows)
}

// NeedThread adds the thread column if it is missing, with zeros in the existing rows.
func (b *Batch) NeedThread() { need(b, &b.Thread, &b.threads) }

// NeedPC adds the PC column if it is missing, with zeros in the existing rows.
func (b *Batch) NeedPC() { need(b, &b.PC, &b.pcs) }

// NeedSite adds the site column if it is missing, with zeros in the existing rows.
func (b *Batch) NeedSite() { need(b, &b.Site, &b.sites) }

// NeedArg adds the column of second values if it is missing, with zeros in the existing rows.
func (b *Batch) NeedArg() { need(b, &b.Arg, &b.args) }

func need[T uint32 | uint64](b *Batch, column, storage *[]T) {
	if *column != nil {
		return
	}
	if cap(*storage) < b.Cap() {
		*storage = make([]T, b.Cap())
	}
	*column = (*storage)[:b.Len()]
	clear(*column)
}

// At returns value i of an optional column, or 0 if the column is missing.
func At[T uint32 | uint64](column []T, i int) T {
	if column == nil {
		return 0
	}
	return column[i]
}

// Append adds one reference. Append is slow, so fast readers fill the columns directly. If a column
// is missing, Append ignores the value for this column.
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
	if b.Site != nil {
		b.Site = append(b.Site, 0)
	}
	if b.Arg != nil {
		b.Arg = append(b.Arg, 0)
	}
}

// NeedLike adds all optional columns that the other batch has, with zeros in the existing rows.
func (b *Batch) NeedLike(of *Batch) {
	if of.Thread != nil {
		b.NeedThread()
	}
	if of.PC != nil {
		b.NeedPC()
	}
	if of.Site != nil {
		b.NeedSite()
	}
	if of.Arg != nil {
		b.NeedArg()
	}
}

// AppendRows appends rows [lo, hi) of the other batch, including its optional columns.
func (b *Batch) AppendRows(of *Batch, lo, hi int) {
	b.NeedLike(of)
	b.Addr, b.Bytes, b.Kind = append(b.Addr, of.Addr[lo:hi]...), append(b.Bytes, of.Bytes[lo:hi]...), append(b.Kind, of.Kind[lo:hi]...)
	b.Thread, b.PC = appendPart(b.Thread, of.Thread, lo, hi), appendPart(b.PC, of.PC, lo, hi)
	b.Site, b.Arg = appendPart(b.Site, of.Site, lo, hi), appendPart(b.Arg, of.Arg, lo, hi)
}

func appendPart[T any](column, of []T, lo, hi int) []T {
	switch {
	case column == nil:
		return nil
	case of == nil:
		return append(column, make([]T, hi-lo)...)
	}
	return append(column, of[lo:hi]...)
}

// Select keeps only the rows whose indices are in the slice "keep", which must be in ascending
// order.
func (b *Batch) Select(keep []int32) {
	for to, from := range keep {
		b.Addr[to], b.Bytes[to], b.Kind[to] = b.Addr[from], b.Bytes[from], b.Kind[from]
	}
	gather(b.Thread, keep)
	gather(b.PC, keep)
	gather(b.Site, keep)
	gather(b.Arg, keep)
	b.Resize(len(keep))
}

func gather[T any](column []T, keep []int32) {
	if column == nil {
		return
	}
	for to, from := range keep {
		column[to] = column[from]
	}
}

// Slice keeps only rows [lo, hi).
func (b *Batch) Slice(lo, hi int) {
	if lo > 0 {
		copy(b.Addr, b.Addr[lo:hi])
		copy(b.Bytes, b.Bytes[lo:hi])
		copy(b.Kind, b.Kind[lo:hi])
		copy(b.Thread, part(b.Thread, lo, hi))
		copy(b.PC, part(b.PC, lo, hi))
		copy(b.Site, part(b.Site, lo, hi))
		copy(b.Arg, part(b.Arg, lo, hi))
	}
	b.Resize(hi - lo)
}

// View sets *into to a view of rows [lo, hi) of b, and returns the pointer "into". The view shares
// the memory of b.
func (b *Batch) View(into *Batch, lo, hi int) *Batch {
	into.Addr, into.Bytes, into.Kind = b.Addr[lo:hi], b.Bytes[lo:hi], b.Kind[lo:hi]
	into.Thread, into.PC = part(b.Thread, lo, hi), part(b.PC, lo, hi)
	into.Site, into.Arg = part(b.Site, lo, hi), part(b.Arg, lo, hi)
	return into
}

func part[T any](column []T, lo, hi int) []T {
	if column == nil {
		return nil
	}
	return column[lo:hi]
}

// Spoil overwrites every row. Tests call Spoil to detect consumers that use rows after they have
// become invalid.
func (b *Batch) Spoil() {
	for i := range b.Addr {
		b.Addr[i], b.Bytes[i], b.Kind[i] = 0xdeaddeaddeaddead, 0xdeaddead, Fetch
	}
	spoil(b.Thread, 0xdeaddead)
	spoil(b.PC, 0xdeaddeaddeaddead)
	spoil(b.Site, 0xdeaddead)
	spoil(b.Arg, 0xdeaddeaddeaddead)
}

func spoil[T any](column []T, with T) {
	for i := range column {
		column[i] = with
	}
}
