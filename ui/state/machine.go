package state

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// MaxLevels is the maximum number of levels of a hierarchy on the page.
const MaxLevels = 5

// Pages is the page size, such as 2MiB.
var Pages = newOwnSetting("pages")

// SameMachine reports whether two hierarchies have the same levels, memory, clock, placement of
// threads and page size, and thus the same predictions.
func SameMachine(a, b hierarchy.Hierarchy) bool {
	return slices.Equal(a.Levels, b.Levels) && a.Memory == b.Memory && a.ClockGHz == b.ClockGHz && a.Threads == b.Threads && a.PageBytes == b.PageBytes
}

// WithLine returns the levels after a change to the line size of one level.
func WithLine(levels []hierarchy.Cache, i int, lineBytes uint32) []hierarchy.Cache {
	return With(levels, i, func(c *hierarchy.Cache) {
		c.LineBytes = lineBytes
		c.SizeBytes = max(c.SizeBytes-c.SizeBytes%uint64(lineBytes), uint64(lineBytes))
	})
}

// WithLevel returns the levels with an additional last level, which is eight times as large as the
// level before it, but at most 1 GiB.
func WithLevel(levels []hierarchy.Cache, lineBytes uint32) []hierarchy.Cache {
	if len(levels) >= MaxLevels {
		return levels
	}
	c := hierarchy.Cache{SizeBytes: 32 << 10, Ways: 8, LineBytes: lineBytes}
	if n := len(levels); n > 0 {
		last := levels[n-1]
		c.SizeBytes, c.LineBytes, c.Ways = min(last.SizeBytes*8, 1<<30), last.LineBytes, 16
	}
	for n := len(levels) + 1; ; n++ {
		c.Name = "L" + strconv.Itoa(n)
		if !slices.ContainsFunc(levels, func(other hierarchy.Cache) bool { return other.Name == c.Name }) {
			break
		}
	}
	return append(slices.Clone(levels), fitWays(c))
}

// WithoutLevel returns the levels without level i. The only level cannot be removed.
func WithoutLevel(levels []hierarchy.Cache, i int) []hierarchy.Cache {
	if i < 0 || i >= len(levels) || len(levels) == 1 {
		return levels
	}
	return slices.Delete(slices.Clone(levels), i, i+1)
}

// The function With returns the levels after a change to level i.
func With(levels []hierarchy.Cache, i int, change func(*hierarchy.Cache)) []hierarchy.Cache {
	if i < 0 || i >= len(levels) {
		return levels
	}
	out := slices.Clone(levels)
	change(&out[i])
	out[i] = fitWays(out[i])
	return out
}

// fitWays returns the cache with an associativity that divides its number of lines. After a change
// of the size, the old associativity may no longer divide the number of lines.
func fitWays(c hierarchy.Cache) hierarchy.Cache {
	lines := c.SizeBytes / uint64(c.LineBytes)
	for c.Ways > 1 && lines%uint64(c.Ways) != 0 {
		c.Ways--
	}
	return c
}

// Step returns the element of a list at the given distance from the parameter "value", or "value"
// itself if there is no such element.
func Step[T comparable](list []T, value T, by int) T {
	if i := slices.Index(list, value) + by; i >= 0 && i < len(list) && slices.Contains(list, value) {
		return list[i]
	}
	return value
}

// inclusionCodes lists the codes of inclusion policies in links. Older links contain 1, which also
// means non-inclusive.
var inclusionCodes = [...]float64{hierarchy.NonInclusive: 0, hierarchy.Exclusive: 2, hierarchy.Inclusive: 3}

