package profile

import (
	"cmp"
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/codec"
	"github.com/stackglass/stackglass/core/trace"
)

// Counters contains machine-independent counts of a program's instructions and references
// (MODELS §10; Byfl's "software performance counters", Anger Table 1). Package analysis/counters
// defines and computes the counts.
//
// Each block that was entered has its own counts. Each function has the counts of references
// outside its blocks. All other counts are sums of the counts of blocks and functions. Functions
// and blocks are numbered as in the trace's tables, so the counters of segments of a trace can be
// added.
type Counters struct {
	Blocks  bool // whether the trace contains block entries
	Ops     bool // whether the instructions of the blocks are known
	Touched bool // whether distinct bytes were counted: UniqueBytes, Usage, and the UniqueBytes of each function

	Functions []FunctionCounters // ascending by number
	Code      []BlockCounters    // basic blocks that were entered, ascending by number
	Tallies   []Tally            // ascending: see [CompareTallies]

	UniqueBytes uint64
	// Usage contains the minimum number of distinct bytes that together receive 5 %, 10 %, … 100 %
	// of the accesses.
	Usage [UsageSteps]uint64
}

// UsageSteps is the number of shares in [Counters.Usage]: the multiples of 5 %.
const UsageSteps = 20

// NoFunction is the function number of references and blocks whose function is unknown.
const NoFunction = ^uint32(0)

// FunctionCounters contains the counters of one function.
type FunctionCounters struct {
	Number      uint32 // number of the function in the trace's tables, or NoFunction
	Name        string
	File        string // file name without its folder
	Line        uint32
	Invocations uint64
	UniqueBytes uint64 // number of distinct bytes that the function touched, excluding callees
	Loose       Counts // counts of references outside the blocks of the function
}

// BlockCounters contains the counters of one basic block.
type BlockCounters struct {
	Number              uint32 // number of the first part of the block in the trace's tables
	Function            uint32 // number of a function in Functions
	Label               string
	File                string // file name without its folder
	FirstLine, LastLine uint32
	Executions          uint64
	Counts              Counts
}

// Tally counts instructions by opcode, calls by callee, vectors by shape, or loads and stores
// by datatype.
type Tally struct {
	Kind  TallyKind
	Name  string // an opcode, a callee ("*" for calls through a pointer), or a datatype ("" if unknown)
	Lanes uint32 // number of lanes of a vector
	Size  uint32 // size of a vector element in bits, or size of a load or store in bytes; 0 if the sizes differ
	Count uint64
	Bytes uint64 // total number of bytes of loads or stores
}

// TallyKind is the kind of item that a [Tally] counts.
type TallyKind uint8

// The kinds.
const (
	Opcodes        TallyKind = iota // executed instructions
	Callees                         // calls, whether or not the callee's code is traced
	IntegerVectors                  // vector instructions except loads and stores
	FloatVectors
	LoadTypes
	StoreTypes
	numTallyKinds
)

// CompareTallies orders tallies by kind, name, number of lanes, and size.
func CompareTallies(x, y *Tally) int {
	return cmp.Or(cmp.Compare(x.Kind, y.Kind), strings.Compare(x.Name, y.Name), cmp.Compare(x.Lanes, y.Lanes), cmp.Compare(x.Size, y.Size))
}

// Tallied returns the tallies of a kind.
func (c *Counters) Tallied(kind TallyKind) (list []Tally) {
	for i := range c.Tallies {
		if c.Tallies[i].Kind == kind {
			list = append(list, c.Tallies[i])
		}
	}
	return list
}

// Counter is an index into [Counts].
type Counter uint8

const (
	BytesLoaded Counter = iota
	BytesStored
	Loads
	Stores
	Flops
	FloatOther
	IntegerOps
	VectorOps
	FlopBits
	OpBits
	ConditionalBranches
	UnconditionalBranches
	Returns
	CallOps
	RangesRead
	RangesWritten
	RangeBytesRead
	RangeBytesWritten
	Instructions
	NumCounters
)

// Counts contains the value of every counter.
type Counts [NumCounters]uint64

// Add adds the counts in other to c.
func (c *Counts) Add(other *Counts) {
	for i := range c {
		c[i] += other[i]
	}
}

// Bytes returns the number of bytes loaded and stored, without memset, memcpy and memmove.
func (c *Counts) Bytes() uint64 { return c[BytesLoaded] + c[BytesStored] }

// Moves returns the number of calls to memcpy and memmove, and the number of bytes that they moved.
// Each of these calls reads one range and writes another.
func (c *Counts) Moves() (calls, bytes uint64) { return c[RangesRead], c[RangeBytesRead] }

