// Package pipeline models the cores of processors (MODELS §13.3): how many cycles the blocks of a
// program take, and their bottlenecks. Blocks consist of LLVM's intermediate representation after
// optimisation, with the dependences in trace.Instr; no machine code is needed.
//
// # Method
//
// The slides "Compute Node Models" (Santhi, Chennupati, LA-UR-17-20754, part 3) draw a graph of
// data dependences for each block, find the time of one pass by a model of the pipelines, with
// a latency and a throughput for each class of instructions, and sum these times by the
// executions of the blocks. Here:
//
//  1. A [Processor] has the cost of each [Class] of instructions: the latency, and micro-ops
//     with the ports that can execute them. [Named] has descriptions from the tables of
//     llvm-mca (LLVM 19), made by tools/pipelines. [Read] reads other descriptions, and PPT's.
//  2. [Processor.NewBody] makes a [Body] of a block: the cost and the dependences of each
//     instruction. Addresses, truncations, phis, and extensions of loads cost nothing; a
//     comparison and its branch are one; a division by a constant is a multiplication.
//  3. [Body.OnePass] schedules it once, greedily, cycle by cycle: the slides' time, and a
//     table of cycles and ports.
//  4. [Body.Steady] bounds the time of an iteration when many overlap, as in a loop: by the
//     ports (exactly, by maximal flows), by dispatch, and by recurrences (exactly, the largest
//     mean over the cycles of the graph). The largest bound is the time and the bottleneck. A
//     loop that is entered anew after few iterations overlaps with itself as far as the
//     window reaches: [Body.SteadyOver]. A load waits for a line that an earlier load of the
//     iteration fetches ([Options.FillWait]), if both addresses come from one value by adding
//     constants: fields of a structure. Structures reached by an index, and lines fetched by
//     stores or in an earlier iteration, are not recognised.
//  5. [Processor.Runtime] sums up, with numbers from a model of the memory: the average latency of
//     loads, the shares of accesses to two lines, independent misses, and lines in sequence. The
//     latter two bound a loop as ports do, together with its loads and stores (the ECM model):
//     fetches during computation cost nothing.
//
// # The target of the code
//
// A code generator translates an instruction of LLVM's into instructions of its target, which may
// lack some of the processor's: clang -O2 for any x86-64 has no FMA, so that llvm.fmuladd is a
// multiplication and an addition, and a chain of sums of products waits for one addition per
// iteration. [Options.Target] is the target (trace.Function has it, from LLVM's attributes
// target-cpu and target-features). The block keeps LLVM's instructions; only its cost is the cost
// of several:
//
//   - llvm.fmuladd without FMA: a product, and a sum, which alone waits for the third operand;
//   - vectors wider than the target's registers: several of them;
//   - on vectors without SSE 4.1: extensions, selections, minima and maxima, products of 32
//     bits, comparisons of 64 bits; without AVX2 or AVX-512: products of 64 bits, rotations, and
//     comparisons, whose result is a vector instead of a mask;
//   - llvm.ctpop of a number without POPCNT, and, on any x86, llvm.minnum, llvm.maxnum and
//     llvm.round;
//   - llvm.fma without FMA, llvm.floor and other roundings without SSE 4.1, and on any x86
//     llvm.lround: calls of the mathematical library, whose time is not modelled ([Body.Unknown]).
//
// Conversely, a product and a sum that -ffast-math or -ffp-contract=fast allow to be fused are one
// multiply-add if there is FMA (trace.Contract). Code for an unknown machine, or for one of another
// kind, counts as made for the processor.
//
// Not modelled are: vectors of llvm.ctpop, llvm.ctlz and llvm.cttz; shifts of vectors by vectors
// without AVX2; conversions of unsigned and of vectors of 64-bit integers without AVX-512; products
// of vectors of bytes, and of two 64-bit numbers to 128 bits, which count as two; llvm.bitreverse,
// llvm.copysign and saturating sums; llvm.memcpy of few bytes, which counts as a call; selections
// of floating-point numbers that become branches; minnum without NaNs; and copies of registers
// without AVX, whose operations overwrite an operand: they need dispatch slots, and no port.
//
// # Differences to the slides
//
// The slides sum up one pass of each block. A real core overlaps many iterations, so that they take
// a fraction of that time: the steady state is summed up here, and [SlidesForm] is the slides' sum.
// PPT has eleven classes; here there are more, which fall back on PPT's if a description lacks
// them. Micro-ops select among ports, which classes share. [NotModelled] lists the omissions.
//
// # Descriptions
//
// A description is text, and valid YAML:
//
//	name: toy
//	title: A toy
//	isa: x86-64
//	source: made up
//	clock_ghz: 2.5
//	dispatch: 4                       # micro-ops that enter per cycle
//	window: 224                       # micro-ops in the core
//	scheduler: 97                     # of these, those that wait for values
//	ports: P0 P1 P2 DIV
//	fuses: compare-branch             # and compare-select, extend-address, load-operation
//	transfers: overlap                # lines arrive while loads and stores use the first level
//	notes:
//	  - what a reader should know
//	levels:
//	  L1: latency 4, size 32KiB, ways 8
//	  L2: latency 14, size 1MiB, ways 16, read 1.5, written 3, scattered 1.4
//	  memory: latency 300, read 6, written 9, scattered 18
//	classes:
//	  iadd i64: latency 1, uops 1, ports P0|P1
//	  fadd <4 x double>: latency 3, again 2, uops 1, ports P1
//	  fma double: latency 4, addend 2, uops 1, ports P0|P1
//	  fdiv double: latency 13, uops 1, ports P0 + 4*DIV
//	  gather <4 x i32>: latency 20, uops 6, ports 2x P0|P1 + 4x P2
//	  load: latency 4, uops 1, ports P2
//
// The ports are micro-ops with + in between: each occupies one of the ports separated by |, for 1
// cycle, or for the number of cycles before *; "4x" stands for four equal ones. addend is the
// latency from the third operand of a fused multiply-add, again that to an instruction of the same
// class. A class without a type is for all types without a line; vectors without a line are
// executed in parts, or as the next longer ones. The additional cost of an access to two lines is
// the class crossingload or crossingstore; without it the access uses its ports twice.
//
// A level has the cycles from an address to the value, its size and ways, and the cycles per line
// when many lines come from there: read or written in sequence, or scattered.
package pipeline

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Processor is the model of a processor's core.
type Processor struct {
	Name, Title string
	ISA         string // "x86-64", "aarch64", ""
	Source      string // where the numbers are from
	Notes       []string
	ClockGHz    float64 // 0: unknown
	Dispatch    int     // micro-ops that enter the core a cycle
	Window      int     // micro-ops that are in it at a time, waiting or done (the reorder buffer); 0: unknown
	Scheduler   int     // of these, how many can wait for values; 0: unknown
	Ports       []string
	Fuses       Fusion
	Overlaps    bool    // lines are transferred to the first level while loads and stores use it
	Levels      []Level // of its memory, nearest first; empty: the classes of loads contain the latencies

	costs map[Key]Cost
	keys  []Key // in the order of the file
}

