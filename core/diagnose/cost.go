package diagnose

import (
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/costmodel"
	"github.com/stackglass/stackglass/core/loops"
	"github.com/stackglass/stackglass/core/pipeline"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// The number of line fetches that overlap, for each pattern of addresses. For sequential lines,
// which are prefetched, the bandwidth of memory is the limit. For other lines, the limits are the
// core's miss buffers (ten to sixteen in today's cores) and its instruction window.
const (
	overlapSequence = 16.0
	overlapStride   = 6.0
	overlapRandom   = 6.0
	overlapStore    = 16.0 // stores wait in a buffer, not in the core
)

// withoutCode is the assumed number of cycles for a reference if the trace contains no code.
const withoutCode = 1.0

// place is a source line, or an instruction if its line is unknown.
type place struct {
	function, file string
	line           uint32
	data           string
	sites          []int // indices in profile.Sites.Code

	references uint64
	irregular  float64 // share of the waits that are at irregular addresses that no prefetcher covers, from 0 to 1
	wait       float64 // cycles that the location waits for lines
	coherence  float64 // part of wait: for lines that other cores invalidated
	dependent  float64 // part of wait: for loads whose address another load returns
	spaced     float64 // share of the waits that are at constant strides longer than an element
	stores     float64 // part of wait: in stores
	copies     float64 // part of wait: in functions that copy or fill memory
	reads      bool    // such a function also reads memory, so it does more than fill memory
	never      float64 // part of wait: in first accesses to lines
	crossing   float64 // references that cross a line boundary
	pages      float64 // cycles for address translation
	split      float64 // cycles for references that cross a line boundary
	level      int     // index of the level whose misses cause the longest waits
}

// source returns the location, such as app.c:12.
func (p *place) source() string {
	if p.line == 0 {
		return p.function
	}
	return p.file + ":" + strconv.FormatUint(uint64(p.line), 10)
}

// costs contains the cycles of a run.
type costs struct {
	models    *costmodel.Models // nil if the trace contains no code
	program   *trace.Program
	visits    []float64
	hits      *pipeline.Runtime  // the run time if every load hits in the first level
	links     map[uint32]float64 // by loop: number of executed loads that return the address of the next load
	byNumber  map[uint32]int     // index of each site in the profile, by its number in the trace
	base      float64            // cycles of the run without waits
	bySite    map[*profile.Site]*place
	levels    []attribution.Attribution
	latency   []float64   // by level: latency of a line from below this level, minus the latency of a hit in the first level
	run       measure     // the numbers of the unchanged run
	site      [][]float64 // cycles that each site waits, by the level that misses
	pages     []float64   // cycles that each site waits for address translation
	split     []float64   // cycles of each site for references that cross a line boundary
	idle      float64     // cycles that threads wait for each other
	names     []string    // name of the variable that each site accesses; "" if it has no name
	steps     []uint64    // stride of each site in its innermost loop, in bytes; 0 if unknown
	covered   []float64   // share of each site's misses that a prefetcher covers, weighted by latency; 0 if unknown
	overheads *overheads  // numbers of the unchanged run; nil: not needed or not possible
	replay    *counts     // replay of the unchanged run in the caches; nil: not needed yet, or not possible
}

// measure contains the numbers that determine the waits of sites.
type measure struct {
	misses    [][]float64 // number of misses, by level and site
	coherence [][]float64 // part of misses: misses after another core's store; nil if no level has any
	scattered []bool      // by site: whether its addresses are irregular
	overlap   []float64   // average number of fetches in flight at a time, by site
	replay    *counts     // the replay that counted the misses; nil if they come from the profile
}

// measureOf computes the measure from the profile.
func (c *costs) measureOf(p *profile.Profile) (m measure) {
	for k := range c.levels {
		m.misses = append(m.misses, slices.Clone(c.levels[k].Sites))
		m.coherence = append(m.coherence, c.levels[k].SiteCoherence)
	}
	for i := range p.Sites.Code {
		s := &p.Sites.Code[i]
		m.scattered = append(m.scattered, c.scattered(s, nearShare(s), c.steps[i]))
		overlap := c.overlapBy(i, s.Kind, s.Stride(), nearShare(s))
		if m.scattered[i] {
			overlap = c.withPrefetches(i, overlap)
		}
		m.overlap = append(m.overlap, overlap)
	}
	return m
}

// coverage returns the share of each site's misses that a prefetcher covers, weighted by the latency
// of each level, or only zeros if the profile does not state which accesses a prefetcher covers.
func (r *run) coverage() []float64 {
	s := r.p.Sites
	out := make([]float64, len(s.Code))
	if s.Covered == nil {
		return out
	}
	for i := range out {
		covered, misses := 0.0, 0.0
		for k, latency := range r.cost.latency {
			if k > 0 {
				latency -= r.cost.latency[k-1]
			}
			lines := r.linesOf(k)
			covered += latency * float64(s.Covered[i].Misses(lines))
			misses += latency * float64(s.Code[i].Reuse.Misses(lines))
		}
		out[i] = share(covered, misses)
	}
	return out
}

// linesOf returns the number of lines in a level, in lines of the size for which sites were analysed.
func (r *run) linesOf(level int) uint64 {
	return r.Machine.Levels[level].SizeBytes / uint64(r.p.Sites.LineBytes)
}

// withPrefetches returns the average number of fetches that overlap, for a site with irregular
// addresses. The parameter overlap is this number for the lines that no prefetcher covers. A prefetcher
// hides the latency of the other lines, so the bandwidth of memory is the limit for them. Lines at
// constant strides keep the overlap of their stride, which includes the effect of prefetchers.
func (c *costs) withPrefetches(i int, overlap float64) float64 {
	return 1 / (c.covered[i]/max(overlap, overlapSequence) + (1-c.covered[i])/overlap)
}

// exposed returns the number of a site's fetches that a load waits for. A prefetcher hides the latency
// of the fetches that it covers.
func (c *costs) exposed(i int, fetches float64) float64 {
	return fetches * (1 - c.covered[i] + c.covered[i]/overlapSequence)
}

// measured computes the measure from a replay.
func (c *costs) measured(p *profile.Profile, of *counts) (m measure) {
	m = measure{misses: of.misses, coherence: of.coherence, replay: of}
	for i := range p.Sites.Code {
		n := &of.sites[i]
		s := profile.Site{Kind: p.Sites.Code[i].Kind, Strides: n.strides}
		near := share(float64(n.near), float64(n.accesses))
		if n.accesses > mostInOne*n.references {
			near = 1
		}
		s.Number = p.Sites.Code[i].Number
		m.scattered = append(m.scattered, c.scattered(&s, near, n.step))
		overlap := c.overlapBy(i, s.Kind, s.Stride(), near)
		if m.scattered[i] && c.run.scattered[i] { // the change preserves the pattern of the addresses
			overlap = c.withPrefetches(i, overlap)
		}
		m.overlap = append(m.overlap, overlap)
	}
	return m
}

// price computes the estimated cycles of the run.
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
		return errors.New("the profile does not say which source locations miss")
	}
	levels, warnings, err := ranker.Attribute(h)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		r.out.Notes = append(r.out.Notes, string(w))
	}
	r.unhash()
	c.levels = levels
	for k := range levels {
		behind := h.Memory.LatencyCycles
		if k+1 < len(h.Levels) {
			behind = h.Levels[k+1].LatencyCycles
		}
		c.latency = append(c.latency, behind-h.Levels[0].LatencyCycles)
		r.out.levels = append(r.out.levels, h.Levels[k].Name)
	}
	c.steps, c.covered = stepsOf(r), r.coverage()
	if r.p.Sites.Covered == nil {
		r.out.Notes = append(r.out.Notes, "the profile does not state which misses a prefetcher hides, because it is a sample or from an earlier version, so the waits at irregular addresses may be overestimated: diagnose the trace itself")
	}
	if len(r.p.Blocks) > 0 {
		if err := c.code(r); err != nil {
			return err
		}
	} else {
		c.base = withoutCode * float64(r.p.Totals.AllReferences())
		r.out.Notes = append(r.out.Notes, "the trace contains no code, so each reference is assumed to cost one cycle; compile the program with stackglass cc to model the actual cycles")
	}
	c.run = c.measureOf(r.p)
	if r.loops != nil && r.tooLong() {
		r.out.Notes = append(r.out.Notes, r.tooLongNote())
	}
	r.countUnchanged()
	r.exact()
	if r.estimated() {
		r.out.Notes = append(r.out.Notes, "the profile does not contain the misses of each source line in set-associative caches, so these misses are estimated, and findings may be missing: diagnose the trace itself, or analyse the trace with --utilisation and the size and ways of the first cache, such as 48KiB,12")
	}
	if c.site, err = c.waits(r, &c.run); err != nil {
		return err
	}
	r.computeOtherCycles()
	c.names = namesOf(r)
	r.group()
	r.out.Cycles = c.base + c.idle
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
	if pages := sum(c.pages); pages > leastPages*r.out.Cycles {
		r.out.Waits = append(r.out.Waits, LevelWait{Name: pageTables, Cycles: pages})
		r.out.Cycles += pages
	}
	r.out.Cycles += sum(c.split)
	return nil
}

