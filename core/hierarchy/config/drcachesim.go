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

type unit struct {
	line        int
	cache       hierarchy.Cache
	instruction bool
	core        int // the core of a first-level cache; -1 for lower levels
	parent      string
}

// maxCaches is the maximum number of caches in a configuration, over all cores.
const maxCaches = 512

// drParser reads the tokens of a configuration.
type drParser struct {
	tokens []token
	at     int
	line   uint32 // line size in bytes, for all caches
	units  []unit
	notes  []string

	simulation hierarchy.Simulation
}

// readDrCacheSim reads a configuration of DynamoRIO's cache simulator and returns the caches that
// its first core uses. All other cores must have equal caches.
func readDrCacheSim(text string) (h hierarchy.Hierarchy, notes []string, err error) {
	p := &drParser{tokens: tokens(text), line: hierarchy.DefaultLineBytes}
	p.simulation.Incoherent = true // drcachesim does not simulate coherence by default
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
		h.Levels = append(h.Levels, p.toLevel(u))
	}
	if err := p.instructions(&h, path); err != nil {
		return h, nil, err
	}
	h.Simulation = p.simulation
	return h, p.notes, nil
}

// toLevel returns a cache as a level of the hierarchy, including the line size and the number of
// cores that share the cache.
func (p *drParser) toLevel(u *unit) hierarchy.Cache {
	c := u.cache
	c.LineBytes = p.line
	if c.Lines() == uint64(c.Ways) {
		c.Ways = 0
	}
	if cores := p.cores(c.Name); cores > 1 {
		c.SharedBy = uint32(cores)
	}
	return c
}

// instructions adds the instruction caches of the first core. The parameter "data" contains the
// data caches of this core, from the core to memory.
func (p *drParser) instructions(h *hierarchy.Hierarchy, data []*unit) error {
	at := slices.IndexFunc(p.units, func(u unit) bool { return u.instruction && u.core == data[0].core })
	for at >= 0 {
		u := &p.units[at]
		if len(h.Instructions) == mostLevels {
			return errorAt(u.line, "cache ", u.cache.Name, " is an ancestor of itself, or has too many levels below it")
		}
		h.Instructions = append(h.Instructions, p.toLevel(u))
		n := len(h.Instructions)
		joins := slices.IndexFunc(data, func(d *unit) bool { return d.cache.Name == u.parent })
		switch {
		case u.parent == "memory" && n == len(data), joins == n:
			return nil
		case u.parent == "memory" || joins >= 0:
			return errorAt(u.line, "cache ", u.cache.Name, " has the parent ", u.parent, ", want as many levels of instruction caches as of data caches above this cache")
		}
		at = slices.IndexFunc(p.units, func(other unit) bool { return other.cache.Name == u.parent })
		if at < 0 {
			return errorAt(u.line, "cache ", u.cache.Name, " has the parent ", strconv.Quote(u.parent), ", which does not exist")
		}
	}
	return nil
}

func (p *drParser) note(text string) {
	if !slices.Contains(p.notes, text) {
		p.notes = append(p.notes, text)
	}
}

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
		return p.parameter(name, value.text)
	}
	return nil
}

// parameter applies a parameter of the simulation rather than of the caches.
func (p *drParser) parameter(name token, value string) error {
	yes, isBool := map[string]bool{"true": true, "True": true, "TRUE": true, "1": true, "false": false, "False": false, "FALSE": false, "0": false}[value]
	n, err := strconv.ParseUint(value, 10, 63)
	bad := func(want string) error { return errorAt(name.line, name.text, " ", value, ", want ", want) }
	count := func(to *uint64) error {
		if err != nil {
			return bad("a number of references")
		}
		*to = n
		return nil
	}
	s := &p.simulation
	switch name.text {
	case "num_cores":
		if err != nil || n == 0 || n > hierarchy.MostCores {
			return bad("1 to " + strconv.Itoa(hierarchy.MostCores) + " cores")
		}
		s.Cores = int(n)
	case "skip_refs":
		return count(&s.Skip)
	case "sim_refs":
		return count(&s.Limit)
	case "warmup_refs":
		return count(&s.Warmup)
	case "warmup_fraction":
		share, err := strconv.ParseFloat(value, 64)
		if err != nil || !(share >= 0 && share <= 1) {
			return bad("a number from 0 to 1")
		}
		s.WarmupShare = share
	case "coherence", "coherent":
		if !isBool {
			return bad("true or false")
		}
		s.Incoherent = !yes
	case "cpu_scheduling":
		if yes {
			p.note("cpu_scheduling " + value + " is ignored: threads are not assigned to the recorded processors; each thread runs on the core that has the fewest threads")
		}
	case "use_physical":
		if yes {
			p.note("use_physical " + value + " is ignored: addresses are virtual")
		}
	case "verbose":
	default:
		return errorAt(name.line, strconv.Quote(name.text), ", want num_cores, line_size, skip_refs, warmup_refs, warmup_fraction, sim_refs, cpu_scheduling, coherence, use_physical, verbose, or a cache with its settings in braces")
	}
	return nil
}

