// Package validate measures how accurately the caches of several cores are predicted from a
// single-threaded run. The package attributes the errors to the individual steps of the prediction.
//
// The true hit ratios ("truth") come from an exact simulation of the program's own threads, in runs
// with as many threads as cores. Between barriers, the threads' references are put in the chosen
// order (package threads). Package predict makes the prediction from the single-threaded run, and
// puts the references of the synthesised threads in the chosen order, too. The same code simulates
// the caches for the prediction and for the truth, so the two differ only in the division of the
// work.
//
// The error of each step is measured with the synthesised threads, without the program's own
// threads. One exact step at a time is replaced by its approximation: the stack distance cache
// model replaces simulated caches; profiles of a sample of each block's windows replace profiles of
// all windows (package blocksample); block weights from the paper's equations replace counts; and
// caches without invalidation replace caches in which other cores' stores invalidate lines.
// Together, these steps are the method of PPT-SASMM.
//
// Errors are differences of hit ratios in percentage points: predicted minus true. For private
// caches, the hit ratio is the unweighted mean over the caches (Barai et al., MEMSYS 2020). The hit
// ratio of all caches together, in which all references have the same weight, is also reported. For
// shared caches, the hit ratio is the global hit ratio: 1 - misses / all references.
package validate

import (
	"io"
	"math"

	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/multicore"
	"github.com/stackglass/stackglass/core/multicore/blocksample"
	"github.com/stackglass/stackglass/core/multicore/predict"
	"github.com/stackglass/stackglass/core/oracle/threads"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/trace"
)

// Rates contains the hit ratios of one level.
type Rates struct {
	Mean   float64 // mean over the caches that have accesses
	Local  float64 // hits / accesses, summed over all caches
	Global float64 // 1 - misses / all references
}

// Level contains the results for one level of the hierarchy and one number of cores.
type Level struct {
	Cache hierarchy.Cache
	// Shared means that the level has fewer caches than there are cores. The error of a shared
	// level is the error of Global; the error of a private level is the error of Mean.
	Shared           bool
	Truth, Predicted Rates
	Varies           Rates // maximum difference between the hit ratios of several real runs
	SDCM             Rates // results of the stack distance cache model for the predicted threads, without Mean
	// These are results of the stack distance cache model: Sampled for sampled windows, Weighed for
	// all windows with the same weighting as in Sampled, and Counted for all windows with counted
	// weights. Mean is set only for the first level.
	Sampled, Weighed, Counted Rates
	// half-widths of the confidence intervals of Sampled.Global and Sampled.Mean, in percentage points
	SampledOff, MeanOff float64
	HasSampled          bool
	// Alone contains the hit ratios of the predicted threads in private caches without
	// invalidation. Alone is set for the first level if that level is private.
	Alone    Rates
	HasAlone bool
}

// Row contains the comparison for one number of cores.
type Row struct {
	Cores                               int
	Threads                             int // number of threads in the real trace
	TrueReferences, PredictedReferences uint64
	Levels                              []Level
}

// Points returns the difference a − b of two hit ratios in percentage points.
func Points(a, b float64) float64 { return 100 * (a - b) }

// Error returns the error of the prediction for the level, in percentage points: the error of
// Global if the level is Shared, and otherwise the error of Mean.
func (l *Level) Error() float64 {
	if l.Shared {
		return Points(l.Predicted.Global, l.Truth.Global)
	}
	return Points(l.Predicted.Mean, l.Truth.Mean)
}

// Weighted returns the error of the hit ratio Global, in which all references have the same weight.
func (l *Level) Weighted() float64 { return Points(l.Predicted.Global, l.Truth.Global) }

// SDCMError returns the error of the stack distance cache model, compared with a simulation of
// the same threads, in percentage points of Global.
func (l *Level) SDCMError() float64 { return Points(l.SDCM.Global, l.Predicted.Global) }

// SamplingError returns the error of a sample of windows, compared with all windows, in percentage
// points of Global.
func (l *Level) SamplingError() float64 { return Points(l.Sampled.Global, l.Weighed.Global) }

// WeightsError returns the error of the weights from the equations, compared with counted weights,
// in percentage points of Global.
func (l *Level) WeightsError() float64 { return Points(l.Weighed.Global, l.Counted.Global) }

// CoherenceError returns the increase of the hit ratio of the first level if stores
// invalidate no lines, in percentage points of Mean.
func (l *Level) CoherenceError() float64 { return Points(l.Alone.Mean, l.Predicted.Mean) }

// Truth returns a [predict.Source] of the real threads, with their references in the order that the
// question specifies.
func Truth(open func() (trace.Reader, error)) predict.Source {
	return func(o multicore.Options) (predict.Threads, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return &closingReader{Reader: threads.Realign(r, o.Order, 0), of: r}, nil
	}
}

// closingReader is a reader of a realigned trace that can close the file of the trace.
type closingReader struct {
	*threads.Reader
	of trace.Reader
}

func (c *closingReader) Close() error {
	if f, ok := c.of.(io.Closer); ok {
		return f.Close()
	}
	return nil
}