// tooLongNote returns the note about a run that is too long to be replayed.
func (r *run) tooLongNote() string {
	text, most := "changes of the data layout were not tried, and address translation is not counted", uint64(mostSkimmed)
	if len(r.p.Totals.Threads) > 1 {
		text, most = text+", data shared between threads was not examined, and threads that wait for each other are not found", mostReplayed
	}
	return "the run has more than " + report.Count(most).Human() + " references and events, so " + text + ": diagnose a smaller input, or a part of the trace (for example --skip 1000000 --limit 10000000)"
}

// pageTables is the name of the waits for address translation.
const pageTables = "page tables"

// leastPages is the minimum share of the cycles at which address translation is reported.
const leastPages = 0.005

func sum(list []float64) (all float64) {
	for _, x := range list {
		all += x
	}
	return all
}

// computeOtherCycles computes the cycles that are not waits for lines: cycles for address
// translation, for references that cross a line boundary, and for threads that wait for each other.
func (r *run) computeOtherCycles() {
	c := r.cost
	n := len(r.p.Sites.Code)
	c.pages, c.split = make([]float64, n), make([]float64, n)
	if c.overheads == nil {
		return
	}
	c.pages, c.split = c.othersOf(r, &c.run, c.site, c.overheads)
	if c.replay == nil {
		return
	}
	for _, w := range c.replay.idle {
		if !w.dynamic {
			c.idle += w.cycles
		}
	}
}

