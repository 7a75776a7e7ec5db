package sgt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// These values identify the compression of the tables in a MODL body.
const (
	packedPlain = 0
	packedLZ4   = 1
)

// largestTables is the maximum decompressed size of a module's tables.
const largestTables = 1 << 26

// AppendModule appends the body of a MODL frame with the tables of p, a program that consists of
// one module. The numbers in p must be the numbers that [ParseModule] assigns to the first module
// of a program. The tables do not contain the addresses of objects, which are unknown until the
// program runs.
func AppendModule(dst []byte, p *trace.Program) []byte {
	return AppendPacked(dst, appendTables(nil, p))
}

// AppendTables works like [AppendModule], but does not compress the tables.
func AppendTables(dst []byte, p *trace.Program) []byte {
	return appendTables(append(dst, packedPlain), p)
}

// AppendPacked appends a byte that identifies the compression, followed by the content.
// AppendPacked compresses the content as one LZ4 frame if this frame is shorter than the content.
// Content that is too long for [Unpack] is not compressed.
func AppendPacked(dst, content []byte) []byte {
	var packed bytes.Buffer
	packLZ4(&packed, lz4.NewWriter(nil), content)
	if packed.Len() < len(content) && len(content) <= largestTables {
		return append(append(dst, packedLZ4), packed.Bytes()...)
	}
	return append(append(dst, packedPlain), content...)
}

// packLZ4 compresses content to one LZ4 frame, and stores only this frame in the buffer "to".
// packLZ4 ignores errors, because writes to memory cannot fail and the compressor's option is
// valid.
func packLZ4(to *bytes.Buffer, w *lz4.Writer, content []byte) {
	to.Reset()
	w.Reset(to)
	_ = w.Apply(lz4.SizeOption(uint64(len(content))))
	_, _ = w.Write(content)
	_ = w.Close()
}

// Unpack returns the content that was passed to [AppendPacked], if it is not longer than 2^26
// bytes. If the content is not compressed, the result shares the memory of the slice "body".
func Unpack(body []byte) ([]byte, error) {
	c := cursor{bytes: body}
	if packing := c.below(packedLZ4+1, "compression"); c.wrong != nil {
		return nil, c.wrong
	} else if uint64(body[0]) != packing {
		return nil, &TableError{What: "compression", Got: uint64(body[0]), Want: "less than " + decimal(packedLZ4+1)}
	}
	if body[0] == packedPlain {
		return body[1:], nil
	}
	r := lz4.NewReader(bytes.NewReader(body[1:]))
	if err := r.Apply(lz4.ConcurrencyOption(1)); err != nil {
		return nil, err
	}
	tables, err := io.ReadAll(io.LimitReader(r, largestTables+1))
	if err != nil {
		return nil, errors.New("tables cannot be decompressed: " + err.Error())
	}
	if len(tables) > largestTables {
		return nil, &TableError{What: "decompressed bytes", Got: uint64(len(tables)), Want: "at most " + decimal(largestTables)}
	}
	return tables, nil
}

// tableForm writes or reads the tables of one module, with the same methods in both directions.
// When the methods read, they convert numbers within the module to numbers in the program to which
// the module is appended.
type tableForm struct {
	*trace.Program          // the program; its sites must be in the order of its blocks
	texts          []string // strings, in the order of their first use
	// numbers of the module, and of its first function, block, site and structure
	module, function, block, site, structure uint32

	cursor // the field is used only for reading
	reads  bool

	out    []byte            // the tables after the strings; used only for writing
	number map[string]uint64 // number of each string; used only for writing
}

// ParseModule reads the body of a MODL frame, and appends the module to a program. The numbers of
// the module's functions, blocks and sites continue the numbers of earlier modules. If ParseModule
// returns an error, it does not change the program.
func ParseModule(body []byte, into *trace.Program) error {
	tables, err := Unpack(body)
	if err != nil {
		return err
	}
	t := &tableForm{
		Program:  &trace.Program{Modules: make([]trace.Module, 1)},
		reads:    true,
		cursor:   cursor{bytes: tables},
		module:   uint32(len(into.Modules)),
		function: uint32(len(into.Functions)),
		block:    uint32(len(into.Blocks)),
		site:     uint32(len(into.Sites)),

		structure: uint32(len(into.Structures)),
	}
	t.texts = make([]string, t.count(1, "strings"))
	for i := range t.texts {
		t.texts[i] = t.str()
	}
	t.all()
	t.checkFunctions()
	if err := t.end(); err != nil {
		return err
	}
	into.Modules = append(into.Modules, t.Modules...)
	into.Functions = append(into.Functions, t.Functions...)
	into.Blocks = append(into.Blocks, t.Blocks...)
	into.Sites = append(into.Sites, t.Sites...)
	into.Objects = append(into.Objects, t.Objects...)
	into.Structures = append(into.Structures, t.Structures...)
	return nil
}

