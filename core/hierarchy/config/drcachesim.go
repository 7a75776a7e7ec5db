package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/hierarchy"
)

// token is a word of a drcachesim configuration.
type token struct {
	text string
	line int
}

// tokens splits a configuration into words and braces; // begins a comment.
func tokens(text string) (list []token) {
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "//")
		line = strings.ReplaceAll(strings.ReplaceAll(line, "{", " { "), "}", " } ")
		for _, word := range strings.Fields(line) {
			list = append(list, token{word, number})
		}
	}
	return list
}

// unit is one cache of a configuration: a core's first-level cache, or a cache below others.
type unit struct {
	line        int
	cache       hierarchy.Cache
	instruction bool
	core        int // -1 unless it is the first-level cache of a core
	parent      string
}

// mostUnits is the maximum number of caches in a configuration, over all cores.
const mostUnits = 512

// drParser reads the tokens of a configuration.
type drParser struct {
	tokens []token
	at     int
	line   uint32 // line size in bytes, for all caches
	units  []unit
	notes  []string
}

// readDrCacheSim reads a configuration of DynamoRIO's cache simulator and returns the data caches
// that its first core uses.
func readDrCacheSim(text string) (h hierarchy.Hierarchy, notes []string, err error) {
	p := &drParser{tokens: tokens(text), line: hierarchy.DefaultLineBytes}
	for p.at < len(p.tokens) {
		if err := p.statement(); err != nil {
			return h, nil, err
		}
	}
	path, err := p.path()
	if err != nil {
		return h, nil, err
	}
	for _, u := range path {
		u.cache.LineBytes = p.line
		if cores := p.cores(u.cache.Name); cores > 1 {
			u.cache.SharedBy = uint32(cores)
		}
		h.Levels = append(h.Levels, u.cache)
	}
	if slices.ContainsFunc(p.units, func(u unit) bool { return u.instruction }) {
		p.note("instruction caches are ignored: the levels are data caches")
	}
	return h, p.notes, nil
}

