package export

import (
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// Places contains the input of [NewSheet]: a profile with sites, and the attributed levels of a
// hierarchy.
type Places struct {
	Command string           // name of the traced program
	Profile *profile.Profile // profile of the run; must contain sites
	Levels  []attribution.Attribution
	Name    func(symbol string) string // demangles a function's name; may be nil
	Notes   []string                   // warnings that apply to the counts
}

// NewSheet returns a sheet with the counts of a profile's sites: accesses, references, misses of
// each level, cold misses, and the sum of stack distances. Estimates are rounded so that they add
// up to the rounded total.
func NewSheet(of *Places) *Sheet {
	p, levels := of.Profile, of.Levels
	s := &Sheet{Command: of.Command, Notes: of.Notes, Entries: make([]Entry, len(p.Sites.Code))}
	for i := range p.Sites.Code {
		s.Entries[i] = entryOf(&p.Sites.Code[i], of.Name)
	}
	code, elsewhere := p.Sites.Code, attribution.RestName(levels)
	s.addEvent(Event{"accesses", "count", "line accesses"}, func(i int) uint64 { return code[i].Reuse.Accesses() }, elsewhere, 0)
	s.addEvent(Event{"references", "count", "references"}, func(i int) uint64 { return code[i].References() }, elsewhere, 0)
	none := attribution.Rest(levels)
	for i := range levels {
		misses, rest := attribution.Whole(levels[i].Sites, none.Misses[i])
		name := levels[i].Level.Cache.Name
		s.addEvent(Event{s.uniqueKey(name + "_misses"), "count", "misses of " + name}, func(i int) uint64 { return misses[i] }, elsewhere, rest)
	}
	for i := range levels {
		if levels[i].Coherence == 0 {
			continue
		}
		lost := levels[i].SiteCoherence
		if lost == nil {
			lost = make([]float64, len(code))
		}
		misses, rest := attribution.Whole(lost, none.Coherence[i])
		name := levels[i].Level.Cache.Name
		s.addEvent(Event{s.uniqueKey(name + "_coherence_misses"), "count", "misses of " + name + " due to another core's store"}, func(i int) uint64 { return misses[i] }, elsewhere, rest)
	}
	s.Main = min(2, len(s.Events))
	s.addEvent(Event{"cold", "count", "first accesses to a line"}, func(i int) uint64 { return code[i].Reuse.Cold }, elsewhere, 0)
	distances := distanceSums(p)
	s.addEvent(Event{"distance_sum", "lines", "sum of stack distances"}, func(i int) uint64 { return distances[i] }, elsewhere, 0)
	s.Notes = append(s.Notes[:len(s.Notes):len(s.Notes)],
		"distance_sum is the sum of the stack distances, in lines of "+strconv.FormatUint(uint64(p.Sites.LineBytes), 10)+
			" bytes, of all accesses that are not cold; to compute the mean distance, divide distance_sum by (accesses − cold)")
	if p.Calls != nil && p.Sampled == nil {
		s.divideByPath(of)
		s.Notes = append(s.Notes, "the counts of a call path are exact if the counts of the cache level are exact; if a function has several paths, the misses of its source lines are divided among the paths in the same proportion as the misses of the function")
	}
	return s
}

func entryOf(c *profile.Site, name func(string) string) Entry {
	e := Entry{Function: c.Function, Symbol: c.Function, File: c.File, Line: c.Line, Column: c.Column, PC: c.PC, Module: c.Module, Offset: c.Offset,
		Kind: c.Kind.String(), Type: c.Type, Variable: c.Variable}
	if name != nil {
		e.Function = name(e.Symbol)
	}
	if e.Function == "" && e.PC == 0 && e.Module == "" && c.Number != profile.NoSite {
		e.Function = "site " + strconv.FormatUint(uint64(c.Number), 10)
	}
	return e
}

// addEvent adds an event with a count for each site. The parameter "rest" is the number of
// events that belong to no site. These events are counted in a separate entry, whose name is
// the parameter "elsewhere".
func (s *Sheet) addEvent(event Event, ofSite func(int) uint64, elsewhere string, rest uint64) {
	sites := len(s.Entries)
	if sites > 0 && s.Entries[sites-1].Function == elsewhere {
		sites--
	}
	if rest > 0 && sites == len(s.Entries) {
		s.Entries = append(s.Entries, Entry{Function: elsewhere, Counts: make([]uint64, len(s.Events))})
	}
	s.Events = append(s.Events, event)
	for i := range s.Entries {
		n := rest
		if i < sites {
			n = ofSite(i)
		}
		s.Entries[i].Counts = append(s.Entries[i].Counts, n)
	}
}

// eventWord replaces all characters except letters and digits by _.
func eventWord(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, text)
}

// uniqueKey converts text to a unique event key, which contains only letters, digits and _.
func (s *Sheet) uniqueKey(text string) string {
	key := eventWord(text)
	for again := 2; s.Event(key) >= 0; again++ {
		key = strings.TrimRight(key, "0123456789") + strconv.Itoa(again)
	}
	return key
}

// distanceSums returns the sum of the stack distances of each site's accesses. The histogram
// contains the exact sum of the distances in each bin. This sum is divided among the sites in
// proportion to their accesses in the bin. Therefore, the results add up to the sum of all
// distances.
func distanceSums(p *profile.Profile) []uint64 {
	sums := make([]uint64, len(p.Sites.Code))
	l := p.LocalityAt(p.Sites.LineBytes)
	if l == nil {
		return sums
	}
	var ofBin [profile.SiteBins]uint64
	counts, _ := l.Histogram(trace.AllKinds)
	for d, n := range counts.All() {
		bin := profile.SiteBin(uint32(min(d, 1<<32-1)))
		carry, product := bits.Mul64(d, n)
		if carry != 0 {
			product = 1<<64 - 1
		}
		ofBin[bin] = saturatingAdd(ofBin[bin], product)
	}
	var at [profile.SiteBins][]portion
	for i := range p.Sites.Code {
		for _, b := range p.Sites.Code[i].Reuse.Bins {
			at[b.Bin] = append(at[b.Bin], portion{site: i, weight: b.Count})
		}
	}
	for bin, shares := range at {
		apportion(ofBin[bin], shares)
		for _, s := range shares {
			sums[s.site] = saturatingAdd(sums[s.site], s.part)
		}
	}
	return sums
}

// portion is the part of a total that is assigned to one site, in proportion to a weight.
type portion struct {
	site   int
	weight uint64
	part   uint64
}

// apportion divides a total into whole numbers in proportion to weights. It rounds the numbers
// down, and then adds 1 to the numbers with the largest remainders until the sum is correct
// (Hamilton's method). The weights must add up to less than 2^64.
func apportion(total uint64, shares []portion) {
	var weights uint64
	for i := range shares {
		weights = saturatingAdd(weights, shares[i].weight)
	}
	if weights == 0 {
		return
	}
	remainders := make([]uint64, len(shares))
	order := make([]int, len(shares))
	left := total
	for i := range shares {
		high, low := bits.Mul64(total, shares[i].weight)
		shares[i].part, remainders[i] = bits.Div64(high, low, weights)
		left -= shares[i].part
		order[i] = i
	}
	sort.SliceStable(order, func(x, y int) bool { return remainders[order[x]] > remainders[order[y]] })
	for _, i := range order[:min(left, uint64(len(order)))] {
		shares[i].part++
	}
}