// checkFunctions checks that the blocks of all functions exist. It converts the number of each
// function's first block from a number within the module to a number in the program.
func (t *tableForm) checkFunctions() {
	for i := range t.Functions {
		f := &t.Functions[i]
		if end := uint64(f.First) + uint64(f.Blocks); end > uint64(len(t.Blocks)) {
			t.fail("end of a function's block range", end, "at most "+strconv.Itoa(len(t.Blocks)))
		}
		f.First += t.block
	}
}

func appendTables(dst []byte, p *trace.Program) []byte {
	t := &tableForm{Program: p, texts: []string{""}, number: map[string]uint64{"": 0}}
	t.all()
	dst = binary.AppendUvarint(dst, uint64(len(t.texts)))
	for _, s := range t.texts {
		dst = appendStr(dst, s)
	}
	return append(dst, t.out...)
}

// put appends a number to the tables. It is not inlined, because inlining would only enlarge its
// many callers.
//
//go:noinline
func (t *tableForm) put(v uint64) { t.out = binary.AppendUvarint(t.out, v) }

// u64 writes or reads a number.
func (t *tableForm) u64(v *uint64) {
	if t.reads {
		*v = t.uv()
	} else {
		t.put(*v)
	}
}

// under writes or reads a number below limit. Errors identify the number by the given name.
func under[T ~uint8 | ~uint16 | ~uint32](t *tableForm, v *T, limit uint64, what string) {
	if t.reads {
		*v = T(t.below(limit, what))
	} else {
		t.put(uint64(*v))
	}
}

// u32 writes or reads a 32-bit number.
func (t *tableForm) u32(v *uint32, what string) { under(t, v, 1<<32, what) }

// s writes or reads the number of a string.
func (t *tableForm) s(text *string) {
	if !t.reads {
		n, known := t.number[*text]
		if !known {
			n = uint64(len(t.texts))
			t.number[*text] = n
			t.texts = append(t.texts, *text)
		}
		t.put(n)
	} else if n := t.below(uint64(len(t.texts)), "string"); t.wrong == nil {
		*text = t.texts[n]
	}
}

// entries writes or reads a list. Each entry has at least the given number of bytes (least).
func entries[T any](t *tableForm, all *[]T, least int, what string, entry func(*T)) {
	if t.reads {
		*all = list[T](t.count(least, what))
	} else {
		t.put(uint64(len(*all)))
	}
	for i := 0; i < len(*all) && t.wrong == nil; i++ {
		entry(&(*all)[i])
	}
}

