package sgt

import (
	"bytes"
	"errors"
	"io"
	"math"

	"github.com/pierrec/lz4/v4"
	"github.com/stackglass/stackglass/core/trace"
)

// ParseModule reads the body of a MODL frame and appends the module to a
// program: its numbers follow on those of the modules before it. An error
// leaves the program as it was.
func ParseModule(body []byte, into *trace.Program) error {
	tables, err := unpackTables(body)
	if err != nil {
		return err
	}
	p := &tableReader{
		cursor:   cursor{bytes: tables},
		module:   uint32(len(into.Modules)),
		function: uint32(len(into.Functions)),
		block:    uint32(len(into.Blocks)),
		site:     uint32(len(into.Sites)),
	}
	p.all()
	if err := p.end(); err != nil {
		return err
	}
	into.Modules = append(into.Modules, p.out.Modules...)
	into.Functions = append(into.Functions, p.out.Functions...)
	into.Blocks = append(into.Blocks, p.out.Blocks...)
	into.Sites = append(into.Sites, p.out.Sites...)
	into.Objects = append(into.Objects, p.out.Objects...)
	return nil
}

// unpackTables gives the tables of a MODL body.
func unpackTables(body []byte) ([]byte, error) {
	c := cursor{bytes: body}
	if packing := c.below(packedLZ4+1, "packing"); c.wrong != nil {
		return nil, c.wrong
	} else if uint64(body[0]) != packing {
		return nil, &TableError{What: "packing", Got: uint64(body[0]), Want: "one byte, less than " + decimal(packedLZ4+1)}
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
		return nil, errors.New("tables cannot be unpacked: " + err.Error())
	}
	if len(tables) > largestTables {
		return nil, &TableError{What: "unpacked bytes", Got: uint64(len(tables)), Want: "at most " + decimal(largestTables)}
	}
	return tables, nil
}

// tableReader reads one module's tables. Its out has the numbers of the program
// that they will be appended to, the first of which are below.
type tableReader struct {
	cursor
	texts                         []string
	out                           trace.Program
	module, function, block, site uint32
	functionsHere, blocksHere     uint64
}

func (r *tableReader) all() {
	r.texts = make([]string, r.count(1, "strings"))
	for i := range r.texts {
		r.texts[i] = r.str()
	}
	r.readModule()
	r.functions()
	r.blocks()
	r.objects()
	r.instructions()
	r.checkFunctions()
}

// s takes the number of a string.
func (r *tableReader) s() string {
	n := r.below(uint64(len(r.texts)), "string")
	if r.wrong != nil {
		return ""
	}
	return r.texts[n]
}

func (r *tableReader) place() trace.Place {
	return trace.Place{File: r.s(), Line: r.u32("line"), Column: r.u32("column")}
}

func (r *tableReader) readModule() {
	m := trace.Module{Name: r.s(), Options: r.s(), Base: r.uv(), End: r.uv()}
	m.Missed = list[trace.Missed](r.count(3, "places missed"))
	for i := range m.Missed {
		m.Missed[i] = trace.Missed{What: r.s(), Why: r.s(), Count: r.u32("count")}
	}
	r.out.Modules = []trace.Module{m}
}

