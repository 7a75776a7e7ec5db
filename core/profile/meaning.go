package profile

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Meaning says what a number is, for tables and their readers.
type Meaning struct {
	Key   string // for programs: "bytes_loaded"
	Label string // for people: "bytes loaded"
	Text  string // the definition, in a sentence
}

var meanings = [NumCounters]Meaning{
	BytesLoaded:           {"bytes_loaded", "bytes loaded", "The bytes of all loads; memcpy and memmove are counted apart."},
	BytesStored:           {"bytes_stored", "bytes stored", "The bytes of all stores; memset, memcpy and memmove are counted apart."},
	Loads:                 {"loads", "loads", "References that read; an atomic exchange reads and writes."},
	Stores:                {"stores", "stores", "References that write; an atomic exchange reads and writes."},
	Flops:                 {"flops", "flops", "Floating-point additions, subtractions, multiplications, divisions, remainders and negations, each lane of a vector by itself; a fused multiply-add is two."},
	FloatOther:            {"float_other", "other floating-point operations", "Floating-point comparisons and conversions, by lane. Byfl calls them flops too."},
	IntegerOps:            {"integer_ops", "integer operations", "Integer arithmetic, logic, comparisons, conversions, address arithmetic and moves between vectors and scalars, by lane."},
	VectorOps:             {"vector_ops", "operations in vectors", "The part of the floating-point and integer operations that vector instructions do, by lane."},
	FlopBits:              {"flop_bits", "flop bits", "The bits of the operands and results of all flops."},
	OpBits:                {"op_bits", "operation bits", "The bits of the operands and results of all floating-point and integer operations."},
	ConditionalBranches:   {"branches_conditional", "conditional or indirect branches", "Branches to one of several places: conditional ones, switches and computed ones."},
	UnconditionalBranches: {"branches_unconditional", "unconditional branches", "Branches to one place, as the compiler's form has them; many vanish in machine code."},
	Returns:               {"returns", "returns", "Returns from functions, and exceptions that go on in the caller."},
	CallOps:               {"calls", "calls", "Calls of functions, traced or not; the compiler's own small functions are not among them."},
	RangesRead:            {"ranges_read", "ranges read", "Runs of bytes that memcpy and memmove read."},
	RangesWritten:         {"ranges_written", "ranges written", "Runs of bytes that memset, memcpy and memmove write."},
	RangeBytesRead:        {"range_bytes_read", "bytes of ranges read", "The bytes of these runs."},
	RangeBytesWritten:     {"range_bytes_written", "bytes of ranges written", "The bytes of these runs."},
	Instructions:          {"instructions", "instructions", "Instructions of the compiler's own form, LLVM's, as often as they were executed."},
}

// Meaning says what a counter counts.
func (c Counter) Meaning() Meaning { return meanings[c] }

// Derived is a number that follows from counts.
type Derived struct {
	Meaning
	Value float64
	Share bool // from 0 to 1, for a percentage
}

// quantity is one side of a ratio.
type quantity uint8

const (
	loaded quantity = iota
	stored
	moved
	memoryOps
	flops
	flopBits
	operations
	operationBits
	vectors
	branches
	everything
	unique
)

func (c *Counts) quantity(q quantity, uniqueBytes uint64) uint64 {
	return [...]uint64{
		loaded: c[BytesLoaded], stored: c[BytesStored], moved: c.Bytes(), memoryOps: c[Loads] + c[Stores],
		flops: c[Flops], flopBits: c[FlopBits], operations: c.Operations(), operationBits: c[OpBits], vectors: c[VectorOps],
		branches: c[ConditionalBranches], everything: c.AllOperations(), unique: uniqueBytes,
	}[q]
}

var ratios = []struct {
	Meaning
	above, below quantity
	scale        float64
	share        bool
}{
	{Meaning{"bytes_per_flop", "bytes per flop", "Bytes loaded and stored for each flop."}, moved, flops, 1, false},
	{Meaning{"bits_per_flop_bit", "bits per flop bit", "Bits loaded and stored for each bit that flops take in and give."}, moved, flopBits, 8, false},
	{Meaning{"bytes_per_operation", "bytes per operation", "Bytes loaded and stored for each floating-point or integer operation."}, moved, operations, 1, false},
	{Meaning{"bits_per_op_bit", "bits per operation bit", "Bits loaded and stored for each bit that operations take in and give."}, moved, operationBits, 8, false},
	{Meaning{"bytes_loaded_per_stored", "bytes loaded per byte stored", "Bytes loaded for each byte stored."}, loaded, stored, 1, false},
	{Meaning{"bits_per_memory_op", "bits per load or store", "The mean size of a load or store, in bits."}, moved, memoryOps, 8, false},
	{Meaning{"ops_per_branch", "operations per branch", "Operations, loads, stores, branches, calls and returns for each conditional or indirect branch."}, everything, branches, 1, false},
	{Meaning{"flops_per_branch", "flops per branch", "Flops for each conditional or indirect branch."}, flops, branches, 1, false},
	{Meaning{"vectorised", "vectorised share", "The part of all floating-point and integer operations, lane by lane, that vector instructions do."}, vectors, operations, 1, true},
	{Meaning{"unique_bytes_per_flop", "unique bytes per flop", "Distinct bytes touched for each flop."}, unique, flops, 1, false},
	{Meaning{"bytes_per_unique_byte", "bytes per unique byte", "How often each byte that is touched is loaded or stored, on average."}, moved, unique, 1, false},
}

// Derive gives the ratios of counts that are defined: no quotient has a 0 below.
// uniqueBytes is 0 where they were not counted.
func (c *Counts) Derive(uniqueBytes uint64) (list []Derived) {
	for i := range ratios {
		r := &ratios[i]
		above, below := c.quantity(r.above, uniqueBytes), c.quantity(r.below, uniqueBytes)
		if below != 0 && (r.above != unique || uniqueBytes != 0) {
			list = append(list, Derived{r.Meaning, float64(above) / float64(below) * r.scale, r.share})
		}
	}
	return list
}

// MedianReuse is the median stack distance of a line size, in lines, and the
// median absolute deviation from it. First accesses count as infinitely far; ok
// is false when the median is.
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
