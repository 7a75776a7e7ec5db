package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// isDineroIV reports whether a word is an option of DineroIV for a cache, such as -l1-usize.
func isDineroIV(word string) bool {
	_, _, _, ok := dineroOption(word)
	return ok
}

// dineroOption splits an option of DineroIV for a cache into the level, the type of the cache (u, i or
// d), and the name.
func dineroOption(word string) (level int, kind byte, name string, ok bool) {
	rest, found := strings.CutPrefix(word, "-l")
	number, rest, dashed := strings.Cut(rest, "-")
	n, err := strconv.ParseUint(number, 10, 8)
	if !found || !dashed || err != nil || n == 0 || n > mostLevels || rest == "" || !strings.Contains("uid", rest[:1]) {
		return 0, 0, "", false
	}
	return int(n), rest[0], rest[1:], true
}

// dineroCache is the description of a cache in DineroIV's options.
type dineroCache struct {
	level  int
	kind   byte
	cache  hierarchy.Cache
	allocs string // value of the option walloc (a letter)
	backs  string // value of the option wback (a letter)
}

type dineroParser struct {
	caches []dineroCache
	h      hierarchy.Hierarchy
	notes  []string
}

// readDineroIV reads the options of a run of DineroIV, separated by blanks or ends of lines.
func readDineroIV(text string) (h hierarchy.Hierarchy, notes []string, err error) {
	var words []token
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, word := range strings.Fields(line) {
			words = append(words, token{strings.Trim(word, "\\"), number})
		}
	}
	if len(words) > 0 && !strings.HasPrefix(words[0].text, "-") {
		words = words[1:] // skip the program's name
	}
	p := &dineroParser{}
	for i := 0; i < len(words); {
		value, used := token{}, 1
		if i+1 < len(words) && !strings.HasPrefix(words[i+1].text, "-") {
			value, used = words[i+1], 2
		}
		if err := p.option(words[i], value.text); err != nil {
			return h, nil, err
		}
		i += used
	}
	if err := p.build(); err != nil {
		return h, nil, err
	}
	return p.h, p.notes, nil
}

// option applies one command-line option. The value is "" if the option has no value.
func (p *dineroParser) option(word token, value string) *Error {
	level, kind, name, ok := dineroOption(word.text)
	if !ok {
		return p.global(word, value)
	}
	c := p.cacheOf(level, kind)
	bad := func(want string) *Error { return errorAt(word.line, word.text, " ", value, ", want ", want) }
	switch name {
	case "size", "bsize", "sbsize":
		n, err := hierarchy.ParseSize(value)
		if err != nil || n == 0 || n > 1<<50 || name != "size" && n > 1<<12 {
			return bad("a number of bytes, for example 8k")
		}
		switch name {
		case "size":
			c.cache.SizeBytes = n
		case "bsize":
			c.cache.LineBytes = uint32(n)
		default:
			c.cache.SubBlockBytes = uint32(n)
		}
	case "assoc":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || n == 0 {
			return bad("a number of ways")
		}
		c.cache.Ways = uint32(n)
	case "repl":
		policy, known := map[string]hierarchy.Replacement{"l": hierarchy.LRU, "f": hierarchy.FIFO, "r": hierarchy.Random}[value]
		if !known {
			return bad("l (LRU), f (FIFO) or r (random)")
		}
		c.cache.Replacement = policy
		if value == "r" {
			p.notes = append(p.notes, word.text+" r: random replacement does not evict the same lines as in DineroIV")
		}
	case "fetch":
		prefetcher, known := dineroPrefetchers[value]
		if !known {
			return bad("d (demand), a (always), m (miss), t (tagged), l (load-forward) or s (sub-block)")
		}
		c.cache.Prefetch.Kind = prefetcher
	case "pfdist", "pfabort":
		n, err := strconv.ParseUint(value, 10, 16)
		switch {
		case err == nil && name == "pfdist" && n > 0 && n <= 1<<10:
			c.cache.Prefetch.Distance = uint32(n)
		case err == nil && name == "pfabort" && n <= 100:
			c.cache.Prefetch.Drop = uint8(n)
		default:
			return bad("a distance from 1 to 1024, or a percentage")
		}
	case "walloc", "wback":
		if value != "a" && value != "n" && value != "f" {
			return bad("a (always), n (never) or f (no fetch)")
		}
		if name == "walloc" {
			c.allocs = value
		} else {
			c.backs = value
		}
	case "ccc":
		p.h.Simulation.Causes = true
	default:
		return errorAt(word.line, word.text, ", want size, bsize, sbsize, assoc, repl, fetch, pfdist, pfabort, walloc, wback or ccc after the level and the type of the cache")
	}
	return nil
}

