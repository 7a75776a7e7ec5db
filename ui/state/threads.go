package state

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// Stack is one of the LRU stacks that count a core's accesses (MODELS §6).
type Stack string

// The kinds of stacks.
const (
	PrivateStack Stack = "private" // the stack of one core, which ignores the stores of other cores
	// the stack of one core, in which other cores' stores invalidate lines
	CoherentStack Stack = "coherent"
	SharedStack   Stack = "shared" // the stack of all cores
)

// Stacks returns all stacks.
func Stacks() []Stack { return []Stack{PrivateStack, CoherentStack, SharedStack} }

// Name returns the page's name for the stack.
func (s Stack) Name() string {
	return map[Stack]string{PrivateStack: "private", CoherentStack: "private and coherent", SharedStack: "shared by all"}[s]
}

// stackOf parses a stack from the URL.
func stackOf(text string) Stack {
	if s := Stack(text); s == CoherentStack || s == SharedStack {
		return s
	}
	return ""
}

// Threads is the view of private and shared caches, for the cores of a profile at one line size.
type Threads struct {
	*profile.Sharing
	view  *View
	cores []coreCurves
	// The last chart that was drawn. It usually stays the same while a slider is moved.
	overlaid *Chart
	stack    Stack // the kind of stack that the field "overlaid" shows
}

// coreCurves contains the miss-ratio curves of one core. The coherent curve does not contain
// coherence misses, which occur in a cache of any size. The field "lost" counts coherence misses by
// depth.
type coreCurves struct {
	private, coherent, shared *profile.Curve
	lost                      *profile.Curve // coherence misses, by the depth at which the line was invalidated
}

// Threads returns the view, or nil if the profile has no per-thread stacks for the line size.
func (v *View) Threads() *Threads {
	if v.threads != nil {
		return v.threads
	}
	for i := range v.Profile.Sharing {
		if s := &v.Profile.Sharing[i]; uint64(s.LineBytes) == v.LineBytes && len(s.Domains) > 0 {
			v.threads = newThreads(v, s)
		}
	}
	return v.threads
}

func newThreads(v *View, s *profile.Sharing) *Threads {
	t := &Threads{Sharing: s, view: v, cores: make([]coreCurves, len(s.Cores))}
	for i := range s.Cores {
		c := &t.cores[i]
		c.private, c.coherent, c.lost = v.Run.Asker().Curves(s.LineBytes, i)
		c.shared = v.Run.Asker().MemberCurve(s.LineBytes, 0, i)
	}
	return t
}

// Doubts returns sentences about unknown or misleading facts.
func (t *Threads) Doubts() []string {
	var list []string
	if threads := len(t.view.Profile.Totals.Threads); threads > profile.MaxCores && len(t.Cores) == profile.MaxCores {
		list = append(list, "there are "+Exact(uint64(threads))+" threads, but at most "+strconv.Itoa(profile.MaxCores)+
			" cores; each additional thread shares a core with one of the first threads")
	}
	return t.view.threadDoubts(list, answers.ThreadsOfSample)
}

// CoreName returns the name of a core, which lists its threads, such as "thread 3" or "threads 0,
// 1".
func (t *Threads) CoreName(core int) string {
	threads := t.Cores[core].Threads
	words := make([]string, len(threads))
	for i, n := range threads {
		words[i] = strconv.FormatUint(uint64(n), 10)
	}
	if len(words) == 1 {
		return "thread" + nbsp + words[0]
	}
	if len(words) > 4 {
		return "threads " + strings.Join(words[:3], ", ") + " and " + strconv.Itoa(len(words)-3) + " more"
	}
	return "threads " + strings.Join(words, ", ")
}

// curve returns the miss-ratio curve of a core for one kind of stack.
func (t *Threads) curve(core int, s Stack) *profile.Curve {
	switch s {
	case CoherentStack:
		return t.cores[core].coherent
	case SharedStack:
		return t.cores[core].shared
	}
	return t.cores[core].private
}

const nbsp = "\u00a0"

// MostCores is the maximum number of cores in a chart. The tables list all cores.
const MostCores = 16

// CoreColors lists the colors of cores and threads. In charts, dashes distinguish more curves.
var CoreColors = []string{"level1", "level2", "level3", "memory", "side-a", "side-b"}

func coreSeries(i int, label string, y []float64) Series {
	return Series{Label: label, Color: CoreColors[i%len(CoreColors)], Shape: ShapeStep, Dash: i/len(CoreColors)%2 == 1 || i%2 == 1, Y: y}
}

