// Package interleave makes one trace of what several cores do at the same time.
//
// Nobody knows in which order the references of different cores would arrive, so the
// order is a choice, and named: one reference a core in turn; a core picked by chance for
// each (SASMM §3.3); one basic block a core in turn; or by clocks, where it is known how
// long each block takes. A core that has nothing left to do is passed over.
package interleave

import (
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Policy is the kind of an order.
type Policy uint8

const (
	RoundRobin Policy = iota // one reference a core, in turn
	Uniform                  // of a core that is picked by chance, all with equal chances
	ByBlock                  // one execution of a basic block a core, in turn
	ByTime                   // of the core whose clock is behind; each block advances it by what it takes
)

var policyNames = []string{"round-robin", "uniform", "block", "time"}

// String is the policy's name on the command line.
func (p Policy) String() string {
	if int(p) < len(policyNames) {
		return policyNames[p]
	}
	return "unknown"
}

// ParsePolicy reads round-robin, uniform, block or time. The error is a
// *trace.OptionError.
func ParsePolicy(s string) (Policy, error) {
	for i, name := range policyNames {
		if s == name {
			return Policy(i), nil
		}
	}
	return 0, &trace.OptionError{Option: "interleave", Got: s, Want: "round-robin, uniform, block or time"}
}

// Order says in which order cores' references come.
type Order struct {
	Policy Policy
	Seed   uint64 // of Uniform
	// Cycles of an execution of each block, for ByTime: at least 0, finite. Blocks beyond
	// it take one cycle a reference.
	Cycles []float64
}

// Check tells what is wrong with the order. The error is a *trace.OptionError.
func (o *Order) Check() error {
	if int(o.Policy) >= len(policyNames) {
		return &trace.OptionError{Option: "interleave", Got: strconv.Itoa(int(o.Policy)), Want: "round-robin, uniform, block or time"}
	}
	for _, c := range o.Cycles {
		if !(c >= 0 && c < 1e300) {
			return &trace.OptionError{Option: "interleave", Got: strconv.FormatFloat(c, 'g', -1, 64) + " cycles of a block", Want: "0 or more"}
		}
	}
	return nil
}

// Stream is what one core does, up to where all wait for each other.
type Stream interface {
	// Next gives the next rows of the core: those of b from from up to to, at least one,
	// valid until it is called again. It may be a part of a batch that other streams see
	// as well, and must not be changed. io.EOF: the core has come to where it waits.
	Next() (b *trace.Batch, from, to int, err error)
}
