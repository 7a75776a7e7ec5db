package hierarchy

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

type Method string

// The methods of predicting or counting the misses of a level.
const (
	Exact Method = "exact" // first level with LRU: from the histogram or the set table, or counted together with the line utilisation (MODELS §2, MODELS §4)
	// first level with a different replacement or write policy, predicted as an LRU cache
	AsIfLRU     Method = "as-lru"
	Independent Method = "independent" // lower level, predicted as an LRU cache that sees every access (MODELS §3)
	SDCM        Method = "sdcm"        // set-associative level, predicted by the stack distance cache model (MODELS §5)
	Windowed    Method = "windowed"    // for a part of the run, from the stack distances in the part's windows (package attribution)
	// counted from the loops of a run that was predicted from runs with smaller inputs (package scaling)
	Extrapolated Method = "extrapolated"
	Simulated    Method = "simulated" // not a prediction: counted by simulating the caches (package simulate)
)

// Level is the prediction for one cache, in line accesses.
type Level struct {
	Cache    Cache
	Accesses float64 // a whole number if this level and all levels above are predicted exactly
	Hits     float64
	Misses   float64
	Method   Method

	// SDCMMisses is the number of misses that SDCM predicts for a set-associative level. SDCMMisses
	// is at most Accesses. Beside means that SDCMMisses can be compared with Misses, because Method
	// is not SDCM.
	SDCMMisses float64
	Beside     bool
	// Approximate means that the line size of this level or of a level above differs from the first
	// level's, so that accesses and misses are counted in different units.
	Approximate bool
	// Together means that this exclusive level and all levels above it behave like one LRU cache,
	// and were predicted together as one LRU cache.
	Together bool
	// Low and High are the limits of the 95 % confidence interval of the misses if Bounded is set.
	Low, High float64
	Bounded   bool
	cut       bool // whether the misses were limited to the accesses that reach the level

	// AverageCycles is the mean time of the accesses that reach this level; 0 if a latency
	// is unknown.
	AverageCycles float64
	// Bytes is the number of bytes transferred from this level to the level above, or to the core.
	// LeastCycles is the time to transfer these bytes at Cache.BytesPerCycle; 0 if unknown.
	Bytes, LeastCycles float64
}

// Prediction contains the prediction for each level, and the accesses that reach memory.
type Prediction struct {
	Levels         []Level
	MemoryAccesses float64

	// MemoryBytes is the number of bytes fetched from memory, excluding write-backs.
	// MemoryLeastCycles is the time to transfer these bytes at Memory.BytesPerCycle; 0 if unknown.
	MemoryBytes, MemoryLeastCycles float64

	// AverageCycles is the average memory access time (MODELS §13.1). AverageNanoseconds is the
	// same time in nanoseconds, at the hierarchy's clock rate. Unknown times are 0.
	AverageCycles, AverageNanoseconds float64

	References   uint64 // number of references in the run
	Instructions uint64 // number of instructions in the run; 0 if unknown
}

// PerKiloReference returns n per thousand references of the run, or 0 if there are no references.
func (p *Prediction) PerKiloReference(n float64) float64 { return perKilo(n, p.References) }

// PerKiloInstruction returns n per thousand instructions of the run, or 0 if the number of
// instructions is unknown.
func (p *Prediction) PerKiloInstruction(n float64) float64 { return perKilo(n, p.Instructions) }

func perKilo(n float64, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return n / float64(of) * 1000
}

// Warning is a caveat of a prediction, as a sentence.
type Warning string

// Predict predicts every level of h, summed over the cores of the program's threads. Predict fails
// if a cache is invalid, or if p has no histogram for the line size of a level.
func Predict(p *profile.Profile, h Hierarchy) (Prediction, []Warning, error) {
	out, warnings, err := NewAsker(p).Predict(h, nil)
	return out.Prediction, warnings, err
}

// ByCore is a prediction for a program whose threads run on several cores.
type ByCore struct {
	Prediction           // the sums over all cores
	Cores      []OneCore // the cores, in the order of their first threads; nil if there is only one core
	Coherence  []float64 // for each level: misses on lines that another core's store had invalidated
}

// OneCore is the prediction for one core. For shared levels, OneCore contains only the accesses and
// misses of this core.
type OneCore struct {
	Threads []uint32
	Levels  []CoreLevel
}

