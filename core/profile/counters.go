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

// Counters are machine-independent sums of a program's instructions and references (MODELS §10;
// Byfl's "software performance counters", Anger Table 1). Package analysis/counters defines and
// computes them.
//
// Each entered block has its counts, and each function the references that belong to none of
// its blocks; everything else is a sum of these. Functions and blocks have the numbers of the
// trace's tables, so that segments of one trace can be added up.
type Counters struct {
	Blocks  bool // the trace contains entries of blocks
	Ops     bool // the instructions of the blocks are known
	Touched bool // UniqueBytes and Usage were counted, here and in Functions

	Functions []FunctionCounters // ascending by number
	Code      []BlockCounters    // ascending by number; basic blocks that were entered
	Tallies   []Tally            // ascending: see [CompareTallies]

	UniqueBytes uint64
	// Usage is the least number of bytes that receive 5 %, 10 %, … 100 % of the accesses.
	Usage [UsageSteps]uint64
}

// UsageSteps is the number of shares, 5 % apart, of [Counters.Usage].
const UsageSteps = 20

// NoFunction is the number of the function for references and blocks of no known function.
const NoFunction = ^uint32(0)

// FunctionCounters is one function.
type FunctionCounters struct {
	Number      uint32 // in the trace's tables, or NoFunction
	Name        string
	File        string // without its folder
	Line        uint32
	Invocations uint64
	UniqueBytes uint64 // that its own code touched
	Loose       Counts // of references that belong to none of its blocks
}

// BlockCounters is one basic block.
type BlockCounters struct {
	Number              uint32 // of its first part in the trace's tables
	Function            uint32 // number of a function that is in Functions
	Label               string
	File                string // without its folder
	FirstLine, LastLine uint32
	Executions          uint64
	Counts              Counts
}

// Tally counts instructions by opcode, calls by callee, vectors by shape, or loads and stores
// by datatype.
type Tally struct {
	Kind  TallyKind
	Name  string // opcode, callee ("*": through a pointer), or datatype ("": unknown)
	Lanes uint32 // of vectors
	Size  uint32 // bits of a vector's elements; bytes of a load or store, 0: they differ
	Count uint64
	Bytes uint64 // of all loads or stores
}

// TallyKind is the unit that a [Tally] counts.
type TallyKind uint8

// The kinds.
const (
	Opcodes        TallyKind = iota // executed instructions
	Callees                         // calls, whether the callee's code is traced or not
	IntegerVectors                  // vector instructions but loads and stores
	FloatVectors
	LoadTypes
	StoreTypes
	numTallyKinds
)

// CompareTallies orders by kind, name, lanes and size.
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

// Counter is the index of one number of [Counts].
type Counter uint8

// The counters of blocks, functions and programs.
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

// Counts holds a number for every counter.
type Counts [NumCounters]uint64

// Add adds other.
func (c *Counts) Add(other *Counts) {
	for i := range c {
		c[i] += other[i]
	}
}

// Bytes returns the number of bytes loaded and stored, without memset, memcpy and memmove.
func (c *Counts) Bytes() uint64 { return c[BytesLoaded] + c[BytesStored] }

// Moves returns the number of calls of memcpy and memmove, and the bytes that they moved. A
// move reads one range and writes another.
func (c *Counts) Moves() (calls, bytes uint64) { return c[RangesRead], c[RangeBytesRead] }

// Sets returns the number of calls of memset, and the bytes that they set: ranges that are
// written but not moved there.
func (c *Counts) Sets() (calls, bytes uint64) {
	return c[RangesWritten] - min(c[RangesRead], c[RangesWritten]), c[RangeBytesWritten] - min(c[RangeBytesRead], c[RangeBytesWritten])
}

// Operations returns the number of floating-point and integer operations, lane by lane.
func (c *Counts) Operations() uint64 { return c[Flops] + c[FloatOther] + c[IntegerOps] }

// AllOperations returns the number of operations, loads, stores, branches, calls and returns.
func (c *Counts) AllOperations() uint64 {
	return c.Operations() + c[Loads] + c[Stores] + c[ConditionalBranches] + c[UnconditionalBranches] + c[Returns] + c[CallOps]
}