// unit reads the settings of a cache, after the opening brace.
func (p *drParser) unit(name token) error {
	if len(p.units) == maxCaches {
		return errorAt(name.line, "more than ", strconv.Itoa(maxCaches), " caches")
	}
	if slices.ContainsFunc(p.units, func(u unit) bool { return u.cache.Name == name.text }) {
		return errorAt(name.line, "duplicate cache ", name.text)
	}
	u := unit{line: name.line, core: -1, parent: "memory"}
	u.cache.Name, u.cache.Inclusion = name.text, hierarchy.NonInclusive
	for {
		setting := p.word()
		if setting.text == "}" {
			break
		}
		value := p.word()
		if value.text == "{" && setting.text == "replace_policy" {
			if err := p.policyBlock(&u, setting); err != nil {
				return err
			}
			continue
		}
		if value.text == "" || value.text == "{" || value.text == "}" {
			return errorAt(setting.line, "cache ", name.text, ": ", strconv.Quote(setting.text), " has no value, or the } at the end is missing")
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
		return p.policy(u, setting, value)
	case "prefetcher":
		switch value {
		case "none":
		case "nextline":
			u.cache.Prefetch.Kind = hierarchy.NextLine
		default:
			return bad("nextline or none")
		}
	case "miss_file":
		p.note("miss_file " + value + " is ignored: stackglass sites lists the misses by source line")
	default:
		return errorAt(setting.line, "cache ", u.cache.Name, ": ", strconv.Quote(setting.text),
			", want type, core, size, assoc, inclusive, exclusive, parent, replace_policy, prefetcher or miss_file")
	}
	return nil
}

// policy sets a replacement policy by its name.
func (p *drParser) policy(u *unit, setting token, value string) error {
	policy, known := map[string]hierarchy.Replacement{
		"LRU": hierarchy.LRU, "LFU": hierarchy.LFU, "FIFO": hierarchy.FIFO, "BIT_PLRU": hierarchy.BitPLRU, "RRIP": hierarchy.BRRIP,
	}[value]
	switch {
	case !known:
		return errorAt(setting.line, "cache ", u.cache.Name, ": replace_policy ", value, ", want LRU, LFU, FIFO, BIT_PLRU or RRIP")
	case value == "BIT_PLRU":
		p.note("BIT_PLRU evicts the first way whose bit is not set; drcachesim chooses one of the ways with an unset bit at random")
	case value == "RRIP":
		return errorAt(setting.line, "cache ", u.cache.Name, ": replace_policy RRIP needs its parameters: replace_policy { type RRIP rrpv_bits 2 rrpv_period 32 rrpv_long_per_period 1 }")
	}
	u.cache.Replacement = policy
	return nil
}

// policyBlock reads a replacement policy with parameters in braces.
func (p *drParser) policyBlock(u *unit, setting token) error {
	values := map[string]string{}
	for {
		name := p.word()
		if name.text == "}" {
			break
		}
		value := p.word()
		if value.text == "" || value.text == "{" || value.text == "}" || values[name.text] != "" {
			return errorAt(name.line, "cache ", u.cache.Name, ": ", strconv.Quote(name.text), " in replace_policy, want parameters with one value each, and } at the end")
		}
		values[name.text] = value.text
	}
	kind := values["type"]
	if kind != "RRIP" || len(values) == 1 {
		if len(values) != 1 {
			return errorAt(setting.line, "cache ", u.cache.Name, ": want only a type in replace_policy, unless the type is RRIP")
		}
		return p.policy(u, setting, kind)
	}
	switch [4]string{values["rrpv_bits"], values["rrpv_period"], values["rrpv_long_per_period"], strconv.Itoa(len(values))} {
	case [4]string{"2", "1", "1", "4"}, [4]string{"2", "0", "0", "4"}:
		u.cache.Replacement = hierarchy.SRRIP
	case [4]string{"2", "32", "1", "4"}:
		u.cache.Replacement = hierarchy.BRRIP
	default:
		return errorAt(setting.line, "cache ", u.cache.Name, ": RRIP is supported only with rrpv_bits 2, rrpv_long_per_period 1, and rrpv_period 1 (SRRIP) or 32 (BRRIP); for SRRIP, rrpv_long_per_period and rrpv_period may also both be 0")
	}
	return nil
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
		return nil, errorAt(0, "no first-level data cache, want a cache that has a core, and whose type is data or unified")
	}
	for at := first; ; {
		u := &p.units[at]
		if list = append(list, u); len(list) > mostLevels {
			return nil, errorAt(u.line, "cache ", u.cache.Name, " is an ancestor of itself, or has more than ", strconv.Itoa(mostLevels), " levels below it")
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
