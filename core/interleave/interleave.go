// Package interleave merges the traces of several cores that run at the same time.
//
// The order in which the references of different cores would arrive is unknown. So it is an option: one
// reference of each core in turn; a random core for each reference (SASMM §3.3); one basic block of each
// core in turn; or by clocks, if the time of each block is known. A core whose trace has ended is skipped.
package interleave

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Policy is the kind of an order.
type Policy uint8

const (
	RoundRobin Policy = iota // one reference of each core in turn
	Uniform                  // a reference of a random core, all with equal probability
	ByBlock                  // one execution of a basic block of each core in turn
	ByTime                   // of the core with the least clock; each block advances it by its cycles
)

var policyNames = []string{"round-robin", "uniform", "block", "time"}

// String returns the policy's name on the command line.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return "unknown"
}

// ParsePolicy reads round-robin, uniform, block or time. The error is a *trace.OptionError.
func ParsePolicy(s string) (Policy, error) {
	i := slices.Index(policyNames, s)
	if i < 0 {
		return 0, unknownPolicy(s)
	}
	return Policy(i), nil
}

func unknownPolicy(got string) error {
	return &trace.OptionError{Option: "interleave", Got: got, Want: "round-robin, uniform, block or time"}
}

// Order says in which order cores' references come.
type Order struct {
	Policy Policy
	Seed   uint64 // of Uniform
	// Cycles of an execution of each block, for ByTime: at least 0, finite. Blocks beyond
	// it take one cycle a reference.
	Cycles []float64
}

// Check reports what is wrong with the order. The error is a *trace.OptionError.
func (o *Order) Check() error {
	if int(o.Policy) >= len(policyNames) {
		return unknownPolicy(strconv.Itoa(int(o.Policy)))
	}
	for _, c := range o.Cycles {
		if !(c >= 0 && c < 1e300) {
			return &trace.OptionError{Option: "interleave", Got: strconv.FormatFloat(c, 'g', -1, 64) + " cycles of a block", Want: "0 or more"}
		}
	}
	return nil
}

// Stream is the trace of one core, up to where all cores wait for each other.
type Stream interface {
	// Next returns the next rows of the core: at least one row of b, from from up to to, valid until
	// the next call. b may be shared with other streams, and must not be changed. io.EOF: the core has
	// reached the point where it waits.
	Next() (b *trace.Batch, from, to int, err error)
}