func (c *costs) othersOf(r *run, m *measure, site [][]float64, of *overheads) (pages, split []float64) {
	for i := range of.split {
		overlap := walkOverlap
		if c.dependent(r, m, site, i) {
			overlap = 1
		}
		pages = append(pages, (of.second[i]*secondPageCycles+of.walks[i]*walkCycles)/overlap)
		split = append(split, of.split[i]*splitCycles)
	}
	return pages, split
}

// dependent reports whether the loads of a site wait for earlier loads.
func (c *costs) dependent(r *run, m *measure, site [][]float64, i int) bool {
	if !m.scattered[i] || r.p.Sites.Code[i].Kind != trace.Load {
		return false
	}
	plain := sum(c.plainWaits(m, i))
	return plain > 0 && sum(site[i]) > dependentFrom*plain
}

// unhash replaces each level whose sets are chosen by a hash with a level whose sets are chosen by
// the low bits of the line number, because changes can be tried only in such levels. Conflict
// misses of these levels are not counted, because the hash avoids them.
func (r *run) unhash() {
	r.Machine.Levels = slices.Clone(r.Machine.Levels)
	r.hashed = make([]bool, len(r.Machine.Levels))
	for k := range r.Machine.Levels {
		l := &r.Machine.Levels[k]
		if r.hashed[k], l.Hashed = l.Hashed, false; r.hashed[k] {
			r.out.Notes = append(r.out.Notes, l.Name+" chooses its sets by a hash; changes are tried in a cache of this size whose sets are chosen by the low bits of the line number")
		}
	}
}

// estimated reports whether the misses of sites are computed from stack distances, as for fully
// associative caches.
func (r *run) estimated() bool {
	level := r.Machine.Levels[0]
	return len(r.p.Totals.Threads) < 2 && r.p.Sites.Measured(level.Lines(), level.Ways) < 0 && r.exactMisses()[0] == nil
}

