// Package pipeline models processor cores (MODELS §13.3). The package computes how many cycles the
// basic blocks of a program take, and finds their bottlenecks. The blocks consist of optimised LLVM
// IR, with the data dependences in trace.Instr; no machine code is needed.
//
// # Method
//
// The slides "Compute Node Models" (Santhi, Chennupati, LA-UR-17-20754, part 3) build a graph of
// data dependences for each block. With a model of the pipelines, in which each class of
// instructions has a latency and a throughput, the slides compute the time of one pass through the
// block. The slides then sum these times, weighted by the executions of the blocks. This package
// works as follows:
//
//  1. A [Processor] contains the cost of each [Class] of instructions: the latency, and the
//     micro-ops with the ports that can execute them. [Named] returns descriptions that
//     tools/pipelines generated from the tables of llvm-mca (LLVM 19). [Read] reads other
//     descriptions, and PPT's hardware files.
//  2. [Processor.NewBody] converts a block to a [Body]: the cost and the dependences of each
//     instruction. Address computations, truncations, phis, and extensions of loads cost nothing. A
//     comparison and its branch count as one instruction. A division by a constant counts as a
//     multiplication.
//  3. [Body.OnePass] schedules a body once, greedily, cycle by cycle. OnePass returns the time as
//     defined in the slides, and a table of cycles and ports.
//  4. [Body.Steady] computes lower bounds for the time of an iteration when many iterations of a
//     loop overlap. There is a bound for the ports (computed exactly, with maximum flows), a bound
//     for dispatch, and a bound for recurrences (computed exactly, as the maximum mean over the
//     circuits of the graph). The largest bound is the predicted time, and identifies the
//     bottleneck. If a loop runs for only a few iterations each time that it is entered, successive
//     executions of the loop overlap as far as the window permits ([Body.SteadyOver]). If the
//     addresses of two loads differ only by a constant (fields of a structure), the second load
//     waits for the line that the first load fetches ([Options.FillWait]). Two kinds of loads are
//     assumed not to wait: loads from structures that are accessed by an index, and loads from
//     lines that a store or an earlier iteration has fetched.
//  5. [Processor.Runtime] sums the times of all blocks, weighted by their executions. A memory
//     model provides the average latency of loads, the shares of accesses that cross a line, and
//     the numbers of independent misses and of sequential lines. The numbers of independent misses
//     and of sequential lines, together with the loop's loads and stores, yield additional lower
//     bounds for the loop (the ECM model). In the ECM model, fetches that overlap with computation
//     cost nothing.
//
// # The target of the code
//
// A code generator translates LLVM instructions to instructions of its target, which may lack some
// of the processor's instructions. For example, clang -O2 for generic x86-64 does not use FMA.
// llvm.fmuladd then becomes a multiplication and an addition, and a sum of products waits for one
// addition per iteration. [Options.Target] is the target of the code, in the form of
// trace.Function, which contains LLVM's attributes target-cpu and target-features. A block consists
// of LLVM instructions, but some of these instructions cost as much as several instructions of the
// target:
//
//   - llvm.fmuladd without FMA: a product and a sum, and only the sum waits for the third operand;
//   - vectors wider than the target's registers: several instructions;
//   - vector instructions without SSE 4.1: extensions, selections, minima and maxima, 32-bit
//     products, and 64-bit comparisons;
//   - vector instructions without AVX-512: 64-bit products, rotations, and comparisons (the result
//     of a comparison is a vector instead of a mask);
//   - without POPCNT, llvm.ctpop of a scalar; on any x86, llvm.minnum, llvm.maxnum and llvm.round;
//   - llvm.fma without FMA, llvm.floor and other roundings without SSE 4.1, and, on any x86,
//     llvm.lround: calls to the math library, whose time is not modelled ([Body.Unknown]).
//
// Conversely, a product and a sum that may be fused because of -ffast-math or -ffp-contract=fast
// (trace.Contract) become one multiply-add if the target has FMA. Code for an unknown machine or
// another architecture is treated as if it were compiled for the processor.
//
// The model does not include the following details:
//
//   - llvm.ctpop, llvm.ctlz and llvm.cttz of vectors;
//   - without AVX2, shifts of vectors by vectors;
//   - without AVX-512, conversions of unsigned integers and of vectors of 64-bit integers;
//   - products of vectors of bytes;
//   - 128-bit products of two 64-bit numbers, which count as two products;
//   - llvm.bitreverse, llvm.copysign and saturating sums;
//   - llvm.memcpy of a few bytes, which counts as a call;
//   - selects of floating-point numbers that become branches;
//   - llvm.minnum of operands that cannot be NaN.
//
// Register copies are not included either. Code without AVX needs such copies, because its
// instructions overwrite an operand. The copies use dispatch slots, but no ports.
//
// # Differences from the slides
//
// The slides sum the times of one pass of each block. A real core overlaps many iterations, so an
// iteration takes only a fraction of the time of one pass. By default, this package sums
// steady-state times. [SlidesForm] selects the slides' method. This package has more classes than
// PPT, which has eleven. If a description contains no cost for a class, the cost of one of PPT's
// classes is used. In PPT, each class has its own pipelines. Here, each micro-op can run on one of
// several ports, and different classes may use the same port. [NotModelled] lists the effects that
// are omitted.
//
// # Descriptions
//
// A description is a text file in a subset of YAML:
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
//	transfers: overlap                # lines arrive while loads and stores use the first level;
//	                                  # overlap-beyond-L2: only lines on their way to the second level
//	notes:
//	  - what a reader should know
//	levels:
//	  L1: latency 4, size 32KiB, ways 8
//	  L2: latency 14, size 1MiB, ways 16, read 1.5, written 3, scattered 1.4, stored 2.8
//	  memory: latency 300, read 6, written 9, scattered 18, stored 30
//	classes:
//	  iadd i64: latency 1, uops 1, ports P0|P1
//	  fadd <4 x double>: latency 3, again 2, uops 1, ports P1
//	  fma double: latency 4, addend 2, uops 1, ports P0|P1
//	  fdiv double: latency 13, uops 1, ports P0 + 4*DIV
//	  gather <4 x i32>: latency 20, uops 6, ports 2x P0|P1 + 4x P2
//	  load: latency 4, uops 1, ports P2
//
// The entry "ports" lists the micro-ops, separated by +. Each micro-op occupies one of the ports
// separated by |, for 1 cycle or for the number of cycles before *; "4x" stands for four equal
// micro-ops. The entry "addend" is the latency from the third operand of a fused multiply-add. The
// entry "again" is the latency from an instruction to a dependent instruction of the same class. A
// class without a type applies to all types that are not listed. Vector types that are not listed
// are executed in parts, or like the next longer vector type. The classes crossingload and
// crossingstore contain the additional cost of an access that crosses a line. If a description does
// not list these classes, an access that crosses a line uses its ports twice.
//
// A level has a latency in cycles (from the address to the value), a size, and a number of ways.
// The entries "read", "written", "scattered" and "stored" are the cycles per line when many lines are
// transferred from the level: for lines that are read in sequence, for lines that are written in
// sequence, for scattered lines that are read, and for scattered lines that are stored to.
package pipeline

