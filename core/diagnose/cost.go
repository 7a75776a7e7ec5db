package diagnose

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/trace"
)

// How many fetches of lines overlap, by how their addresses follow each other. Lines in
// sequence are fetched ahead, as fast as memory gives them; other lines as far as the core
// has buffers for misses (ten to sixteen in today's cores) and instructions to look ahead.
const (
	overlapSequence = 16.0
	overlapStride   = 6.0
	overlapRandom   = 6.0
	overlapStore    = 16.0 // stores wait in a buffer, not in the core
)

// withoutCode is how many cycles a reference takes where the trace holds no code.
const withoutCode = 1.0

// place is a line of source, or an instruction where lines are not known.
type place struct {
	function, file string
	line           uint32
	data           string
	sites          []int // indices in profile.Sites.Code

	references uint64
	irregular  float64 // share of its waits that are at addresses without order, 0 to 1
	wait       float64 // cycles
	coherence  float64 // cycles of these that wait for lines which other cores took
	dependent  float64 // cycles of these that wait for the address of a load from another load
	spaced     float64 // share of its waits that are at a constant stride longer than an element
	stores     float64 // cycles of these of stores
	never      float64 // cycles of these for the first access to a line
	crossing   float64 // references that lie across two lines
	level      int     // that most waits are for: index of the level that misses
}

// source is where it is, as in app.c:12.
func (p *place) source() string {
	if p.line == 0 {
		return p.function
	}
	return p.file + ":" + strconv.FormatUint(uint64(p.line), 10)
}

// costs are the cycles of a run.
type costs struct {
	models  *costmodel.Models // nil: the trace holds no code
	program *trace.Program
	visits  []float64
	hits    *pipeline.Runtime // every load hits in the first level
	base    float64           // cycles without waits
	bySite  map[*profile.Site]*place
	levels  []attribution.Attribution
	misses  [][]float64 // of each level, by site
	latency []float64   // beyond a hit in the first level, of what comes from behind each level
	site    [][]float64 // cycles that each site waits, by level that misses
}

// price counts the cycles of the run.
func (r *run) price() error {
	c := &costs{bySite: map[*profile.Site]*place{}}
	r.cost = c
	h, assumed := costmodel.CompleteLatencies(r.Machine, r.Processor)
	for _, w := range assumed {
		r.out.Notes = append(r.out.Notes, string(w))
	}
	r.Machine = h
	ranker, ok := attribution.New(r.p)
	if !ok {
		return errors.New("the profile does not tell which place in the code misses")
	}
	levels, warnings, err := ranker.Attribute(h)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		r.out.Notes = append(r.out.Notes, string(w))
	}
	c.levels = levels
	for k := range levels {
		behind := h.Memory.LatencyCycles
		if k+1 < len(h.Levels) {
			behind = h.Levels[k+1].LatencyCycles
		}
		c.latency = append(c.latency, behind-h.Levels[0].LatencyCycles)
		r.out.levels = append(r.out.levels, h.Levels[k].Name)
	}
	r.exact()
	c.site = make([][]float64, len(r.p.Sites.Code))
	for i := range r.p.Sites.Code {
		c.site[i] = c.waits(&r.p.Sites.Code[i], i)
	}
	if len(r.p.Blocks) > 0 {
		if err := c.code(r); err != nil {
			return err
		}
	} else {
		c.base = withoutCode * float64(r.p.Totals.AllReferences())
		r.out.Notes = append(r.out.Notes, "the trace holds no code: each reference is taken to cost one cycle; compile the program with stackglass cc to know its own cycles")
	}
	r.group()
	r.out.Cycles = c.base
	for k := range levels {
		w := LevelWait{Name: "memory"}
		if k+1 < len(h.Levels) {
			w.Name = h.Levels[k+1].Name
		}
		for i := range c.site {
			w.Cycles += c.site[i][k]
		}
		r.out.Cycles += w.Cycles
		r.out.Waits = append(r.out.Waits, w)
	}
	return nil
}

// exact takes the misses of sites from the folded trace where that counts them, which is
// exact in sets too. Threads on cores of their own do not share caches as its loops do.
func (r *run) exact() {
	c := r.cost
	for k := range c.levels {
		c.misses = append(c.misses, slices.Clone(c.levels[k].Sites))
	}
	if r.loops == nil {
		return
	}
	if r.counted = loopcount.Count(r.loops, r.Machine.Levels, r.GoOn); r.counted == nil || len(r.p.Totals.Threads) > 1 {
		return
	}
	number := map[*profile.Site]int{}
	for i := range r.p.Sites.Code {
		number[&r.p.Sites.Code[i]] = i
	}
	for k := range r.counted.Levels {
		m := r.counted.Levels[k].Result
		if m == nil {
			continue
		}
		exact := make([]float64, len(r.p.Sites.Code))
		for ref, counts := range m.Refs {
			if i, ok := number[r.loops.Place(r.loops.Tree().References()[ref])]; ok {
				exact[i] += float64(counts.Misses)
			}
		}
		c.misses[k] = exact
	}
}

