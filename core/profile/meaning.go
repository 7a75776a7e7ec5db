package profile

import (
	"sort"

	"github.com/stackglass/stackglass/core/trace"
)

// Meaning describes a number, for tables and their readers.
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

// Meaning returns the description of a counter.
func (c Counter) Meaning() Meaning { return meanings[c] }

// Derived is a ratio of counts.
type Derived struct {
	Meaning
	Value float64
	Share bool // from 0 to 1, for a percentage
}

// Derive returns the ratios of counts that are defined: those with a denominator that is not 0.
// uniqueBytes is 0 if they were not counted.
func (c *Counts) Derive(uniqueBytes uint64) (list []Derived) {
	add := func(key, label, text string, numerator, denominator uint64, scale float64) {
		if denominator != 0 {
			list = append(list, Derived{Meaning: Meaning{key, label, text}, Value: float64(numerator) / float64(denominator) * scale})
		}
	}
	moved, flops, operations, branches := c.Bytes(), c[Flops], c.Operations(), c[ConditionalBranches]
	add("bytes_per_flop", "bytes per flop", "Bytes loaded and stored for each flop.", moved, flops, 1)
	add("bits_per_flop_bit", "bits per flop bit", "Bits loaded and stored for each bit that flops take in and give.", moved, c[FlopBits], 8)
	add("bytes_per_operation", "bytes per operation", "Bytes loaded and stored for each floating-point or integer operation.", moved, operations, 1)
	add("bits_per_op_bit", "bits per operation bit", "Bits loaded and stored for each bit that operations take in and give.", moved, c[OpBits], 8)
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
// absolute deviation. First accesses count as infinitely far; ok is false if the median is.
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