// Overlaid returns one chart with the curves of all cores for one kind of stack. If the chart has
// not changed, Overlaid returns the same pointer again.
func (t *Threads) Overlaid(s Stack, caches ...uint64) *Chart {
	chart := t.chart("cores", "Miss ratio by thread, "+s.Name(), []Stack{s}, caches)
	if t.overlaid != nil && t.stack == s && t.overlaid.X.Max == chart.X.Max {
		return t.overlaid
	}
	t.overlaid, t.stack = chart, s
	var curves []*profile.Curve
	for i := range min(len(t.Cores), MostCores) {
		curves = append(curves, t.curve(i, s))
	}
	for i, y := range ratios(chart, curves, t.view.LineBytes) {
		chart.Series = append(chart.Series, coreSeries(i, t.CoreName(i), y))
	}
	chart.Summary = t.stackSentence(s)
	if n := len(t.Cores); n > MostCores {
		chart.Summary += " The first " + strconv.Itoa(MostCores) + " of " + strconv.Itoa(n) + " are drawn; the table lists all."
	}
	return chart
}

// CoreChartID returns the id of the small chart of a core.
func CoreChartID(core int) string { return "core-" + strconv.Itoa(core) }

// The method Each returns a small chart with the three curves of the given core.
func (t *Threads) Each(core int, caches ...uint64) *Chart {
	chart := t.chart(CoreChartID(core), t.CoreName(core), Stacks(), caches)
	chart.Small = true
	c := &t.cores[core]
	for i, y := range ratios(chart, []*profile.Curve{c.private, c.coherent, c.shared}, t.view.LineBytes) {
		chart.Series = append(chart.Series, Series{Label: string(Stacks()[i]), Color: LevelColor(i), Shape: ShapeStep, Dash: i == 2, Y: y})
	}
	chart.Summary = t.CoreSentence(core)
	return chart
}

// CoreSentence returns a sentence with the number of coherence misses of a core.
func (t *Threads) CoreSentence(core int) string {
	c := &t.cores[core]
	return Plural(c.private.Accesses, "access", "accesses") + ", of which " + Exact(c.lost.Accesses) + " are coherence misses."
}

// chart returns an empty chart with the axes for the miss-ratio curves of all cores, for the given
// kinds of stacks.
func (t *Threads) chart(id, title string, stacks []Stack, caches []uint64) *Chart {
	line := t.view.LineBytes
	most := float64(max(t.view.FootprintBytes()*2, 64*line))
	for _, bytes := range caches {
		most = max(most, float64(bytes)*1.5)
	}
	chart := &Chart{
		ID: id, Title: title,
		X: Axis{Label: "cache size, fully associative LRU, " + strconv.FormatUint(line, 10) + "-byte lines", Unit: UnitBytes, Log: true, Min: float64(line), Max: most},
		Y: Axis{Label: "share of the thread's accesses that miss", Unit: UnitShare, Max: 1},
	}
	low := 1.0
	for i := range t.cores {
		for _, s := range stacks {
			low = min(low, leastRatio(t.curve(i, s)))
		}
	}
	if low > 0 && low < 0.3 {
		chart.Y.Log, chart.Y.Min = true, math.Pow(10, math.Floor(math.Log10(low)))
	}
	return chart
}

// leastRatio returns the miss ratio of a cache of unlimited size.
func leastRatio(c *profile.Curve) float64 {
	if c == nil || c.Accesses == 0 {
		return 1
	}
	return c.MissRatio(math.MaxUint64)
}

// ratios returns the miss ratios of all curves at the same capacities. There are sixteen capacities
// per power of two; for small caches, every number of lines is a capacity. The table lists every
// step.
func ratios(chart *Chart, curves []*profile.Curve, lineBytes uint64) [][]float64 {
	const each = 16
	last := uint64(0)
	for n := 0; ; n++ {
		lines := uint64(math.Exp2(float64(n) / each))
		if lines <= last {
			continue
		}
		last = lines
		chart.At = append(chart.At, float64(lines*lineBytes))
		if chart.At[len(chart.At)-1] >= chart.X.Max {
			break
		}
	}
	ys := make([][]float64, len(curves))
	for i, c := range curves {
		for _, at := range chart.At {
			y := math.NaN()
			if c != nil && c.Accesses > 0 {
				y = c.MissRatio(uint64(at) / lineBytes)
			}
			ys[i] = append(ys[i], y)
		}
	}
	return ys
}

func (t *Threads) stackSentence(s Stack) string {
	switch s {
	case CoherentStack:
		var lost, accesses uint64
		for i := range t.cores {
			lost += t.cores[i].lost.Accesses
			accesses += t.cores[i].coherent.Accesses
		}
		return "Each thread has its own cache, and another thread's store invalidates the line. " + Exact(lost) +
			" accesses (" + Percent(Ratio(lost, accesses)) + ") are coherence misses: another thread had invalidated the line. No cache size avoids these misses."
	case SharedStack:
		return "All threads share one cache. Each curve shows the accesses of one thread to this cache."
	}
	return "Each thread has its own cache, as if no other thread stored to its lines."
}

