// Package larger predicts the cache misses of a run on several cores with an input that was not
// run, from single-threaded runs with two or more smaller inputs.
//
// For a larger input, PPT-SASMM (Barai et al., MEMSYS 2020, §3.4 to §3.6) uses the conditional
// reuse profiles P(D|BB_i) of a small input. In that method, only the execution counts of the
// blocks depend on the input size. Package larger predicts in four steps:
//
//  1. The threads of each small run are synthesised (package predict), and the stack distances in
//     all executions of each block are measured on the LRU stacks of a level's caches (package
//     blocksample).
//  2. For each stack, scaling laws for the executions and references of blocks are fitted (package
//     blocks/scaling), as if the stack belonged to a separate program. Each core therefore has its
//     own scaling laws.
//  3. The scaling laws yield P(BB_i) for the larger input. P(D|BB_i) is taken from the largest of
//     the small runs, as in the paper ([Level.Kept]), or its distances are extrapolated from all
//     small runs ([Level.Scaled]).
//  4. The stack distance cache model computes hit ratios.
//
// # Assumptions
//
// The package assumes that runs with the larger input take the same paths through the code. It also
// assumes that each core's share of the work changes with the input size in the same way as between
// the small runs. Predictions are less accurate if the input sizes leave different remainders when
// they are divided by the number of cores. [Level.Kept] assumes that distances within a block do
// not depend on the input. This assumption is correct for near reuse (other elements of the same
// line, or a row that is small for both inputs), but not for arrays that are traversed repeatedly.
// If an array fitted in the cache in the small run, the accesses to the array are predicted to hit.
// Coherence is not modelled, and lines are assumed to be spread over sets at random.
package larger

import (
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/blocks/memory"
	"github.com/stackglass/stackglass/core/blocks/scaling"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/trace"
)

// Input is a run on one input, with its predictions for several numbers of cores.
type Input struct {
	Name       string // name of the file with the run, for error messages
	Parameters []int64
	Results    []predict.Result // results of a question returned by [Ask]
}

// Ask returns a copy of q whose options are set so that the results can be used in an [Input].
func Ask(q predict.Question) predict.Question {
	q.Windows, q.Profiles = []predict.WindowSampling{{Looked: blocksample.All, Weights: blocksample.Counted}}, true
	q.Stacks, q.Keep, q.Processor = false, 0, nil
	return q
}

// Result contains the prediction for one number of cores.
type Result struct {
	Cores      int
	Executions float64 // number of block executions
	Levels     []Level
	Doubts     []string // caveats, as sentences
}

// Level contains the results for one level of the hierarchy. The hit ratios are global: 1 - misses
// / accesses to the first level.
type Level struct {
	Cache    hierarchy.Cache
	Caches   int
	Accesses float64 // number of line accesses to the first level
	Kept     float64 // hit ratio with the unchanged reuse profiles of the largest run
	Scaled   float64 // hit ratio with distances that are extrapolated from all runs
}

// InputError explains why no prediction can be made from the given runs.
type InputError struct{ Got, Want string }

func (e *InputError) Error() string { return e.Got + "; want " + e.Want }