// formatMachine writes a hierarchy for the URL's hash: levels in order, such as
// L1.32768.8.64_L2.262144.8.64.l12.h, then TLBs, memory and clock. Values other than the default
// begin with a letter: l latency, b bytes per cycle, s cores, h hashed, t TLB, p the sum of a TLB's
// page sizes, r replacement, i inclusion, w write policy; f kind of prefetcher, n its degree, a its
// distance, x its share of dropped prefetches, y 1 for reads and 2 for chained. In a number, the
// letter d represents the decimal point.
func formatMachine(h hierarchy.Hierarchy) string {
	var parts []string
	for i, l := range slices.Concat(h.Levels, h.TLBs) {
		part := safeName(l.Name) + "." + strconv.FormatUint(l.SizeBytes, 10) + "." +
			strconv.FormatUint(uint64(l.Ways), 10) + "." + strconv.FormatUint(uint64(l.LineBytes), 10) +
			lettered("l", l.LatencyCycles) + lettered("b", l.BytesPerCycle) + lettered("s", float64(l.SharedBy))
		if l.Hashed {
			part += ".h"
		}
		if i >= len(h.Levels) {
			part += "." + tlbCode + lettered("p", float64(l.Pages))
		}
		part += lettered("r", float64(l.Replacement)) + lettered("i", inclusionCodes[l.Inclusion]) + lettered("w", float64(l.Write))
		if f := l.Prefetch; f.Kind != hierarchy.NoPrefetch {
			flags := 0.
			if f.Reads {
				flags = readsFlag
			}
			if f.Chained {
				flags += chainedFlag
			}
			part += lettered("f", float64(f.Kind)) + lettered("n", float64(f.Degree)) + lettered("a", float64(f.Distance)) + lettered("x", float64(f.Drop)) + lettered("y", flags)
		}
		parts = append(parts, part)
	}
	if m := lettered("l", h.Memory.LatencyCycles) + lettered("b", h.Memory.BytesPerCycle); m != "" {
		parts = append(parts, "memory"+m)
	}
	if clock := lettered("g", h.ClockGHz); clock != "" {
		parts = append(parts, "clock"+clock)
	}
	return strings.Join(parts, "_")
}

const (
	tlbCode  = "t"           // marks a TLB
	allPages = 2<<30 - 4<<10 // the sum of the page sizes from 4 KiB to 1 GiB

	readsFlag, chainedFlag = 1, 2 // flags of prefetchers
)

func lettered(name string, x float64) string {
	if x == 0 {
		return ""
	}
	return "." + name + strings.ReplaceAll(hierarchy.FormatNumber(x), ".", "d")
}

// parseMachine parses the output of formatMachine. parseMachine returns no levels for any other
// text.
func parseMachine(s string) (h hierarchy.Hierarchy) {
	if s == "" {
		return h
	}
	for _, part := range strings.Split(s, "_") {
		f := strings.Split(part, ".")
		ok := len(f) > 1
		switch {
		case !ok:
		case f[0] == "memory":
			var c hierarchy.Cache
			ok = parseValues(&c, f[1:])
			h.Memory = hierarchy.Memory{LatencyCycles: c.LatencyCycles, BytesPerCycle: c.BytesPerCycle}
		case f[0] == "clock":
			h.ClockGHz, ok = numberOf(f[1])
		default:
			var c hierarchy.Cache
			list := &h.Levels
			if slices.Contains(f[1:], tlbCode) {
				list = &h.TLBs
			}
			if c, ok = parseLevel(f); ok {
				*list = append(*list, c)
			}
		}
		if !ok || len(h.Levels) > MaxLevels || len(h.TLBs) > hierarchy.MostLevels {
			return hierarchy.Hierarchy{}
		}
	}
	if len(h.Levels) == 0 {
		return hierarchy.Hierarchy{}
	}
	return h
}

func parseLevel(f []string) (c hierarchy.Cache, ok bool) {
	if len(f) < 4 {
		return c, false
	}
	bytes, err1 := strconv.ParseUint(f[1], 10, 40)
	ways, err2 := strconv.ParseUint(f[2], 10, 32)
	line, err3 := strconv.ParseUint(f[3], 10, 13)
	if err1 != nil || err2 != nil || err3 != nil || line == 0 || line&(line-1) != 0 || bytes < line || ways > 1<<16 {
		return c, false
	}
	c = hierarchy.Cache{Name: safeName(f[0]), SizeBytes: bytes, Ways: uint32(ways), LineBytes: uint32(line)}
	if ok = parseValues(&c, f[4:]); c.Prefetch.Kind == hierarchy.NoPrefetch {
		c.Prefetch = hierarchy.Prefetch{}
	}
	return fitWays(c), ok
}

// numberOf parses a field that consists of a letter and a number.
func numberOf(field string) (float64, bool) {
	if field == "" {
		return 0, false
	}
	return hierarchy.ParsePositive(strings.ReplaceAll(field[1:], "d", "."))
}

