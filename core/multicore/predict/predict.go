// Package predict predicts the cache misses and the runtime of an OpenMP program with several
// cores from the trace of a single-threaded run (PPT-SASMM §3; MODELS §14.4).
//
//  1. For each number of cores, the trace is read once, and the threads' references are synthesised
//     (package multicore). Only counts are kept, so memory use does not grow with the trace.
//  2. The references of the threads are simulated in private and shared caches, which are kept
//     coherent by MESI (package simulate). The simulation is exact for the synthesised threads. If
//     [multicore.Options.Division] divides executions of blocks among cores, instead of iterations
//     of loops, private caches require a separate pass (apart.go).
//  3. With [Question.Stacks], the LRU stacks of the threads are also computed (package
//     analysis/sharing), and the stack distance cache model (SDCM) is applied to these stacks, as
//     in the paper. The difference between the results of SDCM and of the simulation is the error
//     of SDCM plus the sampling error of [Question.Sample]. Sampling is the default, because
//     complete stacks for many cores take ten times as long as the rest of the prediction.
//     [Question.Keep] stores a complete profile of the threads. [Question.Windows] selects the
//     paper's statistical method, which applies SDCM to a sample of the windows of each block, and
//     yields confidence intervals (package blocksample).
//  4. The cycles of blocks are computed (package pipeline) if a processor is given and the trace
//     has instructions. Each load has the latency of the level in which the simulation found its
//     line. The time of a core is the sum of visits × cycles over the blocks. [Time] lists the
//     causes of lost time.
//
// # Hit ratios
//
// The local hit ratio of a level is the number of its hits divided by the number of its accesses.
// The global hit ratio of a level is 1 − m/n, where m is the number of misses of the level, and n
// is the number of accesses to the first level. The paper reports global hit ratios for the second
// level. For private caches, the paper reports the mean, in which all caches have the same weight;
// [Level.Mean] excludes idle caches.
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

// Question describes the predictions to make from a run's trace.
type Question struct {
	Cores     []int             // distinct numbers of cores, in the order of the results
	Options   multicore.Options // how to divide the run; Options.Cores is set for each pass
	Hierarchy hierarchy.Hierarchy
	Protocol  simulate.Protocol
	Seed      uint64 // seed for random replacement
	// processor for which run times are predicted; nil if no times are predicted
	Processor *pipeline.Processor
	Stacks    bool              // whether to predict with SDCM as well
	Sample    analysis.Sampling // how the accesses to the stacks are sampled; nil if all accesses are analysed
	Windows   []WindowSampling  // samples of windows; for each sample, SDCM makes an additional prediction
	Profiles  bool              // whether to keep the block profiles of Windows[0]
	// Keep is the number of cores for which a profile is stored in the result, or 0. Spec selects
	// the analyses of this profile. Line sizes, cores and domains are determined by the hierarchy.
	Keep        int
	Spec        analysis.Spec
	MemoryBytes uint64 // memory limit for the simulated caches; 0: no limit
}

// Threads reads the references of synthesised threads, numbered from 0. An implementation that also
// implements [io.Closer] is closed after use. An implementation may have a method Report, or a
// method Unwrap whose result implements Threads and has a method Report.
type Threads interface {
	trace.Reader
	trace.Describer
	trace.Selector
}

// Source opens the run's trace at its beginning, and returns the synthesised threads of o.Cores
// cores.
type Source func(o multicore.Options) (Threads, error)

// Check validates the question. The error is a *trace.OptionError.
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
		return &trace.OptionError{Option: "division", Got: q.Options.Division.String(), Want: "iterations, because run times depend on waits at barriers, and cores wait at barriers only with this division"}
	}
	if q.Keep != 0 && !slices.Contains(q.Cores, q.Keep) {
		return &trace.OptionError{Option: "profile", Got: "of " + strconv.Itoa(q.Keep) + " cores", Want: "a number of cores that is listed in --cores"}
	}
	for i := range q.Windows {
		if err := q.Windows[i].Check(); err != nil {
			return err
		}
	}
	_, err := simulate.New(q.Hierarchy.DataOnly(), simulate.Options{MemoryBytes: q.MemoryBytes, Cores: coresOf(slices.Max(q.Cores))})
	return err
}