// Predict predicts the results for an input with the given parameter values. All inputs must have
// results for the same numbers of cores. Predict returns a result for each of these numbers of
// cores. The error is an [*InputError] or a *trace.OptionError.
func Predict(names []string, inputs []Input, at []int64) (list []Result, err error) {
	if len(inputs) < 2 {
		return nil, &InputError{"there is only one run, which is not enough to predict other inputs", "two or more runs with different inputs"}
	}
	if len(inputs[0].Results) == 0 {
		return nil, &InputError{"there are no results for " + inputs[0].Name, "results for one or more numbers of cores"}
	}
	blocks := blocksOf(&inputs[0])
	for i := range inputs {
		in := &inputs[i]
		switch {
		case len(in.Results) != len(inputs[0].Results):
			return nil, &InputError{in.Name + " has results for different numbers of cores from " + inputs[0].Name, "results for the same numbers of cores"}
		case blocksOf(in) != blocks || !sameFunctions(in, &inputs[0]):
			return nil, &InputError{in.Name + " comes from a different program or build from " + inputs[0].Name, "runs of the same build"}
		}
	}
	for n := range inputs[0].Results {
		r, err := predictOne(names, inputs, n, blocks, at)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, nil
}

func blocksOf(in *Input) int {
	if p := in.Results[0].Header.Program; p != nil {
		return len(p.Blocks)
	}
	return 0
}

func sameFunctions(x, y *Input) bool {
	p, q := x.Results[0].Header.Program, y.Results[0].Header.Program
	return p == nil && q == nil || p != nil && q != nil && slices.EqualFunc(p.Functions, q.Functions, func(a, b trace.Function) bool { return a.Name == b.Name && a.Blocks == b.Blocks })
}

// predictOne returns the prediction for one number of cores. For each input, Results[n] contains
// the results for this number of cores.
func predictOne(names []string, inputs []Input, n, blocks int, at []int64) (Result, error) {
	first := &inputs[0].Results[n]
	r := Result{Cores: first.Cores}
	for k := range first.Levels {
		l := Level{Cache: first.Levels[k].Cache, Caches: first.Levels[k].Caches}
		stacks, kept, scaled := 0, 0.0, 0.0
		for i := range inputs {
			x := &inputs[i].Results[n]
			if x.Cores != r.Cores || len(x.Stacks) != len(first.Levels) {
				return r, &InputError{inputs[i].Name + " has results for different cores or caches", "results for the same cores and caches from all inputs"}
			}
			stacks = max(stacks, len(x.Stacks[k]))
		}
		for s := range stacks {
			m, err := fitStack(names, inputs, n, k, s, blocks)
			if err != nil {
				return r, err
			}
			for _, reuse := range []scaling.Reuse{scaling.Kept, scaling.Scaled} {
				p, err := m.Predict(at, reuse)
				if err != nil {
					return r, err
				}
				mixed := memory.Mix(p.Blocks)
				all := mixed.Accesses()
				hits, _ := mixed.Hits(l.Cache)
				if reuse == scaling.Kept {
					l.Accesses += all
					kept += all - hits
					continue
				}
				scaled += all - hits
				if k == 0 {
					for _, c := range p.Counts {
						r.Executions += c.Executions
					}
				}
				for _, doubt := range p.Doubts {
					if k == 0 && s == 0 && !slices.Contains(r.Doubts, doubt) {
						r.Doubts = append(r.Doubts, doubt)
					}
				}
			}
		}
		l.Kept, l.Scaled = 1, 1
		if k > 0 { // global hit ratios are relative to the accesses to the first level
			l.Accesses = r.Levels[0].Accesses
		}
		if l.Accesses > 0 {
			l.Kept, l.Scaled = 1-kept/l.Accesses, 1-scaled/l.Accesses
		}
		if k > 0 { // the global hit ratio cannot fall from level to level
			l.Kept, l.Scaled = max(l.Kept, r.Levels[k-1].Kept), max(l.Scaled, r.Levels[k-1].Scaled)
		}
		r.Levels = append(r.Levels, l)
	}
	return r, nil
}

// fitStack fits scaling laws to one stack of a level, as if the stack belonged to a separate
// program.
func fitStack(names []string, inputs []Input, n, level, stack, blocks int) (*scaling.Model, error) {
	var runs []scaling.Run
	for i := range inputs {
		run := scaling.Run{Parameters: inputs[i].Parameters, Counts: make([]uint64, blocks), References: make([]uint64, blocks), Reuse: make([]*memory.Profile, blocks)}
		if list := inputs[i].Results[n].Stacks[level]; stack < len(list) {
			for b := range list[stack].Blocks {
				x := &list[stack].Blocks[b]
				if x.Executions == 0 {
					continue
				}
				if b >= blocks {
					return nil, &InputError{inputs[i].Name + " ran block " + strconv.Itoa(b), "a block of the recorded program"}
				}
				run.Counts[b], run.References[b], run.Reuse[b] = x.Executions, x.Accesses, x.Profile()
			}
		}
		runs = append(runs, run)
	}
	return scaling.Fit(names, runs)
}