// fetches returns the number of lines that a site fetches from below each level.
func (m *measure) fetches(i int) []float64 {
	lines := make([]float64, len(m.misses))
	for k := range m.misses {
		lines[k] = m.misses[k][i]
		if k+1 < len(m.misses) {
			lines[k] -= m.misses[k+1][i]
		}
		lines[k] = max(0, lines[k])
	}
	return lines
}

// taken returns how many of the lines that a site fetches from below a level had been invalidated
// by another core.
func (m *measure) taken(i, k int, fetched float64) float64 {
	if of := m.coherence[k]; of != nil {
		return min(of[i], fetched)
	}
	return 0
}

// coherenceOf returns the part of a site's waits at a level that is for lines that another core had
// invalidated.
func (c *costs) coherenceOf(i, k int) float64 {
	if c.run.coherence[k] == nil {
		return 0
	}
	return min(c.site[i][k], c.run.taken(i, k, c.run.fetches(i)[k])*c.latency[k])
}

// plainWaits returns the cycles that a site waits for lines, for each level that misses, if its
// fetches overlap as far as the pattern of its addresses allows.
func (c *costs) plainWaits(m *measure, i int) []float64 {
	out := m.fetches(i)
	for k := range out {
		taken := m.taken(i, k, out[k]) // another core has the line, so nothing prefetches it
		out[k] = taken*c.latency[k] + (out[k]-taken)*c.latency[k]/m.overlap[i]
	}
	return out
}

// overlapBy returns the number of a site's fetches that overlap. In an unrolled loop, a reference
// advances by several elements, but its lines are still sequential.
func (c *costs) overlapBy(i int, kind trace.Kind, stride profile.Stride, near float64) float64 {
	switch {
	case kind == trace.Store || kind == trace.Modify || kind == trace.RangeWrite:
		return overlapStore
	case scatteredBy(stride, near):
		return overlapRandom
	case stride == profile.ConstantStride && near < 0.5 && !(c.steps[i] > 0 && c.steps[i] <= sequence):
		return overlapStride
	}
	return overlapSequence
}

// sequence is the longest stride, in bytes, with which references access consecutive lines.
const sequence = 128

// stepsOf returns the most frequent step of each site in its innermost loop, in bytes, or 0 if it
// is unknown.
func stepsOf(r *run) []uint64 {
	steps := make([]uint64, len(r.p.Sites.Code))
	if r.loops == nil {
		return steps
	}
	weight := make([]float64, len(steps))
	index := newSiteIndex(r.p)
	byRef := make([]int, len(r.loops.Tree().References()))
	for n, ref := range r.loops.Tree().References() {
		byRef[n] = int(index.indexOf(ref.Site, ref.PC, ref.Kind))
	}
	var walk func(n loops.Node, times float64)
	walk = func(n loops.Node, times float64) {
		times *= float64(n.Trips())
		for i := range n.Len() {
			item, by := n.Item(i)
			if item.IsLoop() {
				walk(item, times)
				continue
			}
			site := byRef[item.Ref()]
			if _, _, wild := item.Leaf(); wild || site < 0 || by[0] == 0 || times <= weight[site] {
				continue
			}
			weight[site], steps[site] = times, uint64(magnitude(int64(by[0])))
		}
	}
	for _, n := range r.loops.Tree().TopLoops() {
		walk(n, 1)
	}
	return steps
}

// namesOf returns the name of the variable that each site accesses. If the code does not name the
// variable, namesOf returns the variable to which the allocated memory was assigned.
func namesOf(r *run) []string {
	names, unknown := make([]string, len(r.p.Sites.Code)), false
	for i := range names {
		names[i] = named(r.p.Sites.Code[i].Variable)
		unknown = unknown || names[i] == ""
	}
	if r.loops == nil || !unknown {
		return names
	}
	index := newSiteIndex(r.p)
	var walk func(n loops.Node)
	walk = func(n loops.Node) {
		for i := range n.Len() {
			item, _ := n.Item(i)
			if item.IsLoop() {
				walk(item)
				continue
			}
			ref, addr, wild := item.Leaf()
			if site := index.indexOf(ref.Site, ref.PC, ref.Kind); site >= 0 && !wild && names[site] == "" {
				if by := r.loops.AllocatedAt(addr); by != nil {
					names[site] = by.Name
				}
			}
		}
	}
	for _, n := range r.loops.Tree().TopLoops() {
		walk(n)
	}
	return names
}