// Sets returns the number of calls to memset, and the number of bytes that they set. A written
// range belongs to a call of memset, unless the range belongs to a call of memcpy or memmove.
func (c *Counts) Sets() (calls, bytes uint64) {
	return c[RangesWritten] - min(c[RangesRead], c[RangesWritten]), c[RangeBytesWritten] - min(c[RangeBytesRead], c[RangeBytesWritten])
}

// Operations returns the number of floating-point and integer operations. Each vector lane counts
// as one operation.
func (c *Counts) Operations() uint64 { return c[Flops] + c[FloatOther] + c[IntegerOps] }

// AllOperations returns the number of operations, loads, stores, branches, calls and returns.
func (c *Counts) AllOperations() uint64 {
	return c.Operations() + c[Loads] + c[Stores] + c[ConditionalBranches] + c[UnconditionalBranches] + c[Returns] + c[CallOps]
}

// Program returns the sums of all counts over the program.
func (c *Counters) Program() (sum Counts) {
	for i := range c.Functions {
		sum.Add(&c.Functions[i].Loose)
	}
	for i := range c.Code {
		sum.Add(&c.Code[i].Counts)
	}
	return sum
}

// ByFunction returns the sum of the counts of each function, in the order of Functions.
func (c *Counters) ByFunction() []Counts {
	sums := make([]Counts, len(c.Functions))
	for i := range c.Functions {
		sums[i] = c.Functions[i].Loose
	}
	for i := range c.Code {
		if at := c.FunctionAt(c.Code[i].Function); at >= 0 {
			sums[at].Add(&c.Code[i].Counts)
		}
	}
	return sums
}

// FunctionAt returns the index in Functions of the function with the given number, or -1.
func (c *Counters) FunctionAt(number uint32) int {
	i := sort.Search(len(c.Functions), func(i int) bool { return c.Functions[i].Number >= number })
	if i == len(c.Functions) || c.Functions[i].Number != number {
		return -1
	}
	return i
}

// AddCounters adds the counters of two parts of a trace. Either argument may be nil. The result has
// no unique bytes and no Usage, because these counts cannot be added. AddCounters fails if the
// parts come from different programs.
func AddCounters(a, b *Counters) (*Counters, error) {
	if a == nil && b == nil {
		return nil, nil
	}
	sum, same := new(Counters), true
	for _, part := range []*Counters{a, b} {
		if part != nil {
			same = sum.add(part) && same
		}
	}
	if !same {
		return nil, &CheckError{"the parts of the profile come from different programs: the same function or block number stands for different code"}
	}
	for i := range sum.Functions {
		sum.Functions[i].UniqueBytes = 0
	}
	return sum, nil
}

func compareFunctions(x, y *FunctionCounters) int { return cmp.Compare(x.Number, y.Number) }

func compareBlocks(x, y *BlockCounters) int { return cmp.Compare(x.Number, y.Number) }

// add adds the counters in b, and reports whether b and c belong to the same program.
func (c *Counters) add(b *Counters) (same bool) {
	c.Blocks, c.Ops, c.Touched = c.Blocks || b.Blocks, c.Ops || b.Ops, c.Touched || b.Touched
	same = true
	c.Functions = Union(c.Functions, b.Functions, compareFunctions, func(x, y *FunctionCounters) {
		same = same && x.Name == y.Name && x.File == y.File && x.Line == y.Line
		x.Invocations += y.Invocations
		x.Loose.Add(&y.Loose)
	})
	c.Code = Union(c.Code, b.Code, compareBlocks, func(x, y *BlockCounters) {
		same = same && x.Function == y.Function && x.Label == y.Label && x.File == y.File
		x.Executions += y.Executions
		x.Counts.Add(&y.Counts)
	})
	c.Tallies = Union(c.Tallies, b.Tallies, CompareTallies, func(x, y *Tally) {
		x.Count += y.Count
		x.Bytes += y.Bytes
	})
	return same
}

// Union merges two ascending lists into a new list. If both lists contain equal members, the
// function add combines the two members into one. If both lists are empty, the result is the list
// a.
func Union[T any](a, b []T, compare func(x, y *T) int, add func(x, y *T)) []T {
	if len(a)+len(b) == 0 {
		return a
	}
	sum := make([]T, 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch c := compare(&a[0], &b[0]); {
		case c < 0:
			sum, a = append(sum, a[0]), a[1:]
		case c > 0:
			sum, b = append(sum, b[0]), b[1:]
		default:
			x := a[0]
			add(&x, &b[0])
			sum, a, b = append(sum, x), a[1:], b[1:]
		}
	}
	return append(append(sum, a...), b...)
}

// Meaning contains the names and the definition of a number that tables show.
type Meaning struct {
	Key   string // name for programs, such as "bytes_loaded"
	Label string // name for readers, such as "bytes loaded"
	Text  string // the definition, as a sentence
}

