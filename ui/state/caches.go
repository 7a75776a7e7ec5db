package state

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// LevelCard is one level with its prediction.
type LevelCard struct {
	Cache   hierarchy.Cache
	Numbers []Fact // the prediction, or nil if there is no answer; the ID of each fact is a CSS class
	Chip    string // the method of the prediction, in one word
	Method  string // the method of the prediction, in a sentence
	Note    string // a note that the answer is not for the requested line size, or ""
}

// Caches is the answer to one question about a hierarchy.
type Caches struct {
	Levels   []LevelCard
	Memory   []Fact   // facts about the memory, like the field Numbers of a level
	Average  string   // average access time; "": unknown
	Unknown  string   // the missing latencies, without which there is no Average
	Warnings []string // caveats, in sentences
	Problem  string   // why there is no answer; "": there is an answer
	// Missing lists the groups of threads that share a cache, but have no stack in the profile. A
	// new analysis of the trace with these groups solves the problem in the field Problem.
	Missing [][]uint32

	Prediction hierarchy.ByCore
}

// Predict returns the prediction of "stackglass what-if" for a hierarchy. If the profile lacks a
// level's line size, the prediction is for the line size in view, and a note states this.
func (v *View) Predict(h hierarchy.Hierarchy) *Caches {
	c, asked := &Caches{}, h.Levels
	h.Levels = v.WithLines(asked)
	for _, l := range h.Levels {
		c.Levels = append(c.Levels, LevelCard{Cache: l})
	}
	p, warnings, err := v.predict(h)
	if err != nil {
		c.Problem, c.Missing = v.explain(err)
		return c
	}
	c.Prediction = p
	mark, total := "", float64(v.Curve.Accesses)
	for i := range p.Levels {
		card, l, other := &c.Levels[i], &p.Levels[i], asked[i].LineBytes != h.Levels[i].LineBytes
		if other || l.Method != hierarchy.Exact {
			mark = about // the misses of this level are estimates, and so are the accesses to the next level
		}
		add := func(id, name, value string) {
			card.Numbers = append(card.Numbers, Fact{ID: id, Name: name, Value: mark + value})
		}
		add("misses", "misses", Count(l.Misses))
		add("ratio", "miss ratio", shareOfWhole(l.Misses, l.Accesses))
		add("served", "serves", shareOfWhole(l.Hits, total))
		card.Chip, card.Method = string(l.Method), methodWords(l.Method)
		if other {
			card.noteLineSize(asked[i].LineBytes)
		}
	}
	add := func(id, name, value string) {
		c.Memory = append(c.Memory, Fact{ID: id, Name: name, Value: mark + value})
	}
	add("accesses", "accesses", Count(p.MemoryAccesses))
	add("traffic", "fetches", Bytes(uint64(p.MemoryBytes+0.5)))
	add("served", "serves", shareOfWhole(p.MemoryAccesses, total))
	if p.MemoryLeastCycles > 0 {
		add("least", "at full bandwidth", cycles(p.MemoryLeastCycles, h.ClockGHz))
	}
	if p.AverageCycles > 0 {
		c.Average = mark + cycles(p.AverageCycles, h.ClockGHz)
	} else {
		c.Unknown = unknownLatencies(h, &p.Prediction)
	}
	c.Warnings = Warnings(h.Levels, warnings)
	return c
}

// MarkReal adds the predicted global miss ratio of each level to the marks of the miss-ratio curve.
// This ratio differs from the curve if the level has sets, or if each thread has a separate cache.
func (c *Caches) MarkReal(curve *Chart) {
	p := c.Prediction
	if len(p.Levels) == 0 || p.Levels[0].Accesses == 0 {
		return
	}
	for i := range curve.Marks {
		if m := &curve.Marks[i]; m.Level > 0 && m.Level <= len(p.Levels) {
			m.Real = p.Levels[m.Level-1].Misses / p.Levels[0].Accesses
		}
	}
	curve.Summary += " A square shows the miss ratio of a level in this hierarchy, if this ratio differs from the curve."
}

// numberOfID returns the value of the fact with the given ID.
func numberOfID(facts []Fact, id string) string {
	if at := slices.IndexFunc(facts, func(f Fact) bool { return f.ID == id }); at >= 0 {
		return facts[at].Value
	}
	return ""
}