// scattered reports whether a site's addresses are irregular: the addresses have no constant
// stride, and few accesses are to a recently used line. If loads return the addresses, no
// prefetcher can follow a stride from one page to the next.
func (c *costs) scattered(s *profile.Site, near float64, step uint64) bool {
	if c.program != nil && int64(s.Number) < int64(len(c.program.Sites)) && c.program.Sites[s.Number].Flags&trace.ChasingSite != 0 &&
		s.Stride() == profile.ConstantStride && step >= 1<<pageShift {
		return near < mostlyNear
	}
	return scatteredBy(s.Stride(), near)
}

func scatteredBy(stride profile.Stride, near float64) bool {
	return stride == profile.IrregularStride && near < mostlyNear
}

// mostlyNear is the share of accesses to recently used lines above which addresses count as
// sequential. With two elements per line, every second access is to a recently used line.
const mostlyNear = 0.5

// If a reference accesses more than mostInOne lines, these lines count as a sequence of lines, such
// as the lines of a memory copy.
const mostInOne = 4

// nearShare returns the share of a site's accesses to a recently used line or to the next line of
// the same reference.
func nearShare(s *profile.Site) float64 {
	if s.Reuse.Accesses() > mostInOne*s.References() {
		return 1
	}
	near := uint64(0)
	for _, b := range s.Reuse.Bins {
		if profile.SiteBinFrom(int(b.Bin)) <= nearLines {
			near += b.Count
		}
	}
	return share(float64(near), float64(s.Reuse.Accesses()))
}

// nearLines is the maximum stack distance, in lines, of a recently used line.
const nearLines = 4

// code adds the cycles of the program's blocks, and determines which loads wait for other loads.
func (c *costs) code(r *run) error {
	m, err := costmodel.New(r.p, "", nil)
	if err != nil {
		return err
	}
	c.models, c.program, c.visits, c.links = m, m.Program(), m.Visits(), map[uint32]float64{}
	c.byNumber = map[uint32]int{}
	for i := range c.program.Sites {
		if of := &c.program.Sites[i]; of.Flags&trace.LinkSite != 0 && int64(of.Block) < int64(len(c.visits)) {
			c.links[c.program.Blocks[of.Block].Loop] += c.visits[of.Block]
		}
	}
	for i := range r.p.Sites.Code {
		if s := &r.p.Sites.Code[i]; s.Number != profile.NoSite {
			c.byNumber[s.Number] = i
		}
	}
	first := r.Machine.Levels[0].LatencyCycles
	if c.hits, err = m.Price(r.Processor, first, nil); err != nil {
		return err
	}
	c.waitForSums(r)
	c.base = c.hits.Cycles
	return nil
}

// waits returns the cycles that each site waits for lines, for each level that misses. The cycles
// are divided by the number of overlapping fetches, unless loads depend on the results of other
// loads and cannot overlap.
func (c *costs) waits(r *run, of *measure) ([][]float64, error) {
	out := make([][]float64, len(r.p.Sites.Code))
	for i := range out {
		out[i] = c.plainWaits(of, i)
	}
	if c.models == nil {
		return out, nil
	}
	byNumber := c.byNumber
	// A load at irregular addresses takes its average latency. If another load uses the result as
	// its address, this latency is the time of an iteration.
	late := map[uint32]float64{}
	for number, i := range byNumber {
		if of.scattered[i] {
			for k, lines := range of.fetches(i) {
				late[number] += share(c.exposed(i, lines)*c.latency[k], float64(r.p.Sites.Code[i].References()))
			}
		}
	}
	chained, err := c.models.Price(r.Processor, r.Machine.Levels[0].LatencyCycles, late)
	if err != nil {
		return nil, err
	}
	for i := range r.p.Sites.Code {
		follows := c.followedShare(&r.p.Sites.Code[i])
		if !of.scattered[i] || follows == 0 {
			continue
		}
		for k, lines := range of.fetches(i) {
			out[i][k] += follows * max(0, c.exposed(i, lines)*c.latency[k]-out[i][k])
		}
	}
	for b := range c.program.Blocks {
		more := chained.Blocks[b].Cycles - c.hits.Blocks[b].Cycles
		k := &c.program.Blocks[b]
		sum := 0.0
		var among []int
		for number := k.FirstSite; number < k.FirstSite+k.Sites; number++ {
			i, ok := byNumber[number]
			if !ok || !of.scattered[i] {
				continue
			}
			among = append(among, i)
			for _, cycles := range out[i] {
				sum += cycles
			}
		}
		if more <= sum || sum == 0 {
			continue
		}
		for _, i := range among {
			for l := range out[i] {
				out[i][l] *= more / sum
			}
		}
	}
	return out, nil
}