// CurvesTable lists every core's misses for cache sizes that are powers of two. Exports list every
// size at which the misses change.
func (t *Threads) CurvesTable() *Table {
	return t.view.cachedTable("curves of threads", func() *Table {
		q := t.view.question("threads").With("curve", "true")
		brief := q
		brief.Brief = true
		return t.view.table("Misses by thread and cache size, fully associative LRU", brief, nil,
			"threads", "view", "capacity_lines", "misses").setDocument(t.view.document(q))
	})
}

// levelQuestion returns a question for "stackglass threads" about a hierarchy with a single fully
// associative level.
func (t *Threads) levelQuestion(by string, bytes uint64, sharedBy uint32) ask.Question {
	q := t.view.question("threads").With("by", by)
	q.Machine.Levels = []hierarchy.Cache{t.level(bytes, sharedBy)}
	return q
}

func (t *Threads) level(bytes uint64, sharedBy uint32) hierarchy.Cache {
	name := "L1"
	if sharedBy > 1 {
		name = "L2"
	}
	return hierarchy.Cache{Name: name, SizeBytes: bytes, LineBytes: t.LineBytes, SharedBy: sharedBy}
}

// OwnTable lists the misses of every core by cause, for private caches of the given size.
func (t *Threads) OwnTable(bytes uint64) *Table {
	return t.view.cachedTable("own "+strconv.FormatUint(bytes, 10), func() *Table {
		return t.view.table("Misses of each thread in its own cache of "+Bytes(bytes), t.levelQuestion("core", bytes, 0), nil,
			"threads", "accesses", "misses", "cold", "capacity", "coherence", "private_misses", "invalidations")
	})
}

// OwnSentence returns a sentence with the share of coherence misses among the misses of private
// caches.
func (t *Threads) OwnSentence(bytes uint64) string {
	own := t.OwnTable(bytes).Source()
	accesses, misses, coherence := sum(own, "accesses"), sum(own, "misses"), sum(own, "coherence")
	text := "With " + Bytes(bytes) + " for each thread, " + Exact(misses) + " accesses miss (" + Percent(Ratio(misses, accesses)) + "); "
	if coherence == 0 {
		return text + "stores by other threads cause none of these misses."
	}
	return text + "stores by other threads cause " + Exact(coherence) + " of these misses (" + Percent(Ratio(coherence, misses)) + ")."
}

// sum adds up the numbers of a column.
func sum(t *report.Table, key string) uint64 {
	all := 0.
	for i := range t.Rows {
		x, _ := cell(t, i, key).Number()
		all += x
	}
	return uint64(all + 0.5)
}

// Groups contains the group number of each core. The cores of a group share a cache. Groups are
// numbered from 0 in the order of their first cores.
type Groups []int

// OneGroup returns one group of all cores.
func OneGroup(cores int) Groups { return make(Groups, cores) }

// ParseGroups parses the output of String for the given number of cores. Any other text means one
// group.
func ParseGroups(text string, cores int) Groups {
	g := make(Groups, 0, cores)
	for _, word := range strings.Split(text, "-") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 || n >= cores {
			return OneGroup(cores)
		}
		g = append(g, n)
	}
	if len(g) != cores {
		return OneGroup(cores)
	}
	return g.renumber()
}

// String returns the groups in the form that URLs use, or "" if there is only one group.
func (g Groups) String() string {
	words := make([]string, len(g))
	one := true
	for i, n := range g {
		one = one && n == 0
		words[i] = strconv.Itoa(n)
	}
	if one {
		return ""
	}
	return strings.Join(words, "-")
}

// renumber returns the groups with new numbers, in the order of their first cores.
func (g Groups) renumber() Groups {
	to := map[int]int{}
	out := make(Groups, len(g))
	for i, n := range g {
		if _, ok := to[n]; !ok {
			to[n] = len(to)
		}
		out[i] = to[n]
	}
	return out
}

// Count returns the number of groups.
func (g Groups) Count() int {
	most := -1
	for _, n := range g {
		most = max(most, n)
	}
	return most + 1
}

// Move moves a core to a group, which may be a new group.
func (g Groups) Move(core, group int) Groups {
	if core < 0 || core >= len(g) {
		return g
	}
	out := slices.Clone(g)
	out[core] = min(group, g.Count())
	return out.renumber()
}

// members returns the cores of each group.
func (g Groups) members() [][]uint32 {
	list := make([][]uint32, g.Count())
	for core, n := range g {
		list[n] = append(list[n], uint32(core))
	}
	return list
}