// CoreLevel contains the accesses and misses of one core in a level.
type CoreLevel struct {
	Accesses, Hits, Misses float64
	// Coherence is the number of Misses on lines that were in this level (or above, if the level is
	// exclusive) when another core's store invalidated them. In a set-associative level, Coherence
	// is an expected value.
	Coherence float64
}

// Asker makes predictions from a profile, which must not change. Asker caches the results that take
// the longest to compute: miss-ratio curves and the results of SDCM.
//
// If the profile has per-thread stacks, a private level is predicted from the core's coherent
// stack, in which stores of other cores invalidate lines. A shared level is predicted for each core
// separately, from the concurrent stack of the cores that share the level (MODELS §6.5; Kulkarni
// §4.1.2). Without per-thread stacks, all threads are assumed to run on one core. A core's misses
// in a level are at most its misses in the level above.
type Asker struct {
	// Forecast predicts the misses of a cache if the profile itself is a prediction. It may be nil.
	Forecast func(c Cache) Forecast

	p            *profile.Profile
	stacks       map[stackKey]stackCurve
	sdcm         map[stackCache]float64 // number of misses that SDCM predicts
	instructions uint64
	pages        bool // whether the lines of the profile are pages
}

// Forecast is the number of misses of a cache in a predicted run.
type Forecast struct {
	Misses    float64
	Counted   bool    // whether Misses is known; if not, the profile's stack distances predict the misses
	Low, High float64 // limits of the misses
}

// NewAsker returns an Asker for p.
func NewAsker(p *profile.Profile) *Asker {
	a := &Asker{p: p, stacks: map[stackKey]stackCurve{}, sdcm: map[stackCache]float64{}}
	if p.Counters != nil {
		counts := p.Counters.Program()
		a.instructions = counts[profile.Instructions]
	}
	return a
}