// Sentence returns a sentence with the number of accesses that miss in each level.
func (c *Caches) Sentence() string {
	if c.Problem != "" {
		return c.Problem
	}
	text := ""
	for i := range c.Levels {
		l := &c.Levels[i]
		text += l.Cache.Name + ", " + Bytes(l.Cache.SizeBytes) + ", " + WaysText(l.Cache.Ways) + ", misses " + numberOfID(l.Numbers, "ratio") + "; "
	}
	return text + numberOfID(c.Memory, "accesses") + " accesses to memory."
}

// noteLineSize marks a card whose numbers are not for the requested line size.
func (card *LevelCard) noteLineSize(asked uint32) {
	card.Chip = "other lines"
	want, has := strconv.FormatUint(uint64(asked), 10), strconv.FormatUint(uint64(card.Cache.LineBytes), 10)
	card.Method = "computed for " + has + "-byte lines instead of " + want + "-byte lines"
	card.Note = card.Cache.Name + " has " + want + "-byte lines, a line size that this analysis does not cover. These results are for " + has +
		"-byte lines. Select " + want + " among the line sizes in the settings, and analyse the trace again."
}

// cycles formats a time in cycles, and also in nanoseconds if the clock frequency is known.
func cycles(n, clockGHz float64) string {
	text := significant(n) + thin + "cycles"
	if n >= 10_000 {
		text = SI(uint64(n+0.5)) + thin + "cycles"
	}
	switch ns := n / clockGHz; {
	case clockGHz <= 0:
	case ns >= 1e6:
		text += ", " + significant(ns/1e6) + thin + "ms"
	case ns >= 1e3:
		text += ", " + significant(ns/1e3) + thin + "µs"
	default:
		text += ", " + significant(ns) + thin + "ns"
	}
	return text
}

// unknownLatencies lists the missing latencies that the average access time needs.
func unknownLatencies(h hierarchy.Hierarchy, p *hierarchy.Prediction) string {
	var names []string
	for _, l := range p.Levels {
		if l.Cache.LatencyCycles == 0 && l.Hits > 0 {
			names = append(names, l.Cache.Name)
		}
	}
	if h.Memory.LatencyCycles == 0 && p.MemoryAccesses > 0 {
		names = append(names, "memory")
	}
	if len(names) == 0 {
		return "there are no accesses"
	}
	return "enter the latency of " + strings.Join(names, ", ")
}

// Warnings returns the warnings as sentences. A warning about several levels is listed once, with
// their names.
func Warnings(levels []hierarchy.Cache, warnings []hierarchy.Warning) []string {
	var list, rests []string
	var also [][]string
	for _, w := range warnings {
		text, rest, name := string(w), string(w), ""
		for _, l := range levels {
			if after, ok := strings.CutPrefix(text, l.Name+" "); ok {
				name, rest = l.Name, after
			}
		}
		if i := slices.Index(rests, rest); i >= 0 && name != "" {
			also[i] = append(also[i], name)
			continue
		}
		list, rests, also = append(list, upper(text)), append(rests, rest), append(also, nil)
	}
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], ".") + "."
		if len(also[i]) > 0 {
			list[i] += " The same applies to " + strings.Join(also[i], " and ") + "."
		}
	}
	return list
}

// shareOfWhole returns the ratio of two predicted numbers as a percentage. Before the division,
// both numbers are rounded to whole accesses, as on the page. Without this rounding, a level
// without hits could have a miss ratio of "> 99.9 %" instead of 100 %.
func shareOfWhole(part, whole float64) string {
	if whole = math.Round(whole); whole == 0 {
		return "–"
	}
	return Percent(math.Round(part) / whole)
}

func methodWords(m hierarchy.Method) string {
	switch m {
	case hierarchy.Exact:
		return "exact for LRU, computed from stack distances or from the table of sets"
	case hierarchy.AsIfLRU:
		return "exact for LRU, but this level has a different replacement policy"
	case hierarchy.Independent:
		return "independent: exact for an LRU level that sees every access"
	case hierarchy.Sampled:
		return "sampled: estimated from a sample of the accesses"
	case hierarchy.SampledIndependent:
		return "sampled and independent: estimated for an LRU level that sees every access"
	case hierarchy.SampledSDCM:
		return "sampled, with SDCM: expected misses of a cache with LRU sets"
	case hierarchy.SDCM:
		return "SDCM: expected misses of a cache with LRU sets, computed from stack distances"
	}
	return string(m)
}

