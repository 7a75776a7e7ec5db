package sgt

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// How the tables in a MODL body are packed.
const (
	packedPlain = 0
	packedLZ4   = 1
)

// largestTables is the most bytes that a module's tables may unpack to.
const largestTables = 1 << 26

// AppendModule appends the body of a MODL frame that holds the tables of p, a
// program of one module. Numbers in p are as [ParseModule] gives them for the
// first module of a program. Objects' addresses are not in it: they are known
// only when the program runs.
func AppendModule(dst []byte, p *trace.Program) []byte {
	return AppendPacked(dst, appendTables(nil, p))
}

// AppendTables is [AppendModule] for those who pack the tables themselves, or not.
func AppendTables(dst []byte, p *trace.Program) []byte {
	return appendTables(append(dst, packedPlain), p)
}

// AppendPacked appends content behind a byte that says how it is packed: as one LZ4 frame
// if that is shorter, and content not too long for [Unpack].
func AppendPacked(dst, content []byte) []byte {
	if packed := packTables(content); packed != nil && len(content) <= largestTables {
		return append(append(dst, packedLZ4), packed...)
	}
	return append(append(dst, packedPlain), content...)
}

// Unpack gives the content that [AppendPacked] was given; if it is not packed, it is a
// part of body. What is packed may be 2^26 bytes.
func Unpack(body []byte) ([]byte, error) { return unpackTables(body) }

// packTables gives one LZ4 frame, or nil if it is no shorter than the tables.
func packTables(tables []byte) []byte {
	var packed bytes.Buffer
	w := lz4.NewWriter(&packed)
	// A writer into memory has no errors, and the options fit a fresh one.
	_ = w.Apply(lz4.ConcurrencyOption(1), lz4.SizeOption(uint64(len(tables))))
	_, _ = w.Write(tables)
	_ = w.Close()
	if packed.Len() >= len(tables) {
		return nil
	}
	return packed.Bytes()
}

// tableForm writes one module's tables, or reads them: one description serves both ways. What
// is read has the numbers of the program that it will be appended to, the first of which
// are below. What is written is not changed.
type tableForm struct {
	*trace.Program                         // with the sites of its blocks in order
	texts                         []string // in the order of their first use
	module, function, block, site uint32

	cursor // while reading
	reads  bool

	out    []byte            // while writing: what is behind the texts
	number map[string]uint64 // of texts
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

// put writes a number. It is kept from being copied to its many callers.
//
//go:noinline
func (t *tableForm) put(v uint64) { t.out = binary.AppendUvarint(t.out, v) }

// u64 codes a number.
func (t *tableForm) u64(v *uint64) {
	if t.reads {
		*v = t.uv()
	} else {
		t.put(*v)
	}
}

// under codes a number less than limit; what names it.
func under[T ~uint8 | ~uint16 | ~uint32](t *tableForm, v *T, limit uint64, what string) {
	if t.reads {
		*v = T(t.below(limit, what))
	} else {
		t.put(uint64(*v))
	}
}

// u32 codes a number of 32 bits.
func (t *tableForm) u32(v *uint32, what string) { under(t, v, 1<<32, what) }

// s codes the number of a text.
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

// entries codes a list whose entries take least bytes each or more.
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

// list makes a list of n entries, nil for none.
func list[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

func (t *tableForm) all() {
	t.codeModule(&t.Modules[0])
	entries(t, &t.Functions, 7, "functions", t.codeFunction)
	n := uint32(0) // of the block
	entries(t, &t.Blocks, 13, "blocks", func(b *trace.Block) {
		t.codeBlock(n, b)
		n++
	})
	if uint64(t.block)+uint64(n) > math.MaxUint32 {
		t.fail("blocks", uint64(n), "fewer than 2^32 in a file")
	}
	entries(t, &t.Objects, 6, "objects", func(o *trace.Object) {
		t.s(&o.Name)
		t.u64(&o.Bytes)
		t.s(&o.Type)
		t.place(&o.Place)
	})
	t.instructions()
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
	entries(t, &m.Missed, 3, "places missed", func(missed *trace.Missed) {
		t.s(&missed.What)
		t.s(&missed.Why)
		t.u32(&missed.Count, "count")
	})
}

// outlineFunction is the flag of a function that is a body of a parallel region; those from
// firstTarget on are its target's.
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
	t.u32(&f.Blocks, "blocks of a function")
	if t.reads {
		f.Module, f.Outline, f.Target = t.module, flags&outlineFunction != 0, trace.Target(flags>>firstTarget).Known()
	}
}

func (t *tableForm) codeBlock(number uint32, b *trace.Block) {
	blocks := uint64(len(t.Blocks))
	function, loop := b.Function+1, b.Loop // trace.NoFunction becomes 0
	under(t, &function, uint64(len(t.Functions))+1, "function of a block")
	t.s(&b.Label)
	t.u32(&b.Part, "part")
	under(t, &b.Flags, 1<<32, "flags")
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
		t.fail("values of a block", uint64(values), "at most "+decimal(MaxValues))
	}
	if uint64(t.site)+uint64(len(t.Sites)) > math.MaxUint32 {
		t.fail("sites", uint64(len(t.Sites)), "fewer than 2^32 in a file")
	}
}

func (t *tableForm) codeSite(s *trace.Site) {
	if under(t, &s.Kind, 256, "kind of a site"); t.reads && !isSiteKind(s.Kind) {
		t.fail("kind of a site", uint64(s.Kind), "a reference or an event other than block, call and return")
	}
	t.u32(&s.Bytes, "bytes of a site")
	t.u64(&s.PC)
	t.place(&s.Place)
	t.s(&s.Type)
	t.s(&s.Object)
	under(t, &s.Flags, 1<<32, "flags")
}

// isSiteKind tells what sites can be: blocks and functions make the other rows.
func isSiteKind(k trace.Kind) bool {
	return k.Valid() && k != trace.BlockEntry && k != trace.BareBlock && k != trace.Call && k != trace.Return
}

// instructions codes those of all blocks, or nothing if no block has any.
func (t *tableForm) instructions() {
	n := 0
	if t.reads {
		n = t.count(1, "lists of instructions")
	} else {
		if slices.ContainsFunc(t.Blocks, func(b trace.Block) bool { return len(b.Instrs) > 0 }) {
			n = len(t.Blocks)
		}
		t.put(uint64(n))
	}
	if n != 0 && n != len(t.Blocks) {
		t.fail("lists of instructions", uint64(n), "none, or one for each of the "+strconv.Itoa(len(t.Blocks))+" blocks")
	}
	for i := 0; i < n && t.wrong == nil; i++ {
		b := &t.Blocks[i]
		entries(t, &b.Instrs, 4, "instructions", func(in *trace.Instr) {
			t.s(&in.Opcode)
			t.s(&in.Type)
			under(t, &in.Site, uint64(b.Sites)+1, "site of an instruction")
			entries(t, &in.Uses, 1, "uses", func(use *int32) { t.use(use, int64(len(b.Instrs))) })
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
		t.fail("use", uint64(v), "an instruction of the block, -1, or -2 minus one")
	}
	*use = int32(v)
}