// describeThreads returns a description of the division of the run, and of the order of its
// threads.
func (q *Question) describeThreads() string {
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

// coresOf returns the threads that run on each core: thread i runs on core i.
func coresOf(n int) [][]uint32 {
	list := make([][]uint32, n)
	for i := range list {
		list[i] = []uint32{uint32(i)}
	}
	return list
}

// domainsOf returns the groups of threads that share a cache, without the group of all threads.
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

// linesOf returns the line sizes of a hierarchy, in ascending order.
func linesOf(h hierarchy.Hierarchy) (sizes []uint32) {
	for _, c := range h.Levels {
		if !slices.Contains(sizes, c.LineBytes) {
			sizes = append(sizes, c.LineBytes)
		}
	}
	slices.Sort(sizes)
	return sizes
}

// Run makes a prediction in steps. The results for each number of cores are available as soon as
// they are complete.
type Run struct {
	q       Question
	open    Source
	plan    []int // remaining numbers of cores
	now     *pass
	base    *timeCollector // the times in the pass with one core; nil if there are none
	results []Result
	used    []bool // by private range: whether any reference accesses the range
	failed  error
	done    uint64 // number of references in finished passes
	passes  int    // total number of passes
}

// New returns a run that answers q. New returns the error of [Question.Check], if any.
func New(q Question, open Source) (*Run, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	r := &Run{q: q, open: open, plan: slices.Clone(q.Cores)}
	if q.Processor != nil && q.Cores[0] != 1 {
		// The first pass has one core, because speed-ups are relative to it.
		r.plan = append([]int{1}, slices.DeleteFunc(r.plan, func(n int) bool { return n == 1 })...)
	}
	r.passes = len(r.plan)
	return r, nil
}

// Step processes a small part of the remaining work. Step returns io.EOF when the question is
// answered. Any other error comes from the trace or from the synthesised threads, and ends the run.
// Earlier results remain available.
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

func (r *Run) fail(err error) error {
	if err != nil {
		r.failed = err
		r.close()
	}
	return err
}

// ErrNoRegions reports a run without parallel regions.
var ErrNoRegions = errors.New("the run has no parallel region, so there is no work to divide among cores; " +
	"record an OpenMP program: stackglass cc -- clang -fopenmp …, then OMP_NUM_THREADS=1 ./program")

// checkPrivateRanges returns an error if there is a private range that the program does not access.
func (r *Run) checkPrivateRanges() error {
	for i, x := range r.q.Options.Private.Ranges {
		if !r.used[i] {
			return &trace.OptionError{Option: "private", Got: "0x" + strconv.FormatUint(x.Low, 16) + "-0x" + strconv.FormatUint(x.High-1, 16),
				Want: "a range of addresses that the program accesses; the program accesses none of these addresses"}
		}
	}
	return nil
}

// Close ends the run.
func (r *Run) Close() {
	if r.failed == nil {
		r.failed = errClosed
	}
	r.close()
}

var errClosed = errors.New("the prediction is closed and cannot be continued")

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

func (r *Run) finish() error {
	p := r.now
	result, err := p.result()
	if err != nil {
		return err
	}
	if r.used == nil {
		r.used = p.used
		if err := r.checkPrivateRanges(); err != nil {
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

// Results returns the results so far, in the order of Question.Cores. If the question has a
// processor, the result for one core comes first.
func (r *Run) Results() []Result { return r.results }

// Progress describes the progress of a run.
type Progress struct {
	Cores      int // number of cores in the current pass; 0 if no pass is running
	Pass       int // number of the current pass, starting at 1
	Passes     int
	References uint64 // number of references that all passes have processed so far
}

// Progress returns the progress of the run.
func (r *Run) Progress() Progress {
	p := Progress{Pass: r.passes - len(r.plan), Passes: r.passes, References: r.done}
	if r.now != nil {
		p.Cores = r.now.cores
		p.References += r.now.references
	}
	return p
}

// Result contains the prediction for one number of cores.
type Result struct {
	Cores      int
	References uint64
	ByCore     []uint64               // number of references of each core
	Idle       int                    // number of cores without references
	Levels     []Level                // simulated levels, starting with the first
	Modelled   []Level                // the same levels, predicted by SDCM; nil without Question.Stacks
	Stacks     [][]*blocksample.Stack // stacks of each level, as returned by [blocksample.Collector.Result]; nil unless Question.Profiles is set
	Windowed   [][]Level              // the same levels, predicted by SDCM, for each of Question.Windows
	Time       *Time                  // nil without a processor, or if Untimed is set
	Untimed    string                 // reason why Time is nil, as a sentence
	Warnings   []hierarchy.Warning
	Profile    *profile.Profile  // nil unless the number of cores is Question.Keep
	Report     *multicore.Report // description of how the work was divided; nil if unknown
	Header     trace.Header      // header of the threads' trace
}

// Level contains the results for one level of the hierarchy. The counts are numbers of line
// accesses.
type Level struct {
	Cache  hierarchy.Cache
	Method hierarchy.Method
	Caches int
	// Accesses, Hits, Misses and Coherence are sums over all caches of the level. Coherence counts
	// the misses on lines that another core's store invalidated. SDCM does not predict coherence
	// misses.
	Accesses, Hits, Misses, Coherence float64
	// Global is 1 - Misses / accesses to the first level, and Local is Hits / Accesses. Mean is the
	// mean local hit ratio of the caches with accesses. SDCM predicts Mean only for levels with one
	// cache.
	Global, Local, Mean float64
	Averaged            bool                  // whether Mean is known
	Low, High           float64               // 95 % confidence interval of Global
	Bounded             bool                  // whether Low and High are known
	Off, MeanOff        float64               // half-widths of the 95 % confidence intervals of Global and Mean, not limited to the range from 0 to 1; only for windows
	Looked              *Looked               // size of the sample from which the level was estimated, or nil
	Cores               []hierarchy.CoreLevel // counts of each core; nil for SDCM
}

// rate returns the hit ratio, or 1 if there are no accesses.
func rate(misses, accesses float64) float64 {
	if accesses == 0 {
		return 1
	}
	return 1 - misses/accesses
}
