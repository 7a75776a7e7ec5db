package sasmm

import (
	"strconv"

	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/trace"
)

// MostCores is the maximum number of cores.
const MostCores = 64

// DefaultLimitBytes is the default memory limit for stored executions.
const DefaultLimitBytes = 1 << 30

// Options configures the division of the executions of blocks.
type Options struct {
	Cores     int  // number of cores, from 1 to MostCores
	PerRegion bool // whether executions are counted separately in each region, instead of over the whole trace

	// Chunk is the number of consecutive executions that are assigned to each core in turn. 0 means
	// one contiguous part per core. For Guided, Chunk is the minimum, and 0 means 1.
	Chunk  uint64
	Guided bool

	Order interleave.Order // interleave.RoundRobin or interleave.Uniform; only for [Shared]

	// Ranges contains the private addresses as disjoint ranges in ascending order. If Ranges is
	// nil, the stack below the stack pointer at the fork is private.
	Ranges []Range

	LimitBytes int64 // memory limit for the stored executions of a trace or region; 0: DefaultLimitBytes
}

// Range is the half-open address range [Low, High).
type Range struct{ Low, High trace.Addr }

// Check validates the options. The error is a *trace.OptionError.
func (o *Options) Check() error {
	if o.Cores < 1 || o.Cores > MostCores {
		return &trace.OptionError{Option: "cores", Got: strconv.Itoa(o.Cores), Want: "1 to " + strconv.Itoa(MostCores)}
	}
	if p := o.Order.Policy; p > interleave.Uniform {
		return &trace.OptionError{Option: "interleave", Got: p.String(), Want: "round-robin or uniform, as in Algorithm 2; other orders need division by iterations"}
	}
	for i, r := range o.Ranges {
		if r.Low >= r.High || i > 0 && r.Low < o.Ranges[i-1].High {
			return &trace.OptionError{Option: "private", Got: "0x" + strconv.FormatUint(r.Low, 16) + "-0x" + strconv.FormatUint(r.High, 16), Want: "non-empty ranges, ascending and disjoint"}
		}
	}
	if o.LimitBytes < 0 {
		return &trace.OptionError{Option: "limit", Got: strconv.FormatInt(o.LimitBytes, 10), Want: "a number of bytes, or 0"}
	}
	return nil
}

// LimitError reports that the trace or region is larger than the memory limit.
type LimitError struct {
	LimitBytes int64
	PerRegion  bool
	Executions uint64 // number of executions that fit within the limit
}

func (e *LimitError) Error() string {
	what, instead := "the trace", "divide by region or by iterations, which needs less memory, or trace a smaller input"
	if e.PerRegion {
		what, instead = "a parallel region", "divide by iterations, or trace a smaller input"
	}
	return "to divide block executions, " + what + " must be kept in memory; after " + strconv.FormatUint(e.Executions, 10) +
		" executions, " + what + " needs more than " + strconv.FormatInt(e.LimitBytes, 10) + " bytes; " + instead
}

// BlocksError reports that a trace has no blocks to divide.
type BlocksError struct{}

func (e *BlocksError) Error() string {
	return "the trace does not contain the executed basic blocks, so the executions of blocks cannot be divided; record the program with \"stackglass cc -- clang …\", or use a block-labelled PPT trace"
}

// ThreadsError reports that a trace already has several threads.
type ThreadsError struct{ One, Another uint32 }

func (e *ThreadsError) Error() string {
	return "the trace contains references of threads " + strconv.FormatUint(uint64(e.One), 10) + " and " + strconv.FormatUint(uint64(e.Another), 10) +
		", want a single-threaded run; record the program with OMP_NUM_THREADS=1"
}

// AddressError reports that the address bits for the core number are already used in a private
// address, so the cores cannot have separate copies of this address.
type AddressError struct{ Addr trace.Addr }

func (e *AddressError) Error() string {
	return "private address 0x" + strconv.FormatUint(e.Addr, 16) + " uses bits 48 to 53, which the division needs to distinguish the cores; want 48-bit addresses"
}
