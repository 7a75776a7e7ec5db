package hierarchy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// warnings returns the caveats of a prediction. A caveat about a level begins with its name.
func (a *Asker) warnings(h Hierarchy, out *ByCore) (warnings []Warning) {
	warnings = ProfileDoubts(a.p)
	say := func(parts ...string) { warnings = append(warnings, Warning(strings.Join(parts, ""))) }
	a.warnSDCM(out.Levels, say)
	for i := range out.Levels {
		l := &out.Levels[i]
		if text := otherPolicy(l.Cache, i > 0 && l.Cache.Inclusion == Exclusive && !l.Together); text != "" {
			say(l.Cache.Name, text)
		}
		if n := int(min(uint64(l.Cache.SharedBy), MostCores)); n > 1 && n < len(out.Cores) {
			say(l.Cache.Name, " loses lines to stores of cores that do not share it; it is answered as if it kept them")
		}
	}
	if out.Cores == nil {
		a.warnOneCore(h, say)
	} else if text := OrderDoubt(a.p); text != "" {
		warnings = append(warnings, text)
	}
	out.warnSizes(say)
	if slices.ContainsFunc(out.Levels[1:], func(l Level) bool { return !l.Together }) {
		say("every level is asked about all accesses; a real lower level sees only the misses of the one above, " +
			"so its order of use, and with it its misses, differ somewhat")
	}
	return warnings
}

// warnOneCore warns that one core answers for levels that several would share, or for
// private levels of several threads.
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
		say(areNames(names), " shared by cores: answered as if this program's only thread had all of it; other programs would take a part")
	case threads == 0:
		say(areNames(names), " shared by cores: the trace does not say which thread made a reference, "+
			"so it is answered as if one core had made all of them, and had the whole cache; other cores would take a part")
	case h.Threads != OnOneCore:
		say(areNames(names), " private to a core: answered as if all threads ran on one core, because the profile has no stacks of threads; "+
			"analyse the trace again, by default or with sharing among its analyses")
	}
}

// ProfileDoubts returns the caveats of every answer from a profile. Predictions begin with them.
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
		warnings = append(warnings, Warning(strconv.FormatUint(n, 10)+" records of the trace could not be read and are missing"))
	}
	return warnings
}

// PredictedDoubt returns a caveat for threads that were synthesised, "" for others.
func PredictedDoubt(p *profile.Predicted) string {
	if p == nil {
		return ""
	}
	return "the threads are predicted: the threads of " + strconv.FormatUint(uint64(p.Cores), 10) + " cores were synthesised from a run with one thread (" + p.How + ")"
}

func areNames(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
}

// warnSDCM names the levels that SDCM answers for, grouped by the reason.
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
		say(areNames(names[why]), " set-associative, and answered by a model (SDCM), which assigns lines to sets at random: "+
			"strides that favour some sets miss more, dense arrays less. ", why)
	}
}

// whySDCM returns why there is no exact answer.
func (a *Asker) whySDCM(c Cache) string {
	sets := c.Sets()
	switch {
	case c.Hashed:
		return "No table is exact for sets that are chosen by a hash"
	case estimated(a.p):
		return "A sample has too few lines of each set to count in them"
	case sets&(sets-1) != 0:
		return "Exact tables are for powers of two of sets, and these are " + strconv.FormatUint(sets, 10)
	case sets >= 1<<profile.SetCounts || c.Ways > profile.MaxWays:
		return "Exact tables end at 65,536 sets and 32 ways"
	}
	return "An analysis with set tables makes this exact"
}

// otherPolicy names the policies of a cache that its answer does not model, in words that follow
// its name, or "". exclusive: the cache is exclusive, and was not answered as such.
func otherPolicy(c Cache, exclusive bool) string {
	text := ""
	also := func(what string) {
		if text != "" {
			text += ", and"
		}
		text += " " + what
	}
	switch {
	case c.Replacement == TreePLRU && !c.Full():
		also("replaces by a tree of bits")
	case c.Replacement != LRU && c.Ways != 1:
		also("does not replace the least recently used line")
	}
	if exclusive {
		also("holds only lines that left the levels above")
	}
	if c.Write.Around() {
		also("does not allocate lines for stores that miss")
	}
	if c.Write.Through() {
		also("writes every store through to the next level, which is not counted there")
	}
	if text == "" {
		return ""
	}
	return text + "; it is answered as LRU, non-inclusive, write-back and allocating (stackglass simulate runs the trace through it as it is)"
}

// fewTimes is the least ratio of the sizes of an inclusive level and the level above for
// which it rarely evicts lines that are in use above.
const fewTimes = 4

// sizeMisfit warns of a level that is smaller than the level above; otherwise it returns "".
func sizeMisfit(c, above *Cache) string {
	switch {
	case c.SizeBytes >= above.SizeBytes || c.Inclusion == Exclusive:
		return ""
	case c.Inclusion == Inclusive:
		return c.Name + " is smaller than " + above.Name + ", which it cannot include"
	}
	return c.Name + " is smaller than " + above.Name + ", so there is little that it can add"
}

// SizeDoubts warns of levels that are smaller than the level above.
func (h *Hierarchy) SizeDoubts() (warnings []Warning) {
	for i := 1; i < len(h.Levels); i++ {
		if text := sizeMisfit(&h.Levels[i], &h.Levels[i-1]); text != "" {
			warnings = append(warnings, Warning(text))
		}
	}
	return warnings
}

// warnSizes warns of levels whose size or lines do not fit the level above.
func (p *Prediction) warnSizes(say func(...string)) {
	mixed := false
	for i := 1; i < len(p.Levels); i++ {
		l, above := &p.Levels[i], &p.Levels[i-1]
		mixed = mixed || l.Cache.LineBytes != above.Cache.LineBytes
		if text := sizeMisfit(&l.Cache, &above.Cache); text != "" {
			say(text)
		} else if l.Cache.Inclusion == Inclusive && l.Cache.SizeBytes < fewTimes*above.Cache.SizeBytes {
			say(l.Cache.Name, " is inclusive and not much larger than ", above.Cache.Name, ": what leaves it leaves ", above.Cache.Name,
				" too, which then misses somewhat more than is said here (stackglass simulate counts that)")
		}
		if l.cut {
			say(l.Cache.Name, " by itself would miss more than ", above.Cache.Name,
				" lets through; its misses are limited to that number, so it has no hits here")
		}
	}
	if mixed {
		say("levels have different line sizes: each is read from its own histogram, and their sums are approximate")
	}
}