// Fusion is a kind of pair of instructions that execute as one.
type Fusion uint8

// The pairs.
const (
	// CompareBranch: a comparison of integers and the branch that alone uses it.
	CompareBranch Fusion = 1 << iota
	// CompareSelect: a comparison of floating-point numbers and the selection of one of them are a
	// minimum or maximum.
	CompareSelect
	// ExtendAddress: the extension of an integer that is only used in addresses.
	ExtendAddress
	// LoadOperation: a load and the only operation that uses it enter the core as one micro-op;
	// they use their ports as two.
	LoadOperation
)

var fusions = []struct {
	name string
	bit  Fusion
}{{"compare-branch", CompareBranch}, {"compare-select", CompareSelect}, {"extend-address", ExtendAddress}, {"load-operation", LoadOperation}}

// Level is a level of memory, a cache or, last and without a size, memory itself.
type Level struct {
	Name          string
	LatencyCycles float64 // from the address to the value
	SizeBytes     uint64  // of a cache; 0: memory, or not known
	Ways          uint32  // 0: fully associative, or not known
	// Cycles to move a line from this level to the first, beyond its loads and stores there, if
	// many lines move at a time; 0: unknown. The lines are read in sequence, written in sequence
	// (write-backs included), or scattered and independent.
	ReadCycles, WrittenCycles, ScatteredCycles float64
}

// Key names a cost: the class of an instruction and the type that it works on, as LLVM
// writes it: i32, i64, float, double, <4 x float>. The type "" stands for any type.
type Key struct {
	Class Class
	Type  string
}

func (k Key) String() string {
	if k.Type == "" {
		return string(k.Class)
	}
	return string(k.Class) + " " + k.Type
}