var dineroPrefetchers = map[string]hierarchy.PrefetchKind{
	"d": hierarchy.NoPrefetch, "a": hierarchy.Always, "m": hierarchy.NextLine,
	"t": hierarchy.Tagged, "l": hierarchy.LoadForward, "s": hierarchy.SubBlock,
}

// global applies an option that does not belong to a cache.
func (p *dineroParser) global(word token, value string) *Error {
	s := &p.h.Simulation
	for name, to := range map[string]*uint64{"-skipcount": &s.Skip, "-flushcount": &s.FlushEvery, "-maxcount": &s.Limit} {
		if word.text == name {
			n, err := hierarchy.ParseSize(value)
			if err != nil {
				return errorAt(word.line, name, " ", value, ", want a number, for example 10k")
			}
			*to = n
			return nil
		}
	}
	switch word.text {
	case "-informat", "-stat-idcombine", "-stat-interval": // the trace format and the printed statistics do not affect the caches
		return nil
	case "-on-trigger", "-off-trigger":
		if value == "0x0" || value == "0" {
			return nil
		}
	}
	return errorAt(word.line, word.text, " is not supported; the supported options of DineroIV are -skipcount, -flushcount, -maxcount, and the options that describe caches")
}

func (p *dineroParser) cacheOf(level int, kind byte) *dineroCache {
	i := slices.IndexFunc(p.caches, func(c dineroCache) bool { return c.level == level && c.kind == kind })
	if i < 0 {
		i = len(p.caches)
		p.caches = append(p.caches, dineroCache{level: level, kind: kind, cache: hierarchy.Cache{Ways: 1}, allocs: "a", backs: "a"})
	}
	return &p.caches[i]
}

func (p *dineroParser) build() *Error {
	slices.SortStableFunc(p.caches, func(a, b dineroCache) int { return cmp.Compare(a.level, b.level) })
	kinds := map[int]string{}
	for _, c := range p.caches {
		name := "-l" + strconv.Itoa(c.level) + "-" + string(c.kind)
		if c.cache.SizeBytes == 0 || c.cache.LineBytes == 0 {
			return errorAt(0, name, "size or ", name, "bsize is missing")
		}
		kinds[c.level] += string(c.kind)
		cache := c.cache
		cache.Name = "L" + strconv.Itoa(c.level) + strings.ToUpper(strings.Trim(string(c.kind), "u"))
		if cache.Lines() == uint64(cache.Ways) {
			cache.Ways = 0
		}
		if cache.SubBlockBytes == 0 {
			cache.SubBlockBytes = cache.LineBytes // stores that write whole lines do not fetch these lines
		}
		if cache.Prefetch.Kind == hierarchy.NoPrefetch {
			cache.Prefetch = hierarchy.Prefetch{}
		} else {
			cache.Prefetch.Reads, cache.Prefetch.Chained = true, true
		}
		cache.Write = hierarchy.WriteOf(c.backs == "n", c.allocs == "n")
		if c.allocs == "f" {
			if c.backs == "n" {
				return errorAt(0, name, "walloc f cannot be combined with ", name, "wback n")
			}
			cache.Write = hierarchy.WriteBackWhole
		}
		if c.kind == 'i' {
			p.h.Instructions = append(p.h.Instructions, cache)
		} else {
			p.h.Levels = append(p.h.Levels, cache)
		}
	}
	split := true
	for level := 1; level <= len(p.h.Levels); level++ {
		isSplit := len(kinds[level]) == 2 && !strings.Contains(kinds[level], "u")
		if !isSplit && kinds[level] != "u" || isSplit && !split {
			return errorAt(0, "unsupported caches at level ", strconv.Itoa(level), ", want one unified cache, or (only if all levels above are split) an instruction cache and a data cache")
		}
		split = isSplit
	}
	return nil
}
