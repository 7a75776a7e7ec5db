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
	Cache    hierarchy.Cache
	Accesses string
	Hits     string
	Misses   string
	Ratio    string // local: misses of the accesses to this level
	Global   string // misses of all accesses of the run
	Method   string // how it was computed, in words
	Exact    bool
}

// Caches is the answer to one question about a hierarchy.
type Caches struct {
	Levels   []LevelCard
	Memory   string   // accesses that reach memory
	Traffic  string   // bytes that they fetch
	Warnings []string // doubts, in sentences
	Problem  string   // why there is no answer; "" when there is one
}

// Ask predicts the levels' hits and misses.
func (v *View) Ask(levels []hierarchy.Cache) *Caches {
	c := &Caches{}
	for _, l := range levels {
		c.Levels = append(c.Levels, LevelCard{Cache: l})
	}
	p, warnings, err := hierarchy.Predict(v.Profile, hierarchy.Hierarchy{Levels: levels})
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	about := ""
	for i, l := range p.Levels {
		card := &c.Levels[i]
		card.Accesses = about + Count(l.Accesses)
		if card.Exact = l.Method == hierarchy.Exact; !card.Exact {
			about = "≈ " // and so is what it lets through to the next one
		}
		card.Hits, card.Misses = about+Count(l.Hits), about+Count(l.Misses)
		card.Ratio = about + shareOfWhole(l.Misses, l.Accesses)
		card.Global = about + shareOfWhole(l.Misses, float64(v.Curve.Accesses))
		card.Method = methodWords(l.Method)
	}
	c.Memory = about + Count(p.MemoryAccesses)
	lineBytes := v.LineBytes
	if n := len(levels); n > 0 {
		lineBytes = uint64(levels[n-1].LineBytes)
	}
	c.Traffic = about + Bytes(uint64(p.MemoryAccesses+0.5)*lineBytes)
	c.Warnings = warningSentences(levels, warnings)
	return c
}

// warningSentences makes sentences of warnings. One that is the same for
// several levels but for their names is said once.
func warningSentences(levels []hierarchy.Cache, warnings []hierarchy.Warning) []string {
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
			list[i] += " The same holds for " + strings.Join(also[i], " and ") + "."
		}
	}
	return list
}

// shareOfWhole is the percentage of two predicted numbers as they are shown,
// which is to whole accesses: no hits at all are not "> 99.9 %" of misses.
func shareOfWhole(part, whole float64) string {
	if whole = math.Round(whole); whole == 0 {
		return "–"
	}
	return Percent(math.Round(part) / whole)
}

func methodWords(m hierarchy.Method) string {
	switch m {
	case hierarchy.Exact:
		return "exact: fully associative LRU"
	case hierarchy.AsIfInclusive:
		return "inclusive: fully associative LRU, as if it saw every access; a real one sees only what the level above lets through"
	case hierarchy.SDCM:
		return "SDCM: expected for LRU sets, from the exact histogram"
	}
	return string(m)
}

// LevelColor names the colour of the i-th level, from 0.
func LevelColor(i int) string {
	return [...]string{"level1", "level2", "level3", "memory"}[min(i, 3)]
}

// WaysText writes an associativity: 8 ways, full.
func WaysText(ways uint32) string {
	if ways == 0 {
		return "fully associative"
	}
	return Plural(uint64(ways), "way", "ways")
}

// MaxLevels is the most levels that the page lets a person ask about.
const MaxLevels = 4

// Sizes are the cache sizes to choose from: powers of two and one size between
// each two, as real caches have them, from 1 KiB to 1 GiB. also is among them
// even if it is neither.
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

// Ways are the associativities to choose from; 0 is fully associative.
func Ways(also uint32) []uint32 {
	list := []uint32{1, 2, 4, 8, 12, 16, 20, 24, 32, 0}
	for _, w := range list {
		if w == also {
			return list
		}
	}
	return append(list, also)
}

// fitWays makes the ways of a cache divide its lines, which a size chosen from
// a list may have broken.
func fitWays(c hierarchy.Cache) hierarchy.Cache {
	lines := c.SizeBytes / uint64(c.LineBytes)
	for c.Ways > 1 && lines%uint64(c.Ways) != 0 {
		c.Ways--
	}
	return c
}

// WithSize gives the levels with one level's size changed.
func WithSize(levels []hierarchy.Cache, i int, bytes uint64) []hierarchy.Cache {
	return with(levels, i, func(c *hierarchy.Cache) { c.SizeBytes = bytes })
}

// WithWays gives the levels with one level's associativity changed.
func WithWays(levels []hierarchy.Cache, i int, ways uint32) []hierarchy.Cache {
	return with(levels, i, func(c *hierarchy.Cache) { c.Ways = ways })
}

func with(levels []hierarchy.Cache, i int, change func(*hierarchy.Cache)) []hierarchy.Cache {
	if i < 0 || i >= len(levels) {
		return levels
	}
	out := append([]hierarchy.Cache(nil), levels...)
	change(&out[i])
	out[i] = fitWays(out[i])
	return out
}

// WithLines gives the levels with the line size of a view, as far as the
// profile answers for that size only.
func (v *View) WithLines(levels []hierarchy.Cache) []hierarchy.Cache {
	out := append([]hierarchy.Cache(nil), levels...)
	for i := range out {
		if v.Profile.LocalityAt(out[i].LineBytes) == nil {
			out[i].LineBytes = uint32(v.LineBytes)
			out[i] = fitWays(out[i])
		}
	}
	return out
}

// formatLevels writes levels for the URL's hash: L1.32768.8.64_L2.262144.8.64.
func formatLevels(levels []hierarchy.Cache) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, safe(l.Name)+"."+strconv.FormatUint(l.SizeBytes, 10)+"."+
			strconv.FormatUint(uint64(l.Ways), 10)+"."+strconv.FormatUint(uint64(l.LineBytes), 10))
	}
	return strings.Join(parts, "_")
}

// parseLevels reads what formatLevels wrote; anything else gives nil.
func parseLevels(s string) []hierarchy.Cache {
	if s == "" {
		return nil
	}
	var levels []hierarchy.Cache
	for _, part := range strings.Split(s, "_") {
		f := strings.Split(part, ".")
		if len(f) != 4 || len(levels) == MaxLevels {
			return nil
		}
		bytes, err1 := strconv.ParseUint(f[1], 10, 40)
		ways, err2 := strconv.ParseUint(f[2], 10, 16)
		line, err3 := strconv.ParseUint(f[3], 10, 13)
		if err1 != nil || err2 != nil || err3 != nil || line == 0 || line&(line-1) != 0 || bytes < line {
			return nil
		}
		levels = append(levels, fitWays(hierarchy.Cache{Name: safe(f[0]), SizeBytes: bytes, Ways: uint32(ways), LineBytes: uint32(line)}))
	}
	return levels
}

// safe keeps letters and digits.
func safe(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, name)
}