// followedShare returns the share of a site's new addresses that were loaded in earlier iterations,
// such as the addresses of all elements of a list except the first. It returns 0 if this share is
// less than half, as in a hash table with short chains. The pipeline model recognises loads
// that supply the addresses of later accesses only in loops of one block that keep their variables
// in registers.
func (c *costs) followedShare(s *profile.Site) float64 {
	if int64(s.Number) >= int64(len(c.program.Sites)) {
		return 0
	}
	of := &c.program.Sites[s.Number]
	if of.Flags&trace.ChasingSite == 0 || int64(of.Block) >= int64(len(c.program.Blocks)) {
		return 0
	}
	links, known := c.links[c.program.Blocks[of.Block].Loop]
	if !known { // older traces do not mark loads of addresses
		return 1
	}
	if of := min(1, share(links, float64(s.References())-float64(s.Strides[profile.ZeroStride]))); of >= 0.5 {
		return of
	}
	return 0
}

// sourceOf returns the source line of a site. If the site has no source line, because the compiler
// merged several accesses, or if the line is in a library's header, sourceOf returns a line of the
// block in the function's own file.
func (r *run) sourceOf(s *profile.Site) (file string, line uint32) {
	p := r.cost.program
	if p == nil || int64(s.Number) >= int64(len(p.Sites)) || s.Line > 0 && !isLibrary(s.File) {
		return s.File, s.Line
	}
	b := p.Sites[s.Number].Block
	if int64(b) >= int64(len(p.Blocks)) || int64(p.Blocks[b].Function) >= int64(len(p.Functions)) {
		return s.File, s.Line
	}
	file, line = r.sourceOfBlock(b)
	if file == "" {
		return s.File, s.Line
	}
	for i := range r.p.Sites.Code { // profiles contain a shortened name of the file
		if of := &r.p.Sites.Code[i]; of.File != "" && int64(of.Number) < int64(len(p.Sites)) && p.Sites[of.Number].Place.File == file {
			return of.File, line
		}
	}
	return path.Base(file), line
}

// sourceOfBlock returns the line of a block in the same loop, or of the nearest block, in the
// function's own file. If that file is a library's header, as for the function of a std::thread, it
// returns a line in any other file. file is "" if no block has a suitable line.
func (r *run) sourceOfBlock(b uint32) (file string, line uint32) {
	p := r.cost.program
	own := p.Functions[p.Blocks[b].Function]
	anywhere := isLibrary(own.Place.File)
	for _, same := range []bool{true, false} {
		for distance := range own.Blocks {
			for _, n := range []int64{int64(b) + int64(distance), int64(b) - int64(distance)} {
				if n < int64(own.First) || n >= int64(own.First)+int64(own.Blocks) {
					continue
				}
				k := &p.Blocks[n]
				mine := k.File == own.Place.File
				if anywhere {
					mine = !isLibrary(k.File)
				}
				if mine && k.FirstLine > 0 && (!same || k.Loop == p.Blocks[b].Loop) {
					return k.File, k.LastLine
				}
			}
		}
	}
	if anywhere {
		return "", 0
	}
	return own.Place.File, own.Place.Line
}