var meanings = [NumCounters]Meaning{
	BytesLoaded:           {"bytes_loaded", "bytes loaded", "The bytes of all loads; memcpy and memmove are counted separately."},
	BytesStored:           {"bytes_stored", "bytes stored", "The bytes of all stores; memset, memcpy and memmove are counted separately."},
	Loads:                 {"loads", "loads", "References that read. An atomic exchange both reads and writes."},
	Stores:                {"stores", "stores", "References that write. An atomic exchange both reads and writes."},
	Flops:                 {"flops", "flops", "Floating-point additions, subtractions, multiplications, divisions, remainders and negations, counted for each vector lane. A fused multiply-add counts as two."},
	FloatOther:            {"float_other", "other floating-point operations", "Floating-point comparisons and conversions, counted for each vector lane. Byfl counts these operations as flops."},
	IntegerOps:            {"integer_ops", "integer operations", "Integer arithmetic, logic, comparisons, conversions, address arithmetic and moves between vectors and scalars, counted for each vector lane."},
	VectorOps:             {"vector_ops", "operations in vectors", "Floating-point and integer operations that vector instructions perform, counted for each vector lane."},
	FlopBits:              {"flop_bits", "flop bits", "The bits of the operands and results of all flops."},
	OpBits:                {"op_bits", "operation bits", "The bits of the operands and results of all floating-point and integer operations."},
	ConditionalBranches:   {"branches_conditional", "conditional or indirect branches", "Branches with several possible targets: conditional branches, switches and computed branches."},
	UnconditionalBranches: {"branches_unconditional", "unconditional branches", "Branches with one target in the compiler's intermediate representation. Many of these branches do not exist in machine code."},
	Returns:               {"returns", "returns", "Returns from functions, and exceptions that continue in the caller."},
	CallOps:               {"calls", "calls", "Function calls, whether or not the callee is traced. Intrinsics of the compiler are not included."},
	RangesRead:            {"ranges_read", "ranges read", "Ranges of bytes that memcpy and memmove read."},
	RangesWritten:         {"ranges_written", "ranges written", "Ranges of bytes that memset, memcpy and memmove write."},
	RangeBytesRead:        {"range_bytes_read", "bytes read in ranges", "The bytes that memcpy and memmove read."},
	RangeBytesWritten:     {"range_bytes_written", "bytes written in ranges", "The bytes that memset, memcpy and memmove write."},
	Instructions:          {"instructions", "instructions", "Executed instructions of LLVM's intermediate representation."},
}

// Meaning returns the description of a counter.
func (c Counter) Meaning() Meaning { return meanings[c] }

// Derived is a ratio of counts.
type Derived struct {
	Meaning
	Value float64
	Share bool // Value is a share from 0 to 1, shown as a percentage
}

// Derive returns the ratios of counts, except for ratios with a denominator of 0. The parameter
// uniqueBytes is 0 if unique bytes were not counted.
func (c *Counts) Derive(uniqueBytes uint64) (list []Derived) {
	add := func(key, label, text string, numerator, denominator uint64, scale float64) {
		if denominator != 0 {
			list = append(list, Derived{Meaning: Meaning{key, label, text}, Value: float64(numerator) / float64(denominator) * scale})
		}
	}
	moved, flops, operations, branches := c.Bytes(), c[Flops], c.Operations(), c[ConditionalBranches]
	add("bytes_per_flop", "bytes per flop", "Bytes loaded and stored per flop.", moved, flops, 1)
	add("bits_per_flop_bit", "bits per flop bit", "Bits loaded and stored per bit of the operands and results of flops.", moved, c[FlopBits], 8)
	add("bytes_per_operation", "bytes per operation", "Bytes loaded and stored per floating-point or integer operation.", moved, operations, 1)
	add("bits_per_op_bit", "bits per operation bit", "Bits loaded and stored per bit of the operands and results of operations.", moved, c[OpBits], 8)
	add("bytes_loaded_per_stored", "bytes loaded per byte stored", "Bytes loaded per byte stored.", c[BytesLoaded], c[BytesStored], 1)
	add("bits_per_memory_op", "bits per load or store", "The mean size of a load or store, in bits.", moved, c[Loads]+c[Stores], 8)
	add("ops_per_branch", "operations per branch", "Operations, loads, stores, branches, calls and returns per conditional or indirect branch.", c.AllOperations(), branches, 1)
	add("flops_per_branch", "flops per branch", "Flops per conditional or indirect branch.", flops, branches, 1)
	if operations != 0 {
		add("vectorised", "vectorised share", "The share of floating-point and integer operations that vector instructions perform, counted for each vector lane.", c[VectorOps], operations, 1)
		list[len(list)-1].Share = true
	}
	if uniqueBytes != 0 {
		add("unique_bytes_per_flop", "unique bytes per flop", "Distinct bytes touched per flop.", uniqueBytes, flops, 1)
		add("bytes_per_unique_byte", "bytes per unique byte", "How often each touched byte is loaded or stored, on average.", moved, uniqueBytes, 1)
	}
	return list
}

