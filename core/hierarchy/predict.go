package hierarchy

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Method says how a level's numbers were computed.
type Method string

// The methods.
const (
	Exact       Method = "exact"       // first level, LRU, from the histogram, the set table, or counted with the sites (MODELS §2, MODELS §4)
	AsIfLRU     Method = "as-lru"      // a first level that replaces or writes in another way, as if it were such a one
	Independent Method = "independent" // a level behind the first, as if it saw every access and were LRU (MODELS §3)
	SDCM        Method = "sdcm"        // set-associative, by the stack distance cache model (MODELS §5)
)

// Level is the prediction for one cache, in line accesses.
type Level struct {
	Cache    Cache
	Accesses float64 // whole numbers when all methods so far are exact
	Hits     float64
	Misses   float64
	Method   Method

	// SDCMMisses is what SDCM says of a set-associative level, whatever the method,
	// cut as Misses are to what reaches the level. Beside tells that the method is
	// another one, so that the two can be compared.
	SDCMMisses float64
	Beside     bool
	// Approximate: lines are of another size than the first level's, so its
	// misses and what it is asked are in different units.
	Approximate bool
	// Together: the level is exclusive and goes with all above it as if they were
	// one LRU cache, which is what was asked about.
	Together bool
	// Low and High are an interval that has the misses in 95 of 100 samples; Bounded
	// tells that there is one.
	Low, High float64
	Bounded   bool
	cut       bool // by itself it would miss more than reaches it

	// AverageCycles is the mean time of the accesses that reach this level; 0:
	// a latency that it takes is not known.
	AverageCycles float64
	// Bytes go from here to the level above, or to the core: what was asked for.
	// LeastCycles are those that Cache.BytesPerCycle takes for them, whatever
	// else happens; 0: it is not known.
	Bytes, LeastCycles float64
}

// Prediction is the answer: each level, and the accesses that reach memory.
type Prediction struct {
	Levels         []Level
	MemoryAccesses float64

	// MemoryBytes are fetched from memory, write-backs apart; MemoryLeastCycles
	// are those that Memory.BytesPerCycle takes for them, 0: not known.
	MemoryBytes, MemoryLeastCycles float64

	// AverageCycles is the mean time of an access to the first level (AMAT,
	// MODELS §13.1), and the same in nanoseconds; 0: not known.
	AverageCycles, AverageNanoseconds float64

	References   uint64 // of the run
	Instructions uint64 // of the run; 0: the trace tells none
}

// PerKiloReference is n a thousand references of the run, 0 for no references.
func (p *Prediction) PerKiloReference(n float64) float64 { return perKilo(n, p.References) }

// PerKiloInstruction is n a thousand instructions, 0 where they are not known.
func (p *Prediction) PerKiloInstruction(n float64) float64 { return perKilo(n, p.Instructions) }

func perKilo(n float64, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return n / float64(of) * 1000
}

// Warning is a doubt about a prediction, in a sentence.
type Warning string

// Predict answers for every level of h, summed over the cores that the program's
// threads run on ([CoreAsker]). Questions that p cannot answer (a cache that cannot
// exist, a line size that p has no histogram for) are errors; doubts are warnings.
func Predict(p *profile.Profile, h Hierarchy) (Prediction, []Warning, error) {
	out, warnings, err := NewCoreAsker(p).Predict(h, nil)
	return out.Prediction, warnings, err
}

// Asker asks several questions about one profile, which must not change, as if all
// threads ran on one core; [CoreAsker] knows of several. It keeps the miss-ratio
// curves, and SDCM's answers, which take longest.
type Asker struct {
	p      *profile.Profile
	curves map[uint32]*profile.Curve
	sdcm   map[geometry]float64
	instrs uint64
}

// geometry is what SDCM's answer depends on.
type geometry struct {
	lineBytes, ways uint32
	lines           uint64
}

// keptAnswers is the most of SDCM's answers that an Asker keeps.
const keptAnswers = 1024

// NewAsker is an Asker for p.
func NewAsker(p *profile.Profile) *Asker {
	a := &Asker{p: p, curves: map[uint32]*profile.Curve{}, sdcm: map[geometry]float64{}}
	if p.Counters != nil {
		counts := p.Counters.Program()
		a.instrs = counts[profile.Instructions]
	}
	return a
}