// Compare makes a prediction for q.Cores[0] cores from synthesised threads, and compares it with
// the truth, a trace with the same number of threads. The result contains hit ratios by SDCM if
// q.Stacks is true, and hit ratios from windows if q.Windows is not empty.
//
// If the division of the work varies from run to run, pass several truths; the results are compared
// with their mean. Without truths, Compare only makes the prediction.
func Compare(q predict.Question, mimicked predict.Source, truths ...predict.Source) (Row, error) {
	cores := q.Cores[0]
	q.Cores, q.Keep, q.Processor = []int{cores}, 0, nil
	var apart *privateSimulation
	source := func(o multicore.Options) (predict.Threads, error) {
		r, err := mimicked(o)
		if err != nil || max(q.Hierarchy.Levels[0].SharedBy, 1) > 1 || o.Division != multicore.ByIterations {
			return r, err // the field Alone is defined only for private first-level caches
		}
		apart, err = newAlone(r, q, cores)
		return apart, err
	}
	row := Row{Cores: cores}
	sampled := len(q.Windows) > 0
	if sampled {
		by := q.Windows[0].Weights
		q.Windows = []predict.WindowSampling{q.Windows[0], {Looked: blocksample.All, Weights: by}, {Looked: blocksample.All, Weights: blocksample.Counted}}
	}
	predicted, err := run(q, source)
	if err != nil {
		return row, err
	}
	q.Stacks, q.Windows, q.Options.Division = false, nil, multicore.ByIterations
	row.PredictedReferences = predicted.References
	for i, l := range predicted.Levels {
		level := Level{Cache: l.Cache, Shared: l.Caches < cores, Predicted: ratesOf(&l)}
		if predicted.Modelled != nil {
			level.SDCM = ratesOf(&predicted.Modelled[i])
		}
		if sampled {
			w := predicted.Windowed
			level.Sampled, level.Weighed, level.Counted = ratesOf(&w[0][i]), ratesOf(&w[1][i]), ratesOf(&w[2][i])
			level.SampledOff, level.MeanOff, level.HasSampled = 100*w[0][i].Off, 100*w[0][i].MeanOff, true
		}
		if i == 0 && apart != nil {
			level.Alone, level.HasAlone = apart.rates(), true
		}
		row.Levels = append(row.Levels, level)
	}
	return row, row.setTruth(q, truths)
}

// setTruth sets the field Truth to the mean of the hit ratios in the real runs.
func (r *Row) setTruth(q predict.Question, truths []predict.Source) error {
	runs := float64(len(truths))
	low, high := make([]Rates, len(r.Levels)), make([]Rates, len(r.Levels))
	references := uint64(0)
	for n, truth := range truths {
		real, err := run(q, truth)
		if err != nil {
			return err
		}
		if p := real.Header.Program; p != nil {
			r.Threads = len(p.Threads)
		}
		references += real.References
		for i := range r.Levels {
			rates, l := ratesOf(&real.Levels[i]), &r.Levels[i]
			if n == 0 {
				low[i], high[i] = rates, rates
			}
			l.Truth = combine(l.Truth, rates, func(sum, rate float64) float64 { return sum + rate/runs })
			low[i], high[i] = combine(low[i], rates, math.Min), combine(high[i], rates, math.Max)
			l.Varies = combine(high[i], low[i], func(high, low float64) float64 { return high - low })
		}
	}
	r.TrueReferences = references / max(uint64(len(truths)), 1)
	return nil
}

// combine applies the function f to each pair of corresponding hit ratios of a and b.
func combine(a, b Rates, f func(a, b float64) float64) Rates {
	return Rates{Mean: f(a.Mean, b.Mean), Local: f(a.Local, b.Local), Global: f(a.Global, b.Global)}
}

// run returns the prediction for a question about a single number of cores.
func run(q predict.Question, s predict.Source) (predict.Result, error) {
	r, err := predict.New(q, s)
	if err != nil {
		return predict.Result{}, err
	}
	defer r.Close()
	for err == nil {
		err = r.Step()
	}
	if err != io.EOF {
		return predict.Result{}, err
	}
	return r.Results()[0], nil
}

func ratesOf(l *predict.Level) Rates {
	r := Rates{Mean: l.Local, Local: l.Local, Global: l.Global}
	if l.Averaged {
		r.Mean = l.Mean
	}
	return r
}

// privateSimulation is a reader that returns the rows of the threads unchanged, and simulates each
// thread in a separate first-level cache.
type privateSimulation struct {
	predict.Threads
	cores  []*simulate.Simulator
	thread trace.Batch
}

func newAlone(r predict.Threads, q predict.Question, cores int) (*privateSimulation, error) {
	a := &privateSimulation{Threads: r}
	first := hierarchy.Hierarchy{Levels: q.Hierarchy.Levels[:1:1]}
	for range cores {
		s, err := simulate.New(first, simulate.Options{Seed: q.Seed, Cores: [][]uint32{{0}}})
		if err != nil {
			return nil, err
		}
		a.cores = append(a.cores, s)
	}
	return a, nil
}

// Next implements [trace.Reader].
func (a *privateSimulation) Next(b *trace.Batch) error {
	if err := a.Threads.Next(b); err != nil {
		return err
	}
	for core, s := range a.cores {
		own := &a.thread
		own.Resize(0)
		for i, k := range b.Kind {
			if (b.Thread == nil || int(b.Thread[i]) == core) && trace.DataKinds.Has(k) {
				own.Addr, own.Bytes, own.Kind = append(own.Addr, b.Addr[i]), append(own.Bytes, b.Bytes[i]), append(own.Kind, k)
			}
		}
		if err := s.Consume(own); err != nil {
			return err
		}
	}
	return nil
}

// Close closes the underlying threads.
func (a *privateSimulation) Close() error {
	if c, ok := a.Threads.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (a *privateSimulation) rates() (r Rates) {
	var accesses, misses float64
	busy := 0
	for _, s := range a.cores {
		run := s.Result().Levels[0].Run
		if n := float64(run.Accesses()); n > 0 {
			busy++
			accesses, misses = accesses+n, misses+float64(run.Misses())
			r.Mean += 1 - float64(run.Misses())/n
		}
	}
	if busy == 0 {
		return Rates{Mean: 1, Local: 1, Global: 1}
	}
	r.Mean /= float64(busy)
	r.Local = 1 - misses/accesses
	r.Global = r.Local
	return r
}
