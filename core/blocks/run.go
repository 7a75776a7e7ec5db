package blocks

import (
	"math"
	"slices"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Run contains a program and the edges of a run, as stored in a profile by package
// analysis/branches. The program has no objects, threads or paths. The program's sites are numbered
// as in the profile.
type Run struct {
	Program *trace.Program
	Edges   *Edges
	Profile *Profile // nil for a traced program
}

// Profile is the profile that a compiler has stored in a module. The module itself was not run. The
// lists are indexed by block or by function, as in ir.Module.
type Profile struct {
	Weights [][]uint64   // for each block: nil, or a weight for each successor
	Entries []uint64     // for each function: number of invocations; 0 if unknown
	Flow    []trace.Flow // values that the blocks of a function pass to each other
}

// This is the binary form of a run, which profiles contain as section BLCK. Integers are encoded as
// in package profile. A list is encoded as its length followed by its members, and a string as its
// length followed by its bytes.
//
//	version    1, or 2 if there is a profile
//	number of bytes of the program, 0 if the program is omitted, followed by
//	  list of modules, each: name; list of uninstrumented code: what; why; count
//	  list of consecutive functions in the same module, each: number of functions; module
//	  the tables of all modules as the tables of one module, in the format of the body of a MODL
//	  frame of package sgt
//	number of blocks and number of functions of the program
//	list of executed blocks, each: number - (previous + 1); for each successor, the number of
//	executions that continued there; Left, Resumed and Unmade (see Counts)
//	list of entered functions, each: number - (previous + 1); number of entries
//	from version 2 on, the profile:
//	  list of blocks with weights, each: number - (previous + 1); list of weights
//	  list of entered functions, as above
//	  list of values that pass from block to block, each: block and instruction that use the value,
//	  block and instruction that compute it, number of iterations between computation and use
//
// Visits are not stored, because they are the sums of the lists.

// RunVersion is the newest version of the binary format.
const RunVersion = 2

// Append appends the binary form of r to dst.
func (r *Run) Append(dst []byte) []byte {
	c, version := codec.Writer(dst), uint64(1)
	if r.Profile != nil {
		version = 2
	}
	program := AppendProgram(nil, r.Program)
	if codeHead(c, &version, &program, r.Edges); r.Profile != nil {
		r.Profile.codeProfile(c, r.Program)
	}
	return c.Out
}

// AppendRun appends the binary form of a run to dst. The argument program contains the output of
// [AppendProgram], or is empty.
func AppendRun(dst, program []byte, e *Edges) []byte {
	c, version := codec.Writer(dst), uint64(1)
	codeHead(c, &version, &program, e)
	return c.Out
}

// codeHead encodes or decodes the version and the program. When it encodes, it also encodes the
// counts.
func codeHead(c *codec.Coder, version *uint64, program *[]byte, e *Edges) {
	c.U64(version)
	c.Check(*version > 0 && *version <= RunVersion, "unknown version; use a newer stackglass")
	if c.Bytes(program); !c.Reads() {
		codeCounts(c, len(e.Left), e.Entered, e.hasCounts, func(b int, x *Counts) {
			*x = Counts{e.Taken[b], e.Left[b], e.Resumed[b], e.Unmade[b]}
		})
	}
}

type Counts struct {
	Taken                 []uint64
	Left, Resumed, Unmade uint64
}

// codeCounts encodes or decodes the counts of executed blocks and of functions. It calls the
// function transfer to read the counts of a block before encoding, or to store decoded counts. The
// slice x.Taken is valid until the next call of transfer.
func codeCounts(c *codec.Coder, blocks int, entered []uint64, happened func(b int) bool, transfer func(b int, x *Counts)) {
	n, m := blocks, len(entered)
	codec.Below(c, &n, uint64(blocks)+1)
	codec.Below(c, &m, uint64(len(entered))+1)
	var x Counts
	sparse(c, n, 5, happened, func(b int) {
		if x.Taken = x.Taken[:0]; !c.Reads() {
			transfer(b, &x)
		}
		codec.Slice(c, &x.Taken, 1, c.U64)
		if c.U64s(&x.Left, &x.Resumed, &x.Unmade); c.Reads() && !c.Failed() {
			transfer(b, &x)
		}
	})
	codeSome(c, entered[:m])
}

// codeSome encodes or decodes the nonzero numbers of a list.
func codeSome(c *codec.Coder, list []uint64) {
	sparse(c, len(list), 2, func(i int) bool { return list[i] != 0 }, func(i int) { c.U64(&list[i]) })
}

// sparse encodes or decodes each item i < n for which present(i) is true. Each item is stored as
// the difference between its number and the smallest possible number (the previous number + 1),
// followed by the bytes that code(i) writes. minBytes is the minimum size of an encoded item in
// bytes.
func sparse(c *codec.Coder, n, minBytes int, present func(i int) bool, code func(i int)) {
	var list []uint64
	for i := 0; i < n && !c.Reads(); i++ {
		if present(i) {
			list = append(list, uint64(i))
		}
	}
	next := uint64(0)
	codec.Slice(c, &list, minBytes, func(i *uint64) {
		if codec.Next(c, i, &next, uint64(n)); !c.Failed() {
			code(int(*i))
		}
	})
}

// hasCounts reports whether a block has counts.
func (e *Edges) hasCounts(b int) bool {
	return e.Left[b]|e.Resumed[b]|e.Unmade[b] != 0 || slices.ContainsFunc(e.Taken[b], isPositive)
}

// codeProfile encodes or decodes the profile. Before decoding, the lists of r must have their full
// lengths and contain only zeros.
func (r *Profile) codeProfile(c *codec.Coder, p *trace.Program) {
	sparse(c, len(p.Blocks), 2, func(b int) bool { return r.Weights[b] != nil }, func(b int) {
		weights := append([]uint64{}, r.Weights[b]...)
		codec.Slice(c, &weights, 1, c.U64)
		if c.Check(len(weights) == len(p.Blocks[b].Successors), otherProgram); c.Reads() {
			r.Weights[b] = weights
		}
	})
	codeSome(c, r.Entries)
	codec.Slice(c, &r.Flow, 5, func(f *trace.Flow) {
		c.U32s(&f.Block, &f.Instr, &f.FromBlock, &f.FromInstr, &f.Before)
		c.Check(max(uint64(f.Block), uint64(f.FromBlock)) < uint64(len(p.Blocks)), otherProgram)
	})
}

const (
	otherProgram = "some blocks belong to a different program"
	tooMuch      = "there is unexpected data at the end"
)

// AppendProgram appends the binary form of a program without paths.
func AppendProgram(dst []byte, p *trace.Program) []byte {
	bare := WithoutPaths(p)
	var spans []span
	for i := range p.Functions {
		module := p.Functions[i].Module
		if n := len(spans); n == 0 || spans[n-1].module != module {
			spans = append(spans, span{module: module})
		}
		spans[len(spans)-1].functions++
	}
	c := codec.Writer(dst)
	codeModules(c, &bare.Modules, &spans)
	bare.Modules = make([]trace.Module, 1)
	return sgt.AppendTables(c.Out, bare)
}

// span is a range of consecutive functions in one module.
type span struct {
	functions uint64
	module    uint32
}

func codeModules(c *codec.Coder, modules *[]trace.Module, spans *[]span) {
	codec.Slice(c, modules, 2, func(m *trace.Module) {
		c.Text(&m.Name)
		codec.Slice(c, &m.Missed, 3, func(missed *trace.Missed) {
			c.Text(&missed.What)
			c.Text(&missed.Why)
			c.U32(&missed.Count)
		})
	})
	codec.Slice(c, spans, 2, func(s *span) {
		c.U64(&s.functions)
		codec.Below(c, &s.module, uint64(len(*modules)))
	})
}

// WithoutPaths returns a copy of a program for storage in a profile. The copy contains file names
// instead of paths, because paths may be private.
func WithoutPaths(p *trace.Program) *trace.Program {
	bare := &trace.Program{
		Modules: append([]trace.Module{}, p.Modules...), Functions: append([]trace.Function{}, p.Functions...),
		Blocks: append([]trace.Block{}, p.Blocks...), Sites: append([]trace.Site{}, p.Sites...),
	}
	var paths []string
	eachFile(bare, func(file *string) {
		if n := len(paths); n == 0 || paths[n-1] != *file {
			paths = append(paths, *file)
		}
	})
	names := trace.FileNames(append(paths, ""))
	eachFile(bare, func(file *string) { *file = names[*file] })
	return bare
}

func eachFile(p *trace.Program, do func(file *string)) {
	for i := range p.Modules {
		do(&p.Modules[i].Name)
	}
	for i := range p.Functions {
		do(&p.Functions[i].Place.File)
	}
	for i := range p.Blocks {
		do(&p.Blocks[i].File)
	}
	for i := range p.Sites {
		do(&p.Sites[i].Place.File)
	}
}

// RunError explains why the blocks of a profile cannot be read.
type RunError struct{ What string }

func (e *RunError) Error() string {
	return "cannot read the blocks of the profile: " + e.What + "; copy the file again, or analyse the trace again"
}

// DecodeRun decodes a run, and checks that its counts balance. The error is a [*RunError].
func DecodeRun(data []byte) (*Run, error) {
	c := NewRunDecoder(data)
	r := &Run{}
	var err error
	if r.Program, err = c.Program(); err != nil {
		return nil, err
	}
	if r.Program == nil {
		return nil, &RunError{"the program is missing"}
	}
	e := NewEdges(r.Program)
	if err := c.Each(len(e.Left), e.Entered, func(b int, x *Counts) bool {
		e.Left[b], e.Resumed[b], e.Unmade[b] = x.Left, x.Resumed, x.Unmade
		copy(e.Taken[b], x.Taken)
		return len(x.Taken) == len(e.Taken[b])
	}); err != nil {
		return nil, err
	}
	r.Edges = e
	if c.version == 2 {
		r.Profile = &Profile{Weights: make([][]uint64, len(r.Program.Blocks)), Entries: make([]uint64, len(r.Program.Functions))}
		r.Profile.codeProfile(c.c, r.Program)
		if c.c.Check(!c.c.More(), tooMuch); c.Err() != nil {
			return nil, c.Err()
		}
	}
	for b := range r.Edges.Visits {
		r.Edges.Visits[b] = r.Edges.Left[b]
		for _, n := range r.Edges.Taken[b] {
			r.Edges.Visits[b] += n
		}
	}
	if err := r.Edges.Check(r.Program); err != nil {
		return nil, &RunError{err.Error()}
	}
	return r, nil
}

// RunDecoder decodes a run in two steps: first the program, then the counts.
type RunDecoder struct {
	c       *codec.Coder
	version uint64
	program []byte
}

// NewRunDecoder returns a decoder of an encoded run.
func NewRunDecoder(data []byte) *RunDecoder {
	c := &RunDecoder{c: codec.Reader(data)}
	codeHead(c.c, &c.version, &c.program, nil)
	return c
}

// Encoded returns the encoded program, which may be empty. The result shares memory with the data
// that was passed to [NewRunDecoder].
func (c *RunDecoder) Encoded() []byte { return c.program }

// Program returns the decoded program, or nil if it was omitted.
func (c *RunDecoder) Program() (*trace.Program, error) {
	if err := c.Err(); err != nil || len(c.program) == 0 {
		return nil, err
	}
	d := codec.Reader(c.program)
	var modules []trace.Module
	var spans []span
	if codeModules(d, &modules, &spans); d.Failed() {
		return nil, &RunError{d.In.Err().Error()}
	}
	p := &trace.Program{}
	if err := sgt.ParseModule(d.In.Rest(), p); err != nil {
		return nil, &RunError{err.Error()}
	}
	p.Modules = modules
	f := uint64(0)
	for _, s := range spans {
		if s.functions > uint64(len(p.Functions))-f {
			return nil, &RunError{"the modules have more functions than the program"}
		}
		for range s.functions {
			p.Functions[f].Module = s.module
			f++
		}
	}
	if f < uint64(len(p.Functions)) {
		return nil, &RunError{"some functions belong to no module"}
	}
	return p, nil
}

// Err returns the first error so far, a [*RunError].
func (c *RunDecoder) Err() error {
	if err := c.c.In.Err(); err != nil {
		return &RunError{err.Error()}
	}
	return nil
}

// Each decodes the counts of every block that ran, and stores the number of entries of each
// function in the slice "entered". For each of these blocks, Each calls the function visit. The
// counts x are valid only during this call. The function visit must return false if the length of
// x.Taken differs from the number of the block's successors.
func (c *RunDecoder) Each(blocks int, entered []uint64, visit func(b int, x *Counts) bool) error {
	codeCounts(c.c, blocks, entered, nil, func(b int, x *Counts) {
		if !visit(b, x) {
			c.c.In.Fail(otherProgram)
		}
	})
	c.c.Check(c.version > 1 || !c.c.More(), tooMuch)
	return c.Err()
}

// Reuse is the conditional reuse profile P(Δ|block) of a block (MODELS §13.2).
type Reuse struct {
	References    uint64
	profile.Reuse // binned distances; misses are exact for caches whose capacity is at the border of two bins
}

// Reuse returns the reuse profile of every block of the run: the sum over the block's sites.
func (r *Run) Reuse(s *profile.Sites) []Reuse {
	blocks := make([]Reuse, len(r.Program.Blocks))
	for i := range s.Code {
		site := &s.Code[i]
		if uint64(site.Number) >= uint64(len(r.Program.Sites)) {
			continue
		}
		b := r.Program.Sites[site.Number].Block
		if uint64(b) >= uint64(len(blocks)) {
			continue
		}
		of := &blocks[b]
		of.References += site.References()
		of.Cold += site.Reuse.Cold
		of.Bins = profile.Union(of.Bins, site.Reuse.Bins,
			func(x, y *profile.BinCount) int { return int(x.Bin) - int(y.Bin) },
			func(x, y *profile.BinCount) { x.Count += y.Count })
	}
	return blocks
}

// SampledReuse is the conditional reuse profile of a block, measured in a sample of its executions.
// In the paper, the sampled executions are called "windows".
type SampledReuse struct {
	Executions uint64 // number of the block's executions that access memory, sampled or not
	Windows    uint64 // number of sampled executions
	profile.Reuse
}

// Accuracy returns 1 − E/2, where E is the sum over bins of the absolute difference of the two
// normalised profiles (MODELS §8.4). The accuracy is 1 if the profiles are equal, and 0 if exactly
// one of them is empty.
func Accuracy(a, b *profile.Reuse) float64 {
	n, m := float64(a.Accesses()), float64(b.Accesses())
	if n == 0 || m == 0 {
		if n == m {
			return 1
		}
		return 0
	}
	off := math.Abs(float64(a.Cold)/n - float64(b.Cold)/m)
	x, y := a.Bins, b.Bins
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Bin < y[0].Bin:
			off += float64(x[0].Count) / n
			x = x[1:]
		case len(x) == 0 || y[0].Bin < x[0].Bin:
			off += float64(y[0].Count) / m
			y = y[1:]
		default:
			off += math.Abs(float64(x[0].Count)/n - float64(y[0].Count)/m)
			x, y = x[1:], y[1:]
		}
	}
	return 1 - off/2
}