// LevelColor returns the name of the colour of level i, counted from 0.
func LevelColor(i int) string {
	return [...]string{"level1", "level2", "level3", "memory"}[min(i, 3)]
}

// WaysText formats an associativity, such as "8 ways".
func WaysText(ways uint32) string {
	if ways == 0 {
		return "fully associative"
	}
	return Plural(uint64(ways), "way", "ways")
}

// Sizes returns the cache sizes to choose from: the powers of two from 1 KiB to 1 GiB, one size
// between every two powers (because real caches have such sizes), and the size in the parameter
// "also".
func Sizes(also uint64) []uint64 {
	var list []uint64
	add := func(n uint64) {
		if also != 0 && also <= n {
			if also != n {
				list = append(list, also)
			}
			also = 0
		}
		list = append(list, n)
	}
	for n := uint64(1 << 10); n <= 1<<30; n *= 2 {
		add(n)
		if n < 1<<30 {
			add(n + n/2)
		}
	}
	if also != 0 {
		list = append(list, also)
	}
	return list
}

// Ways returns the associativities to choose from: in ascending order, the numbers of ways that
// divide the cache's number of lines, and then 0 for fully associative.
func Ways(c hierarchy.Cache) []uint32 {
	var list []uint32
	lines := c.Lines()
	for w := uint32(1); w <= 64 && uint64(w) < lines; w++ {
		if lines%uint64(w) == 0 && (w <= 32 || w == 64) || w == c.Ways {
			list = append(list, w)
		}
	}
	if c.Ways > 64 && uint64(c.Ways) < lines {
		list = append(list, c.Ways)
	}
	if c.Full() {
		return append(list, c.Ways)
	}
	return append(list, 0)
}

// Typed formats a number for a text field; 0 becomes "", because 0 means unknown.
func Typed(x float64) string {
	if x == 0 {
		return ""
	}
	return hierarchy.FormatNumber(x)
}

// LevelsTable lists the accesses to each level, like the output of "stackglass what-if".
func (v *View) LevelsTable(h hierarchy.Hierarchy) *Table {
	q := v.question("what-if")
	q.Machine = h
	return v.table("", q, nil, "name", "accesses", "hits", "misses", "miss_ratio", "coherence_misses", "mpkr", "mpki", "method", "sdcm_misses")
}

// TimesTable lists the share of the accesses that each level serves, and the average time of these
// accesses.
func (v *View) TimesTable(h hierarchy.Hierarchy) *Table {
	q := v.question("what-if")
	q.Machine = h
	d, err := v.Answer(q)
	if err != nil {
		return nil // the table of levels states the reason
	}
	for i := range d.Tables {
		if t := &d.Tables[i]; t.Key == "times" {
			return show(t, answerWords, nil).addBars(t, "served").setDocument(v.document(q))
		}
	}
	return nil
}

// Against compares the current hierarchy with a second hierarchy, given as arguments of the option
// --against.
func (v *View) Against(h hierarchy.Hierarchy, words []string) *Table {
	q := v.question("what-if").With("against", words...)
	q.Machine, q.Brief = h, true
	return v.table("", q, nil)
}

// AgainstWords returns a hierarchy as arguments for [View.Against].
func AgainstWords(h hierarchy.Hierarchy) []string {
	words := h.Lines()
	if h.Threads == hierarchy.OnOwnCores {
		words = append(words, "threads=own-cores")
	}
	if preset, err := hierarchy.Preset(h.Name); err == nil && slices.Equal(preset.Levels, h.Levels) {
		words = slices.DeleteFunc(words, func(line string) bool {
			return !strings.HasPrefix(line, "pages=") && !strings.HasPrefix(line, "threads=")
		})
		return append([]string{preset.Name}, words...)
	}
	return words
}

// withLine returns a cache with the given line size.
func withLine(c hierarchy.Cache, lineBytes uint32) hierarchy.Cache {
	c.LineBytes = lineBytes
	return fitWays(c)
}

// WithLines returns the levels, but replaces each line size for which the profile has no results by
// the view's line size.
func (v *View) WithLines(levels []hierarchy.Cache) []hierarchy.Cache {
	out := append([]hierarchy.Cache(nil), levels...)
	for i := range out {
		if v.Profile.LocalityAt(out[i].LineBytes) == nil {
			out[i] = withLine(out[i], uint32(v.LineBytes))
		}
	}
	return out
}
