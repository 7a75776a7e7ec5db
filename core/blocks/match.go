package blocks

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/trace"
)

// Match maps each function and block of a module to the same function or block in a program that
// contains the module.
type Match struct {
	Functions []int32 // for each function of the module: the function in the program, or -1
	Blocks    []int32 // for each block of the module: the block in the program, or -1
	// Different lists the functions whose code differs from the code in the program. The blocks of
	// these functions are not matched.
	Different []trace.Missed
	// Missing lists functions that exist only in the module.
	Missing []string

	to, from *trace.Program
}

// NewMatch matches a module with a program that should contain it. Functions are matched by name.
// If several functions have the same name, they are matched by their code.
func NewMatch(module, whole *trace.Program) *Match {
	m := &Match{Functions: make([]int32, len(module.Functions)), Blocks: make([]int32, len(module.Blocks)), to: module, from: whole}
	for b := range m.Blocks {
		m.Blocks[b] = -1
	}
	named := map[string][]int32{}
	for n := range whole.Functions {
		named[whole.Functions[n].Name] = append(named[whole.Functions[n].Name], int32(n))
	}
	for n := range module.Functions {
		f := &module.Functions[n]
		m.Functions[n] = -1
		why := ""
		for _, c := range named[f.Name] {
			if why = m.difference(f, &whole.Functions[c]); why == "" {
				m.Functions[n] = c
				break
			}
		}
		switch {
		case m.Functions[n] >= 0:
			for k := range f.Blocks {
				if at := f.First + k; uint64(at) < uint64(len(m.Blocks)) {
					m.Blocks[at] = int32(whole.Functions[m.Functions[n]].First + k)
				}
			}
		case why != "":
			m.Different = append(m.Different, trace.Missed{What: f.Name, Why: why, Count: 1})
		default:
			m.Missing = append(m.Missing, f.Name)
		}
	}
	return m
}

// difference describes a difference between the code of two functions. It returns "" if their code
// is equal.
func (m *Match) difference(a, b *trace.Function) string {
	if uint64(a.First)+uint64(a.Blocks) > uint64(len(m.to.Blocks)) || uint64(b.First)+uint64(b.Blocks) > uint64(len(m.from.Blocks)) {
		return "the blocks of the function are missing"
	}
	if a.Blocks != b.Blocks {
		return strconv.Itoa(int(a.Blocks)) + " blocks in the LLVM IR, but " + strconv.Itoa(int(b.Blocks)) + " in the trace"
	}
	for k := range a.Blocks {
		x, y := &m.to.Blocks[a.First+k], &m.from.Blocks[b.First+k]
		switch {
		case x.Label != y.Label || x.Part != y.Part:
			return "block " + Label(x) + " in the LLVM IR is block " + Label(y) + " in the trace"
		case x.Callee != y.Callee:
			return "block " + Label(x) + " calls " + strconv.Quote(x.Callee) + " in the LLVM IR, but " + strconv.Quote(y.Callee) + " in the trace"
		case !slices.Equal(x.Ops, y.Ops):
			return "block " + Label(x) + " has different instructions in the trace"
		case !slices.EqualFunc(x.Successors, y.Successors, func(i, j uint32) bool { return i-a.First == j-b.First }):
			return "block " + Label(x) + " has different successors in the trace"
		}
	}
	return ""
}

// Err returns an error if no function matches, or if the code of any function differs.
func (m *Match) Err() error {
	switch {
	case len(m.Different) > 0:
		more := ""
		if n := len(m.Different) - 1; n > 0 {
			more = ", and " + strconv.Itoa(n) + " more"
		}
		return &Error{
			Function: m.Different[0].What, Block: -1, Why: "the trace is from a different build: " + m.Different[0].Why + more,
			Do: "trace the program compiled from this LLVM IR, or generate the LLVM IR again with the compiler and options of the traced program",
		}
	case len(m.Missing) > 0 && len(m.Missing) == len(m.Functions):
		return &Error{
			Function: m.Missing[0], Block: -1, Why: "the trace contains none of the functions in the LLVM IR; this function, for example, is missing",
			Do: "compile this program with stackglass cc, and trace it",
		}
	}
	return nil
}
