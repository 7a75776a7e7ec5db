// Package predict answers what the cores of a machine would do to their caches, and how
// much sooner they would be done, when they share the work of an OpenMP program that was
// traced with one thread (PPT-SASMM §3; MODELS §14.4).
//
//  1. For each number of cores, the run's trace is opened anew and the threads' references
//     are mimicked (package multicore). Nothing is kept of them but counts, so that memory
//     does not grow with the trace.
//  2. They go through simulated caches, private and shared ones, that are kept coherent by
//     MESI (package simulate). That is exact for the threads as they are mimicked: what is
//     wrong with it is wrong with the mimicry. Where executions of blocks are divided,
//     private caches have a reading of their own (apart.go).
//  3. Where [Question.Stacks] says so, the stacks of the threads (package analysis/sharing)
//     are analysed beside it, and the stack distance cache model (SDCM) answers from them,
//     as the paper does. What that differs by is SDCM's error alone, and that of
//     [Question.Sample]: all stacks of many cores take ten times as long as the rest. [Question.Keep] keeps a
//     whole profile of the threads, for everything else that profiles answer.
//     [Question.Windows] is the paper's statistical method: SDCM from windows of each
//     block, with intervals (package blocksample).
//  4. Where a processor is named and the trace tells instructions, blocks are given what
//     they take on it (package pipeline) with loads at the latency of where the simulation
//     found their lines. Times of a core are visits × cycles; see time.go for what cores
//     lose.
//
// A [Run] goes on step by step, and has the results of each number of cores as soon as they
// are there.
//
// # Rates
//
// The local hit rate of a level is hits by what comes to it, the global one 1 - misses by
// all accesses to the first level. The paper's second-level rates are global ones. Its mean
// over private caches weighs all the same, idle ones left out here ([Level.Mean]); Local is
// the one that weighs accesses the same.
package predict

