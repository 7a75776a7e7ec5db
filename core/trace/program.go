package trace

import "slices"

// Program describes the code that made the references of a trace, and the variables of this code.
// Batches and tables identify blocks, sites and other items by their indices in the slices of
// Program.
type Program struct {
	Modules   []Module
	Functions []Function
	Blocks    []Block
	Sites     []Site
	Objects   []Object // the global variables of the program
	// Structures contains the structure types of sites and objects. The structures of each module
	// are listed separately, so equal structures may occur several times.
	Structures []Structure
	Tags       []string // the tags of calipers, which mark regions of interest
	Threads    []Thread
	// ThreadCount is the number of threads that make references in the whole trace according to the
	// trace's index, or 0 if this number is unknown. Threads lists only the threads found so far.
	ThreadCount int
}

// Module is a compiled source file, or a file that was loaded into the process.
type Module struct {
	Name    string       // path of the source file or of the loaded file
	Options string       // the compiler options, such as "-O2"
	Missed  []Missed     // code of the module that was not instrumented
	Sources []SourceFile // source files of the module, if they were recorded
	// Base and End delimit the address range of a loaded file. The sites of a loaded file have PCs.
	Base, End Addr
}

// SourceFile is a copy of a source file that was made when the program was compiled.
type SourceFile struct {
	Name   string // the name of the file, as in source locations
	Packed string // the text of the file, compressed by package sourcefile
}

// SourceFiles returns the source files of all modules without duplicates.
func (p *Program) SourceFiles() (list []SourceFile) {
	if p == nil {
		return nil
	}
	for i := range p.Modules {
		list = JoinSources(list, p.Modules[i].Sources)
	}
	return list
}

// JoinSources returns the files of both lists. JoinSources omits files of the list "more" that
// occur earlier in the result.
func JoinSources(list, more []SourceFile) []SourceFile {
	for _, f := range more {
		if !slices.Contains(list, f) {
			list = append(list, f)
		}
	}
	return list
}

// Missed describes code whose references are not in the trace.
type Missed struct {
	What  string // a function, or a description such as "inline assembly"
	Why   string
	Count uint32 // number of times that the code occurs in the module
}

// Place is a source location. A line or column of 0 is unknown.
type Place struct {
	File         string
	Line, Column uint32
}

// Function is one function of the program, after inlining.
type Function struct {
	Name    string // name of the function's symbol (mangled)
	Module  uint32
	Place   Place
	First   uint32 // the function's blocks have the indices [First, First+Blocks)
	Blocks  uint32
	Outline bool // whether the compiler outlined the function from a parallel region or task
	Target  Target
}

// NoFunction is the value of Function in a block that belongs to no function.
const NoFunction = ^uint32(0)

// Block is straight-line code. Basic blocks are split after calls, because a call may not return.
// Each execution of a block produces exactly one record for each of the block's sites, in order.
type Block struct {
	Function   uint32 // index in Program.Functions, or NoFunction
	Label      string // the basic block's name in the compiler's intermediate representation
	Part       uint32 // the value is n for the part that follows the n-th call in the basic block
	Flags      BlockFlags
	Loop       uint32 // the index of the innermost loop's header block plus 1; 0 if no loop contains the block
	Depth      uint32 // number of loops that contain the block
	File       string
	FirstLine  uint32 // first and last source line; 0 if unknown
	LastLine   uint32
	Successors []uint32 // the successors in the terminator's order, including duplicates
	// the function called at the end of the block; "" if there is none, "*" if it is not known
	// statically
	Callee    string
	FirstSite uint32 // the block's sites have the indices [FirstSite, FirstSite+Sites)
	Sites     uint32
	Ops       []Op
	Instrs    []Instr // nil if the capture did not record instructions
}

// BlockFlags contains properties of a block.
type BlockFlags uint32

const (
	EntryBlock  BlockFlags = 1 << iota // the function begins at this block
	ReturnBlock                        // the function returns at the end of the block (with a tail call if the block has a Callee)
	HeaderBlock                        // the block is the header of a natural loop
	LatchBlock                         // the block jumps back to the header of a loop
	LandingPad                         // the block is a landing pad, which handles exceptions
	// In a trace without blocks, each site has its own synthetic block. Synthetic blocks produce no
	// BlockEntry rows.
	Synthetic
)

// Op counts the instructions of a block that have a given opcode and type.
type Op struct {
	Opcode string // LLVM opcode: "fadd", "load", "br", "call", "icmp", ...
	// type of the result, or of the stored or compared value: "double", "<4 x float>", "i32"
	Type  string
	Count uint32
}

// Instr is one instruction with its dependences.
type Instr struct {
	// Opcode is LLVM's name of the operation. The opcode of a product of a value and the constant 3,
	// 5 or 9 contains the constant, as in "mul 3", because an address computation can compute the
	// product.
	Opcode, Type string
	// Uses lists the operands of the instruction. A number n ≥ 0 means instruction n of the block. The
	// number -1 means a value from outside the block. The number -2 - n means the result of
	// instruction n in the previous iteration (through a phi, if the block is the whole body of a
	// loop). For a load, the last element of Uses may be the store whose value is loaded, in the same
	// or the previous iteration. Constants are omitted, but constant operands of llvm.fma and
	// llvm.fmuladd are listed as -1.
	Uses []int32
	// the instruction's first site plus 1, relative to the block's FirstSite; 0 if the instruction
	// produces no records
	Site uint32
}