// parseValues parses the values of a level that begin with a letter.
func parseValues(c *hierarchy.Cache, fields []string) bool {
	for _, f := range fields {
		switch f {
		case "h":
			c.Hashed = true
			continue
		case tlbCode:
			continue
		}
		x, ok := numberOf(f)
		if !ok {
			return false
		}
		switch f[0] {
		case 'l':
			c.LatencyCycles = x
		case 'b':
			c.BytesPerCycle = x
		case 's':
			c.SharedBy = uint32(min(x, hierarchy.AllCores))
		case 'p':
			c.Pages = uint64(min(x, allPages)) & allPages
		case 'r':
			c.Replacement = hierarchy.Replacement(min(x, float64(hierarchy.DRRIP)))
		case 'i':
			c.Inclusion = hierarchy.NonInclusive
			for inclusion, code := range inclusionCodes {
				if code == x {
					c.Inclusion = hierarchy.Inclusion(inclusion)
				}
			}
		case 'w':
			c.Write = hierarchy.Write(min(x, float64(hierarchy.WriteThroughAround)))
		case 'f':
			c.Prefetch.Kind = hierarchy.PrefetchKind(min(x, float64(hierarchy.Stream)))
		case 'n':
			c.Prefetch.Degree = uint32(min(x, hierarchy.MostAhead))
		case 'a':
			c.Prefetch.Distance = uint32(min(x, hierarchy.MostAhead))
		case 'x':
			c.Prefetch.Drop = uint8(min(x, 100))
		case 'y':
			flags := int(min(x, readsFlag|chainedFlag))
			c.Prefetch.Reads, c.Prefetch.Chained = flags&readsFlag != 0, flags&chainedFlag != 0
		default:
			return false
		}
	}
	return true
}

// safeName removes all characters from a name except letters, digits and hyphens.
func safeName(name string) string { return keepCharacters(name, "-") }

// keepCharacters removes all characters from a text except letters, digits, and the characters in
// the parameter "also".
func keepCharacters(text, also string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(also, r) {
			return r
		}
		return -1
	}, text)
}

// oneCore is the name, in the URL and in choices, of the placement with all threads on one core.
const oneCore = "one-core"

// placementOf parses a placement from the URL or from a choice.
func placementOf(text string) hierarchy.Placement {
	if text == oneCore {
		return hierarchy.OnOneCore
	}
	return hierarchy.OnOwnCores
}

// ThreadsOn returns the screen with the chosen placement of threads on cores. The parameter "choice"
// is the name of one of the [Placements].
func (s Screen) ThreadsOn(choice string) Screen {
	s.Threads = placementOf(choice)
	return s
}

// Placements returns the possible placements of a profile's threads on cores, or nil if there is no
// choice.
func Placements(p *profile.Profile) []Choice {
	if len(p.Sharing) == 0 {
		return nil
	}
	own := "each thread on its own core"
	if n := len(p.Sharing[0].Cores); n < len(p.Totals.Threads) {
		own = "threads on " + strconv.Itoa(n) + " cores: " + answers.Groups(p)
	}
	return []Choice{{Title: own}, {Name: oneCore, Title: "all threads on one core"}}
}

// ThreadsOn returns a sentence about the cores on which the threads of A and of B run.
func (c *Comparison) ThreadsOn(h hierarchy.Hierarchy) string {
	a, b := answers.ThreadsOn(c.A.Profile, h), answers.ThreadsOn(c.B.Profile, h)
	if a == b {
		return a
	}
	one := func(text string) string {
		if text == "" {
			return "one thread"
		}
		return text
	}
	return "A: " + one(a) + ". B: " + one(b)
}

// CoresTable lists the accesses of each core to each level.
func (v *View) CoresTable(h hierarchy.Hierarchy) *Table {
	q := v.question("what-if").With("by", "core")
	q.Machine = h
	return v.table("", q, nil, "threads", "name", "accesses", "hits", "misses", "miss_ratio", "coherence_misses")
}

// explain returns the reason why a hierarchy has no prediction. If an analysis with additional
// groups of threads would make the prediction possible, it also returns these groups.
func (v *View) explain(err error) (text string, missing [][]uint32) {
	var domain *hierarchy.DomainError
	if !errors.As(err, &domain) {
		return err.Error(), nil
	}
	c := domain.Level
	return "Each " + c.Name + " is shared by " + strconv.FormatUint(uint64(c.SharedBy), 10) + " cores, and the threads run on " + strconv.Itoa(len(v.Profile.Sharing[0].Cores)) +
		" cores. Therefore, each of these groups of threads has its own " + c.Name + ": " + analysis.FormatGroups(domain.Groups) +
		". This analysis did not count the misses of these groups. Analyse the trace again with these groups, or put all threads on one core", domain.Groups
}

// oneCache returns a note that all threads share one cache, or "" if there is only one thread.
func (v *View) oneCache() string {
	if len(v.Profile.Totals.Threads) < 2 {
		return ""
	}
	return ", one cache for all threads"
}
