package diagnose

import (
	"cmp"
	"math/bits"
	"runtime"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/parallel"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// sharing adds findings about cache lines that threads invalidate in each other's caches.
func (r *run) sharing() {
	if r.p.Communication == nil || r.p.Sites == nil {
		return
	}
	c := &answers.Communication{Profile: r.p, Name: r.Readable}
	list, _ := c.FalseFindings()
	of := r.cost.replay
	if of != nil && of.pages == nil {
		of = nil
	}
	var tried *retrial
	all := 0.0
	if of != nil {
		all = sum(of.falsely)
		if all*r.handOver() > Least*r.out.Cycles {
			r.tryApart(of)
			tried = r.retryApart(of, false)
		}
	}
	left := all
	covered := map[*place]bool{}
	for i := range list {
		f := &list[i]
		if f.Sites[0] == profile.NoSite {
			continue
		}
		at := r.cost.bySite[&r.p.Sites.Code[f.Sites[0]]]
		cost, times := 0.0, 0.0
		var among []*place
		for _, at := range r.places {
			if at.coherence > 0 && r.uses(at, f.Sites) {
				among = append(among, at)
				cost += at.coherence * (1 - r.taken[at])
				times += of.falselyAt(at)
			}
		}
		if tried != nil { // other source lines in these functions that use the same cache lines
			for _, other := range r.places {
				if of.falselyAt(other) > 0 && !slices.Contains(among, other) && slices.ContainsFunc(among, func(at *place) bool { return at.function == other.function }) {
					among = append(among, other)
					cost += other.coherence * (1 - r.taken[other])
					times += of.falselyAt(other)
				}
			}
			for _, other := range among {
				covered[other] = true
			}
			at = r.blamed(at, among, of)
		}
		times = min(times, left)
		finding := Finding{Kind: FalseSharing, Data: f.Name, Cost: cost, Why: strings.TrimSuffix(f.Text, "."), Fix: f.Fix, More: "communication --false-sharing"}
		switch {
		case tried != nil:
			if times == 0 {
				continue
			}
			left -= times
			happens, _, _ := strings.Cut(f.Text, ", mostly at ") // the finding names the source location of the waits
			finding.Why = happens + "; when the threads run at the same time, they invalidate each other's copies " + report.Count(uint64(times)).Human() + " times"
			finding.Saved, finding.Tried = max(0, tried.saved)*share(times, all), true
			if finding.Saved < Least*r.out.Cycles { // the waits have another cause
				continue
			}
			finding.Before, finding.After = tried.before, tried.after
			finding.How = apartLines + r.apart[0].extended()
		case of != nil && cost > 0: // threads that run at the same time would wait for the same words, so this is true sharing
			continue
		default:
			// A thread waits at most once each time that it fetches a line back from another core.
			saved := min(cost, float64(f.PingPongs)*r.coherenceWait())
			if f.PingPongs == 0 && r.unnamedBlocks(f.Object) {
				continue // one thread reused memory that another thread had freed
			}
			if !f.Seen || saved < Least*r.out.Cycles {
				most := min(float64(f.Moves)*r.handOver(), r.out.Cycles)
				finding.Saved, finding.Least, finding.Most = max(saved, most/uncertaintyDivisor), saved, most
				finding.How = "The threads hardly overlapped in this run. The upper bound is the waiting time if the threads always run at the same time."
				r.add(at, finding)
				continue
			}
			finding.Saved, finding.Tried = saved, true
			finding.How = "Counted: how often a thread fetched a line from another thread to access a word that the other thread had not written."
		}
		for _, other := range among {
			taken := other.coherence
			if tried != nil {
				taken = min(taken, of.falselyAt(other)*r.handOver(), max(0, tried.savedAt(other)))
			}
			r.taken[other] = max(r.taken[other], share(taken, other.wait))
		}
		r.add(at, finding)
	}
	if tried != nil {
		r.falseSharing(of, tried, all, covered)
	}
	r.trueSharing(of)
}

// tryApart simulates both changes of [apart] at the same time if there are several processors and
// [run.trueSharing] may need the second change.
func (r *run) tryApart(of *counts) {
	if runtime.GOMAXPROCS(0) < 2 || r.replayed+2*r.rows() > mostRows || !slices.ContainsFunc(r.places, func(at *place) bool {
		return at.coherence >= leastWait*r.out.Cycles && at.coherence >= at.wait/2 && of.copiesSaveAt(at) >= at.coherence/4 && r.copiesMayHelp(at, of)
	}) {
		return
	}
	parallel.Each(2, func(i int) { r.apart[i] = r.againLike(of, apart(of, r.lineShift(), i == 1)) })
}

// retryApart returns the effect of a change of [apart], or nil if the change cannot be tried.
func (r *run) retryApart(of *counts, copies bool) *retrial {
	i := 0
	if copies {
		i = 1
	}
	if r.apart[i] == nil {
		r.apart[i] = r.againLike(of, apart(of, r.lineShift(), copies))
	}
	if r.apart[i] == nil {
		return nil
	}
	return r.compare(of, r.apart[i])
}

// unnamedBlocks reports whether a data structure represents all allocated memory that belongs to no
// variable.
func (r *run) unnamedBlocks(object uint32) bool {
	if int64(object) >= int64(len(r.p.Sites.Data)) {
		return false
	}
	of := &r.p.Sites.Data[object]
	return of.Kind == profile.HeapObject && of.Name == ""
}

// hasStore reports whether a source location writes to memory.
func (r *run) hasStore(at *place) bool {
	return slices.ContainsFunc(at.sites, func(i int) bool { return r.p.Sites.Code[i].Kind != trace.Load })
}

// blamed chooses the source location that a finding names if threads invalidate each other's lines
// at several locations. It returns the first location in the file with a store that invalidates
// lines about as often as the worst location.
func (r *run) blamed(at *place, among []*place, of *counts) *place {
	most := 0.0
	for _, other := range among {
		most = max(most, of.falselyAt(other))
	}
	for _, other := range among {
		if other.line > 0 && r.hasStore(other) && of.falselyAt(other) > aboutAsOften*most && (at.line == 0 || of.falselyAt(at) <= aboutAsOften*most || other.file == at.file && other.line < at.line) {
			at = other
		}
	}
	return at
}

// aboutAsOften is the ratio above which two source locations count as equally responsible. The
// finding then names the first location in the file.
const aboutAsOften = 0.7

// falseSharing adds findings about source locations that did not invalidate each other's lines in
// the recorded run, but would do so if the threads ran at the same time.
func (r *run) falseSharing(of *counts, tried *retrial, all float64, covered map[*place]bool) {
	for _, at := range r.byWait() {
		times := of.falselyAt(at)
		if times*r.handOver() < leastWait*r.out.Cycles || covered[at] || 2*times*r.handOver() < at.coherence {
			continue
		}
		if 4*tried.savedAt(at) < times*r.handOver() { // the words belong to different threads in different phases of the run
			continue
		}
		finding := Finding{Kind: FalseSharing, Cost: at.coherence, Tried: true, Before: tried.before, After: tried.after,
			Fix:  "start the data of each thread on a separate line (" + separation(at.file) + "), or accumulate in a local variable and store the result once at the end",
			How:  apartLines + r.apart[0].extended(),
			More: "communication --false-sharing"}
		among := []*place{at}
		for _, other := range r.places {
			same := other.function == at.function || at.data != "" && other.data == at.data
			if own := of.falselyAt(other); other != at && own > 0 && !covered[other] && same {
				covered[other] = true
				among = append(among, other)
				times += own
				finding.Cost += other.coherence
				r.taken[other] = max(r.taken[other], share(other.coherence, other.wait))
			}
		}
		covered[at] = true
		r.taken[at] = max(r.taken[at], share(at.coherence, at.wait))
		finding.Why = "threads store to different words of the same lines; when they run at the same time, they invalidate each other's lines " + report.Count(uint64(times)).Human() + " times"
		finding.Saved = max(0, tried.saved) * share(times, all)
		r.add(r.blamed(at, among, of), finding)
	}
}

// apartLines explains how the saving from removing false sharing was predicted.
const apartLines = "In the recorded references, the words of each thread were moved to separate lines, and the caches of all cores were simulated again with the threads running at the same time."

// copiesSaveAt returns an upper bound on the cycles that a source location saves if each thread has
// its own copy of the words to which several threads store. The bound is the time that the location
// waits for the lines that contain these words.
func (c *counts) copiesSaveAt(at *place) float64 {
	severally, all := 0.0, 0.0
	for _, i := range at.sites {
		severally += c.severally[i]
		all += c.coherence[0][i]
	}
	return at.coherence * share(severally, all)
}

// falselyAt returns the number of accesses of a source location to lines that another core had
// invalidated, and to words to which no other core had stored since.
func (c *counts) falselyAt(at *place) (times float64) {
	if c == nil {
		return 0
	}
	for _, i := range at.sites {
		times += c.falsely[i]
	}
	return times
}

func (r *run) lineShift() uint { return uint(bits.TrailingZeros32(r.p.Sites.LineBytes)) }

// trueSharing adds findings about source locations that wait for words to which other threads
// store.
func (r *run) trueSharing(of *counts) {
	var tried *retrial
	r.queues(of)
	var neighbours []*place // locations that wait for lines only because other words in these lines are shared
	guarded := -1           // index of the finding about data that a lock protects
	for _, at := range r.atomicLast() {
		left := at.coherence - r.taken[at]*at.wait
		if left < leastWait*r.out.Cycles || at.coherence < at.wait/2 {
			continue
		}
		r.taken[at] = max(r.taken[at], share(at.coherence, at.wait))
		f := Finding{Kind: TrueSharing, Cost: left, Saved: left, Least: left / 2, Most: left,
			Why:  "threads store to the same words in turn, so each access must fetch the line from another core",
			Fix:  r.atomicFix(at),
			How:  "The misses caused by another core's stores were counted. At best, all of these misses disappear.",
			More: "communication --by site"}
		shared := r.storesShared(at) || r.replaced(at, of)
		helps := of == nil || of.copiesSaveAt(at) >= left/4 && r.copiesMayHelp(at, of)
		if tried == nil && of != nil && helps {
			tried = r.retryApart(of, true)
		}
		if !shared && helps && tried != nil && tried.savedAt(at) > left/2 { // the location accesses the line of a word that several threads store to
			neighbours = append(neighbours, at)
			continue
		}
		// private copies would not help, because they have to be filled
		if !shared || !helps || tried != nil && tried.savedAt(at) < left/4 {
			f.Saved, f.Least, f.Most = left/uncertaintyDivisor, 0, left
			f.Why = "the code loads data that another thread has stored in the meantime, so each such access fetches the line from another core"
			f.Fix = "let the same thread store and load the data: divide both loops between the threads in the same way, and order the elements so that elements used together belong to one thread"
			f.How = r.untriedHow()
			r.add(at, f)
			continue
		}
		if tried == nil || tried.savedAt(at) <= left/2 {
			if tried != nil {
				f.Saved = min(left, tried.savedAt(at)+r.atomics(at))
				f.Least = min(f.Least, f.Saved)
			}
			r.add(at, f)
			continue
		}
		f.Saved, f.Tried, f.Least, f.Most = tried.savedAt(at)+r.atomics(at), true, 0, 0
		f.Cost += r.atomics(at)
		for _, by := range neighbours {
			f.Saved += tried.savedAt(by)
			f.Cost += by.coherence
		}
		neighbours = nil
		f.Before, f.After = tried.before, tried.after
		f.How = "In the recorded references, each thread was given its own copy of these words, and the caches of all cores were simulated again with the threads running at the same time." + r.apart[1].extended()
		if r.atomicUse(at) != notUsed {
			f.How += " If each thread takes several pieces of work at a time, the saving approaches this value as the number of pieces grows."
		}
		switch mostlyFalse := of.falselyAt(at) > of.lostAt(at)/2; {
		case mostlyFalse && r.isAtomic(at): // every thread may update every word, as in a histogram
			f.Why = "threads update words of the same lines in turn, so each access must fetch the line from another core"
		case mostlyFalse:
			f.Kind = FalseSharing
			f.Why = "threads store to different words of the same lines, so they invalidate each other's lines; the words belong to different threads in different phases of the run"
			f.Fix = "divide the data so that no line belongs to two threads at a time: let each thread work on consecutive elements, in parts of whole lines"
			f.More = "communication --false-sharing"
			r.add(at, f)
			continue
		}
		if guarded >= 0 { // the same fix applies to a lock and to the data that it protects
			g := &r.out.Findings[guarded]
			g.Cost, g.Saved, g.Least, g.Most = g.Cost+f.Cost, g.Saved+f.Saved, g.Least+f.Saved, g.Most+f.Saved
			if at.file == g.File {
				g.also = append(g.also, at.line)
			}
			continue
		}
		if r.add(at, f); !r.isAtomic(at) {
			guarded = len(r.out.Findings) - 1
		}
	}
	for _, at := range neighbours {
		r.add(at, Finding{Kind: FalseSharing, Cost: at.coherence, Saved: tried.savedAt(at), Tried: true, Before: tried.before, After: tried.after,
			Why:  "the lines also contain words that several threads store to, so each access must fetch the line from another core",
			Fix:  "place the words that several threads modify on separate lines (" + separation(at.file) + ")",
			How:  apartLines + r.apart[1].extended(),
			More: "communication --false-sharing"})
	}
}

// isAtomic reports whether a source location performs atomic operations.
func (r *run) isAtomic(at *place) bool {
	p := r.cost.program
	return p != nil && slices.ContainsFunc(at.sites, func(i int) bool {
		number := r.p.Sites.Code[i].Number
		return int64(number) < int64(len(p.Sites)) && p.Sites[number].Flags&trace.AtomicSite != 0
	})
}

// atomicLast returns the source locations in descending order of their waits, except that locations
// with atomic operations come last. Data that several threads store to without atomic operations is
// assumed to be protected by a lock.
func (r *run) atomicLast() []*place {
	var plain, atomic []*place
	for _, at := range r.byWait() {
		if r.isAtomic(at) {
			atomic = append(atomic, at)
		} else {
			plain = append(plain, at)
		}
	}
	return append(plain, atomic...)
}

// queues adds findings about words through which several threads claim work, if one thread did
// nearly all of the work in the recorded run.
func (r *run) queues(of *counts) {
	if of == nil {
		return
	}
	// For the line of each such word, waits contains the sum of the coherence waits of the
	// locations that perform atomic operations on the line. A location may find the line in its
	// cache because the previous atomic operation, on a different word, fetched it.
	waits := map[trace.Line]float64{}
	for _, at := range r.places {
		for line := range r.claimedLines(at, of) {
			waits[line] += at.coherence
		}
	}
	for _, at := range r.places {
		times, waited := 0.0, 0.0
		for line, n := range r.claimedLines(at, of) {
			times += n
			waited += waits[line]
		}
		most := min(times*r.handOver(), r.out.Cycles)
		if most/2 < leastWait*r.out.Cycles || waited > most/4 {
			continue
		}
		fix := takeMore
		if r.atomicUse(at) != isUsed {
			fix = "take several pieces of work at a time, or accumulate in a local variable and add the sum once at the end"
		}
		r.add(at, Finding{Kind: TrueSharing, Cost: at.coherence, Saved: most / 2, Least: at.coherence, Most: most,
			Why:  "several threads perform atomic operations on the same word " + report.Count(uint64(times)).Human() + " times, so the cache line that contains it moves from core to core",
			Fix:  fix,
			How:  "One thread performed nearly all of these operations in this run. The upper bound is the waiting time if the threads always run at the same time.",
			More: "communication --by site"})
	}
}

// claimedLines returns the lines of words on which several threads perform atomic operations at a
// source location. For each line, it returns the number of atomic operations that access the same
// word as the thread's previous atomic operation.
func (r *run) claimedLines(at *place, of *counts) map[trace.Line]float64 {
	lines := map[trace.Line]float64{}
	for _, i := range at.sites {
		line := of.claimed[i].word >> r.lineShift()
		if l := of.lines.find(line); l != nil && l.owner[of.claimed[i].word/wordBytes%words] == several {
			lines[line] += of.claimed[i].times
		}
	}
	return lines
}

// storesShared reports whether a source location stores to the data for which it waits.
func (r *run) storesShared(at *place) bool {
	var loaded []string
	for _, i := range at.sites {
		s := &r.p.Sites.Code[i]
		switch taken := r.cost.coherent(i); {
		case s.Kind == trace.Load && taken:
			loaded = append(loaded, s.Variable)
		case taken:
			return true
		}
	}
	return slices.ContainsFunc(at.sites, func(i int) bool {
		s := &r.p.Sites.Code[i]
		return s.Kind != trace.Load && (s.Variable == "" || slices.Contains(loaded, s.Variable))
	})
}

// replaced reports whether a source location loads a number that other threads have stored, and its
// function replaces this number on a different source line, as in first = next; next = first + 1.
func (r *run) replaced(at *place, of *counts) bool {
	if of == nil || of.copiesSaveAt(at) <= at.coherence/8 {
		return false
	}
	return of.falselyAt(at) < of.lostAt(at)/2 && len(r.replacing(at)) > 0
}

// lostAt returns the number of accesses of a source location to lines that another core had
// invalidated.
func (c *counts) lostAt(at *place) (times float64) {
	for _, i := range at.sites {
		times += c.coherence[0][i]
	}
	return times
}

// copiesMayHelp reports whether private copies of shared words may save waits at a source location.
// A location that only loads the results of other threads needs these results.
func (r *run) copiesMayHelp(at *place, of *counts) bool {
	return !of.exchanges(at) || r.storesShared(at) || r.replaced(at, of)
}

// exchanges reports whether at least half of the lines that a source location fetches from other
// cores contain the results of other threads: it accesses words to which these threads have stored.
func (c *counts) exchanges(at *place) bool {
	exchanged, all := 0.0, 0.0
	for _, i := range at.sites {
		exchanged += c.exchanged[i]
		all += c.coherence[0][i]
	}
	return exchanged >= all/2
}

// replacing returns the stores in the function of a source location to the variables for whose
// lines the location waits.
func (r *run) replacing(at *place) (stores []int) {
	for _, i := range at.sites {
		s := &r.p.Sites.Code[i]
		if s.Kind != trace.Load || s.Variable == "" || !r.cost.coherent(i) {
			continue
		}
		for j := range r.p.Sites.Code {
			by := &r.p.Sites.Code[j]
			if by.Kind == trace.Store && by.Function == s.Function && by.Variable == s.Variable && by.Type == s.Type && !slices.Contains(stores, j) {
				stores = append(stores, j)
			}
		}
	}
	return stores
}

// coherent reports whether a site waits for lines that other cores invalidated.
func (c *costs) coherent(i int) bool {
	return slices.ContainsFunc(c.run.coherence, func(of []float64) bool { return of != nil && of[i] > 0 })
}

// atomics returns the additional cycles of atomic operations at a source location: the cycles of
// the blocks that contain the operations, minus the cycles that the instructions of these blocks
// otherwise need. A private copy needs no atomic operations.
func (r *run) atomics(at *place) (cycles float64) {
	p := r.cost.program
	if p == nil {
		return 0
	}
	seen := map[uint32]bool{}
	for _, i := range at.sites {
		number := r.p.Sites.Code[i].Number
		if int64(number) >= int64(len(p.Sites)) || p.Sites[number].Flags&trace.AtomicSite == 0 {
			continue
		}
		b := p.Sites[number].Block
		if int64(b) >= int64(len(p.Blocks)) || seen[b] {
			continue
		}
		seen[b] = true
		cycles += max(0, r.cost.hits.Blocks[b].Cycles-r.cost.visits[b]*float64(len(p.Blocks[b].Instrs))/plainWidth)
	}
	return cycles
}

// plainWidth is the number of instructions per cycle that a core completes if none of them waits.
const plainWidth = 4

// handOver returns the time that a core waits for a line that another core has: the latency of the
// first level that cores share, or the latency of memory if every level is private.
func (r *run) handOver() float64 {
	for k, level := range r.Machine.Levels {
		if level.SharedBy != 1 && level.SharedBy != 0 && k > 0 {
			return r.cost.latency[k-1]
		}
	}
	return r.cost.latency[len(r.cost.latency)-1]
}

// coherenceWait returns the mean wait for a line that another core invalidated.
func (r *run) coherenceWait() float64 {
	cycles, misses := 0.0, 0.0
	for _, at := range r.places {
		cycles += at.coherence
	}
	for k := range r.cost.levels {
		misses = max(misses, r.cost.levels[k].Coherence)
	}
	return share(cycles, misses)
}

// uses reports whether a source location uses the data to which two sites store, because it
// contains one of these sites or uses the same variable.
func (r *run) uses(at *place, stores [2]uint32) bool {
	for _, i := range at.sites {
		for _, store := range stores {
			if store == profile.NoSite {
				continue
			}
			if name := r.p.Sites.Code[i].Variable; uint32(i) == store || name != "" && name == r.p.Sites.Code[store].Variable {
				return true
			}
		}
	}
	return false
}

// causes adds findings about source locations that no change to a loop improved. The cause of the
// waits determines the kind of a finding.
func (r *run) causes() {
	list := slices.Clone(r.places)
	slices.SortStableFunc(list, func(a, b *place) int { return cmp.Compare(b.wait, a.wait) })
	for _, at := range list {
		left := (at.wait + at.pages) * (1 - r.taken[at])
		if left < leastWait*r.out.Cycles {
			continue
		}
		how := r.untriedHow()
		used := r.utilisation(at)
		f := Finding{Cost: left, How: how}
		switch {
		case at.fills() && at.stores > justFilled*at.wait:
			continue
		case at.dependent > at.wait/2:
			packed := left * (1 - share(used, 1))
			if used == 0 {
				packed = left / 2
			}
			f.Kind = PointerChasing
			f.Least, f.Most = packed/2, left*(1-1/overlapSequence)
			f.Saved = f.Most
			f.Why = chased(r.nextLower(at.level))
			if f.Fix = "allocate the elements from one array in the order in which they are visited, or keep the fields that the loop needs in an array instead of behind pointers"; r.searched[at.function] {
				f.Least, f.Saved = 0, left/uncertaintyDivisor
				f.Fix = "make the data smaller, use fewer dependent loads for each look-up (for example with many keys in each node), or interleave several look-ups"
				f.How = "A different order of the elements was tried and does not help, so the saving is a range. The upper bound is all cycles that the run waits here."
			}
			f.More = "sites --by line"
		case 2*at.crossing > float64(at.references):
			f.Kind = Alignment
			f.Saved = left / 2
			f.Most = left / 2
			f.Why = percent(share(at.crossing, float64(at.references))) + " of the accesses cross a line boundary"
			f.Fix = "align the data to the size of an access"
			f.More = "sites --by line"
		case used > 0 && used <= fewBytes && at.spaced > 0.5 && !r.scattersScalars(at):
			f.Kind = Layout
			f.Saved = left * (1 - used/mostUsed)
			f.Least, f.Most = 0, left*(1-used)
			f.Why = "only " + percent(used) + " of the bytes of each fetched line are used before the line is evicted, because the accesses skip the other bytes"
			f.Fix = "place the data that this loop uses in adjacent memory: split these fields off the structure or make an array of each field; if the loop visits the columns of a table, transpose the table or interchange the loops"
			f.More = "sites --by object --utilisation 48KiB,12"
		case at.irregular > 0.5, used > 0 && used <= fewBytes && at.spaced > 0.5:
			f.Kind = RandomAccess
			f.Saved = left / uncertaintyDivisor
			f.Least, f.Most = 0, left
			f.Why = r.irregularReason(at)
			f.Fix = "make the data smaller, or sort or partition the accesses so that accesses to the same part of the data are close in time"
			if r.prefetches(at) {
				f.How += " The function contains prefetch instructions; the trace does not show whether these lines arrive in time."
			} else {
				f.Fix += "; or prefetch the addresses"
			}
			f.More = "sites --by line"
		case at.never > 0.8*at.wait, r.tried[at] && r.swept[at] < oftenSwept && left > small*r.out.Cycles && r.inOrder(at):
			f.Kind = Streaming
			f.Saved = left / uncertaintyDivisor
			f.Least, f.Most = 0, left
			f.Why = "the lines are accessed in order and replaced before they are used again, so the loop runs at the speed of " + r.nextLower(at.level)
			f.Fix = "use a smaller type, skip data that is not needed, for instance with an index, or do more work on each element while it is in the cache: combine this pass with the previous or the next pass"
			if at.stores > at.wait/4 {
				f.Fix += "; or bypass the caches when storing (" + nonTemporal(at.file) + "), so that the lines are not fetched first, which saves up to " + percent2(share(at.stores*(1-r.taken[at]), r.out.Cycles))
			}
			f.More = "sites --by object"
		case r.tried[at] && r.swept[at] < oftenSwept: // changes were tried, and none helped
			continue
		default:
			evicted, most := r.evicted(at)
			if evicted *= 1 - r.taken[at]; evicted+at.pages < leastWait*r.out.Cycles {
				continue
			}
			level := r.Machine.Levels[most].Name
			f.Kind = Capacity
			f.Most = min(left, evicted+at.pages)
			f.Saved = f.Most / uncertaintyDivisor
			f.Why = "the code returns to the data after " + level + " has evicted it"
			f.Fix = "work on parts of the data that fit in " + level + ": do all steps for one part before starting the next"
			f.More = "curve"
		}
		switch f.Kind {
		case RandomAccess, Streaming, Capacity:
			if at.copies > at.wait/2 {
				f.Fix = at.fewerBytes()
			}
			if at.never > 0.8*at.wait && at.stores < at.wait/4 {
				f.How += " No recorded instruction stored this data. If a system call or a library stored this data shortly before, the data is still in a cache, and the run waits less."
			}
		}
		if covered := r.hidden(at); covered >= leastCovered {
			f.Why += "; a prefetcher hides the latency of " + percent(covered) + " of these misses"
		}
		r.taken[at] = 1
		r.add(at, f)
	}
}

// hidden returns the share of a source location's misses whose cost is reduced because a prefetcher
// hides their latency. At constant strides, the coverage does not change the cost (MODELS §13.5).
func (r *run) hidden(at *place) float64 {
	of, covered, misses := &r.cost.run, 0.0, 0.0
	for _, i := range at.sites {
		n := of.misses[at.level][i]
		misses += n
		if of.scattered[i] {
			covered += n * r.cost.covered[i]
		}
	}
	return share(covered, misses)
}

// leastCovered is the smallest share of misses covered by a prefetcher that a finding states.
const leastCovered = 0.05

// evicted returns the cycles that a source location waits for lines that a cache has evicted since
// their last use, and the level with most of these waits. The other waits are for lines that a core
// accesses for the first time, or that another core invalidated. No cache avoids these waits.
func (r *run) evicted(at *place) (cycles float64, level int) {
	most := 0.0
	for k := range r.cost.levels {
		waits := 0.0
		for _, i := range at.sites {
			fetched := r.cost.run.fetches(i)[k]
			first := r.firstAccesses(i, k)
			if k+1 < len(r.cost.levels) { // these lines come from a lower level
				first -= r.firstAccesses(i, k+1)
			}
			left := fetched - r.cost.run.taken(i, k, fetched) - max(0, first)
			waits += r.cost.site[i][k] * max(0, share(left, fetched))
		}
		if cycles += waits; waits > most {
			most, level = waits, k
		}
	}
	return cycles, level
}

// firstAccesses returns the number of a site's first accesses to lines. In a level that is private
// to a core, the first access of each core to a line counts.
func (r *run) firstAccesses(i, level int) float64 {
	if of := r.p.Sites.Coherent; of != nil && r.Machine.Levels[level].SharedBy <= 1 {
		return float64(of.Code[i].Cold)
	}
	return float64(r.p.Sites.Code[i].Reuse.Cold)
}

// fewerBytes returns the fix for a location that waits in functions that copy or fill memory.
func (at *place) fewerBytes() string {
	if !at.reads {
		return "fill less memory: only the part that is used, or each part shortly before it is used, so that its lines are still in a cache"
	}
	return "copy less: pass a pointer instead, or append to a buffer that grows by doubling, so that the buffer is not copied each time"
}

// irregularReason returns the reason why a source location with irregular addresses waits.
func (r *run) irregularReason(at *place) string {
	if at.never > 0.8*at.wait {
		return "the addresses follow no pattern, and most of the lines are accessed for the first time"
	}
	level, most := at.level, 0.0
	for k := range r.Machine.Levels { // the source line may also access other data in order
		waits := 0.0
		for _, i := range at.sites {
			if s := &r.p.Sites.Code[i]; s.Stride() == profile.IrregularStride {
				first := min(1, share(float64(s.Reuse.Cold), r.cost.run.misses[k][i]))
				waits += (1 - first) * r.cost.site[i][k]
			}
		}
		if waits > most {
			level, most = k, waits
		}
	}
	return "the addresses follow no pattern, and the data is larger than " + r.Machine.Levels[level].Name
}

// inOrder reports whether a source location waits mostly for lines that are accessed in sequential
// order.
func (r *run) inOrder(at *place) bool {
	cycles := 0.0
	for _, i := range at.sites {
		if r.cost.run.overlap[i] >= overlapSequence {
			cycles += sum(r.cost.site[i])
		}
	}
	return cycles > at.wait/2
}

// fills reports whether most waits of a source location are for first accesses to lines, and more
// than half of the waits are in stores.
func (p *place) fills() bool { return p.never > 0.8*p.wait && p.stores > p.wait/2 }

// justFilled is the share of waits in stores above which a source location only fills data, and
// does not copy or convert other data.
const justFilled = 0.98

// prefetches reports whether the function around a source location contains prefetch instructions.
func (r *run) prefetches(at *place) bool {
	p := r.cost.program
	if p == nil {
		return false
	}
	for _, i := range at.sites {
		number := r.p.Sites.Code[i].Number
		if int64(number) >= int64(len(p.Sites)) || int64(p.Sites[number].Block) >= int64(len(p.Blocks)) {
			continue
		}
		f := p.Blocks[p.Sites[number].Block].Function
		if int64(f) >= int64(len(p.Functions)) {
			continue
		}
		in := &p.Functions[f]
		for b := uint64(in.First); b < min(uint64(in.First)+uint64(in.Blocks), uint64(len(p.Blocks))); b++ {
			if slices.ContainsFunc(p.Blocks[b].Instrs, func(x trace.Instr) bool { return x.Opcode == "llvm.prefetch" }) {
				return true
			}
		}
	}
	return false
}

// oftenSwept is the minimum number of runs of a loop that counts as repeated use of the loop's
// data.
const oftenSwept = 3

// If the trace does not show how much of the maximum saving can be achieved, the maximum saving is
// divided by uncertaintyDivisor. Changes that were tried therefore rank first.
const uncertaintyDivisor = 8

// A line is poorly used if at most half of its bytes are used. A good layout uses nearly all bytes.
const (
	fewBytes = 0.5
	mostUsed = 1.0
)

// utilisation returns the share of bytes used in the lines that a source location fetches, in the
// first cache for which it was measured. It returns 0 if utilisation was not measured.
func (r *run) utilisation(at *place) float64 {
	fetched, used := uint64(0), uint64(0)
	for _, i := range at.sites {
		if of := r.p.Sites.Code[i].Reuse.Used; len(of) > 0 {
			fetched += of[0].Fetched
			used += of[0].BytesUsed
		}
	}
	return share(float64(used), float64(fetched)*float64(r.p.Sites.LineBytes))
}

// scattersScalars reports whether most of the unused bytes that a source location fetches belong to
// arrays of scalars at irregular indices. Such an array has no fields that could move to a separate
// array.
func (r *run) scattersScalars(at *place) bool {
	all, scattered := 0.0, 0.0
	for _, i := range at.sites {
		s := &r.p.Sites.Code[i]
		of := s.Reuse.Used
		if len(of) == 0 {
			continue
		}
		unused := float64(of[0].Fetched)*float64(r.p.Sites.LineBytes) - float64(of[0].BytesUsed)
		if all += unused; s.Stride() == profile.IrregularStride && r.isScalar(i) {
			scattered += unused
		}
	}
	return scattered > all/2
}

// isScalar reports whether a site accesses an array of scalars: the site accesses no structure, and
// its addresses differ by the size of an access.
func (r *run) isScalar(i int) bool {
	s, p := &r.p.Sites.Code[i], r.cost.program
	if p == nil || int64(s.Number) >= int64(len(p.Sites)) || p.Sites[s.Number].Structure != 0 || s.Bytes == 0 {
		return false
	}
	of := r.cost.replay
	return of == nil || of.sites[i].grain == uint64(s.Bytes)
}

// percent formats a share for sentences: as a whole percentage, or with one decimal below 10 %.
func percent(of float64) string {
	switch {
	case of > 0 && of < 0.001:
		return "less than 0.1 %"
	case of > 0 && of < 0.0995:
		return number(100*of) + " %"
	}
	return percent2(of)
}

func ratio(part, whole uint64) string { return percent(share(float64(part), float64(whole))) }

// nextLower returns the name of the next lower level, which serves the misses of the given level.
func (r *run) nextLower(level int) string {
	if level+1 < len(r.Machine.Levels) {
		return r.Machine.Levels[level+1].Name
	}
	return "memory"
}

// untriedHow explains how the saving of an untried change was estimated, and whether the run is the
// reason why the change was not tried.
func (r *run) untriedHow() string {
	why := ""
	switch {
	case r.p.State.Partial || r.p.Sampled != nil:
		why = " because the run was not analysed completely,"
	case r.p.Loops != nil && len(r.p.Loops) == 0:
		why = " because the recorded references do not compress into loops,"
	case r.loops == nil:
		why = " because the profile contains no loops, which is also the case if the references are too irregular,"
	case r.tooLong():
		why = " because the run is too long,"
	}
	return "Not tried," + why + " so the saving is a range. The upper bound is all cycles that the run waits here."
}

func bytesOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return report.Count(uint64(n)).Human() + " bytes"
}