// fetches are the lines that a site gets from behind each level.
func (c *costs) fetches(i int) []float64 {
	lines := make([]float64, len(c.levels))
	for k := range c.levels {
		lines[k] = c.misses[k][i]
		if k+1 < len(c.levels) {
			lines[k] -= c.misses[k+1][i]
		}
		lines[k] = max(0, lines[k])
	}
	return lines
}

// waits are the cycles that a site waits for lines, by level that misses, if its fetches
// overlap as far as its addresses allow.
func (c *costs) waits(s *profile.Site, i int) []float64 {
	out := c.fetches(i)
	overlap := overlapOf(s)
	for k := range out {
		own := out[k]
		if of := c.levels[k].SiteCoherence; of != nil { // another core has the line: nobody fetches that ahead
			taken := min(of[i], out[k])
			own -= taken
			out[k] = taken * c.latency[k]
		} else {
			out[k] = 0
		}
		out[k] += own * c.latency[k] / overlap
	}
	return out
}

// overlapOf is how many fetches of a site overlap.
func overlapOf(s *profile.Site) float64 {
	switch {
	case s.Kind == trace.Store || s.Kind == trace.Modify || s.Kind == trace.RangeWrite:
		return overlapStore
	case scattered(s):
		return overlapRandom
	case s.Stride() == profile.ConstantStride && nearShare(s) < 0.5:
		return overlapStride
	}
	return overlapSequence
}

// scattered reports whether a site's accesses follow no order: neither are they at a
// constant stride, nor is nearly each to a line that was used just before.
func scattered(s *profile.Site) bool {
	return s.Stride() == profile.IrregularStride && nearShare(s) < mostlyNear
}

// mostlyNear is the share of accesses to lines just used from which on addresses are taken
// to be in sequence: with two elements to a line, every second one is.
const mostlyNear = 0.5

// nearShare is the share of a site's accesses that are to a line used just before.
func nearShare(s *profile.Site) float64 {
	near := uint64(0)
	for _, b := range s.Reuse.Bins {
		if profile.SiteBinFrom(int(b.Bin)) <= nearLines {
			near += b.Count
		}
	}
	return share(float64(near), float64(s.Reuse.Accesses()))
}

// nearLines is the largest stack distance, in lines, of an access to a line that a loop is
// still at.
const nearLines = 4

// code takes the cycles of the blocks into account, and which loads wait for others.
func (c *costs) code(r *run) error {
	m, err := costmodel.New(r.p, "", nil)
	if err != nil {
		return err
	}
	c.models, c.program, c.visits = m, m.Program(), m.Visits()
	first := r.Machine.Levels[0].LatencyCycles
	if c.hits, err = m.Price(r.Processor, first, nil); err != nil {
		return err
	}
	c.base = c.hits.Cycles
	byNumber := map[uint32]int{}
	for i := range r.p.Sites.Code {
		if s := &r.p.Sites.Code[i]; s.Number != profile.NoSite {
			byNumber[s.Number] = i
		}
	}
	// Loads at irregular addresses take the average of their latencies: where another load
	// needs their result for its address, that is what an iteration takes.
	late := map[uint32]float64{}
	for number, i := range byNumber {
		if s := &r.p.Sites.Code[i]; scattered(s) {
			for k, lines := range c.fetches(i) {
				late[number] += share(lines*c.latency[k], float64(s.References()))
			}
		}
	}
	chained, err := m.Price(r.Processor, first, late)
	if err != nil {
		return err
	}
	c.pointers(r)
	for b := range c.program.Blocks {
		more := chained.Blocks[b].Cycles - c.hits.Blocks[b].Cycles
		k := &c.program.Blocks[b]
		sum := 0.0
		var among []int
		for number := k.FirstSite; number < k.FirstSite+k.Sites; number++ {
			i, ok := byNumber[number]
			if !ok || !scattered(&r.p.Sites.Code[i]) {
				continue
			}
			among = append(among, i)
			for _, cycles := range c.site[i] {
				sum += cycles
			}
		}
		if more <= sum || sum == 0 {
			continue
		}
		for _, i := range among {
			for l := range c.site[i] {
				c.site[i][l] *= more / sum
			}
		}
	}
	return nil
}