func (p *drParser) note(text string) {
	if !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

// word reads the next token.
func (p *drParser) word() token {
	if p.at >= len(p.tokens) {
		last := 0
		if len(p.tokens) > 0 {
			last = p.tokens[len(p.tokens)-1].line
		}
		return token{"", last}
	}
	p.at++
	return p.tokens[p.at-1]
}

// statement reads a parameter and its value, or a cache and its settings in braces.
func (p *drParser) statement() error {
	name := p.word()
	value := p.word()
	switch {
	case value.text == "{":
		return p.unit(name)
	case value.text == "" || value.text == "}" || name.text == "{" || name.text == "}":
		return errorAt(name.line, strconv.Quote(name.text), ", want a parameter with its value, or a cache with its settings in braces")
	case name.text == "line_size":
		n, err := hierarchy.ParseSize(value.text)
		if err != nil || n == 0 || n > 4096 {
			return errorAt(value.line, "line_size ", value.text, ", want a power of two from 8 to 4096")
		}
		p.line = uint32(n)
	default:
		p.ignored(name.text, value.text)
	}
	return nil
}

// ignored adds a note about a parameter that describes the simulation rather than the caches,
// unless the parameter has its default value.
func (p *drParser) ignored(name, value string) {
	n, err := strconv.ParseFloat(value, 64)
	off := err == nil && n == 0 || strings.EqualFold(value, "false")
	switch name {
	case "num_cores":
		p.note("num_cores " + value + " is ignored: each thread of a trace runs on its own core; use --cores to run several threads on one core, as in --cores 0,2/1,3, which is how drcachesim distributes four threads over two cores")
	case "skip_refs":
		if !off {
			p.note("skip_refs " + value + " is ignored: --skip " + value + " leaves out the first references")
		}
	case "sim_refs":
		p.note("sim_refs " + value + " is ignored: --limit " + value + " ends after that many references")
	case "warmup_refs", "warmup_fraction":
		if !off {
			p.note(name + " " + value + " is ignored: the caches start empty, and every reference counts from the first one on")
		}
	case "coherence", "coherent":
		if off {
			p.note(name + " " + value + " is ignored: private caches are kept coherent; the resulting misses are reported separately")
		}
	case "verbose":
	default:
		if !off {
			p.note(name + " " + value + " is ignored")
		}
	}
}

// unit reads the settings of a cache, after the opening brace.
func (p *drParser) unit(name token) error {
	if len(p.units) == mostUnits {
		return errorAt(name.line, "more than ", strconv.Itoa(mostUnits), " caches")
	}
	if slices.ContainsFunc(p.units, func(u unit) bool { return u.cache.Name == name.text }) {
		return errorAt(name.line, "cache ", name.text, " a second time")
	}
	u := unit{line: name.line, core: -1, parent: "memory"}
	u.cache.Name, u.cache.Inclusion = name.text, hierarchy.NonInclusive
	for {
		setting := p.word()
		if setting.text == "}" {
			break
		}
		value := p.word()
		if value.text == "" || value.text == "{" || value.text == "}" {
			return errorAt(setting.line, "cache ", name.text, ": ", strconv.Quote(setting.text), " without a value, or no } at the end")
		}
		if err := p.setting(&u, setting, value.text); err != nil {
			return err
		}
	}
	if u.cache.SizeBytes == 0 || u.cache.Ways == 0 {
		return errorAt(name.line, "cache ", name.text, " has no size or no assoc")
	}
	p.units = append(p.units, u)
	return nil
}

// setting applies one setting of a cache.
func (p *drParser) setting(u *unit, setting token, value string) error {
	bad := func(want string) error {
		return errorAt(setting.line, "cache ", u.cache.Name, ": ", setting.text, " ", value, ", want ", want)
	}
	switch setting.text {
	case "type":
		if value != "data" && value != "unified" && value != "instruction" {
			return bad("instruction, data or unified")
		}
		u.instruction = value == "instruction"
	case "core":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return bad("the number of a core")
		}
		u.core = int(n)
	case "size":
		n, err := hierarchy.ParseSize(value)
		if err != nil || n == 0 {
			return bad("a size such as 32K")
		}
		u.cache.SizeBytes = n
	case "assoc":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || n == 0 {
			return bad("a number of ways")
		}
		u.cache.Ways = uint32(n)
	case "inclusive", "exclusive":
		yes := strings.EqualFold(value, "true") || value == "1"
		switch {
		case yes && setting.text == "exclusive":
			u.cache.Inclusion = hierarchy.Exclusive
		case yes:
			u.cache.Inclusion = hierarchy.Inclusive
		}
	case "parent":
		u.parent = value
	case "replace_policy":
		p.policy(u, value)
	case "prefetcher":
		if value != "none" {
			p.note("prefetching is not modelled; the prefetcher is ignored")
		}
	case "miss_file":
	default:
		return errorAt(setting.line, "cache ", u.cache.Name, ": ", strconv.Quote(setting.text),
			", want type, core, size, assoc, inclusive, exclusive, parent, replace_policy, prefetcher or miss_file")
	}
	return nil
}

func (p *drParser) policy(u *unit, value string) {
	switch value {
	case "LRU":
	case "BIT_PLRU":
		u.cache.Replacement = hierarchy.TreePLRU
		p.note("BIT_PLRU is replaced by tree PLRU, the nearest supported policy")
	default:
		p.note("replacement " + value + " is not supported; LRU is used instead")
	}
}

// path returns the data caches on the path from the first core to memory.
func (p *drParser) path() (list []*unit, err error) {
	first := -1
	for i := range p.units {
		if u := &p.units[i]; !u.instruction && u.core >= 0 && (first < 0 || u.core < p.units[first].core) {
			first = i
		}
	}
	if first < 0 {
		return nil, errorAt(0, "no first-level data cache, want a cache of type data or unified with a core")
	}
	for at := first; ; {
		u := &p.units[at]
		if list = append(list, u); len(list) > mostLevels {
			return nil, errorAt(u.line, "cache ", u.cache.Name, " is its own ancestor, or has more than ", strconv.Itoa(mostLevels), " levels below it")
		}
		if u.parent == "memory" {
			return list, nil
		}
		at = slices.IndexFunc(p.units, func(other unit) bool { return other.cache.Name == u.parent })
		if at < 0 {
			return nil, errorAt(u.line, "cache ", u.cache.Name, " has the parent ", strconv.Quote(u.parent), ", which does not exist")
		}
	}
}

// cores returns the number of cores whose data passes through a cache.
func (p *drParser) cores(name string) int {
	seen := map[int]bool{}
	for _, u := range p.units {
		if u.core < 0 || u.instruction {
			continue
		}
		core := u.core
		for steps := 0; steps <= mostLevels; steps++ {
			if u.cache.Name == name {
				seen[core] = true
				break
			}
			at := slices.IndexFunc(p.units, func(other unit) bool { return other.cache.Name == u.parent })
			if at < 0 {
				break
			}
			u = p.units[at]
		}
	}
	return len(seen)
}
