package blocks

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/sgt"
)

// Run is a program with what a run of it did: what package analysis/branches leaves in a
// profile. Its program has no objects, threads and paths; its sites are numbered as in
// the profile's.
type Run struct {
	Program *trace.Program
	Edges   *Edges
	Profile *Profile // nil: of a program that was traced
}

// Profile is what a module that never ran tells of another run, in which its compiler
// counted: by block and by function, see ir.Module.
type Profile struct {
	Weights [][]uint64 // by block: nil, or as many as its successors
	Entries []uint64   // by function: invocations; 0 where they are not known, too
	Flow    []Flow     // values that go between blocks of a function
}

// Flow is what ir.Flow is.
type Flow struct{ Block, Instr, FromBlock, FromInstr, Before uint32 }

// The binary form, the section BLCK of profiles. Integers are uv, as in package
// profile, a list is its length and then its members, and a string is its length and
// then its bytes.
//
//	version    1, or 2 where there is a profile
//	bytes of the program, 0 where it is left out, and then
//	  list of modules, each: name; list of what was missed: what; why; count
//	  list of (functions, module), of functions in order
//	  the tables of all modules as of one, as the body of a MODL frame of package sgt
//	blocks, functions of the program
//	list of blocks that ran, each: number - (previous + 1); list of executions that
//	  went on to each successor; that left; resumed; unmade
//	list of functions that were entered, each: number - (previous + 1); entered
//	from version 2 on, the profile:
//	  list of blocks that have weights, each: number - (previous + 1); list of weights
//	  list of functions that were entered, as above
//	  list of values that go between blocks, each: block, instruction, from block, from
//	  instruction, iterations before
//
// Visits are what the lists add up to.

// RunVersion is the newest version of the binary form that this package writes and
// reads.
const RunVersion = 2

// Append appends the run's binary form.
func (r *Run) Append(dst []byte) []byte {
	at := len(dst)
	dst = AppendRun(dst, AppendProgram(nil, r.Program), r.Edges)
	if r.Profile == nil {
		return dst
	}
	dst[at] = 2
	have := 0
	for _, w := range r.Profile.Weights {
		if w != nil {
			have++
		}
	}
	dst = appendUints(dst, uint64(have))
	next := 0
	for b, w := range r.Profile.Weights {
		if w != nil {
			dst = appendUints(appendUints(dst, uint64(b-next), uint64(len(w))), w...)
			next = b + 1
		}
	}
	dst = binary.AppendUvarint(appendSparse(dst, r.Profile.Entries), uint64(len(r.Profile.Flow)))
	for _, f := range r.Profile.Flow {
		dst = appendUints(dst, uint64(f.Block), uint64(f.Instr), uint64(f.FromBlock), uint64(f.FromInstr), uint64(f.Before))
	}
	return dst
}

// AppendRun appends the binary form of a run whose program's was made before: see
// [AppendProgram]. An empty one is left out.
func AppendRun(dst, program []byte, e *Edges) []byte {
	dst = append(dst, 1)
	dst = append(appendUints(dst, uint64(len(program))), program...)
	dst = appendUints(dst, uint64(len(e.Left)), uint64(len(e.Entered)))
	ran := 0
	for b := range e.Left {
		if e.happened(b) {
			ran++
		}
	}
	dst = appendUints(dst, uint64(ran))
	next := 0
	for b := range e.Left {
		if !e.happened(b) {
			continue
		}
		dst = appendUints(dst, uint64(b-next), uint64(len(e.Taken[b])))
		dst = appendUints(dst, e.Taken[b]...)
		dst = appendUints(dst, e.Left[b], e.Resumed[b], e.Unmade[b])
		next = b + 1
	}
	return appendSparse(dst, e.Entered)
}

// happened tells that there is something to write of a block.
func (e *Edges) happened(b int) bool {
	if e.Left[b]|e.Resumed[b]|e.Unmade[b] != 0 {
		return true
	}
	for _, n := range e.Taken[b] {
		if n != 0 {
			return true
		}
	}
	return false
}

// appendSparse writes the numbers that are not zero.
func appendSparse(dst []byte, list []uint64) []byte {
	some := 0
	for _, n := range list {
		if n != 0 {
			some++
		}
	}
	dst = appendUints(dst, uint64(some))
	next := 0
	for i, n := range list {
		if n != 0 {
			dst = appendUints(dst, uint64(i-next), n)
			next = i + 1
		}
	}
	return dst
}

