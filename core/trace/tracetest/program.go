package tracetest

import (
	"io"
	"math/rand/v2"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Step is one execution of a block. Values contains the values of the block's sites in order.
// trace.Site.Values returns the number of values of a site.
type Step struct {
	Block, Thread uint32
	Values        []uint64
}

// Rows returns the rows that the given steps of a program produce, including events of all kinds,
// as the container's format defines them.
func Rows(p *trace.Program, steps ...Step) *trace.Batch {
	b := &trace.Batch{Thread: []uint32{}, Site: []uint32{}, Arg: []uint64{}}
	for _, s := range steps {
		block := &p.Blocks[s.Block]
		if block.Flags&trace.Synthetic == 0 {
			addRow(b, trace.BlockEntry, s.Block, s.Thread, 0, 0, 0)
			if p.IsBare(s.Block) {
				addRow(b, trace.BareBlock, s.Block, s.Thread, 0, 0, 0)
			}
		}
		if block.Flags&trace.EntryBlock != 0 {
			addRow(b, trace.Call, s.Block, s.Thread, 0, 0, 0)
		}
		values := s.Values
		for n := block.FirstSite; n < block.FirstSite+block.Sites; n++ {
			site := &p.Sites[n]
			var v [2]uint64
			values = values[copy(v[:], values[:site.Values()]):]
			switch {
			case !site.Kind.IsReference():
				addRow(b, site.Kind, n, s.Thread, v[0], 0, v[1])
			case site.Values() == 2:
				addRow(b, site.Kind, n, s.Thread, v[0], uint32(v[1]), 0)
			default:
				addRow(b, site.Kind, n, s.Thread, v[0], site.Bytes, 0)
			}
		}
		if block.Flags&trace.ReturnBlock != 0 {
			addRow(b, trace.Return, s.Block, s.Thread, 0, 0, 0)
		}
	}
	return b
}

func addRow(b *trace.Batch, kind trace.Kind, site, thread uint32, addr trace.Addr, bytes uint32, arg uint64) {
	b.Append(kind, addr, bytes, thread, 0)
	b.Site[b.Len()-1], b.Arg[b.Len()-1] = site, arg
}

// NewProgramReader returns a reader of the rows of a program. The argument "rows" limits the number
// of rows in a batch. The reader's header contains only the part of the program that is used by the
// rows returned so far.
func NewProgramReader(p *trace.Program, whole *trace.Batch, rows int) *ProgramReader {
	return &ProgramReader{program: p, whole: whole, rows: rows, kinds: trace.AllKinds}
}

// ProgramReader replays rows of a program.
type ProgramReader struct {
	program *trace.Program
	whole   *trace.Batch
	rows    int // maximum number of rows in a batch
	kinds   trace.Kinds
	next    int // index of the next row in the field "whole"
	known   trace.Program
}

// Select implements [trace.Selector].
func (r *ProgramReader) Select(kinds trace.Kinds) { r.kinds = kinds }

// Header implements [trace.Describer].
func (r *ProgramReader) Header() trace.Header {
	return trace.Header{Format: "test", Threads: true, Sizes: true, Sites: true, Program: &r.known}
}

// Next implements [trace.Reader]. Next overwrites the rows of the previous call.
func (r *ProgramReader) Next(b *trace.Batch) error {
	spoil(b)
	b.NeedThread()
	b.NeedSite()
	b.NeedArg()
	for taken := 0; r.next < r.whole.Len() && b.Len() < b.Cap() && (taken < r.rows || r.rows < 1 || b.Len() == 0); r.next++ {
		taken++
		w, i := r.whole, r.next
		r.reveal(w.Kind[i], w.Site[i])
		if k := w.Kind[i]; r.kinds.Has(k) && (k != trace.BareBlock || !r.kinds.Has(trace.BlockEntry)) {
			addRow(b, w.Kind[i], w.Site[i], w.Thread[i], w.Addr[i], w.Bytes[i], w.Arg[i])
		}
	}
	if b.Len() == 0 {
		b.Reset()
		r.known = *r.program
		return io.EOF
	}
	return nil
}

// reveal adds a block, and all blocks before it, to the part of the program that the header
// contains.
func (r *ProgramReader) reveal(kind trace.Kind, number uint32) {
	block := number
	if kind.IsReference() || kind >= trace.Alloc && kind != trace.BareBlock {
		block = r.program.Sites[number].Block
	}
	if int(block) < len(r.known.Blocks) {
		return
	}
	last := &r.program.Blocks[block]
	sites := max(uint32(len(r.known.Sites)), last.FirstSite+last.Sites)
	r.known = *r.program
	r.known.Blocks = r.program.Blocks[:block+1]
	r.known.Sites = r.program.Sites[:sites]
}

var (
	programOps = []trace.Op{
		{Opcode: "fadd", Type: "double"}, {Opcode: "fmul", Type: "<4 x float>"}, {Opcode: "fcmp", Type: "float"},
		{Opcode: "add", Type: "i32"}, {Opcode: "icmp", Type: "<2 x i64>"}, {Opcode: "getelementptr", Type: "ptr"},
		{Opcode: "phi", Type: "i64"}, {Opcode: "load", Type: "double"}, {Opcode: "alloca", Type: "ptr"},
		{Opcode: "select", Type: "i8"}, {Opcode: "sitofp", Type: "double"}, {Opcode: "call", Type: "void"},
		{Opcode: "call sin", Type: "double"},
	}
	programTypes = []struct {
		name  string
		bytes uint32
	}{{"double", 8}, {"i32", 4}, {"i8", 1}, {"<4 x float>", 16}, {"ptr", 8}, {"i16", 2}}
	programCallees = []string{"", "", "", "f1", "printf", "*"}
)

// RandomProgram returns a random program of a few functions. The program has basic blocks that
// consist of several parts, sites of all kinds of references, and a synthetic block at the end.
func RandomProgram(rng *rand.Rand) *trace.Program {
	p := &trace.Program{Modules: []trace.Module{{Name: "a/b.c"}}}
	for f := range 1 + rng.UintN(4) {
		first := uint32(len(p.Blocks))
		for basic := range 1 + rng.IntN(4) {
			for part := range 1 + rng.UintN(3) {
				addBlock(rng, p, uint32(f), "bb"+strconv.Itoa(basic), uint32(part), uint32(len(p.Blocks)) == first)
			}
		}
		p.Functions = append(p.Functions, trace.Function{
			Name: "f" + strconv.Itoa(int(f)), Place: trace.Place{File: "/src/b.c", Line: 10 * uint32(f)},
			First: first, Blocks: uint32(len(p.Blocks)) - first,
		})
	}
	p.Blocks = append(p.Blocks, trace.Block{Function: ^uint32(0), Flags: trace.Synthetic, FirstSite: uint32(len(p.Sites)), Sites: 1})
	p.Sites = append(p.Sites, trace.Site{Kind: trace.Store, Bytes: 4, Block: uint32(len(p.Blocks) - 1)})
	return p
}

func addBlock(rng *rand.Rand, p *trace.Program, function uint32, label string, part uint32, entry bool) {
	number := uint32(len(p.Blocks))
	b := trace.Block{
		Function: function, Label: label, Part: part, File: "/src/b.c", FirstLine: number, LastLine: number + part,
		FirstSite: uint32(len(p.Sites)), Sites: rng.Uint32N(6), Callee: programCallees[rng.IntN(len(programCallees))],
	}
	if entry {
		b.Flags = trace.EntryBlock
	}
	for range b.Sites {
		t := programTypes[rng.IntN(len(programTypes))]
		s := trace.Site{Kind: trace.Kind(rng.UintN(6)), Bytes: t.bytes, Type: t.name, Block: number}
		if s.Kind >= trace.RangeRead || rng.IntN(20) == 0 {
			s.Bytes = 0 // each record contains its own size
		}
		p.Sites = append(p.Sites, s)
	}
	for range rng.IntN(5) {
		op := programOps[rng.IntN(len(programOps))]
		op.Count = 1 + rng.Uint32N(4)
		b.Ops = append(b.Ops, op)
	}
	for range 1 + rng.IntN(2) {
		b.Successors = append(b.Successors, number)
	}
	b.Ops = append(b.Ops, trace.Op{Opcode: "br", Count: 1})
	p.Blocks = append(p.Blocks, b)
}

// RandomSteps returns random executions of a program's blocks by three threads, with addresses in a
// small range.
func RandomSteps(rng *rand.Rand, p *trace.Program, steps int) []Step {
	list := make([]Step, steps)
	for i := range list {
		s := Step{Block: rng.Uint32N(uint32(len(p.Blocks))), Thread: rng.Uint32N(3)}
		b := &p.Blocks[s.Block]
		for n := b.FirstSite; n < b.FirstSite+b.Sites; n++ {
			s.Values = append(s.Values, rng.Uint64N(1<<14))
			if p.Sites[n].Values() == 2 {
				s.Values = append(s.Values, rng.Uint64N(100))
			}
		}
		list[i] = s
	}
	return list
}