// Program returns the sums over the program.
func (c *Counters) Program() (sum Counts) {
	for i := range c.Functions {
		sum.Add(&c.Functions[i].Loose)
	}
	for i := range c.Code {
		sum.Add(&c.Code[i].Counts)
	}
	return sum
}

// ByFunction returns the sums of the functions, in the order of Functions.
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

// FunctionAt is the index in Functions of the function with that number, or -1.
func (c *Counters) FunctionAt(number uint32) int {
	i := sort.Search(len(c.Functions), func(i int) bool { return c.Functions[i].Number >= number })
	if i == len(c.Functions) || c.Functions[i].Number != number {
		return -1
	}
	return i
}

// AddCounters adds the counters of two parts of one trace; either may be nil. The sum has no unique
// bytes and no Usage, which cannot be added. It fails if the parts are of different programs.
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
		return nil, &CheckError{"its parts are of different programs: the same number means different code"}
	}
	for i := range sum.Functions {
		sum.Functions[i].UniqueBytes = 0
	}
	return sum, nil
}

func compareFunctions(x, y *FunctionCounters) int { return cmp.Compare(x.Number, y.Number) }

func compareBlocks(x, y *BlockCounters) int { return cmp.Compare(x.Number, y.Number) }

// add adds the counters of b, and reports whether both are of the same program.
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

// Union merges two ascending lists into a new one. Equal members are added. The union of two empty
// lists is a.
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

// Meaning describes a number, for tables and their readers.
type Meaning struct {
	Key   string // for programs: "bytes_loaded"
	Label string // for people: "bytes loaded"
	Text  string // the definition, in a sentence
}

var meanings = [NumCounters]Meaning{
	BytesLoaded:           {"bytes_loaded", "bytes loaded", "The bytes of all loads; memcpy and memmove are counted separately."},
	BytesStored:           {"bytes_stored", "bytes stored", "The bytes of all stores; memset, memcpy and memmove are counted separately."},
	Loads:                 {"loads", "loads", "References that read; an atomic exchange reads and writes."},
	Stores:                {"stores", "stores", "References that write; an atomic exchange reads and writes."},
	Flops:                 {"flops", "flops", "Floating-point additions, subtractions, multiplications, divisions, remainders and negations, each lane of a vector separately; a fused multiply-add is two."},
	FloatOther:            {"float_other", "other floating-point operations", "Floating-point comparisons and conversions, by lane. Byfl calls them flops too."},
	IntegerOps:            {"integer_ops", "integer operations", "Integer arithmetic, logic, comparisons, conversions, address arithmetic and moves between vectors and scalars, by lane."},
	VectorOps:             {"vector_ops", "operations in vectors", "The part of the floating-point and integer operations that vector instructions do, by lane."},
	FlopBits:              {"flop_bits", "flop bits", "The bits of the operands and results of all flops."},
	OpBits:                {"op_bits", "operation bits", "The bits of the operands and results of all floating-point and integer operations."},
	ConditionalBranches:   {"branches_conditional", "conditional or indirect branches", "Branches to one of several places: conditional ones, switches and computed ones."},
	UnconditionalBranches: {"branches_unconditional", "unconditional branches", "Branches to one place, as the compiler's form has them; many vanish in machine code."},
	Returns:               {"returns", "returns", "Returns from functions, and exceptions that continue in the caller."},
	CallOps:               {"calls", "calls", "Calls of functions, traced or not; the compiler's own small functions are not among them."},
	RangesRead:            {"ranges_read", "ranges read", "Runs of bytes that memcpy and memmove read."},
	RangesWritten:         {"ranges_written", "ranges written", "Runs of bytes that memset, memcpy and memmove write."},
	RangeBytesRead:        {"range_bytes_read", "bytes of ranges read", "The bytes of these runs."},
	RangeBytesWritten:     {"range_bytes_written", "bytes of ranges written", "The bytes of these runs."},
	Instructions:          {"instructions", "instructions", "Instructions of the compiler's own form, LLVM's, as often as they were executed."},
}

// Meaning returns the description of a counter.
func (c Counter) Meaning() Meaning { return meanings[c] }

// Derived is a ratio of counts.
type Derived struct {
	Meaning
	Value float64
	Share bool // from 0 to 1, for a percentage
}