//go:noinline
func appendUints(dst []byte, values ...uint64) []byte {
	for _, v := range values {
		dst = binary.AppendUvarint(dst, v)
	}
	return dst
}

//go:noinline
func appendString(dst []byte, s string) []byte {
	return append(appendUints(dst, uint64(len(s))), s...)
}

// AppendProgram appends the binary form of a program as [WithoutPaths] gives it.
func AppendProgram(dst []byte, p *trace.Program) []byte {
	bare := WithoutPaths(p)
	dst = appendUints(dst, uint64(len(bare.Modules)))
	for i := range bare.Modules {
		m := &bare.Modules[i]
		dst = appendUints(appendString(dst, m.Name), uint64(len(m.Missed)))
		for _, missed := range m.Missed {
			dst = appendUints(appendString(appendString(dst, missed.What), missed.Why), uint64(missed.Count))
		}
	}
	var spans []uint64
	for i := range p.Functions {
		if n := len(spans); n > 0 && spans[n-1] == uint64(p.Functions[i].Module) {
			spans[n-2]++
		} else {
			spans = append(spans, 1, uint64(p.Functions[i].Module))
		}
	}
	dst = appendUints(appendUints(dst, uint64(len(spans)/2)), spans...)
	bare.Modules = make([]trace.Module, 1)
	return sgt.AppendTables(dst, bare)
}

// WithoutPaths gives the part of a program that profiles keep, with files by name: their
// paths say where somebody keeps them.
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

// eachFile calls do with every name of a file.
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

// RunError tells why the blocks of a profile cannot be read.
type RunError struct{ What string }

func (e *RunError) Error() string {
	return "the blocks of the profile: " + e.What + "; copy the file again, or analyse the trace again"
}

