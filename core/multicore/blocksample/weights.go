package blocksample

import (
	"slices"

	"github.com/stackglass/stackglass/core/papers/sasmm"
	"github.com/stackglass/stackglass/core/trace"
)

// Block contains counts of a basic block in the sequential run.
type Block struct {
	Executions float64 // N_i, the number of executions
	// number of executions in parallel regions; in the paper, either 0 or equal to Executions
	Parallel float64
	Accesses float64 // r_i, the number of line accesses per execution
}

// Weighting is a method of weighting blocks.
type Weighting uint8

const (
	// Corrected sets a block's weight according to its references: it replaces N_i by N_i r_i. The
	// weights sum to one.
	Corrected Weighting = iota
	// Printed applies eq. 1 to 3 as the paper prints them, but only to blocks with references.
	Printed
	// Counted sets a block's weight to the block's number of accesses, as counted on the stack. Eq.
	// 1 to 3 approximate these counts if the cores have equal shares of the work.
	Counted
)

var weightingNames = []string{"corrected", "printed", "counted"}

// String returns the name of w on the command line.
func (w Weighting) String() string {
	if int(w) < len(weightingNames) {
		return weightingNames[w]
	}
	return "unknown"
}

// ParseWeighting parses "corrected", "printed" or "counted". The error is a *trace.OptionError.
func ParseWeighting(s string) (Weighting, error) {
	if i := slices.Index(weightingNames, s); i >= 0 {
		return Weighting(i), nil
	}
	return 0, &trace.OptionError{Option: "weights", Got: s, Want: "counted, corrected or printed"}
}

// Blocks returns the blocks of the sequential run from which the threads were synthesised. The
// numbers of executions and references are the counts of the reader that synthesised the threads.
// The number of line accesses per reference is computed from the stacks.
func Blocks(counts []sasmm.Count, stacks ...*Stack) []Block {
	list := make([]Block, len(counts))
	for b, n := range counts {
		list[b] = Block{Executions: float64(n.Executions), Parallel: float64(n.Parallel)}
		var accesses, references uint64
		for _, s := range stacks {
			if b < len(s.Blocks) {
				accesses += s.Blocks[b].Accesses
				references += s.Blocks[b].References
			}
		}
		if references > 0 {
			list[b].Accesses = float64(n.References) / float64(n.Executions) * float64(accesses) / float64(references)
		}
	}
	return list
}

// BlocksOf returns the blocks with their executions on all threads, summed over the stacks. If
// threads repeat work, the sum is larger than the number of executions in the sequential run.
func BlocksOf(stacks []*Stack) []Block {
	var list []Block
	for _, s := range stacks {
		for b := range s.Blocks {
			if b == len(list) {
				list = append(list, Block{})
			}
			c, x := &s.Blocks[b], &list[b]
			x.Executions += float64(c.Executions)
			x.Parallel += float64(c.Parallel)
			x.Accesses += float64(c.Accesses)
		}
	}
	for b := range list {
		if x := &list[b]; x.Executions > 0 {
			x.Accesses /= x.Executions
		}
	}
	return list
}

// sums returns the total serial weight and the total parallel weight of a block. The parallel
// weight is not yet divided among cores.
func (b *Block) sums(by Weighting) (serial, parallel float64) {
	each := b.Accesses
	if by == Printed && each > 0 {
		each = 1
	}
	return (b.Executions - b.Parallel) * each, b.Parallel * each
}

// ForShared returns P(BB_i) for a cache that all cores share (eq. 1). If no block was executed, all
// weights are 0.
func ForShared(blocks []Block, by Weighting) []float64 {
	list, all := make([]float64, len(blocks)), 0.0
	for i := range blocks {
		serial, parallel := blocks[i].sums(by)
		list[i] = serial + parallel
		all += list[i]
	}
	return divide(list, all)
}

// ForPrivate returns P(BB_i) for the private cache of one of several cores (eq. 2 and 3). If groups
// of cores share caches, the parameter cores is the number of caches.
func ForPrivate(blocks []Block, cores, core int, by Weighting) []float64 {
	list := make([]float64, len(blocks))
	m := float64(cores)
	var serial, parallel float64
	for i := range blocks {
		s, p := blocks[i].sums(by)
		serial += s
		parallel += p
	}
	if by == Corrected && core > 0 {
		serial = 0
	}
	if by == Printed {
		// Eq. 2 and 3 have different denominators in the paper.
		for i := range blocks {
			s, p := blocks[i].sums(by)
			if p > 0 {
				list[i] = p / m / (serial + parallel/m)
			}
			if s > 0 && core == 0 {
				list[i] += s / (serial + parallel)
			}
		}
		return list
	}
	for i := range blocks {
		s, p := blocks[i].sums(by)
		if list[i] = p / m; core == 0 {
			list[i] += s
		}
	}
	return divide(list, serial+parallel/m)
}

func divide(list []float64, by float64) []float64 {
	if by > 0 {
		for i := range list {
			list[i] /= by
		}
	}
	return list
}
