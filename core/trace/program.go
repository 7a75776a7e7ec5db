package trace

import "slices"

// Program describes the code that made the references of a trace and its variables. Numbers in batches and in
// these tables are indices into its slices.
type Program struct {
	Modules   []Module
	Functions []Function
	Blocks    []Block
	Sites     []Site
	Objects   []Object // global variables
	Tags      []string // of calipers
	Threads   []Thread
	// ThreadCount is the number of threads that make references in the whole trace, from an index;
	// 0: unknown. Threads may list fewer so far.
	ThreadCount int
}

// Module is one compiled file, or one file that was loaded into the process.
type Module struct {
	Name    string       // source file, or path of the loaded file
	Options string       // how it was compiled: "-O2 ..."
	Missed  []Missed     // code that was not instrumented
	Sources []SourceFile // its source files, if they were recorded
	// Base and End are the addresses of a loaded file, whose sites have PCs.
	Base, End Addr
}

// SourceFile is a source file as it was when the program was compiled.
type SourceFile struct {
	Name   string // as places name it
	Packed string // its text, as package sourcefile packs it
}

// SourceFiles returns the source files of all modules, each once.
func (p *Program) SourceFiles() (list []SourceFile) {
	if p == nil {
		return nil
	}
	for i := range p.Modules {
		list = JoinSources(list, p.Modules[i].Sources)
	}
	return list
}