// list makes a list of n entries, nil for none.
func list[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

func (r *tableReader) functions() {
	r.out.Functions = list[trace.Function](r.count(7, "functions"))
	r.functionsHere = uint64(len(r.out.Functions))
	for i := range r.out.Functions {
		f := trace.Function{Name: r.s(), Place: r.place(), Module: r.module}
		flags := r.uv()
		f.Outline, f.Target = flags&outlineFunction != 0, trace.Target(flags>>firstTarget).Known()
		f.First, f.Blocks = r.u32("first block"), r.u32("blocks of a function")
		r.out.Functions[i] = f
	}
}

// checkFunctions makes sure that functions' blocks are there, and numbers them.
func (r *tableReader) checkFunctions() {
	for i := range r.out.Functions {
		f := &r.out.Functions[i]
		if end := uint64(f.First) + uint64(f.Blocks); end > r.blocksHere {
			r.fail("end of a function's blocks", end, "at most "+decimal(r.blocksHere))
		}
		f.First += r.block
	}
}

func (r *tableReader) blocks() {
	n := r.count(13, "blocks")
	if uint64(r.block)+uint64(n) > math.MaxUint32 {
		r.fail("blocks", uint64(n), "fewer than 2^32 in a file")
		return
	}
	r.out.Blocks, r.blocksHere = list[trace.Block](n), uint64(n)
	for i := range r.out.Blocks {
		if r.wrong != nil {
			return
		}
		r.readBlock(uint32(i), &r.out.Blocks[i])
	}
}

func (r *tableReader) readBlock(number uint32, b *trace.Block) {
	b.Function = trace.NoFunction
	if f := r.below(r.functionsHere+1, "function of a block"); f > 0 {
		b.Function = r.function + uint32(f) - 1
	}
	b.Label, b.Part, b.Flags = r.s(), r.u32("part"), trace.BlockFlags(r.u32("flags"))
	if loop := r.below(r.blocksHere+1, "loop"); loop > 0 {
		b.Loop = r.block + uint32(loop)
	}
	b.Depth, b.File = r.u32("depth"), r.s()
	b.FirstLine, b.LastLine = r.u32("line"), r.u32("line")
	b.Successors = list[uint32](r.count(1, "successors"))
	for i := range b.Successors {
		b.Successors[i] = r.block + uint32(r.below(r.blocksHere, "successor"))
	}
	b.Callee = r.s()
	r.sites(number, b)
	b.Ops = list[trace.Op](r.count(3, "opcodes"))
	for i := range b.Ops {
		b.Ops[i] = trace.Op{Opcode: r.s(), Type: r.s(), Count: r.u32("count")}
	}
}

func (r *tableReader) sites(number uint32, b *trace.Block) {
	b.FirstSite = r.site + uint32(len(r.out.Sites))
	b.Sites = uint32(r.count(9, "sites"))
	values := 0
	for range b.Sites {
		s := r.readSite()
		s.Block = r.block + number
		values += s.Values()
		r.out.Sites = append(r.out.Sites, s)
	}
	if values > MaxValues {
		r.fail("values of a block", uint64(values), "at most "+decimal(MaxValues))
	}
	if uint64(r.site)+uint64(len(r.out.Sites)) > math.MaxUint32 {
		r.fail("sites", uint64(len(r.out.Sites)), "fewer than 2^32 in a file")
	}
}

func (r *tableReader) readSite() trace.Site {
	kind := r.below(256, "kind of a site")
	if !isSiteKind(trace.Kind(kind)) {
		r.fail("kind of a site", kind, "a reference or an event other than block, call and return")
	}
	return trace.Site{
		Kind: trace.Kind(kind), Bytes: r.u32("bytes of a site"), PC: r.uv(), Place: r.place(),
		Type: r.s(), Object: r.s(), Flags: trace.SiteFlags(r.u32("flags")),
	}
}

// isSiteKind tells what sites can be: blocks and functions make the other rows.
func isSiteKind(k trace.Kind) bool {
	return k.Valid() && k != trace.BlockEntry && k != trace.BareBlock && k != trace.Call && k != trace.Return
}

func (r *tableReader) objects() {
	r.out.Objects = list[trace.Object](r.count(6, "objects"))
	for i := range r.out.Objects {
		r.out.Objects[i] = trace.Object{Name: r.s(), Bytes: r.uv(), Type: r.s(), Place: r.place()}
	}
}

func (r *tableReader) instructions() {
	n := r.count(1, "lists of instructions")
	if n != 0 && uint64(n) != r.blocksHere {
		r.fail("lists of instructions", uint64(n), "none, or one for each of the "+decimal(r.blocksHere)+" blocks")
	}
	for i := range n {
		if r.wrong != nil {
			return
		}
		b := &r.out.Blocks[i]
		b.Instrs = list[trace.Instr](r.count(4, "instructions"))
		for j := range b.Instrs {
			b.Instrs[j] = r.readInstr(len(b.Instrs), b.Sites)
		}
	}
}

func (r *tableReader) readInstr(instrs int, sites uint32) trace.Instr {
	in := trace.Instr{Opcode: r.s(), Type: r.s(), Site: uint32(r.below(uint64(sites)+1, "site of an instruction"))}
	in.Uses = list[int32](r.count(1, "uses"))
	for i := range in.Uses {
		use := int64(unzigzag(r.uv()))
		if use >= int64(instrs) || -2-use >= int64(instrs) {
			r.fail("use", uint64(use), "an instruction of the block, -1, or -2 minus one")
			return in
		}
		in.Uses[i] = int32(use)
	}
	return in
}