// Cost is the use of a core by an instruction.
type Cost struct {
	Latency  float64 // cycles from its operands to its result
	Addend   float64 // the same from the third operand of a fused multiply-add; 0: Latency
	Again    float64 // the same from an instruction of its own class, if that is shorter; 0: Latency
	MicroOps int     // slots that it takes when it enters the core
	Uses     []Use
}

// Use is a micro-op: it occupies one of some ports for some cycles.
type Use struct {
	Ports  uint64 // a bit for each port that can take it
	Cycles float64
	// After is the number of cycles by which it begins after the first micro-op of its operation,
	// if the operation stands for several in sequence; descriptions have 0.
	After float64
}

// most bounds of descriptions: no core is larger.
const (
	mostPorts    = 64
	mostCycles   = 1e6
	mostMicroOps = 10000
	mostUses     = 256
)

// Set sets the cost of a class and type.
func (p *Processor) Set(k Key, c Cost) {
	if p.costs == nil {
		p.costs = map[Key]Cost{}
	}
	if _, again := p.costs[k]; !again {
		p.keys = append(p.keys, k)
	}
	p.costs[k] = c
}

// Keys lists the keys of all costs, in the description's order.
func (p *Processor) Keys() []Key { return p.keys }

// Cost returns the description's own cost for a class and type.
func (p *Processor) Cost(k Key) (Cost, bool) {
	c, found := p.costs[k]
	return c, found
}

// has reports whether the description has a cost for a class, for any type.
func (p *Processor) has(class Class) bool {
	return slices.ContainsFunc(p.keys, func(k Key) bool { return k.Class == class })
}

// PortNames lists the ports of a set, P0|P1.
func (p *Processor) PortNames(ports uint64) string {
	var names []string
	for ports != 0 {
		i := bits.TrailingZeros64(ports)
		if i < len(p.Ports) {
			names = append(names, p.Ports[i])
		}
		ports &= ports - 1
	}
	return strings.Join(names, "|")
}

// Throughput is the number of cycles between starts of an instruction if only such instructions run
// and none waits for another.
func (p *Processor) Throughput(c Cost) float64 {
	b := Body{Processor: p, Ops: []Op{{Weight: 1, Cost: c}}}
	s := b.Steady()
	return s.Cycles
}

// Missing is a class without a cost in a processor's description, even by replacement.
type Missing struct {
	Class Class
	Type  string // of the first instruction
	Block uint32 // the first block that needs it
	Count int    // instructions that need it
}

// cost finds the cost of a class for a type, from the description or a replacement: the same class
// of another type, vectors in parts, then another class.
func (p *Processor) cost(class Class, of shape) (Cost, bool) {
	for range len(standIns) + 1 {
		if c, ok := p.ofClass(class, of); ok {
			return c, true
		}
		switch class {
		case FMA:
			return p.productAndSum(of)
		case IMin:
			return p.series(of, ICmp, Select)
		}
		next, ok := standIns[class]
		if !ok {
			break
		}
		class = next
	}
	return p.ofClass(Unknown, of)
}

// series is one class after the other.
func (p *Processor) series(of shape, classes ...Class) (sum Cost, ok bool) {
	for _, class := range classes {
		c, ok := p.cost(class, of)
		if !ok {
			return Cost{}, false
		}
		sum = sum.then(c)
	}
	return sum, true
}

// then is the cost of c and then d.
func (c Cost) then(d Cost) Cost {
	sum := c.beside(d)
	sum.Latency = c.Latency + d.Latency
	for i := len(c.Uses); i < len(sum.Uses); i++ {
		sum.Uses[i].After += c.Latency
	}
	return sum
}

// beside is the cost of c and d, which do not wait for each other.
func (c Cost) beside(d Cost) Cost {
	uses := make([]Use, 0, len(c.Uses)+len(d.Uses))
	return Cost{
		Latency: max(c.Latency, d.Latency), MicroOps: c.MicroOps + d.MicroOps,
		Uses: append(append(uses, c.Uses...), d.Uses...),
	}
}

// times is the cost of n c, none of which waits for another: the parts of a vector.
func (c Cost) times(n int) Cost {
	if n <= 1 {
		return c
	}
	many := Cost{Latency: c.Latency, Addend: c.Addend, Again: c.Again, MicroOps: min(c.MicroOps*n, mostMicroOps)}
	for _, u := range c.Uses {
		if n > mostUses/max(1, len(c.Uses)) { // one long use instead of many: the load is the same
			u.Cycles *= float64(n)
			many.Uses = append(many.Uses, u)
			continue
		}
		for range n {
			many.Uses = append(many.Uses, u)
		}
	}
	return many
}

