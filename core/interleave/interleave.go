// Package interleave merges the traces of several cores that run at the same time.
//
// The order in which the references of different cores would reach a shared cache is unknown, so
// the caller chooses one of four orders. In the order "round-robin", the cores take turns, one
// reference at a time. In the order "uniform", each reference comes from a random core
// (SASMM §3.3). In the order "block", the cores take turns, one basic block at a time. The order
// "time" follows simulated clocks of the cores, which requires the run time of each block. Cores
// whose traces have ended are skipped.
package interleave

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Policy is a rule for the order of references.
type Policy uint8

const (
	RoundRobin Policy = iota // the cores take turns, with one reference per turn
	Uniform                  // each reference is from a random core, with equal probabilities
	ByBlock                  // the cores take turns, with one execution of a basic block per turn
	// the core with the earliest clock executes one block, and its clock then advances by the block's
	// cycles
	ByTime
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

// Order describes the order in which the cores' references are merged.
type Order struct {
	Policy Policy
	Seed   uint64 // seed of the random numbers for Uniform
	// Cycles is the time of one execution of each block, for ByTime. Each time is finite and at least
	// 0. A block that is not in the list takes one cycle per reference.
	Cycles []float64
}

// Check returns an error if the order is invalid. The error is a *trace.OptionError.
func (o *Order) Check() error {
	if int(o.Policy) >= len(policyNames) {
		return unknownPolicy(strconv.Itoa(int(o.Policy)))
	}
	for _, c := range o.Cycles {
		if !(c >= 0 && c < 1e300) {
			return &trace.OptionError{Option: "interleave", Got: strconv.FormatFloat(c, 'g', -1, 64) + " cycles for a block", Want: "0 or more"}
		}
	}
	return nil
}

// Stream is the trace of one core up to the next barrier, at which all cores wait for each other.
type Stream interface {
	// Next returns the core's next rows, which are the rows [from, to) of b. The range contains at
	// least one row. The rows are valid until the next call. Other streams may share b, so the caller
	// must not change it. The error is io.EOF if the core has reached the barrier.
	Next() (b *trace.Batch, from, to int, err error)
}