// list returns a list with n entries, or nil for 0 entries.
func list[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

func (t *tableForm) all() {
	t.codeModule(&t.Modules[0])
	entries(t, &t.Functions, 7, "functions", t.codeFunction)
	n := uint32(0) // number of the block
	entries(t, &t.Blocks, 13, "blocks", func(b *trace.Block) {
		t.codeBlock(n, b)
		n++
	})
	if uint64(t.block)+uint64(n) > math.MaxUint32 {
		t.fail("number of blocks", uint64(n), "fewer than 2^32 in a file")
	}
	entries(t, &t.Objects, 6, "objects", func(o *trace.Object) {
		t.s(&o.Name)
		t.u64(&o.Bytes)
		t.s(&o.Type)
		t.place(&o.Place)
	})
	t.instructions()
	t.sources()
	t.structures()
}

// structures writes or reads the structure types of the source, and the structure numbers of sites
// and objects. Older containers contain no structures.
func (t *tableForm) structures() {
	if t.reads && t.at == len(t.bytes) || !t.reads && len(t.Structures) == 0 {
		return
	}
	entries(t, &t.Structures, 3, "structures", func(s *trace.Structure) {
		t.s(&s.Name)
		t.u64(&s.Bytes)
		entries(t, &s.Members, 4, "members", func(m *trace.Member) {
			t.s(&m.Name)
			t.u32(&m.Offset, "offset of a member")
			t.u32(&m.Bytes, "size of a member")
			t.s(&m.Type)
		})
		t.checkStructure(s)
	})
	for i := range t.Sites {
		s := &t.Sites[i]
		if t.structureOf(&s.Structure); s.Structure != 0 {
			t.u32(&s.Offset, "offset in a structure")
		}
	}
	for i := range t.Objects {
		t.structureOf(&t.Objects[i].Structure)
	}
}

// structureOf writes or reads 1 + the number of a structure, or 0 if there is no structure.
func (t *tableForm) structureOf(number *uint32) {
	if t.wrong != nil {
		return
	}
	if under(t, number, uint64(len(t.Structures))+1, "structure"); t.reads && *number != 0 {
		*number += t.structure
	}
}

// checkStructure checks that the members are in ascending order and lie within the structure.
func (t *tableForm) checkStructure(s *trace.Structure) {
	from := uint32(0)
	for _, m := range s.Members {
		if end := uint64(m.Offset) + uint64(m.Bytes); t.reads && (end > s.Bytes || m.Offset < from || m.Bytes == 0) {
			t.fail("end of a member", end, "members in ascending order, within the "+decimal(s.Bytes)+" bytes of the structure")
			return
		}
		from = m.Offset
	}
}

// sources writes or reads the source files. Older containers contain no source files.
func (t *tableForm) sources() {
	all := &t.Modules[0].Sources
	if t.reads && t.at == len(t.bytes) || !t.reads && len(*all)+len(t.Structures) == 0 {
		return
	}
	entries(t, all, 2, "source files", func(f *trace.SourceFile) {
		t.s(&f.Name)
		t.s(&f.Packed)
	})
}

func (t *tableForm) place(p *trace.Place) {
	t.s(&p.File)
	t.u32(&p.Line, "line")
	t.u32(&p.Column, "column")
}

func (t *tableForm) codeModule(m *trace.Module) {
	t.s(&m.Name)
	t.s(&m.Options)
	t.u64(&m.Base)
	t.u64(&m.End)
	entries(t, &m.Missed, 3, "kinds of uninstrumented code", func(missed *trace.Missed) {
		t.s(&missed.What)
		t.s(&missed.Why)
		t.u32(&missed.Count, "count")
	})
}

// outlineFunction marks the body of a parallel region. The flag firstTarget and all higher flags
// describe the target.
const (
	outlineFunction = 1
	firstTarget     = 1
)

func (t *tableForm) codeFunction(f *trace.Function) {
	t.s(&f.Name)
	t.place(&f.Place)
	flags := uint64(uint32(f.Target) << firstTarget)
	if f.Outline {
		flags |= outlineFunction
	}
	t.u64(&flags)
	t.u32(&f.First, "first block")
	t.u32(&f.Blocks, "number of blocks of a function")
	if t.reads {
		f.Module, f.Outline, f.Target = t.module, flags&outlineFunction != 0, trace.Target(flags>>firstTarget).Known()
	}
}

func (t *tableForm) codeBlock(number uint32, b *trace.Block) {
	blocks := uint64(len(t.Blocks))
	function, loop := b.Function+1, b.Loop // the value trace.NoFunction is written as 0
	under(t, &function, uint64(len(t.Functions))+1, "function of a block")
	t.s(&b.Label)
	t.u32(&b.Part, "part")
	under(t, &b.Flags, 1<<32, "value of the flags")
	under(t, &loop, blocks+1, "loop")
	if t.reads {
		if b.Function = trace.NoFunction; function > 0 {
			b.Function = t.function + function - 1
		}
		if loop > 0 {
			b.Loop = t.block + loop
		}
	}
	t.u32(&b.Depth, "depth")
	t.s(&b.File)
	t.u32(&b.FirstLine, "line")
	t.u32(&b.LastLine, "line")
	entries(t, &b.Successors, 1, "successors", func(next *uint32) {
		if under(t, next, blocks, "successor"); t.reads {
			*next += t.block
		}
	})
	t.s(&b.Callee)
	t.sites(number, b)
	entries(t, &b.Ops, 3, "opcodes", func(op *trace.Op) {
		t.s(&op.Opcode)
		t.s(&op.Type)
		t.u32(&op.Count, "count")
	})
}

func (t *tableForm) sites(number uint32, b *trace.Block) {
	var all []trace.Site
	if !t.reads {
		all = t.Sites[b.FirstSite:][:b.Sites]
	}
	values := 0
	entries(t, &all, 9, "sites", func(s *trace.Site) {
		if t.codeSite(s); t.reads {
			s.Block = t.block + number
		}
		values += s.Values()
	})
	if !t.reads {
		return
	}
	b.FirstSite, b.Sites = t.site+uint32(len(t.Sites)), uint32(len(all))
	t.Sites = append(t.Sites, all...)
	if values > MaxValues {
		t.fail("number of values of a block", uint64(values), "at most "+decimal(MaxValues))
	}
	if uint64(t.site)+uint64(len(t.Sites)) > math.MaxUint32 {
		t.fail("number of sites", uint64(len(t.Sites)), "fewer than 2^32 in a file")
	}
}

func (t *tableForm) codeSite(s *trace.Site) {
	if under(t, &s.Kind, 256, "kind of a site"); t.reads && !isSiteKind(s.Kind) {
		t.fail("kind of a site", uint64(s.Kind), "a reference or an event other than block, call and return")
	}
	t.u32(&s.Bytes, "size of a site's references")
	t.u64(&s.PC)
	t.place(&s.Place)
	t.s(&s.Type)
	t.s(&s.Object)
	under(t, &s.Flags, 1<<32, "value of the flags")
}

// isSiteKind reports whether a site can have the given kind. Rows of all other kinds belong to
// blocks and functions.
func isSiteKind(k trace.Kind) bool {
	return k.Valid() && k != trace.BlockEntry && k != trace.BareBlock && k != trace.Call && k != trace.Return
}

// instructions writes or reads the instructions of all blocks. instructions writes nothing if no
// block has instructions.
func (t *tableForm) instructions() {
	n := 0
	if t.reads {
		n = t.count(1, "instruction lists")
	} else {
		if slices.ContainsFunc(t.Blocks, func(b trace.Block) bool { return len(b.Instrs) > 0 }) {
			n = len(t.Blocks)
		}
		t.put(uint64(n))
	}
	if n != 0 && n != len(t.Blocks) {
		t.fail("number of instruction lists", uint64(n), "0, or one for each of the "+strconv.Itoa(len(t.Blocks))+" blocks")
	}
	for i := 0; i < n && t.wrong == nil; i++ {
		b := &t.Blocks[i]
		entries(t, &b.Instrs, 4, "instructions", func(in *trace.Instr) {
			t.s(&in.Opcode)
			t.s(&in.Type)
			under(t, &in.Site, uint64(b.Sites)+1, "site of an instruction")
			entries(t, &in.Uses, 1, "operands", func(use *int32) { t.use(use, int64(len(b.Instrs))) })
		})
	}
}

func (t *tableForm) use(use *int32, instrs int64) {
	z := zigzag(uint64(int64(*use)))
	if t.u64(&z); !t.reads {
		return
	}
	v := int64(unzigzag(z))
	if v >= instrs || -2-v >= instrs {
		t.fail("operand", uint64(v), "the index i of an instruction in the block, -1, or -2 - i")
	}
	*use = int32(v)
}

// appendStr appends a string: its length and its bytes.
func appendStr(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// zigzag maps a signed difference modulo 2^64 to a number that is small if the difference is close
// to 0.
func zigzag(d uint64) uint64 { return d<<1 ^ uint64(int64(d)>>63) }

// unzigzag is the inverse of [zigzag].
func unzigzag(z uint64) uint64 { return z>>1 ^ -(z & 1) }

func appendPrefix(dst []byte, v uint64) []byte {
	more := (bits.Len64(v|1) - 1) / 7 // number of bytes after the first byte
	if more >= 8 {
		return binary.LittleEndian.AppendUint64(append(dst, 0), v)
	}
	word := v<<(more+1) | 1<<more
	for ; more >= 0; more-- {
		dst = append(dst, byte(word))
		word >>= 8
	}
	return dst
}

// cursor reads numbers and strings. After the first error, which is stored in the field "wrong",
// all methods return zeros.
type cursor struct {
	bytes []byte
	at    int
	last  int // index of the first byte of the last number
	wrong *TableError
}

// fail records the first error.
func (c *cursor) fail(what string, got uint64, want string) {
	if c.wrong == nil {
		c.wrong = &TableError{Offset: c.last, What: what, Got: got, Want: want}
	}
	c.at = len(c.bytes)
}

// uv reads an unsigned LEB128 number.
func (c *cursor) uv() uint64 {
	v, n := binary.Uvarint(c.bytes[c.at:])
	c.last = c.at
	if n <= 0 {
		c.fail("number of remaining bytes", uint64(len(c.bytes)-c.at), "a complete LEB128 number")
		return 0
	}
	c.at += n
	return v
}

// below reads a number below limit. Errors identify the number by the given name.
func (c *cursor) below(limit uint64, what string) uint64 {
	v := c.uv()
	if v >= limit {
		c.fail(what, v, "less than "+decimal(limit))
		return 0
	}
	return v
}

// u32 reads a 32-bit number.
func (c *cursor) u32(what string) uint32 { return uint32(c.below(1<<32, what)) }

// count reads the length of a list, and checks that the entries can fit into the remaining bytes.
// Each entry has at least the given number of bytes (least).
func (c *cursor) count(least int, what string) int {
	n := c.uv()
	if most := uint64(len(c.bytes)-c.at) / uint64(least); n > most {
		c.fail("number of "+what, n, "at most "+decimal(most)+" for the remaining bytes")
		return 0
	}
	return int(n)
}

// str reads the length and the bytes of a string.
func (c *cursor) str() string {
	n := c.count(1, "bytes of a text")
	c.at += n
	return string(c.bytes[c.at-n : c.at])
}

// end records an error unless all bytes have been read.
func (c *cursor) end() error {
	if c.at < len(c.bytes) {
		c.fail("number of bytes after the end", uint64(len(c.bytes)-c.at), "0")
	}
	if c.wrong != nil {
		return c.wrong
	}
	return nil
}
