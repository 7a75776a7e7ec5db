package sgt

import (
	"bytes"
	"encoding/binary"

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

// texts numbers the strings of tables in the order of their first use.
type texts struct {
	number map[string]uint64
	all    []string
}

// tableWriter writes the tables behind the list of strings.
type tableWriter struct {
	texts
	out []byte
}

func appendTables(dst []byte, p *trace.Program) []byte {
	w := &tableWriter{texts: texts{number: map[string]uint64{"": 0}, all: []string{""}}}
	w.module(&p.Modules[0])
	w.uv(len(p.Functions))
	for i := range p.Functions {
		w.function(&p.Functions[i])
	}
	w.uv(len(p.Blocks))
	for i := range p.Blocks {
		w.block(&p.Blocks[i], p.Sites)
	}
	w.uv(len(p.Objects))
	for i := range p.Objects {
		w.object(&p.Objects[i])
	}
	w.instructions(p.Blocks)
	dst = binary.AppendUvarint(dst, uint64(len(w.all)))
	for _, s := range w.all {
		dst = appendStr(dst, s)
	}
	return append(dst, w.out...)
}

func (w *tableWriter) uv(v int)     { w.u64(uint64(v)) }
func (w *tableWriter) u32(v uint32) { w.u64(uint64(v)) }

// u64 writes a number. It is small where it is not copied to everywhere.
//
//go:noinline
func (w *tableWriter) u64(v uint64) { w.out = binary.AppendUvarint(w.out, v) }

// s writes the number of a string.
//
//go:noinline
func (w *tableWriter) s(text string) {
	n, known := w.number[text]
	if !known {
		n = uint64(len(w.all))
		w.number[text] = n
		w.all = append(w.all, text)
	}
	w.u64(n)
}

func (w *tableWriter) place(p trace.Place) {
	w.s(p.File)
	w.u32(p.Line)
	w.u32(p.Column)
}

func (w *tableWriter) module(m *trace.Module) {
	w.s(m.Name)
	w.s(m.Options)
	w.u64(m.Base)
	w.u64(m.End)
	w.uv(len(m.Missed))
	for _, missed := range m.Missed {
		w.s(missed.What)
		w.s(missed.Why)
		w.u32(missed.Count)
	}
}

// outlineFunction is the flag of a function that is a body of a parallel region; those from
// firstTarget on are its target's.
const (
	outlineFunction = 1
	firstTarget     = 1
)

func (w *tableWriter) function(f *trace.Function) {
	w.s(f.Name)
	w.place(f.Place)
	flags := uint32(f.Target) << firstTarget
	if f.Outline {
		flags |= outlineFunction
	}
	w.u32(flags)
	w.u32(f.First)
	w.u32(f.Blocks)
}

func (w *tableWriter) block(b *trace.Block, sites []trace.Site) {
	w.u32(b.Function + 1) // trace.NoFunction becomes 0
	w.s(b.Label)
	w.u32(b.Part)
	w.u32(uint32(b.Flags))
	w.u32(b.Loop)
	w.u32(b.Depth)
	w.s(b.File)
	w.u32(b.FirstLine)
	w.u32(b.LastLine)
	w.uv(len(b.Successors))
	for _, s := range b.Successors {
		w.u32(s)
	}
	w.s(b.Callee)
	w.u32(b.Sites)
	for i := range b.Sites {
		w.site(&sites[b.FirstSite+i])
	}
	w.uv(len(b.Ops))
	for _, op := range b.Ops {
		w.s(op.Opcode)
		w.s(op.Type)
		w.u32(op.Count)
	}
}

func (w *tableWriter) site(s *trace.Site) {
	w.u32(uint32(s.Kind))
	w.u32(s.Bytes)
	w.u64(s.PC)
	w.place(s.Place)
	w.s(s.Type)
	w.s(s.Object)
	w.u32(uint32(s.Flags))
}

func (w *tableWriter) object(o *trace.Object) {
	w.s(o.Name)
	w.u64(o.Bytes)
	w.s(o.Type)
	w.place(o.Place)
}

// instructions writes those of all blocks, or nothing if no block has any.
func (w *tableWriter) instructions(blocks []trace.Block) {
	if !haveInstrs(blocks) {
		w.uv(0)
		return
	}
	w.uv(len(blocks))
	for i := range blocks {
		w.uv(len(blocks[i].Instrs))
		for _, in := range blocks[i].Instrs {
			w.s(in.Opcode)
			w.s(in.Type)
			w.u32(in.Site)
			w.uv(len(in.Uses))
			for _, use := range in.Uses {
				w.u64(zigzag(uint64(int64(use))))
			}
		}
	}
}

func haveInstrs(blocks []trace.Block) bool {
	for i := range blocks {
		if len(blocks[i].Instrs) > 0 {
			return true
		}
	}
	return false
}