// Site is an instruction that produces records.
type Site struct {
	Kind   Kind
	Bytes  uint32 // size of every reference; 0 if each record contains its own size
	Block  uint32
	PC     Addr // address of the instruction; 0 if unknown
	Place  Place
	Type   string // referenced data type in LLVM notation: "double", "i32", ...
	Object string // name of the variable in the code; "" if unknown
	Flags  SiteFlags
	// Structure is the index of the structure type that the site accesses, plus 1. Structure is 0 if
	// the type is unknown. Offset is the byte offset of the access in this structure. The memory of an
	// Alloc consists of elements of this type.
	Structure, Offset uint32
}

// Structure is a structure type of the program's source.
type Structure struct {
	Name    string   // "" if the structure has no name
	Bytes   uint64   // size in bytes, including the padding between elements of an array
	Members []Member // in ascending order of Offset
}

// Member is a member of a structure, or of a structure nested in it. An array or a union is a
// single member. Only members that are bit fields may overlap.
type Member struct {
	Name          string // name of the member, such as x or pos.x
	Offset, Bytes uint32
	Type          string // type in the notation of the source, such as double
}

// Equal reports whether two structures are the same type.
func (s Structure) Equal(other Structure) bool {
	return s.Name == other.Name && s.Bytes == other.Bytes && slices.Equal(s.Members, other.Members)
}

// SiteFlags contains properties of a site.
type SiteFlags uint32

const (
	AtomicSite SiteFlags = 1 << iota
	VolatileSite
	MaskedSite // the site represents one or more consecutive lanes of a masked access
	StackSite  // the object is a local variable of the function
	GlobalSite // the object is a global variable
	// NoSize marks sites in traces without sizes. Batch.Bytes is 0 in the rows of these sites.
	NoSize
	// ChasingSite marks pointer-chasing loads, whose address was loaded in an earlier iteration,
	// such as loads of the fields of linked-list elements.
	ChasingSite
	// LinkSite marks a ChasingSite load that loads the next pointer, such as the link of a linked
	// list.
	LinkSite
)

// Values returns the number of values in a record of the site.
func (s *Site) Values() int {
	switch s.Kind {
	case Load, Store, Modify, Fetch, RangeRead, RangeWrite, Alloc:
		if s.Bytes == 0 && s.Flags&NoSize == 0 {
			return 2 // the address and the number of bytes
		}
		return 1
	case LoopBegin:
		return 2 // the schedule and the chunk size
	case Free, ThreadStart, RegionBegin, ParallelBegin, LoopEnd,
		CriticalBegin, CriticalEnd, TaskCreate, TaskBegin, TaskEnd:
		return 1
	}
	return 0
}

// Object is a global variable.
type Object struct {
	Name  string
	Addr  Addr // address of the variable; 0 if unknown
	Bytes uint64
	Type  string
	Place Place
	// Structure is the index of the variable's structure type, or of its elements' type, plus 1.
	// Structure is 0 if the type is unknown.
	Structure uint32
}

// Thread is one thread of the traced process.
type Thread struct {
	Number    uint32 // number of the thread in Batch.Thread
	ID        uint64 // the operating system's id
	Name      string
	StackLow  Addr // the address range of the thread's stack is [StackLow, StackHigh); both numbers are 0 if the range is unknown
	StackHigh Addr
}

// Flow is a value that passes from one block of a function to another, or around a loop of several
// blocks. The instruction Instr in the block Block uses the result of the instruction FromInstr in
// the block FromBlock. Before is 1 if that result was computed in the previous iteration of the
// loop whose header is Block (a phi's value from a latch), and 0 otherwise. Operands that
// [Instr.Uses] lists are not repeated in Flow.
type Flow struct{ Block, Instr, FromBlock, FromInstr, Before uint32 }

// LikeFirst returns the given number of copies of the program's first thread, numbered from 0. Only
// thread 0 keeps the name and the ID. The function "moved" maps an address in the first thread's
// stack to the stack of the given thread. If moved is nil, all threads have the same stack.
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

// IsBare reports whether a block has no loads, stores or modifies. Only events show that such a
// block was entered.
func (p *Program) IsBare(block uint32) bool {
	if uint64(block) >= uint64(len(p.Blocks)) {
		return false
	}
	b, sites := &p.Blocks[block], uint64(len(p.Sites))
	first := min(uint64(b.FirstSite), sites)
	own := p.Sites[first:min(first+uint64(b.Sites), sites)]
	return !slices.ContainsFunc(own, func(s Site) bool { return s.Kind <= Modify })
}

// Target is the set of instruction-set extensions for which a function's code was generated. If
// [X86] is not set, the target is unknown, or is a machine without these extensions.
type Target uint32

// The bits of a Target. The bits between X86 and Contract represent extensions beyond SSE2, the
// baseline of x86-64.
const (
	X86      Target = 1 << iota // an x86 processor, 32-bit or 64-bit
	SSE41                       // adds rounding, blending, and vector multiplication of 32-bit integers
	POPCNT                      // adds the population count instruction
	AVX                         // adds 256-bit vectors of floating-point numbers
	AVX2                        // adds 256-bit vectors of integers
	FMA                         // adds fused multiply-add instructions
	AVX512                      // adds 512-bit vectors
	Contract                    // the compiler may fuse products and sums; valid for any machine

	knownTarget = 1<<iota - 1
)

// Known returns the target without the bits that this package does not define.
func (t Target) Known() Target { return t & knownTarget }

// Lacks reports whether code was generated for an x86 processor that lacks some of the given
// features.
func (t Target) Lacks(given Target) bool { return t&X86 != 0 && t&given != given }

// VectorBits returns the width of the widest vector registers for floating-point numbers or for
// integers, or 0 if it is unknown.
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