import (
	"errors"
	"io"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/interleave"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// Question is what is asked of a run's trace.
type Question struct {
	Cores     []int             // how many, in the order in which they are wanted; each once
	Options   multicore.Options // how the run is divided; Cores is set for each
	Hierarchy hierarchy.Hierarchy
	Protocol  simulate.Protocol
	Seed      uint64              // of random replacement
	Processor *pipeline.Processor // whose time is wanted; nil: no times
	Stacks    bool                // SDCM's answer is wanted, too
	Sample    analysis.Sampling   // that the stacks are estimated from, as a few lines; nil: from all accesses
	Windows   []WindowSampling    // SDCM's answers from windows are wanted, too
	Profiles  bool                // and so are the profiles that the first of Windows gives blocks
	// Keep is the number of cores of which a profile is kept, 0 for none; Spec says what is
	// analysed for it: line sizes, cores and domains are those of the hierarchy.
	Keep        int
	Spec        analysis.Spec
	MemoryBytes uint64 // limit of what the caches take; 0: none
}

// Threads are the references of mimicked threads, numbered from 0, as [Mimic] gives
// them. One that is an [io.Closer] is closed when it was read. One that has a method
// Report, as that of multicore has, is asked for it, or what its method Unwrap gives is.
type Threads interface {
	trace.Reader
	trace.Describer
	trace.Selector
}

// Source opens the run's trace at its beginning and mimics the threads of o.Cores cores.
type Source func(o multicore.Options) (Threads, error)

// Check tells what is wrong with the question. The error is a *trace.OptionError.
func (q *Question) Check() error {
	if len(q.Cores) == 0 {
		return &trace.OptionError{Option: "cores", Got: "none", Want: "at least one number of cores, from 1 to " + strconv.Itoa(multicore.MostCores)}
	}
	for i, n := range q.Cores {
		o := q.Options
		o.Cores = n
		if err := o.Check(); err != nil {
			return err
		}
		if slices.Contains(q.Cores[:i], n) {
			return &trace.OptionError{Option: "cores", Got: strconv.Itoa(n) + " twice", Want: "each number of cores once"}
		}
	}
	if q.Processor != nil && q.Options.Division != multicore.ByIterations {
		return &trace.OptionError{Option: "division", Got: q.Options.Division.String(), Want: "iterations, for times: executions of blocks that are divided one by one wait for nobody"}
	}
	if q.Keep != 0 && !slices.Contains(q.Cores, q.Keep) {
		return &trace.OptionError{Option: "profile", Got: "of " + strconv.Itoa(q.Keep) + " cores", Want: "one of the numbers of cores that are predicted"}
	}
	for i := range q.Windows {
		if err := q.Windows[i].Check(); err != nil {
			return err
		}
	}
	_, err := simulate.New(q.Hierarchy, simulate.Options{MemoryBytes: q.MemoryBytes, Cores: coresOf(slices.Max(q.Cores))})
	return err
}

// how says how the run is divided, and in which order its threads go.
func (q *Question) how() string {
	text := q.Options.Division.String()
	if q.Options.Schedule != nil {
		text += ", schedule " + q.Options.Schedule.String()
	}
	text += ", " + q.Options.Order.Policy.String()
	if q.Options.Order.Policy == interleave.Uniform {
		text += ", seed " + strconv.FormatUint(q.Options.Order.Seed, 10)
	}
	return text
}

// coresOf puts thread i on core i.
func coresOf(n int) [][]uint32 {
	list := make([][]uint32, n)
	for i := range list {
		list[i] = []uint32{uint32(i)}
	}
	return list
}

// domainsOf are the threads that share a cache, for levels that are neither private nor
// everybody's.
func domainsOf(h hierarchy.Hierarchy, cores int) (domains [][]uint32) {
	for _, c := range h.Levels {
		n := int(min(uint64(c.SharedBy), uint64(cores)))
		if n <= 1 || n >= cores {
			continue
		}
		for first := 0; first < cores; first += n {
			var group []uint32
			for k := first; k < min(first+n, cores); k++ {
				group = append(group, uint32(k))
			}
			same := func(other []uint32) bool { return slices.Equal(other, group) }
			if len(group) > 1 && !slices.ContainsFunc(domains, same) {
				domains = append(domains, group)
			}
		}
	}
	return domains
}

// linesOf are the line sizes of a hierarchy, ascending.
func linesOf(h hierarchy.Hierarchy) (sizes []uint32) {
	for _, c := range h.Levels {
		if !slices.Contains(sizes, c.LineBytes) {
			sizes = append(sizes, c.LineBytes)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// Run is a prediction that goes on step by step.
type Run struct {
	q       Question
	open    Source
	plan    []int // numbers of cores still to do, the next one first
	now     *pass
	base    *timed // of one core; nil: not yet, or no times are wanted
	results []Result
	used    []bool // private ranges that are referred to
	failed  error
	done    uint64 // references of passes that are done
	passes  int    // of all
}

// New prepares to answer. The error is that of [Question.Check].
func New(q Question, open Source) (*Run, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	r := &Run{q: q, open: open, plan: slices.Clone(q.Cores)}
	if q.Processor != nil && q.Cores[0] != 1 {
		// Speed-ups are against one core, which comes first.
		r.plan = append([]int{1}, slices.DeleteFunc(r.plan, func(n int) bool { return n == 1 })...)
	}
	r.passes = len(r.plan)
	return r, nil
}

// Step reads on a little. io.EOF tells that everything is answered. Any other error ends the
// run: it is one of the trace, or of mimicking its threads; results so far stand.
func (r *Run) Step() error {
	switch {
	case r.failed != nil:
		return r.failed
	case r.now == nil && len(r.plan) == 0:
		return io.EOF
	case r.now == nil:
		return r.fail(r.begin(r.plan[0]))
	}
	err := r.now.step()
	if err == io.EOF {
		return r.fail(r.finish())
	}
	return r.fail(err)
}

// fail keeps an error that ends the run.
func (r *Run) fail(err error) error {
	if err != nil {
		r.failed = err
		r.close()
	}
	return err
}

// ErrNoRegions tells that there is nothing to share out.
var ErrNoRegions = errors.New("no parallel region began in the run, so there is nothing for several cores to share; " +
	"capture an OpenMP program: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program")

// unused tells of private addresses at which nothing was.
func (r *Run) unused() error {
	for i, x := range r.q.Options.Private.Ranges {
		if !r.used[i] {
			return &trace.OptionError{Option: "private", Got: "0x" + strconv.FormatUint(x.Low, 16) + "-0x" + strconv.FormatUint(x.High-1, 16),
				Want: "addresses that the program refers to; it refers to none of these"}
		}
	}
	return nil
}

// Close ends a run that is given up.
func (r *Run) Close() {
	if r.failed == nil {
		r.failed = errClosed
	}
	r.close()
}

var errClosed = errors.New("the prediction was closed")

func (r *Run) close() {
	if r.now != nil {
		r.now.close()
		r.now = nil
	}
}

func (r *Run) begin(cores int) error {
	p, err := newPass(&r.q, cores, r.base, r.open)
	if err == nil {
		r.now, r.plan = p, r.plan[1:]
	}
	return err
}

// finish takes the result of a pass.
func (r *Run) finish() error {
	p := r.now
	result, err := p.result()
	if err != nil {
		return err
	}
	if r.used == nil {
		r.used = p.used
		if err := r.unused(); err != nil {
			return err
		}
	}
	if p.cores == 1 && r.base == nil {
		r.base = p.timed
	}
	r.done += p.references
	r.close()
	if slices.Contains(r.q.Cores, result.Cores) {
		r.results = append(r.results, result)
	}
	return nil
}

// Results are those of the numbers of cores that are done. One core comes first where a
// processor is named; the others are in the order in which they were asked for.
func (r *Run) Results() []Result { return r.results }

// Progress tells how far a run is.
type Progress struct {
	Cores      int    // that are being mimicked; 0: none right now
	Pass       int    // from 1; how many times the trace is being read
	Passes     int    // how many times it will be
	References uint64 // of threads, in all passes so far
}

// Progress tells how far the run is.
func (r *Run) Progress() Progress {
	p := Progress{Pass: r.passes - len(r.plan), Passes: r.passes, References: r.done}
	if r.now != nil {
		p.Cores = r.now.cores
		p.References += r.now.references
	}
	return p
}

// Result is what was predicted for one number of cores.
type Result struct {
	Cores      int
	References uint64
	ByCore     []uint64               // References, of each core
	Idle       int                    // cores that made none
	Levels     []Level                // simulated, first level first
	Modelled   []Level                // the same levels by SDCM; nil: it was not asked for
	Stacks     [][]*blocksample.Stack // by level, of Question.Profiles: see [blocksample.Collector.Result]
	Windowed   [][]Level              // the same by SDCM from windows, for each of Question.Windows
	Time       *Time                  // nil: not asked for, or see Untimed
	Untimed    string                 // why there is no time, in a sentence; ""
	Warnings   []hierarchy.Warning
	Profile    *profile.Profile  // nil but of Question.Keep cores
	Report     *multicore.Report // how the run was divided; nil: the threads do not tell
	Header     trace.Header      // of the threads' trace
}

// Level is one level of the hierarchy, in line accesses.
type Level struct {
	Cache  hierarchy.Cache
	Method hierarchy.Method
	Caches int // that there are
	// Sums over all caches. Coherence are those of Misses whose line was lost to another
	// core's store; SDCM does not tell.
	Accesses, Hits, Misses, Coherence float64
	// Global is 1 - Misses by all accesses to the first level, Local is Hits by Accesses; Mean
	// is the mean of the caches' local rates, those without accesses left out. Of SDCM there
	// is none, but where there is one cache.
	Global, Local, Mean float64
	Averaged            bool                  // Mean is there
	Low, High           float64               // that Global is between in 95 of 100 samples
	Bounded             bool                  // Low and High are there
	Off, MeanOff        float64               // half of such an interval of Global and Mean, of windows, though these end at 0 and 1
	Looked              *Looked               // what an estimate rests on; nil: it is none, or not known
	Cores               []hierarchy.CoreLevel // by core; nil of SDCM
}

// rate is a share of hits, 1 of no accesses: nothing missed.
func rate(misses, accesses float64) float64 {
	if accesses == 0 {
		return 1
	}
	return 1 - misses/accesses
}
