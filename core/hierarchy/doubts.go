package hierarchy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// warnings returns the caveats of a prediction. A caveat about a level begins with the level's
// name.
func (a *Asker) warnings(h Hierarchy, out *ByCore) (warnings []Warning) {
	warnings = ProfileDoubts(a.p)
	say := func(parts ...string) { warnings = append(warnings, Warning(strings.Join(parts, ""))) }
	a.warnSDCM(out.Levels, say)
	for i := range out.Levels {
		l := &out.Levels[i]
		if text := policyCaveat(l.Cache, i > 0 && l.Cache.Inclusion == Exclusive && !l.Together); text != "" {
			say(l.Cache.Name, text)
		}
		if n := int(min(uint64(l.Cache.SharedBy), MostCores)); n > 1 && n < len(out.Cores) {
			say(l.Cache.Name, ": stores by cores that do not share this cache invalidate its lines; the prediction assumes that the lines stay in the cache")
		}
	}
	if out.Cores == nil {
		a.warnOneCore(h, say)
	} else if text := OrderDoubt(a.p); text != "" {
		warnings = append(warnings, text)
	}
	out.warnSizes(say)
	if a.p.Totals.References[trace.Fetch] > 0 {
		for _, c := range h.Instructions {
			say(c.Name, " is left out: the prediction sends instruction fetches through ", h.Levels[0].Name, " (stackglass simulate models instruction caches)")
		}
	}
	if parts := h.Beyond(); len(parts) > 0 {
		say(strings.Join(parts, ", "), ": not part of the prediction (stackglass simulate models this)")
	}
	if slices.ContainsFunc(out.Levels[1:], func(l Level) bool { return !l.Together }) {
		say("every level is predicted as if it saw all accesses; a real lower level sees only the misses of the level above, so the real number of misses differs somewhat")
	}
	return warnings
}

// warnOneCore adds a warning if levels were predicted for a single core, although several cores
// share them, or although each thread has its own private cache.
func (a *Asker) warnOneCore(h Hierarchy, say func(...string)) {
	threads := len(a.p.Totals.Threads)
	var names []string
	for _, c := range h.Levels {
		if (c.SharedBy > 1) == (threads <= 1) {
			names = append(names, c.Name)
		}
	}
	switch {
	case len(names) == 0:
	case threads == 1:
		say(areNames(names), " shared by cores: the prediction assumes that this program's only thread can use the whole cache; in a real run, other programs use a part of the cache")
	case threads == 0:
		say(areNames(names), " shared by cores: the trace does not record which thread made a reference, "+
			"so the prediction assumes that one core made all references and can use the whole cache; in a real run, other cores use a part of the cache")
	case h.Threads != OnOneCore:
		say(areNames(names), " private to a core: the prediction assumes that all threads ran on one core, because the profile has no per-thread stacks; "+
			"analyse the trace again, with the default analyses or with --analyses sharing")
	}
}

// ProfileDoubts returns the caveats that apply to every prediction from a profile. These caveats
// precede all other warnings.
func ProfileDoubts(p *profile.Profile) (warnings []Warning) {
	if p.State.Partial {
		warnings = append(warnings, Warning("the profile covers only a part of the trace: "+p.State.Reason))
	}
	if text := SampleDoubt(p.Sampled); text != "" {
		warnings = append(warnings, Warning(text))
	}
	if text := PredictedDoubt(p.Predicted); text != "" {
		warnings = append(warnings, Warning(text))
	}
	if n := p.Totals.BadRecords; n > 0 {
		warnings = append(warnings, Warning(strconv.FormatUint(n, 10)+" records of the trace could not be read and are not included"))
	}
	return warnings
}

// PredictedDoubt returns a caveat if the profile's threads were synthesised, and otherwise "".
func PredictedDoubt(p *profile.Predicted) string {
	if p == nil {
		return ""
	}
	return "the threads of " + strconv.FormatUint(uint64(p.Cores), 10) + " cores were synthesised from a single-threaded run (" + p.How + ")"
}

func areNames(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// warnSDCM adds one warning per reason for using SDCM. Each warning names the affected levels.
func (a *Asker) warnSDCM(levels []Level, say func(...string)) {
	var reasons []string
	names := map[string][]string{}
	for _, l := range levels {
		if !l.Method.IsSDCM() {
			continue
		}
		why := a.whySDCM(l.Cache)
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], l.Cache.Name)
	}
	for _, why := range reasons {
		say(areNames(names[why]), " set-associative and predicted by the stack distance cache model (SDCM), which assigns lines to sets at random: "+
			"strides that favour some sets cause more misses than predicted, and dense arrays cause fewer. ", why)
	}
}