// Predict predicts every level of h. If shares is not nil, the last shared level is divided among
// the cores, and each core's share is predicted from the core's private stack (Anger, Fig. 8).
// Cores without a share receive equal parts of the remaining capacity.
func (a *Asker) Predict(h Hierarchy, shares []Share) (ByCore, []Warning, error) {
	single := len(a.p.Sharing) == 0 || h.Threads == OnOneCore
	if single && len(shares) > 0 {
		return ByCore{}, nil, badShare(shares[0], "several threads on separate cores, and a profile with per-thread stacks")
	}
	if len(h.Levels) == 0 {
		return ByCore{}, nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	out := ByCore{Prediction: Prediction{References: a.p.Totals.AllReferences(), Instructions: a.instructions}}
	parts, err := a.parts(h, shares)
	if err != nil {
		return ByCore{}, nil, err
	}
	for i := range h.Levels {
		if err := a.addLevel(&out, h, i, parts, single); err != nil {
			return ByCore{}, nil, err
		}
	}
	if single {
		out.Cores, out.Coherence = nil, nil
	}
	warnings := a.warnings(h, &out)
	out.time(h)
	out.move(h, &a.p.Totals)
	return out, warnings, nil
}

// addLevel appends the prediction for level i.
func (a *Asker) addLevel(out *ByCore, h Hierarchy, i int, parts []Cache, single bool) error {
	c := h.Levels[i]
	curve, err := a.curve(c)
	if err != nil {
		return err
	}
	if l := a.p.LocalityAt(c.LineBytes); l != nil && !c.Full() && !c.Hashed && l.Sets.Omits(c.Sets(), uint64(c.Ways)) {
		return &trace.OptionError{Option: "cache", Got: c.String() + ", which has " + strconv.FormatUint(c.Sets(), 10) + " sets",
			Want: "a number of sets that the profile covers; to cover all numbers of sets, analyse the trace again with --sets all"}
	}
	asked, together := h.combineAbove(i)
	var cores []coreMisses
	var threads []profile.Core
	if single {
		cores, threads = []coreMisses{a.singleCore(asked)}, make([]profile.Core, 1)
	} else {
		s := a.sharing(c.LineBytes)
		if s == nil {
			return &trace.OptionError{Option: "cache", Got: c.String(), Want: "a line size for which the profile has per-thread stacks"}
		}
		if !h.sameCores(i) {
			asked, together = c, false
		}
		if i != lastShared(h) {
			parts = nil
		}
		threads = s.Cores
		if cores, err = a.perCore(s, asked, parts); err != nil {
			return err
		}
	}
	level, coherence := Level{Cache: c, Method: Exact, Together: together}, 0.
	for k, n := range cores {
		if i == 0 {
			out.Cores = append(out.Cores, OneCore{Threads: threads[k].Threads})
		}
		coherence += out.Cores[k].add(n, &level)
	}
	level.setMethod(i, &h, out.Levels)
	if f := cores[0].forecast; single && f != nil {
		level.Low, level.High, level.Bounded = f.Low, f.High, true
		if f.Counted {
			level.Method, level.Beside = Extrapolated, false
		}
	}
	if estimated(a.p) {
		level.markSampled()
		if single {
			a.bound(&level, asked, cores[0].misses, float64(curve.Misses(asked.Lines())))
		}
	}
	if i > 0 {
		level.boundBy(&out.Levels[i-1])
	}
	out.Levels, out.Coherence = append(out.Levels, level), append(out.Coherence, coherence)
	out.MemoryAccesses = level.Misses
	return nil
}

// combineAbove combines level i and all levels above it into a single cache if they behave like a
// single cache. The levels behave like a single cache if they are exclusive LRU caches that have
// equal numbers of sets and assign each line to the same set: each exclusive level receives the
// lines that the level above evicts, so the combined levels contain the most recently used lines of
// each set. Otherwise, combineAbove returns level i and false.
func (h *Hierarchy) combineAbove(i int) (Cache, bool) {
	level := h.Levels[i]
	if i == 0 {
		return level, false
	}
	whole := h.Levels[0]
	sets, lineBytes := whole.Sets(), whole.LineBytes
	for k, c := range h.Levels[:i+1] {
		if c.Replacement != LRU || c.Hashed || c.Write.Around() || c.LineBytes != lineBytes || c.Sets() != sets ||
			k > 0 && c.Inclusion != Exclusive {
			return level, false
		}
		if k > 0 {
			whole.SizeBytes += c.SizeBytes
		}
	}
	if whole.Ways = 0; sets > 1 {
		whole.Ways = uint32(whole.Lines() / sets)
	}
	return whole, true
}

// sameCores reports whether the same cores share level i and each level above it.
func (h *Hierarchy) sameCores(i int) bool {
	for _, above := range h.Levels[:i] {
		if max(above.SharedBy, 1) != max(h.Levels[i].SharedBy, 1) {
			return false
		}
	}
	return true
}

// add appends the prediction for a level to the levels of a core, and adds the predicted numbers to
// the sum over the cores. A core's misses are at most its accesses to the level.
func (c *OneCore) add(n coreMisses, sum *Level) (coherence float64) {
	one := CoreLevel{Accesses: n.accesses, Misses: n.misses}
	if len(c.Levels) > 0 {
		one.Accesses = c.Levels[len(c.Levels)-1].Misses
		sum.cut = sum.cut || n.misses > one.Accesses
	}
	one.Misses = min(n.misses, one.Accesses)
	one.Hits = one.Accesses - one.Misses
	one.Coherence = min(n.coherence, one.Misses)
	c.Levels = append(c.Levels, one)
	sum.Accesses += one.Accesses
	sum.Hits += one.Hits
	sum.Misses += one.Misses
	sum.SDCMMisses += min(n.sdcm, one.Accesses)
	if n.method == SDCM {
		sum.Method = SDCM
	}
	return one.Coherence
}

// setMethod replaces the method of level i, which is Exact or SDCM, by a more specific one if
// necessary.
func (l *Level) setMethod(i int, h *Hierarchy, above []Level) {
	l.Beside = l.Method == Exact && !l.Cache.Full()
	switch {
	case l.Method == SDCM:
	case i > 0 && !l.Together:
		l.Method = Independent
	case l.Cache.Replacement != LRU && l.Cache.Ways != 1 || l.Cache.Write.Around():
		l.Method = AsIfLRU
	}
	l.Approximate = i > 0 && (l.Cache.LineBytes != h.Levels[0].LineBytes || above[i-1].Approximate)
}

// time computes the average access times, from memory up to the first level.
func (p *Prediction) time(h Hierarchy) {
	below, known := h.Memory.LatencyCycles, h.Memory.LatencyCycles > 0
	for i := len(p.Levels) - 1; i >= 0; i-- {
		l := &p.Levels[i]
		known = (known || l.Misses == 0) && (l.Cache.LatencyCycles > 0 || l.Hits == 0)
		if known && l.Accesses > 0 {
			below = (l.Hits*l.Cache.LatencyCycles + l.Misses*below) / l.Accesses
			l.AverageCycles = below
		}
	}
	p.AverageCycles = p.Levels[0].AverageCycles
	if h.ClockGHz > 0 {
		p.AverageNanoseconds = p.AverageCycles / h.ClockGHz
	}
}

// move computes how many bytes each level transfers to the level above.
func (p *Prediction) move(h Hierarchy, totals *profile.Totals) {
	var bytes float64
	for _, n := range totals.Bytes {
		bytes += float64(n)
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		l.Bytes, l.LeastCycles = bytes, leastCycles(bytes, l.Cache.BytesPerCycle)
		bytes = l.Misses * float64(l.Cache.LineBytes)
	}
	p.MemoryBytes, p.MemoryLeastCycles = bytes, leastCycles(bytes, h.Memory.BytesPerCycle)
}

func leastCycles(bytes, perCycle float64) float64 {
	if perCycle <= 0 {
		return 0
	}
	return bytes / perCycle
}

// Counted contains the demand accesses and misses that a simulation counted at a level.
type Counted struct{ Accesses, Misses uint64 }

// Measured converts the counts of a simulation of h to a prediction with times and transferred
// bytes. The bytes exclude the traffic of instruction caches and prefetchers.
func Measured(h Hierarchy, levels []Counted, totals *profile.Totals) Prediction {
	out := Prediction{References: totals.AllReferences()}
	for i, n := range levels {
		out.Levels = append(out.Levels, Level{
			Cache: h.Levels[i], Method: Simulated,
			Accesses: float64(n.Accesses), Misses: float64(n.Misses), Hits: float64(n.Accesses - n.Misses),
		})
		out.MemoryAccesses = float64(n.Misses)
	}
	out.time(h)
	out.move(h, totals)
	return out
}

// PartOf returns the prediction for a part of a run, given the predicted levels and the number of
// references in this part. The number of instructions in the part is unknown.
func PartOf(h Hierarchy, levels []Level, references uint64) Prediction {
	out := Prediction{References: references, Levels: levels}
	for i := range levels {
		l := &levels[i]
		l.Beside, l.Bounded, l.AverageCycles, l.Bytes, l.LeastCycles = false, false, 0, 0, 0
		out.MemoryAccesses, out.MemoryBytes = l.Misses, l.Misses*float64(l.Cache.LineBytes)
	}
	out.time(h)
	return out
}

// curve checks a cache, and returns the miss-ratio curve of all accesses at its line size.
func (a *Asker) curve(c Cache) (*profile.Curve, error) {
	check := c.Check
	if a.pages {
		check = c.CheckShape // the lines are pages
	}
	if err := check(); err != nil {
		return nil, err
	}
	if a.p.LocalityAt(c.LineBytes) == nil {
		return nil, &trace.OptionError{Option: "cache", Got: c.String(), Want: a.lineSizes(c.LineBytes)}
	}
	return a.stack(stackKey{lineBytes: c.LineBytes, kind: wholeStack}, nil).Curve, nil
}

// lineSizes returns a phrase that lists the line sizes of the profile and explains how to add
// another line size.
func (a *Asker) lineSizes(other uint32) string {
	if len(a.p.Locality) == 0 {
		return "a profile with stack distances, but this profile contains none; analyse the trace again with --analyses locality"
	}
	var have, all []string
	missing := strconv.Itoa(int(other))
	for i := range a.p.Locality {
		size := a.p.Locality[i].LineBytes
		if missing != "" && size > other {
			all, missing = append(all, missing), ""
		}
		have, all = append(have, strconv.Itoa(int(size))), append(all, strconv.Itoa(int(size)))
	}
	if missing != "" {
		all = append(all, missing)
	}
	return "a line size of the profile (" + strings.Join(have, ", ") + " bytes); to add this size, analyse the trace again with --lines " + strings.Join(all, ",")
}