// Predict answers for every level of h, for one core.
func (a *Asker) Predict(h Hierarchy) (Prediction, []Warning, error) {
	if len(h.Levels) == 0 {
		return Prediction{}, nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	out := Prediction{References: a.p.Totals.AllReferences(), Instructions: a.instrs}
	for i, cache := range h.Levels {
		asked, together := h.together(i)
		level, err := a.level(asked)
		if err != nil {
			return Prediction{}, nil, err
		}
		level.Cache, level.Together = cache, together
		if i > 0 {
			level.below(&out.Levels[i-1], h.Levels[0].LineBytes)
		}
		level.Hits = level.Accesses - level.Misses
		out.Levels = append(out.Levels, level)
		out.MemoryAccesses = level.Misses
	}
	warnings := a.doubts(h, &out)
	out.time(h)
	out.move(h, &a.p.Totals)
	return out, warnings, nil
}

// together is the one cache that level i and all above it amount to, where it is
// exclusive: LRU levels of as many sets each, chosen in one way, of which each
// takes what the one above gives up, hold the most recently used lines of a set
// in order, level by level. Otherwise it is level i by itself.
func (h *Hierarchy) together(i int) (one Cache, ok bool) {
	one = h.Levels[i]
	if i == 0 {
		return one, false
	}
	first := h.Levels[0]
	sets, whole := first.Sets(), first
	for k, c := range h.Levels[:i+1] {
		if c.Replacement != LRU || c.Hashed || c.Write.Around() || c.LineBytes != first.LineBytes || c.Sets() != sets ||
			k > 0 && c.Inclusion != Exclusive {
			return one, false
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

// level answers for one cache as if it were the only one.
func (a *Asker) level(c Cache) (Level, error) {
	curve, err := a.curve(c)
	if err != nil {
		return Level{}, err
	}
	level := Level{Cache: c, Accesses: float64(curve.Accesses)}
	if c.Full() {
		level.Method, level.Misses = Exact, float64(curve.Misses(c.Lines()))
	} else {
		level.SDCMMisses = a.sdcmMisses(curve, c)
		hits, ok := uint64(0), false
		if !c.Hashed {
			hits, ok = a.p.LocalityAt(c.LineBytes).Sets.Hits(c.Sets(), uint64(c.Ways))
		}
		misses := curve.Accesses - hits
		if !ok {
			misses, ok = fetched(a.p.Sites, c)
		}
		if ok {
			level.Method, level.Misses, level.Beside = Exact, float64(misses), true
		} else {
			level.Method, level.Misses = SDCM, level.SDCMMisses
		}
	}
	if level.Method == Exact && (c.Replacement != LRU && c.Ways != 1 || c.Write.Around()) {
		level.Method = AsIfLRU
	}
	a.sample(&level, float64(curve.Misses(c.Lines())))
	return level, nil
}

// fetched is how many lines the cache was counted to fetch, where utilisation was
// measured for it: that simulates its sets, whose number may be any.
func fetched(s *profile.Sites, c Cache) (misses uint64, ok bool) {
	if s == nil || c.Hashed || c.LineBytes != s.LineBytes {
		return 0, false
	}
	at := s.Measured(c.Lines(), c.Ways)
	if at < 0 {
		return 0, false
	}
	for i := range s.Code {
		misses += s.Code[i].Reuse.Used[at].Fetched
	}
	return misses, true
}

// below puts the level behind another one (MODELS §3).
func (l *Level) below(above *Level, firstLineBytes uint32) {
	if !l.Method.IsSDCM() && !l.Together {
		if l.Method = Independent; l.Bounded || above.Method.IsSampled() {
			l.Method = SampledIndependent
		}
	}
	low, high := above.Misses, above.Misses
	if above.Bounded {
		low, high = above.Low, above.High
	}
	l.Low, l.High = min(l.Low, low), min(l.High, high)
	l.Accesses, l.cut = above.Misses, l.Misses > above.Misses
	l.Misses = min(l.Misses, above.Misses)
	l.SDCMMisses = min(l.SDCMMisses, above.Misses)
	l.Approximate = l.Cache.LineBytes != firstLineBytes || above.Approximate
}

// time fills in the averages, from memory upwards.
func (p *Prediction) time(h Hierarchy) {
	behind, known := h.Memory.LatencyCycles, h.Memory.LatencyCycles > 0
	for i := len(p.Levels) - 1; i >= 0; i-- {
		l := &p.Levels[i]
		known = (known || l.Misses == 0) && (l.Cache.LatencyCycles > 0 || l.Hits == 0)
		if known && l.Accesses > 0 {
			behind = (l.Hits*l.Cache.LatencyCycles + l.Misses*behind) / l.Accesses
			l.AverageCycles = behind
		}
	}
	p.AverageCycles = p.Levels[0].AverageCycles
	if h.ClockGHz > 0 {
		p.AverageNanoseconds = p.AverageCycles / h.ClockGHz
	}
}

// move fills in the bytes that go up from each level.
func (p *Prediction) move(h Hierarchy, totals *profile.Totals) {
	var asked float64
	for _, n := range totals.Bytes {
		asked += float64(n)
	}
	for i := range p.Levels {
		l := &p.Levels[i]
		l.Bytes, l.LeastCycles = asked, atLeast(asked, l.Cache.BytesPerCycle)
		asked = l.Misses * float64(l.Cache.LineBytes)
	}
	p.MemoryBytes, p.MemoryLeastCycles = asked, atLeast(asked, h.Memory.BytesPerCycle)
}

func atLeast(bytes, perCycle float64) float64 {
	if perCycle <= 0 {
		return 0
	}
	return bytes / perCycle
}

// curve gives the miss-ratio curve at the cache's line size.
func (a *Asker) curve(c Cache) (*profile.Curve, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if curve := a.curves[c.LineBytes]; curve != nil {
		return curve, nil
	}
	l := a.p.LocalityAt(c.LineBytes)
	if l == nil {
		return nil, &trace.OptionError{Option: "cache", Got: c.String(), Want: a.lineSizes(c.LineBytes)}
	}
	curve := profile.NewCurve(l.Histogram(trace.AllKinds))
	a.curves[c.LineBytes] = curve
	return curve, nil
}

// lineSizes says which line sizes can be asked about, and how others can.
func (a *Asker) lineSizes(other uint32) string {
	if len(a.p.Locality) == 0 {
		return "a profile with stack distances, and this one has none; analyse the trace again, locality included"
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
	return "a line size that the profile has (" + strings.Join(have, ", ") + " bytes); analyse the trace again with this one too to ask about it: --lines " + strings.Join(all, ",")
}

// sdcmMisses is what SDCM expects the cache to miss of the whole stream.
func (a *Asker) sdcmMisses(curve *profile.Curve, c Cache) float64 {
	key := geometry{c.LineBytes, c.Ways, c.Lines()}
	misses, kept := a.sdcm[key]
	if !kept {
		misses = max(0, float64(curve.Accesses)-expectedHits(curve, c.Lines(), uint64(c.Ways)))
		if len(a.sdcm) >= keptAnswers {
			clear(a.sdcm)
		}
		a.sdcm[key] = misses
	}
	return misses
}