// whySDCM returns the reason why a level has no exact prediction.
func (a *Asker) whySDCM(c Cache) string {
	sets := c.Sets()
	switch {
	case c.Hashed:
		return "If a hash selects the sets, no exact table exists"
	case estimated(a.p):
		return "A sample contains too few lines of each set for exact counts"
	case sets&(sets-1) != 0:
		return "Exact tables exist only for numbers of sets that are powers of two, but this level has " + strconv.FormatUint(sets, 10)
	case sets >= 1<<profile.SetCounts || c.Ways > profile.MaxWays:
		return "Exact tables cover at most 65,536 sets and 32 ways"
	}
	return "An analysis with set tables would make this prediction exact"
}

var replacementNames = [...]string{
	LRU: "LRU", TreePLRU: "tree PLRU", Random: "random", FIFO: "FIFO", BitPLRU: "bit PLRU", NRU: "NRU", LFU: "LFU",
	SRRIP: "SRRIP", BRRIP: "BRRIP", DRRIP: "DRRIP",
}

// Title returns the policy's name for people, such as "tree PLRU".
func (r Replacement) Title() string { return replacementNames[r] }

// policyCaveat returns a phrase that names the policies of a cache that the prediction does not
// model, or "". The cache's name precedes the phrase in the warning. The parameter "exclusive"
// is true if an exclusive cache was predicted as a non-exclusive cache.
func policyCaveat(c Cache, exclusive bool) string {
	text := ""
	also := func(what string) {
		if text != "" {
			text += ", and"
		}
		text += " " + what
	}
	switch {
	case c.Replacement != LRU && !c.Full():
		also("uses " + replacementNames[c.Replacement] + " replacement")
	case c.Replacement != LRU && c.Ways != 1:
		also("does not replace the least recently used line")
	}
	if exclusive {
		also("contains only lines evicted from the levels above")
	}
	if c.Write.Around() {
		also("does not allocate lines for stores that miss")
	}
	if c.Write.Through() {
		also("writes every store through to the next level, where these writes are not counted")
	}
	if text == "" {
		return ""
	}
	return text + "; it is predicted as LRU, non-inclusive, write-back and allocating (stackglass simulate models the actual policies)"
}

// ampleRatio is a ratio of the sizes of neighbouring levels. If an inclusive level is at least
// this many times as large as the level above, inclusion has little effect, because the level
// rarely evicts lines that the level above still uses.
const ampleRatio = 4

// sizeMisfit returns a warning if a level is smaller than the level above it, and otherwise "".
func sizeMisfit(c, above *Cache) string {
	switch {
	case c.SizeBytes >= above.SizeBytes || c.Inclusion == Exclusive:
		return ""
	case c.Inclusion == Inclusive:
		return c.Name + " is smaller than " + above.Name + ", so it cannot include that level"
	}
	return c.Name + " is smaller than " + above.Name + ", so few misses of " + above.Name + " hit in " + c.Name
}

// SizeDoubts returns a warning for each level that is smaller than the level above.
func (h *Hierarchy) SizeDoubts() (warnings []Warning) {
	for i := 1; i < len(h.Levels); i++ {
		if text := sizeMisfit(&h.Levels[i], &h.Levels[i-1]); text != "" {
			warnings = append(warnings, Warning(text))
		}
	}
	return warnings
}

// warnSizes warns about levels whose size or line size does not fit the level above.
func (p *Prediction) warnSizes(say func(...string)) {
	mixed := false
	for i := 1; i < len(p.Levels); i++ {
		l, above := &p.Levels[i], &p.Levels[i-1]
		mixed = mixed || l.Cache.LineBytes != above.Cache.LineBytes
		if text := sizeMisfit(&l.Cache, &above.Cache); text != "" {
			say(text)
		} else if l.Cache.Inclusion == Inclusive && l.Cache.SizeBytes < ampleRatio*above.Cache.SizeBytes {
			say(l.Cache.Name, " is inclusive and not much larger than ", above.Cache.Name, ": lines that it evicts are also evicted from ", above.Cache.Name,
				", which then misses somewhat more often than predicted here (stackglass simulate counts these misses)")
		}
		if l.cut {
			say(l.Cache.Name, " alone would miss more often than ", above.Cache.Name,
				"; in this hierarchy, it therefore has as many misses as the level above, and no hits")
		}
	}
	if mixed {
		say("levels have different line sizes: each is predicted from its own histogram, and the sums are approximate")
	}
}