// JoinSources appends the files of more that are not in list.
func JoinSources(list, more []SourceFile) []SourceFile {
	for _, f := range more {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// Missed is code whose references are not in the trace.
type Missed struct {
	What  string // a function, or "inline assembly", ...
	Why   string
	Count uint32 // places in the module
}

// Place is a source location. A line or column of 0 is unknown.
type Place struct {
	File         string
	Line, Column uint32
}

// Function is one function of the program, after the compiler has inlined.
type Function struct {
	Name    string // as the linker knows it
	Module  uint32
	Place   Place
	First   uint32 // its blocks, First up to First+Blocks
	Blocks  uint32
	Outline bool // the body of a parallel region or task, made by the compiler
	Target  Target
}

// NoFunction is the function of a block without one.
const NoFunction = ^uint32(0)

// Block is straight-line code: a basic block, or a part of one after a call, which may not return. An
// execution of a block makes exactly its sites' rows, in order.
type Block struct {
	Function   uint32 // or NoFunction
	Label      string // the basic block's name in the compiler's form
	Part       uint32 // n: after the n-th call in the basic block
	Flags      BlockFlags
	Loop       uint32 // 1 + the block that heads the innermost loop around it; 0: none
	Depth      uint32 // number of loops around it
	File       string
	FirstLine  uint32 // source lines, 0: unknown
	LastLine   uint32
	Successors []uint32 // blocks, in the terminator's order, with multiplicity
	Callee     string   // the function called at its end: "" none, "*" unknown statically
	FirstSite  uint32   // its sites, FirstSite up to FirstSite+Sites
	Sites      uint32
	Ops        []Op
	Instrs     []Instr // nil if the capture left them out
}

// BlockFlags are facts about a block.
type BlockFlags uint32

const (
	EntryBlock  BlockFlags = 1 << iota // the function begins here
	ReturnBlock                        // the function returns at its end; by a tail call, if it has a Callee
	HeaderBlock                        // it heads a natural loop
	LatchBlock                         // it jumps back to a header
	LandingPad                         // exceptions arrive here
	// Synthetic blocks are for single sites of traces without blocks; they make no BlockEntry rows.
	Synthetic
)

// Op counts equal instructions of a block.
type Op struct {
	Opcode string // LLVM's: "fadd", "load", "br", "call", "icmp", ...
	Type   string // of its result, or of the value that it stores or compares: "double", "<4 x float>", "i32"
	Count  uint32
}

// Instr is one instruction with its dependences.
type Instr struct {
	Opcode, Type string
	// Uses are operands: n ≥ 0, the block's instruction n; -1, a value from outside of the block; -2-n, the
	// block's instruction n, an iteration ago (through a phi of the loop whose whole body this block is).
	// The last one of a load may be the store, also of an iteration ago, whose value it loads. Constants
	// are left out, except for the three operands of llvm.fma and llvm.fmuladd, where they are -1.
	Uses []int32
	Site uint32 // 1 + its first site, relative to the block's FirstSite; 0: it makes no row
}

// Site is one instruction that makes rows.
type Site struct {
	Kind   Kind
	Bytes  uint32 // of every reference; 0: each record has its own
	Block  uint32
	PC     Addr // 0: unknown
	Place  Place
	Type   string // datatype referenced, in LLVM's words: "double", "i32", ...
	Object string // variable named in the code; "": unknown
	Flags  SiteFlags
}

// SiteFlags are facts about a site.
type SiteFlags uint32

const (
	AtomicSite SiteFlags = 1 << iota
	VolatileSite
	MaskedSite // one lane or run of lanes of a masked access
	StackSite  // its object is a local variable of the function
	GlobalSite // its object is a global variable
	// NoSize sites come from traces without sizes: Bytes of their rows is 0.
	NoSize
	// ChasingSite loads have an address from a load of an earlier iteration, such as the loads of
	// fields of a list's elements.
	ChasingSite
	// LinkSite loads are ChasingSite loads that load the next address, such as the link of a list.
	LinkSite
)

// Values is the number of values in a record of the site.
func (s *Site) Values() int {
	switch s.Kind {
	case Load, Store, Modify, Fetch, RangeRead, RangeWrite, Alloc:
		if s.Bytes == 0 && s.Flags&NoSize == 0 {
			return 2 // address, bytes
		}
		return 1
	case LoopBegin:
		return 2 // schedule, chunk
	case Free, ThreadStart, RegionBegin, ParallelBegin, LoopEnd,
		CriticalBegin, CriticalEnd, TaskCreate, TaskBegin, TaskEnd:
		return 1
	}
	return 0
}

// Object is a global variable.
type Object struct {
	Name  string
	Addr  Addr // 0: unknown
	Bytes uint64
	Type  string
	Place Place
}

// Thread is one thread of the traced process.
type Thread struct {
	Number    uint32 // as in Batch.Thread
	ID        uint64 // the operating system's
	Name      string
	StackLow  Addr // its stack, StackLow up to StackHigh; 0, 0: unknown
	StackHigh Addr
}

// Flow is a value that passes from one block of a function to another, or around a loop of several
// blocks: instruction Instr of block Block uses the result of instruction FromInstr of block FromBlock,
// Before iterations ago of the loop that Block heads (1 for a phi's value from a latch, else 0). It does
// not repeat [Instr.Uses].
type Flow struct{ Block, Instr, FromBlock, FromInstr, Before uint32 }

// LikeFirst returns this number of threads, numbered from 0, like the program's first one, whose names
// and identifiers are unknown. moved returns where an address of its stack is in another thread; nil:
// they all have the same stack.
func (p *Program) LikeFirst(threads int, moved func(addr Addr, thread int) Addr) []Thread {
	list := make([]Thread, threads)
	for n := range list {
		t := &list[n]
		if len(p.Threads) > 0 {
			*t = p.Threads[0]
		}
		if t.Number = uint32(n); n > 0 {
			t.ID, t.Name = 0, ""
		}
		if moved != nil && t.StackLow < t.StackHigh {
			t.StackLow, t.StackHigh = moved(t.StackLow, n), moved(t.StackHigh, n)
		}
	}
	return list
}

// IsBare reports whether a block has no loads, stores and modifies that show that it was entered.
func (p *Program) IsBare(block uint32) bool {
	if uint64(block) >= uint64(len(p.Blocks)) {
		return false
	}
	b, sites := &p.Blocks[block], uint64(len(p.Sites))
	first := min(uint64(b.FirstSite), sites)
	own := p.Sites[first:min(first+uint64(b.Sites), sites)]
	return !slices.ContainsFunc(own, func(s Site) bool { return s.Kind <= Modify })
}

// Target is the set of instructions that a function's code was generated for. Without [X86] it is unknown,
// or a machine without such variants.
type Target uint32

// The bits. Those between X86 and Contract extend the baseline of x86-64, SSE2.
const (
	X86      Target = 1 << iota // x86, of 32 or 64 bits
	SSE41                       // rounding, blending, products of vectors of 32-bit integers
	POPCNT                      // counting ones
	AVX                         // vectors of 256 bits of floating-point numbers
	AVX2                        // and of integers
	FMA                         // fused multiply-add
	AVX512                      // vectors of 512 bits
	Contract                    // of any machine: products and sums may be fused

	knownTarget = 1<<iota - 1
)

// Known returns the target without unknown bits.
func (t Target) Known() Target { return t & knownTarget }

// Lacks reports whether code was generated for an x86 without all given features.
func (t Target) Lacks(given Target) bool { return t&X86 != 0 && t&given != given }

// VectorBits is the width of the widest registers for floating-point numbers or integers, 0 if unknown.
func (t Target) VectorBits(float bool) int {
	switch {
	case t&X86 == 0:
		return 0
	case t&AVX512 != 0:
		return 512
	case t&AVX2 != 0 || t&AVX != 0 && float:
		return 256
	}
	return 128
}

// TargetOf returns the target of a block.
func (p *Program) TargetOf(block uint32) Target {
	if f := p.Blocks[block].Function; int64(f) < int64(len(p.Functions)) {
		return p.Functions[f].Target
	}
	return 0
}