// Derive returns the ratios of counts whose denominators are not 0. uniqueBytes is 0 if they were
// not counted.
func (c *Counts) Derive(uniqueBytes uint64) (list []Derived) {
	add := func(key, label, text string, numerator, denominator uint64, scale float64) {
		if denominator != 0 {
			list = append(list, Derived{Meaning: Meaning{key, label, text}, Value: float64(numerator) / float64(denominator) * scale})
		}
	}
	moved, flops, operations, branches := c.Bytes(), c[Flops], c.Operations(), c[ConditionalBranches]
	add("bytes_per_flop", "bytes per flop", "Bytes loaded and stored for each flop.", moved, flops, 1)
	add("bits_per_flop_bit", "bits per flop bit", "Bits loaded and stored for each bit of the operands and results of flops.", moved, c[FlopBits], 8)
	add("bytes_per_operation", "bytes per operation", "Bytes loaded and stored for each floating-point or integer operation.", moved, operations, 1)
	add("bits_per_op_bit", "bits per operation bit", "Bits loaded and stored for each bit of the operands and results of operations.", moved, c[OpBits], 8)
	add("bytes_loaded_per_stored", "bytes loaded per byte stored", "Bytes loaded for each byte stored.", c[BytesLoaded], c[BytesStored], 1)
	add("bits_per_memory_op", "bits per load or store", "The mean size of a load or store, in bits.", moved, c[Loads]+c[Stores], 8)
	add("ops_per_branch", "operations per branch", "Operations, loads, stores, branches, calls and returns for each conditional or indirect branch.", c.AllOperations(), branches, 1)
	add("flops_per_branch", "flops per branch", "Flops for each conditional or indirect branch.", flops, branches, 1)
	if operations != 0 {
		add("vectorised", "vectorised share", "The part of all floating-point and integer operations, lane by lane, that vector instructions do.", c[VectorOps], operations, 1)
		list[len(list)-1].Share = true
	}
	if uniqueBytes != 0 {
		add("unique_bytes_per_flop", "unique bytes per flop", "Distinct bytes touched for each flop.", uniqueBytes, flops, 1)
		add("bytes_per_unique_byte", "bytes per unique byte", "How often each byte that is touched is loaded or stored, on average.", moved, uniqueBytes, 1)
	}
	return list
}

// MedianReuse returns the median stack distance of a line size, in lines, and the median
// absolute deviation. First accesses count as infinite; ok is false if the median is infinite.
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
		w.In.Fail("counters of another number than this program's " + strconv.Itoa(int(NumCounters)) + "; use a newer stackglass")
		return
	}
	w.named(func() {
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

// check tests the order of the lists, and that no sum is beyond 64 bits.
func (c *Counters) check() error {
	if c == nil {
		return nil
	}
	switch {
	case !c.inOrder():
		return &CheckError{"a list of its counters is out of order"}
	case !c.Blocks && len(c.Code) > 0 || !c.Ops && len(c.Tallied(Opcodes)) > 0:
		return &CheckError{"its counters are of code that the trace does not contain"}
	case !c.sumsFit():
		return &CheckError{"its counters add up to more than can be counted"}
	}
	return c.checkTouched()
}

func (c *Counters) inOrder() bool {
	return ascending(c.Functions, compareFunctions) && ascending(c.Code, compareBlocks) && ascending(c.Tallies, CompareTallies)
}

// ascending reports whether each member of a list is less than the next one.
func ascending[T any](list []T, compare func(x, y *T) int) bool {
	for i := 1; i < len(list); i++ {
		if compare(&list[i-1], &list[i]) >= 0 {
			return false
		}
	}
	return true
}

// sumsFit reports whether sums of any of the program's numbers fit into 64 bits, and whether
// all functions of blocks exist.
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
			return &CheckError{"the bytes that hold a share of its accesses are not ascending"}
		}
		last = n
	}
	for i := range c.Functions {
		if c.Functions[i].UniqueBytes > c.UniqueBytes {
			return &CheckError{"a function touches more bytes than the program"}
		}
	}
	if c.Touched && last != c.UniqueBytes {
		return &CheckError{"all of its accesses are not in the bytes that it touches"}
	}
	return nil
}