import (
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Processor is a model of a processor core.
type Processor struct {
	Name, Title string
	ISA         string // instruction set: "x86-64", "aarch64", or "" if unknown
	Source      string // origin of the numbers
	Notes       []string
	ClockGHz    float64 // clock frequency; 0 if unknown
	Dispatch    int     // number of micro-ops that enter the core per cycle
	// size of the reorder buffer: maximum number of micro-ops in the core, waiting or completed; 0:
	// unknown
	Window    int
	Scheduler int // maximum number of micro-ops that wait for values; 0: unknown
	Ports     []string
	Fuses     Fusion
	Overlap   Overlap
	Levels    []Level // levels of memory, nearest first; if empty, the latencies of loads are used

	costs map[Key]Cost
	keys  []Key // keys of costs in the order of the file
}

// Overlap says which transfers of lines overlap with the accesses of loads and stores to the first
// level.
type Overlap uint8

const (
	NoOverlap       Overlap = iota
	OverlapBeyondL2         // transfers to the second level overlap, and those from there to the first do not
	FullOverlap
)

var overlaps = [...]string{NoOverlap: "", OverlapBeyondL2: "overlap-beyond-L2", FullOverlap: "overlap"}

// Fusion is a set of kinds of instruction pairs that execute as one instruction.
type Fusion uint8

// These are the kinds of instruction pairs.
const (
	// CompareBranch: a comparison of integers, and a branch that is the only user of its result.
	CompareBranch Fusion = 1 << iota
	// CompareSelect: a comparison of two floating-point numbers, and a select between them: a
	// minimum or maximum.
	CompareSelect
	// ExtendAddress: an extension of an integer whose result is used only in addresses.
	ExtendAddress
	// LoadOperation: a load, and the only operation that uses its value. The pair enters the core as
	// one micro-op, but uses ports like two micro-ops.
	LoadOperation
)

var fusions = []struct {
	name string
	bit  Fusion
}{{"compare-branch", CompareBranch}, {"compare-select", CompareSelect}, {"extend-address", ExtendAddress}, {"load-operation", LoadOperation}}

// Level is a level of the memory hierarchy: a cache, or main memory, which is the last level and
// has no size.
type Level struct {
	Name          string
	LatencyCycles float64 // latency from the address to the value
	SizeBytes     uint64  // size of a cache; 0: main memory, or unknown
	Ways          uint32  // number of ways; 0 if fully associative or unknown
	// ReadCycles, WrittenCycles, ScatteredCycles and StoredCycles are the cycles per line for
	// transferring many lines from this level to the first level, in addition to the loads and stores
	// in the first level. The lines are read in sequence, written in sequence (including
	// write-backs), scattered, independent and read, or scattered and stored to (including
	// write-backs). The value 0 means unknown.
	ReadCycles, WrittenCycles, ScatteredCycles, StoredCycles float64
}

// Key identifies a cost by the class of an instruction and its type in LLVM's syntax: i32, i64,
// float, double, <4 x float>. The type "" represents any type.
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

// Cost is the cost of an instruction in the core.
type Cost struct {
	Latency float64 // number of cycles from the start of the instruction until its result is available
	Addend  float64 // latency from the third operand of a fused multiply-add; 0: same as Latency
	// latency to a dependent instruction of the same class, if shorter than Latency; 0: same as
	// Latency
	Again    float64
	MicroOps int // number of dispatch slots
	Uses     []Use
}

// Use is the use of a port by a micro-op, which occupies one of several ports for a number of
// cycles.
type Use struct {
	Ports  uint64 // bit set of the ports that can execute the micro-op
	Cycles float64
	// After is the number of cycles by which this micro-op starts later than the first micro-op of
	// the operation. In processor descriptions, After is 0. After is positive only if an operation
	// represents several instructions in sequence.
	After float64
}

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

// Keys returns the keys of all costs, in the order of the description.
func (p *Processor) Keys() []Key { return p.keys }

// Cost returns the cost of a class and type, or false if the description does not contain it.
// Cost does not use substitutes.
func (p *Processor) Cost(k Key) (Cost, bool) {
	c, found := p.costs[k]
	return c, found
}

// hasClass reports whether the description contains a cost for a class and any type.
func (p *Processor) hasClass(class Class) bool {
	return slices.ContainsFunc(p.keys, func(k Key) bool { return k.Class == class })
}

// PortNames returns the names of the ports in a set, such as P0|P1.
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

// Throughput returns the reciprocal throughput of instructions with cost c: the number of cycles
// between the starts of two independent instructions.
func (p *Processor) Throughput(c Cost) float64 {
	b := Body{Processor: p, Ops: []Op{{Weight: 1, Cost: c}}}
	s := b.Steady()
	return s.Cycles
}

// Missing is a class for which the description of a processor contains no cost, not even the cost
// of a substitute class.
type Missing struct {
	Class Class
	Type  string // type of the first instruction that needs the class
	Block uint32 // the first block that needs the class
	Count int    // number of instructions that need the class
}

// cost returns the cost of a class for a type. If the description does not contain this cost, cost
// tries the same class with a different type, then parts of the vector, and then the substitute of
// the class.
func (p *Processor) cost(class Class, of shape) (Cost, bool) {
	for range len(substitutes) + 1 {
		if c, ok := p.costInClass(class, of); ok {
			return c, true
		}
		switch class {
		case FMA:
			return p.productAndSum(of)
		case IMin:
			return p.sequenceCost(of, ICmp, Select)
		}
		next, ok := substitutes[class]
		if !ok {
			break
		}
		class = next
	}
	return p.costInClass(Unknown, of)
}

// sequenceCost returns the cost of a sequence of dependent instructions of the given classes.
func (p *Processor) sequenceCost(of shape, classes ...Class) (sum Cost, ok bool) {
	for _, class := range classes {
		c, ok := p.cost(class, of)
		if !ok {
			return Cost{}, false
		}
		sum = sum.followedBy(c)
	}
	return sum, true
}

// followedBy returns the total cost of two operations: an operation with cost c, and then a dependent
// operation with cost d.
func (c Cost) followedBy(d Cost) Cost {
	sum := c.alongside(d)
	sum.Latency = c.Latency + d.Latency
	for i := len(c.Uses); i < len(sum.Uses); i++ {
		sum.Uses[i].After += c.Latency
	}
	return sum
}

// alongside returns the total cost of two independent operations with costs c and d.
func (c Cost) alongside(d Cost) Cost {
	uses := make([]Use, 0, len(c.Uses)+len(d.Uses))
	return Cost{
		Latency: max(c.Latency, d.Latency), MicroOps: c.MicroOps + d.MicroOps,
		Uses: append(append(uses, c.Uses...), d.Uses...),
	}
}

// repeated returns the total cost of n independent operations with cost c, such as the parts of a
// vector.
func (c Cost) repeated(n int) Cost {
	if n <= 1 {
		return c
	}
	many := Cost{Latency: c.Latency, Addend: c.Addend, Again: c.Again, MicroOps: min(c.MicroOps*n, mostMicroOps)}
	for _, u := range c.Uses {
		if n > mostUses/max(1, len(c.Uses)) { // one long use of a port causes the same load as several short uses
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

// costInClass searches for a cost in one class, in this order: for the type itself, for a longer
// vector, for parts of the vector, and for any type.
func (p *Processor) costInClass(class Class, of shape) (Cost, bool) {
	n := of.elements
	if n == 0 { // the type is a scalar
		if c, ok := p.costs[Key{class, of.element}]; ok {
			return c.repeated(of.parts), true
		}
		if other := of.similarScalar(); other != "" {
			if c, ok := p.costs[Key{class, other}]; ok {
				return c.repeated(of.parts), true
			}
		}
		c, ok := p.costs[Key{class, ""}]
		return c.repeated(of.parts), ok
	}
	whole, most := 1<<bits.Len(uint(n-1)), 64
	if of.widestBits > 0 {
		most = of.widestBits / of.elementBits()
	}
	for m := whole; m <= most; m *= 2 {
		if c, ok := p.costs[Key{class, vectorOf(m, of.element)}]; ok {
			return c.repeated(of.parts), true
		}
	}
	for m := min(whole/2, most); m >= 2; m /= 2 {
		if c, ok := p.costs[Key{class, vectorOf(m, of.element)}]; ok {
			return c.repeated(of.parts * ((n + m - 1) / m)), true
		}
	}
	c, ok := p.costInClass(class, shape{element: of.element, parts: 1})
	return c.repeated(of.parts * n), ok
}

func vectorOf(n int, element string) string { return "<" + strconv.Itoa(n) + " x " + element + ">" }

// shape is a type in the form that is used to look up costs.
type shape struct {
	element  string // type of an element: i8 to i64 (for scalars, only i32 and i64), float or double
	elements int    // number of elements of a vector; 0: a scalar
	parts    int    // number of parts; more than 1 for integers that are wider than any register
	// widestBits is the size of vector registers in the code's target, if this size is smaller
	// than in the processor. Vectors are split into parts of this size. The value 0 means no
	// limit.
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

// similarScalar returns the scalar type whose cost is used if the description contains no cost for
// type s.
func (s shape) similarScalar() string {
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

// shapeOf parses a type in LLVM's syntax. A struct is treated like its first member. Other types
// that are neither numbers nor vectors of numbers are treated like pointers.
func shapeOf(text string) shape {
	text = strings.TrimLeft(text, "{ ")
	if inner, ok := strings.CutPrefix(text, "<"); ok && !strings.HasPrefix(inner, "{") {
		inner = strings.TrimPrefix(inner, "vscale x ")
		count, element, ok := strings.Cut(strings.TrimSuffix(inner, ">"), " x ")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n < 1 || n > 1<<16 {
			return shape{element: "i64", parts: 1}
		}
		s := parseScalar(element, true)
		if n > 1 {
			s.elements = n
		}
		return s
	}
	return parseScalar(text, false)
}

// parseScalar parses the type of a scalar, or of the elements of a vector.
func parseScalar(text string, inVector bool) shape {
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

// wholeCycles rounds a number of cycles up to the number of whole cycles in which a schedule keeps
// a port busy.
func wholeCycles(cycles float64) int { return max(1, int(math.Ceil(cycles-1e-9))) }