// ofClass finds a cost in one class: of the type itself, of the vector that has it in its first
// elements, of its parts, and of the class for any type.
func (p *Processor) ofClass(class Class, of shape) (Cost, bool) {
	n := of.elements
	if n == 0 { // a scalar
		if c, ok := p.costs[Key{class, of.element}]; ok {
			return c.times(of.parts), true
		}
		if other := of.neighbour(); other != "" {
			if c, ok := p.costs[Key{class, other}]; ok {
				return c.times(of.parts), true
			}
		}
		c, ok := p.costs[Key{class, ""}]
		return c.times(of.parts), ok
	}
	whole, most := 1<<bits.Len(uint(n-1)), 64
	if of.widestBits > 0 {
		most = of.widestBits / of.elementBits()
	}
	for m := whole; m <= most; m *= 2 {
		if c, ok := p.costs[Key{class, vectorOf(m, of.element)}]; ok {
			return c.times(of.parts), true
		}
	}
	for m := min(whole/2, most); m >= 2; m /= 2 {
		if c, ok := p.costs[Key{class, vectorOf(m, of.element)}]; ok {
			return c.times(of.parts * ((n + m - 1) / m)), true
		}
	}
	c, ok := p.ofClass(class, shape{element: of.element, parts: 1})
	return c.times(of.parts * n), ok
}

func vectorOf(n int, element string) string { return "<" + strconv.Itoa(n) + " x " + element + ">" }

// shape is a type in the form in which costs are looked up.
type shape struct {
	element  string // i8 to i64 (scalars i32 and i64), float, double
	elements int    // of a vector; 0: a scalar
	parts    int    // at least 1: more for a type that is wider than any register
	// widestBits bounds the vectors' parts, for code whose machine has narrower registers than the
	// processor; 0: no bound.
	widestBits int
}

func (s shape) elementBits() int {
	switch s.element {
	case "i8":
		return 8
	case "i16":
		return 16
	case "i32", "float":
		return 32
	}
	return 64
}

// neighbour is the scalar that replaces one without a cost.
func (s shape) neighbour() string {
	switch s.element {
	case "i32":
		return "i64"
	case "i64":
		return "i32"
	case "float":
		return "double"
	case "double":
		return "float"
	}
	return ""
}

// shapeOf reads a type as LLVM writes it. Types other than numbers and vectors of numbers count as
// pointers, and a struct as its first member.
func shapeOf(text string) shape {
	text = strings.TrimLeft(text, "{ ")
	if inner, ok := strings.CutPrefix(text, "<"); ok && !strings.HasPrefix(inner, "{") {
		inner = strings.TrimPrefix(inner, "vscale x ")
		count, element, ok := strings.Cut(strings.TrimSuffix(inner, ">"), " x ")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 1 || n > 1<<16 {
			return shape{element: "i64", parts: 1}
		}
		s := scalar(element, true)
		if n > 1 {
			s.elements = n
		}
		return s
	}
	return scalar(text, false)
}

// scalar reads the type of a scalar, or of a vector's element.
func scalar(text string, inVector bool) shape {
	text, _, _ = strings.Cut(text, ",")
	text = strings.TrimRight(text, " }>")
	switch text {
	case "float", "double":
		return shape{element: text, parts: 1}
	case "half", "bfloat":
		return shape{element: "float", parts: 1}
	case "x86_fp80", "fp128", "ppc_fp128":
		return shape{element: "double", parts: 1}
	}
	width := 64
	if digits, ok := strings.CutPrefix(text, "i"); ok {
		if n, err := strconv.Atoi(digits); err == nil && n > 0 {
			width = min(n, 1<<14)
		}
	}
	switch {
	case inVector && width <= 8:
		return shape{element: "i8", parts: 1}
	case inVector && width <= 16:
		return shape{element: "i16", parts: 1}
	case width <= 32:
		return shape{element: "i32", parts: 1}
	}
	return shape{element: "i64", parts: (width + 63) / 64}
}

func (s shape) isFloat() bool { return s.element == "float" || s.element == "double" }

// whole is the number of cycles for which a schedule keeps a port busy.
func whole(cycles float64) int { return max(1, int(math.Ceil(cycles-1e-9))) }