// DecodeRun reads what [Run.Append] wrote, and holds that it balances. The error is a
// [*RunError].
func DecodeRun(data []byte) (*Run, error) {
	c := NewRunDecoder(data)
	r := &Run{}
	var err error
	if r.Program, err = c.Program(); err != nil {
		return nil, err
	}
	if r.Program == nil {
		return nil, &RunError{"they come without the program"}
	}
	r.Edges = NewEdges(r.Program)
	if err := c.Add(r.Edges); err != nil {
		return nil, err
	}
	if c.version == 2 {
		if r.Profile, err = c.profile(r.Program); err != nil {
			return nil, err
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

// RunDecoder reads a run's binary form in its two parts.
type RunDecoder struct {
	d       *codec.Decoder
	version uint64
	program []byte
	err     error
}

// NewRunDecoder reads data, which Append wrote.
func NewRunDecoder(data []byte) *RunDecoder {
	c := &RunDecoder{d: codec.NewDecoder(data)}
	if c.version = c.d.Uint(); c.d.Err() == nil && (c.version == 0 || c.version > RunVersion) {
		c.err = &RunError{"they have a version that this program does not know; use a newer stackglass"}
	}
	c.program = []byte(c.d.String())
	return c
}

// Encoded gives the program as [AppendProgram] wrote it, empty where it was left out.
func (c *RunDecoder) Encoded() []byte { return c.program }

// Program gives the program, nil where it was left out.
func (c *RunDecoder) Program() (*trace.Program, error) {
	if err := c.Err(); err != nil || len(c.program) == 0 {
		return nil, err
	}
	d := codec.NewDecoder(c.program)
	modules := make([]trace.Module, d.Length(2))
	for i := range modules {
		modules[i].Name = d.String()
		for range d.Length(3) {
			modules[i].Missed = append(modules[i].Missed, trace.Missed{What: d.String(), Why: d.String(), Count: uint32(d.UintBelow(1 << 32))})
		}
	}
	type span struct{ functions, module uint64 }
	spans := make([]span, d.Length(2))
	for i := range spans {
		spans[i] = span{d.Uint(), d.UintBelow(uint64(len(modules)))}
	}
	if d.Err() != nil {
		return nil, &RunError{d.Err().Error()}
	}
	p := &trace.Program{}
	if err := sgt.ParseModule(d.Rest(), p); err != nil {
		return nil, &RunError{err.Error()}
	}
	p.Modules = modules
	f := uint64(0)
	for _, s := range spans {
		if s.functions > uint64(len(p.Functions))-f {
			return nil, &RunError{"modules of more functions than there are"}
		}
		for range s.functions {
			p.Functions[f].Module = uint32(s.module)
			f++
		}
	}
	if f < uint64(len(p.Functions)) {
		return nil, &RunError{"functions without a module"}
	}
	return p, nil
}

// Err is the first error so far, a [*RunError].
func (c *RunDecoder) Err() error {
	if c.err == nil && c.d.Err() != nil {
		c.err = &RunError{c.d.Err().Error()}
	}
	return c.err
}

// Add adds the counts, but for visits, to edges of the same program.
func (c *RunDecoder) Add(e *Edges) error {
	return c.add(len(e.Left), len(e.Entered), func(b int, taken []uint64, left, resumed, unmade uint64) bool {
		if len(taken) != len(e.Taken[b]) {
			return false
		}
		for i, n := range taken {
			e.Taken[b][i] += n
		}
		e.Left[b] += left
		e.Resumed[b] += resumed
		e.Unmade[b] += unmade
		return true
	}, func(f int, n uint64) { e.Entered[f] += n })
}

// Each calls each with the counts of every block that ran, of as many blocks. It keeps
// taken no longer, and tells whether the block has so many successors.
func (c *RunDecoder) Each(blocks, functions int, each func(b int, taken []uint64, left, resumed uint64) bool) error {
	return c.add(blocks, functions, func(b int, taken []uint64, left, resumed, _ uint64) bool {
		return each(b, taken, left, resumed)
	}, func(int, uint64) {})
}

func (c *RunDecoder) add(blocks, functions int, block func(b int, taken []uint64, left, resumed, unmade uint64) bool, entered func(f int, n uint64)) error {
	n, m := c.d.Uint(), c.d.Uint()
	if err := c.Err(); err != nil {
		return err
	}
	if n > uint64(blocks) || m > uint64(functions) {
		return &RunError{"they are of another program"}
	}
	var taken []uint64
	at := uint64(0)
	for range c.d.Length(5) {
		at += c.d.UintBelow(n - at + 1)
		taken = taken[:0]
		for range c.d.Length(1) {
			taken = append(taken, c.d.Uint())
		}
		left, resumed, unmade := c.d.Uint(), c.d.Uint(), c.d.Uint()
		if c.Err() == nil && (at >= n || !block(int(at), taken, left, resumed, unmade)) {
			c.err = &RunError{"they are of another program"}
		}
		if err := c.Err(); err != nil {
			return err
		}
		at++
	}
	at = 0
	for range c.d.Length(2) {
		at += c.d.UintBelow(m - at + 1)
		n := c.d.Uint()
		if c.Err() == nil && at >= m {
			c.err = &RunError{"they are of another program"}
		}
		if err := c.Err(); err != nil {
			return err
		}
		entered(int(at), n)
		at++
	}
	if c.Err() == nil && c.version == 1 && len(c.d.Rest()) > 0 {
		c.err = &RunError{"there is more than belongs there"}
	}
	return c.Err()
}

// profile reads what stands behind the counts from version 2 on.
func (c *RunDecoder) profile(p *trace.Program) (*Profile, error) {
	r := &Profile{Weights: make([][]uint64, len(p.Blocks)), Entries: make([]uint64, len(p.Functions))}
	damaged := func() (*Profile, error) {
		if err := c.Err(); err != nil {
			return nil, err
		}
		return nil, &RunError{"their profile is of another program"}
	}
	at := uint64(0)
	for range c.d.Length(2) {
		at += c.d.UintBelow(uint64(len(p.Blocks)) - at + 1)
		weights := make([]uint64, c.d.Length(1))
		for i := range weights {
			weights[i] = c.d.Uint()
		}
		if c.Err() != nil || at >= uint64(len(p.Blocks)) || len(weights) != len(p.Blocks[at].Successors) {
			return damaged()
		}
		r.Weights[at] = weights
		at++
	}
	at = 0
	for range c.d.Length(2) {
		at += c.d.UintBelow(uint64(len(p.Functions)) - at + 1)
		n := c.d.Uint()
		if c.Err() != nil || at >= uint64(len(p.Functions)) {
			return damaged()
		}
		r.Entries[at] = n
		at++
	}
	for range c.d.Length(5) {
		var list [5]uint32
		for i := range list {
			list[i] = uint32(c.d.UintBelow(1 << 32))
		}
		f := Flow{list[0], list[1], list[2], list[3], list[4]}
		if int64(f.Block) >= int64(len(p.Blocks)) || int64(f.FromBlock) >= int64(len(p.Blocks)) {
			return damaged()
		}
		r.Flow = append(r.Flow, f)
	}
	if c.Err() != nil || len(c.d.Rest()) > 0 {
		return damaged()
	}
	return r, nil
}