// pointers has loads wait for each other on lines of source that load a pointer from an
// irregular address into a variable in memory, and load through that: such code follows
// pointers, and was not optimised. The pipeline sees that where the pointer is in a register.
func (c *costs) pointers(r *run) {
	type at struct {
		function, file string
		line           uint32
	}
	type variable struct{ function, name string }
	stored := map[variable]bool{}
	for i := range r.p.Sites.Code {
		if s := &r.p.Sites.Code[i]; s.Kind == trace.Store && s.Type == "ptr" && s.Variable != "" && s.Stride() == profile.ZeroStride {
			stored[variable{s.Function, s.Variable}] = true
		}
	}
	follows := map[at]bool{} // with the lines beside: a loop's head may hold the pointer, its body the value
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		if s.Kind == trace.Load && s.Type == "ptr" && s.Stride() == profile.IrregularStride && s.Line > 0 && stored[variable{s.Function, s.Variable}] {
			for line := s.Line - 1; line <= s.Line+1; line++ {
				follows[at{s.Function, s.File, line}] = true
			}
		}
	}
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		if !follows[at{s.Function, s.File, s.Line}] || s.Kind != trace.Load || !scattered(s) {
			continue
		}
		for k, lines := range c.fetches(i) {
			c.site[i][k] = max(c.site[i][k], lines*c.latency[k])
		}
	}
}

// group sums the sites up by place.
func (r *run) group() {
	type key struct {
		function, file string
		line           uint32
		pc             uint64
	}
	byKey := map[key]*place{}
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		k := key{s.Function, s.File, s.Line, 0}
		if s.Line == 0 {
			k.pc = s.PC
		}
		at := byKey[k]
		if at == nil {
			at = &place{function: r.Readable(s.Function), file: s.File, line: s.Line}
			byKey[k] = at
			r.places = append(r.places, at)
		}
		r.cost.bySite[s] = at
		at.sites = append(at.sites, i)
		at.references += s.References()
		at.crossing += float64(crossing(s, r.p.Sites.LineBytes))
		plain := r.cost.waits(s, i)
		accesses := float64(s.Reuse.Accesses())
		for l, cycles := range r.cost.site[i] {
			at.wait += cycles
			if scattered(s) {
				at.irregular += cycles
			}
			if s.Stride() == profile.ConstantStride {
				at.spaced += cycles
			}
			if s.Kind != trace.Load {
				at.stores += cycles
			}
			if of := r.cost.levels[l].SiteCoherence; of != nil {
				at.coherence += min(cycles, of[i]*r.cost.latency[l])
			}
			if scattered(s) && cycles > dependentFrom*plain[l] && s.Kind == trace.Load {
				at.dependent += cycles
			}
			if misses := r.cost.misses[l][i]; misses > 0 && accesses > 0 {
				at.never += cycles * min(1, float64(s.Reuse.Cold)/misses)
			}
		}
	}
	for _, at := range r.places {
		at.irregular, at.spaced = share(at.irregular, at.wait), share(at.spaced, at.wait)
		at.data = r.dataOf(at)
		most := 0.0
		for l := range r.cost.levels {
			sum := 0.0
			for _, i := range at.sites {
				sum += r.cost.site[i][l]
			}
			if sum > most {
				most, at.level = sum, l
			}
		}
	}
}

// dependentFrom is how many times longer loads wait than independent ones would, where other
// loads need their results.
const dependentFrom = 1.5

// crossing is the number of references of a site that lie across two lines.
func crossing(s *profile.Site, lineBytes uint32) uint64 {
	if s.Bytes == 0 || s.Bytes > lineBytes {
		return 0
	}
	return s.Reuse.Accesses() - min(s.References(), s.Reuse.Accesses())
}

// dataOf names the variables of a place, that with the largest waits first.
func (r *run) dataOf(at *place) string {
	waits := map[string]float64{}
	var names []string
	for _, i := range at.sites {
		name := r.p.Sites.Code[i].Variable
		if name == "" {
			continue
		}
		if _, ok := waits[name]; !ok {
			names = append(names, name)
		}
		for _, cycles := range r.cost.site[i] {
			waits[name] += cycles
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case waits[a] > waits[b]:
			return -1
		case waits[a] < waits[b]:
			return 1
		}
		return 0
	})
	if len(names) > 1 && waits[names[0]] > 0 { // those that hardly wait have no part in it
		most := waits[names[0]]
		names = slices.DeleteFunc(names, func(n string) bool { return waits[n] < most/10 })
	}
	return strings.Join(names, ", ")
}
