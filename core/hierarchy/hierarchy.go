// Package hierarchy answers questions about caches from a profile: how many
// accesses hit and miss in each level of a hierarchy that nobody had to choose
// before the run.
//
//   - A fully associative LRU level is exact, from the stack-distance histogram
//     of its line size: hits are the accesses with a distance below its number
//     of lines (MODELS §3).
//   - A set-associative level is predicted by SDCM, from the same histogram: the
//     chance of a hit at each distance when lines fall into sets at random
//     (MODELS §5). It is a model, and a warning says so.
//
// Every level is asked about the whole stream of accesses (the inclusive stack
// model): level i sees misses_{i-1} accesses and misses what a cache of its size
// would miss of the whole stream. A real lower level sees only what the upper
// ones let through, in another order of use; a warning says so too.
//
// [Predict] is pure and does no input or output.
package hierarchy

import (
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Cache is one level of a hierarchy.
type Cache struct {
	Name      string
	SizeBytes uint64
	Ways      uint32 // 0: fully associative
	LineBytes uint32

	// Hashed: the set is chosen by a hash of the address, not by its low bits.
	Hashed      bool
	Replacement Replacement
	Inclusion   Inclusion
	Write       Write

	SharedBy      uint32  // cores; 0 or 1: private to one
	LatencyCycles float64 // from a load to the use of what hits here; 0: not known
	BytesPerCycle float64 // that it can give to the level above; 0: not known
}

// Replacement is how a set chooses the line to give up.
type Replacement uint8

// The replacements. Profiles answer for LRU; package simulate has all of them.
const (
	LRU Replacement = iota
	TreePLRU
	Random
)

// Inclusion is what a level holds of what the levels above it hold.
type Inclusion uint8

// The inclusions.
const (
	Inclusive    Inclusion = iota // all of it: a line that leaves here leaves above
	NonInclusive                  // what came by here, and no word is sent up
	Exclusive                     // none of it: lines come from above only
)

// Write is what a level does with stores.
type Write uint8

// The writes.
const (
	WriteBack          Write = iota // and allocate
	WriteBackAround                 // and do not allocate what misses
	WriteThrough                    // and allocate
	WriteThroughAround              // and do not allocate what misses
)

// Memory is what is behind the last level.
type Memory struct {
	LatencyCycles float64 // from a load to its use; 0: not known
	BytesPerCycle float64 // that it can give to the last level; 0: not known
}

// Lines is the cache's capacity in lines.
func (c Cache) Lines() uint64 { return c.SizeBytes / uint64(max(c.LineBytes, 1)) }

// Full reports whether the cache is fully associative.
func (c Cache) Full() bool { return c.Ways == 0 || uint64(c.Ways) == c.Lines() }

// Check tests that the cache can exist; the error is a [*trace.OptionError].
func (c Cache) Check() error {
	bad := func(want string) error {
		return &trace.OptionError{Option: "cache", Got: c.String(), Want: want}
	}
	line := uint64(c.LineBytes)
	switch {
	case !profile.ValidLineBytes(c.LineBytes):
		return bad("a line size that is a power of two from 8 to 4096 bytes")
	case c.SizeBytes == 0 || c.SizeBytes%line != 0:
		return bad("a size that is a multiple of the line size of " + strconv.FormatUint(line, 10) + " bytes")
	case c.Ways > 0 && c.Lines()%uint64(c.Ways) != 0:
		return bad("a number of ways that divides its " + strconv.FormatUint(c.Lines(), 10) + " lines, or full")
	}
	return nil
}

// Hierarchy is a list of levels, first level first.
type Hierarchy struct {
	Name   string
	Title  string // for people: what processor this is; "": the name says it
	About  string // what should be known of it, in a sentence or two
	Levels []Cache
	Memory Memory

	ClockGHz float64  // at which cycles are counted; 0: not known
	Sources  []string // where the numbers are from
}

// Method says how a level's numbers were computed.
type Method string

// The methods.
const (
	Exact         Method = "exact"     // first level, LRU, from the histogram or the set table (MODELS §3, §4)
	AsIfInclusive Method = "inclusive" // such a level behind the first, as if it saw every access (MODELS §3)
	SDCM          Method = "sdcm"      // set-associative, by the stack distance cache model (MODELS §5)
)

// Level is the prediction for one cache, in line accesses.
type Level struct {
	Cache    Cache
	Accesses float64 // whole numbers when all methods so far are exact
	Hits     float64
	Misses   float64
	Method   Method
}

// Prediction is the answer: each level, and the accesses that reach memory.
type Prediction struct {
	Levels         []Level
	MemoryAccesses float64
}

// Warning is a doubt about a prediction, in a sentence.
type Warning string

// Predict answers for every level of h. Questions that p cannot answer (a cache
// that cannot exist, a line size that p has no histogram for) are errors; doubts
// are warnings.
func Predict(p *profile.Profile, h Hierarchy) (Prediction, []Warning, error) {
	if len(h.Levels) == 0 {
		return Prediction{}, nil, &trace.OptionError{Option: "hierarchy", Got: h.Name, Want: "at least one level"}
	}
	var out Prediction
	warnings := doubts(p, h)
	curves := map[uint32]*profile.Curve{}
	for i, cache := range h.Levels {
		curve, err := curveFor(p, cache, curves)
		if err != nil {
			return Prediction{}, nil, err
		}
		level := Level{Cache: cache, Accesses: float64(curve.Accesses)}
		level.Misses, level.Method = misses(curve, cache)
		if i > 0 {
			above := out.Levels[i-1]
			if level.Method == Exact {
				level.Method = AsIfInclusive
			}
			level.Accesses = above.Misses
			if level.Misses > above.Misses {
				level.Misses = above.Misses
				warnings = append(warnings, Warning(cache.Name+" by itself would miss more than "+above.Cache.Name+
					" lets through; its misses are cut to that number, so it hits nothing here"))
			}
		}
		level.Hits = level.Accesses - level.Misses
		out.Levels = append(out.Levels, level)
		out.MemoryAccesses = level.Misses
	}
	return out, warnings, nil
}

// curveFor gives the miss-ratio curve at the cache's line size.
func curveFor(p *profile.Profile, c Cache, curves map[uint32]*profile.Curve) (*profile.Curve, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	if curve := curves[c.LineBytes]; curve != nil {
		return curve, nil
	}
	l := p.LocalityAt(c.LineBytes)
	if l == nil {
		var have string
		for i := range p.Locality {
			if i > 0 {
				have += ", "
			}
			have += strconv.Itoa(int(p.Locality[i].LineBytes))
		}
		return nil, &trace.OptionError{Option: "cache", Got: c.String(),
			Want: "a line size that the profile has (" + have + " bytes); analyse the trace again with this line size to ask about it"}
	}
	curve := profile.NewCurve(l.Histogram(trace.AllKinds))
	curves[c.LineBytes] = curve
	return curve, nil
}

// misses is what the cache misses of the whole stream.
func misses(curve *profile.Curve, c Cache) (float64, Method) {
	if c.Full() {
		return float64(curve.Misses(c.Lines())), Exact
	}
	var hits float64
	var before uint64
	for i, d := range curve.Distances {
		chance := HitProbability(d, c.Lines(), uint64(c.Ways))
		if chance < 1e-12 {
			break // it only falls from here on
		}
		hits += chance * float64(curve.Upto[i]-before)
		before = curve.Upto[i]
	}
	return max(0, float64(curve.Accesses)-hits), SDCM
}

// doubts are the warnings that follow from the question alone.
func doubts(p *profile.Profile, h Hierarchy) (warnings []Warning) {
	if p.State.Partial {
		warnings = append(warnings, Warning("the profile covers only a part of the trace: "+p.State.Reason))
	}
	if p.Totals.BadRecords > 0 {
		warnings = append(warnings, Warning(strconv.FormatUint(p.Totals.BadRecords, 10)+" records of the trace could not be read and are missing"))
	}
	mixed := false
	for i, c := range h.Levels {
		if !c.Full() {
			warnings = append(warnings, Warning(c.Name+" is set-associative: its hits and misses come from a model (SDCM), "+
				"which lets lines fall into sets at random; strides that favour some sets miss more, dense arrays less"))
		}
		mixed = mixed || i > 0 && c.LineBytes != h.Levels[0].LineBytes
	}
	if len(h.Levels) > 1 {
		warnings = append(warnings, "every level is asked about all accesses; a real lower level sees only the misses of the one above, "+
			"so its order of use, and with it its misses, differ somewhat")
	}
	if mixed {
		warnings = append(warnings, "levels have different line sizes: each is read from its own histogram, and their sums are approximate")
	}
	return warnings
}