// isLibrary recognises headers of the C++ library by their names, because a trace does not contain
// the paths of their folders.
func isLibrary(file string) bool {
	name := path.Base(file)
	if file == "" || strings.HasPrefix(name, "stl_") || strings.HasSuffix(name, ".tcc") || !strings.Contains(name, ".") {
		return true
	}
	switch name {
	case "atomic_base.h", "move.h", "invoke.h", "std_thread.h", "unique_ptr.h", "shared_ptr.h", "shared_ptr_base.h", "new_allocator.h",
		"alloc_traits.h", "basic_string.h", "char_traits.h", "hashtable.h", "hashtable_policy.h", "unordered_map.h", "std_function.h",
		"random.h", "valarray_array.h", "ptr_traits.h", "predefined_ops.h", "cpp_type_traits.h", "std_mutex.h", "std_abs.h":
		return true
	}
	return false
}

// group adds up the cycles and counts of the sites at each source location.
func (r *run) group() {
	type key struct {
		function, file string
		line           uint32
		pc             uint64
	}
	byKey := map[key]*place{}
	for i := range r.p.Sites.Code {
		s := &r.p.Sites.Code[i]
		file, line := r.sourceOf(s)
		k := key{s.Function, file, line, 0}
		if line == 0 {
			k.pc = s.PC
		}
		at := byKey[k]
		if at == nil {
			at = &place{function: r.Readable(s.Function), file: file, line: line}
			byKey[k] = at
			r.places = append(r.places, at)
		}
		r.cost.bySite[s] = at
		at.sites = append(at.sites, i)
		at.references += s.References()
		if of := r.cost.overheads; of != nil {
			at.crossing += of.split[i]
		} else if s.Bytes <= nativeLeast {
			at.crossing += float64(crossing(s, r.p.Sites.LineBytes))
		}
		plain := r.cost.plainWaits(&r.cost.run, i)
		at.pages += r.cost.pages[i]
		at.split += r.cost.split[i]
		accesses := float64(s.Reuse.Accesses())
		for l, cycles := range r.cost.site[i] {
			at.wait += cycles
			if r.cost.run.scattered[i] {
				at.irregular += cycles * share(1-r.cost.covered[i], r.cost.exposed(i, 1))
			}
			if s.Stride() == profile.ConstantStride && !r.cost.run.scattered[i] {
				at.spaced += cycles
			}
			if s.Kind != trace.Load {
				at.stores += cycles
			}
			if s.Kind == trace.RangeRead || s.Kind == trace.RangeWrite {
				at.copies += cycles
				at.reads = at.reads || s.Kind == trace.RangeRead
			}
			at.coherence += r.cost.coherenceOf(i, l)
			if r.cost.run.scattered[i] && cycles > dependentFrom*plain[l] && s.Kind == trace.Load {
				at.dependent += min(cycles, (cycles-plain[l])*overlapRandom/(overlapRandom-1))
			}
			if misses := r.cost.run.misses[l][i]; misses > 0 && accesses > 0 {
				at.never += cycles * min(1, float64(s.Reuse.Cold)/misses)
			}
		}
	}
	for _, at := range r.places {
		at.irregular, at.spaced = share(at.irregular, at.wait), share(at.spaced, at.wait)
		at.data = r.dataOf(at.sites)
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

// Loads count as dependent if they wait at least dependentFrom times as long as overlapping loads
// would.
const dependentFrom = 1.5

// crossing returns the number of references of a site that cross a line boundary.
func crossing(s *profile.Site, lineBytes uint32) uint64 {
	if s.Bytes == 0 || s.Bytes > lineBytes {
		return 0
	}
	return s.Reuse.Accesses() - min(s.References(), s.Reuse.Accesses())
}

// named returns the part of a variable's name that identifies the data. Names of temporary values,
// which the compiler chooses, do not identify data.
func named(variable string) string {
	if variable == "this" || strings.HasPrefix(variable, "ref.tmp") || strings.HasPrefix(variable, "agg.tmp") {
		return ""
	}
	return variable
}

// dataOf returns the names of the variables that sites access, starting with the variable that causes
// the longest waits.
func (r *run) dataOf(sites []int) string {
	waits := map[string]float64{}
	var names []string
	for _, i := range sites {
		name := r.cost.names[i]
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
	if len(names) > 1 && waits[names[0]] > 0 { // drop variables that cause hardly any waits
		most := waits[names[0]]
		names = slices.DeleteFunc(names, func(n string) bool { return waits[n] < most/10 })
	}
	return strings.Join(names, ", ")
}