// Domains returns the threads of each group of several cores, for an analysis of the caches that
// they share.
func (t *Threads) Domains(g Groups) (domains [][]uint32) {
	for _, cores := range g.members() {
		if len(cores) < 2 || len(cores) == len(t.Cores) {
			continue
		}
		var threads []uint32
		for _, c := range cores {
			threads = append(threads, t.Cores[c].Threads...)
		}
		sort.Slice(threads, func(i, j int) bool { return threads[i] < threads[j] })
		domains = append(domains, threads)
	}
	return domains
}

// Known reports whether the profile has a stack for each group.
func (t *Threads) Known(g Groups) bool {
	return !slices.ContainsFunc(g.members(), func(cores []uint32) bool {
		return len(cores) > 1 && !slices.ContainsFunc(t.Sharing.Domains, func(d profile.Domain) bool { return slices.Equal(d.Cores, cores) })
	})
}

// unknownGroups is the message for groups of threads for which the profile has no stacks.
const unknownGroups = "This analysis does not cover these groups of threads: analyse the trace again with these groups."

// SharedTable lists the misses in shared caches by thread.
func (t *Threads) SharedTable(g Groups, bytes uint64) *Table {
	return t.view.cachedTable("shared "+strconv.FormatUint(bytes, 10)+" "+g.String(), func() *Table {
		most := 1
		for _, cores := range g.members() {
			most = max(most, len(cores))
		}
		level := t.level(bytes, uint32(most))
		for _, cores := range g.members() {
			together := []uint32{cores[0]}
			if domain := t.view.Run.Asker().Domain(level, int(cores[0])); domain >= 0 {
				together = t.Sharing.Domains[domain].Cores
			}
			if !slices.Equal(cores, together) {
				return &Table{Caption: unknownGroups}
			}
		}
		return t.view.table("Misses in shared caches of "+Bytes(bytes), t.levelQuestion("domain", bytes, uint32(most)), nil,
			"cores", "threads", "accesses", "misses", "alone_misses", "share_bytes")
	})
}

// SharedSentence states the number of misses that a shared cache causes or avoids.
func (t *Threads) SharedSentence(g Groups, bytes uint64) string {
	table, key, alone := t.SharedTable(g, bytes).Source(), "misses", "alone_misses"
	if g.Count() == len(g) { // no two cores share a cache
		table, key, alone = t.OwnTable(bytes).Source(), "private_misses", "private_misses"
	}
	if table == nil {
		return unknownGroups
	}
	misses, own := sum(table, key), sum(table, alone)
	text := "In shared caches of " + Bytes(bytes) + ", the threads miss " + Exact(misses) + " times (" + Percent(Ratio(misses, sum(table, "accesses"))) + "); "
	switch {
	case misses < own:
		return text + "with a cache of that size for each thread, there would be " + Exact(own-misses) + " more misses: threads fetch lines for each other."
	case misses > own:
		return text + "with a cache of that size for each thread, there would be " + Exact(misses-own) + " fewer misses: threads evict each other's lines."
	}
	return text + "with a cache of that size for each thread, the number of misses would be the same."
}

// ChangeTable lists the reasons why stack distances differ between the stack of all cores and
// private stacks.
func (t *Threads) ChangeTable() *Table {
	return t.view.cachedTable("change", func() *Table {
		caption := "How stack distances change when threads share a cache"
		if answers.IsOfSample(t.view.Profile) {
			return &Table{Caption: caption + ": a sample of lines does not show this"}
		}
		return t.view.table(caption, t.view.question("threads").With("by", "change"), nil,
			"cores", "threads", "same", "dilated", "overlapped", "intercepted", "brought")
	})
}

// AbsentThreads returns a text about the threads that are in the groups of the settings but not in
// the trace, or "" if there are none.
func AbsentThreads(p *profile.Profile, cores [][]uint32) string {
	text := ""
	for _, doubt := range answers.AbsentThreads(p, cores) {
		text += " Threads that share a private cache, " + doubt + "."
	}
	return strings.TrimSpace(text)
}

// missingThreads returns the reason why a profile has no per-thread data.
func missingThreads(p *profile.Profile) string {
	switch {
	case len(p.Sharing) > 0 || Predictable(p):
		return ""
	case len(p.Totals.Threads) > 1:
		return "This analysis used a single LRU stack for all " + Plural(uint64(len(p.Totals.Threads)), "thread", "threads") +
			" of the trace: it was made by an early version, “sharing” was not among the requested analyses, or the lines did not fit in memory. Analyse the trace again, with a higher memory limit or as a sample (space=0.01)."
	}
	return "This trace has only one thread, or does not record which thread made each reference, so no cache is shared. All results of this trace are in Diagnosis, Caches and Code. " +
		"Traces of multithreaded programs that were compiled with “stackglass cc” record threads. Traces of gem5 and drmemtrace, and CSV traces with a thread column, also record threads. Drop such a trace here, or try the demos with several threads."
}