// MedianReuse returns the median stack distance in lines, for one line size, and the median
// absolute deviation from this median. First accesses have an infinite distance. The result ok is
// false if the median is infinite.
func (l *Locality) MedianReuse() (median, deviation uint64, ok bool) {
	h, cold := l.Histogram(^trace.Kinds(0))
	c := NewCurve(h, cold)
	if median, ok = c.DistanceAtShare(0.5); !ok {
		return 0, 0, false
	}
	half := (c.Accesses + 1) / 2
	longest, _ := c.Longest()
	deviation = uint64(sort.Search(int(longest), func(radius int) bool {
		r := uint64(radius)
		return c.Hits(median+r+1)-c.Hits(median-min(r, median)) >= half
	}))
	return median, deviation, true
}

func (c *Counters) code(w *coder) {
	w.Flags(&c.Blocks, &c.Ops, &c.Touched)
	counters := uint64(NumCounters)
	if w.U64(&counters); counters != uint64(NumCounters) {
		w.In.Fail("the profile does not have the " + strconv.Itoa(int(NumCounters)) + " counters of this version; use a newer stackglass")
		return
	}
	w.withStrings(func() {
		next := uint64(0)
		codec.Slice(w.Coder, &c.Functions, 7, func(f *FunctionCounters) {
			codec.Next(w.Coder, &f.Number, &next, 1<<32)
			w.name(&f.Name)
			w.name(&f.File)
			w.U32(&f.Line)
			w.U64s(&f.Invocations, &f.UniqueBytes)
			w.Masked(f.Loose[:])
		})
		next = 0
		codec.Slice(w.Coder, &c.Code, 8, func(k *BlockCounters) {
			codec.Next(w.Coder, &k.Number, &next, 1<<32)
			w.Index(&k.Function)
			w.name(&k.Label)
			w.name(&k.File)
			w.U32s(&k.FirstLine, &k.LastLine)
			w.U64(&k.Executions)
			w.Masked(k.Counts[:])
		})
		codec.Slice(w.Coder, &c.Tallies, 6, func(t *Tally) {
			codec.Below(w.Coder, &t.Kind, uint64(numTallyKinds))
			w.name(&t.Name)
			w.U32s(&t.Lanes, &t.Size)
			w.U64s(&t.Count, &t.Bytes)
		})
		w.U64(&c.UniqueBytes)
		w.Array(c.Usage[:])
	})
}

// check verifies that the lists are in order and that all sums fit in 64 bits.
func (c *Counters) check(*Profile) error {
	switch {
	case !c.inOrder():
		return &CheckError{"the blocks, functions or tallies of the counters are out of order"}
	case !c.Blocks && len(c.Code) > 0 || !c.Ops && len(c.Tallied(Opcodes)) > 0:
		return &CheckError{"the counters refer to functions or blocks that the trace does not contain"}
	case !c.sumsFit():
		return &CheckError{"the sum of the counters exceeds 64 bits"}
	}
	return c.checkTouched()
}

func (c *Counters) inOrder() bool {
	return ascending(c.Functions, compareFunctions) && ascending(c.Code, compareBlocks) && ascending(c.Tallies, CompareTallies)
}

// ascending reports whether each element of a list is less than the next element.
func ascending[T any](list []T, compare func(x, y *T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}

// sumsFit reports whether the sums of all counters over the program fit in 64 bits, and whether the
// function of every block exists.
func (c *Counters) sumsFit() bool {
	var all uint64
	fits := true
	add := func(counts *Counts) {
		for _, n := range counts {
			sum, carry := bits.Add64(all, n, 0)
			all, fits = sum, fits && carry == 0
		}
	}
	for i := range c.Functions {
		add(&c.Functions[i].Loose)
	}
	for i := range c.Code {
		add(&c.Code[i].Counts)
		fits = fits && c.FunctionAt(c.Code[i].Function) >= 0
	}
	return fits
}

func (c *Counters) checkTouched() error {
	last := uint64(0)
	for _, n := range c.Usage {
		if n < last || n > c.UniqueBytes {
			return &CheckError{"the memory usage is not in ascending order of the shares of accesses"}
		}
		last = n
	}
	for i := range c.Functions {
		if c.Functions[i].UniqueBytes > c.UniqueBytes {
			return &CheckError{"a function touches more bytes than the program"}
		}
	}
	if c.Touched && last != c.UniqueBytes {
		return &CheckError{"the number of bytes that receive 100 % of the accesses differs from the number of touched bytes"}
	}
	return nil
}
