package state

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
)

// Range is a part of a run: the references [From, To). The zero Range is the whole run.
type Range struct{ From, To uint64 }

// String returns the range in the form that URLs and the option --range use, or "" for the whole
// run.
func (r Range) String() string {
	if r.To <= r.From {
		return ""
	}
	return strconv.FormatUint(r.From, 10) + ".." + strconv.FormatUint(r.To, 10)
}

// ParseRange parses the result of [Range.String]. It returns the zero Range if the text is invalid.
func ParseRange(text string) (r Range) {
	from, to, _ := strings.Cut(text, "..")
	if r = (Range{parse(from, 63), parse(to, 63)}); r.To <= r.From {
		return Range{}
	}
	return r
}

// PartNote describes the analysis of a part of a run. PartNote returns "" for a whole run.
func (v *View) PartNote() string {
	list := ask.PartDoubts(v.Profile)
	for i, text := range list {
		list[i] = doubtOf(text)
	}
	return strings.Join(list, " ")
}

// PartName names a part of a run of the given number of references, or of an unknown number if the
// parameter "all" is 0. The parameter "run" is the name of the run, or "".
func PartName(r Range, all uint64, run string) string {
	text := "references " + Exact(r.From) + " to " + Exact(r.To)
	if all > 0 {
		text += " of " + Exact(all)
	}
	if run != "" {
		text += " of " + run
	}
	return text
}

// Timeline is the drawing above the views.
type Timeline struct {
	Title, Summary string
	Sentence       string // describes the chosen range
	References     uint64 // the number of references in the run
	Window, First  uint64 // the number of references in a window, and the index of the first window
	Windows        int
	Cycles         []float64 // estimated memory cycles per access, by window; nil: a latency is unknown
	Levels         []Series  // the share of accesses that miss in each level, by window
	Bands          []Band
	Lanes          []Series // accesses of threads, by window
	Functions      []FunctionLane
	Regions        []RegionBand
	From, To       int // the chosen windows; both 0: the whole run

	doubts string // sentences about marked regions that are not shown one by one, or ""
}

// RegionBand is a region that the program has marked. From and To are numbers of windows.
type RegionBand struct {
	From, To float64
	Row      int // regions with the same thread and depth are in one row
	Number   int // number of the region's name, counted from 1
	Label    string
	Text     string // describes the region in words
}

// FunctionLane contains the misses of a function in the first level, by window.
type FunctionLane struct {
	Label string
	ID    int // of the function in the Code view: see [Code.ID]
	Y     []float64
}

// mostFunctions is the maximum number of functions in a timeline.
const mostFunctions = 5

// mostRegionRows is the maximum number of rows that show regions in a timeline.
const mostRegionRows = 6

// Band is a phase: windows [From, To).
type Band struct {
	From, To, Number int
	Label            string // function with the most accesses
}

// windows returns the range of windows that contain at least a part of the region.
func (b *RegionBand) windows() (from, to int) {
	from = int(b.From)
	return from, max(int(math.Ceil(b.To)), from+1)
}

// Timeline returns the timeline for the levels of a hierarchy; nil if the profile has no timeline.
// The parameter "memory" is the memory latency, or 0 if it is unknown.
func (v *View) Timeline(levels []attribution.Attribution, memory float64) *Timeline {
	line, rank := v.Profile.Timeline, v.Run.Ranker()
	if line == nil || rank == nil || len(line.Windows) == 0 || len(levels) == 0 {
		return nil
	}
	accesses, misses := rank.OverTime(levels)
	t := &Timeline{
		Title: "Timeline", References: v.Profile.Totals.AllReferences(), Window: line.References, First: line.First, Windows: len(line.Windows),
	}
	for n := range levels {
		y := make([]float64, len(accesses))
		for i := range y {
			if accesses[i] > 0 {
				y[i] = misses[n][i] / float64(accesses[i])
			}
		}
		t.Levels = append(t.Levels, Series{Label: levels[n].Level.Cache.Name, Color: LevelColor(n), Y: y})
	}
	t.Cycles = answers.CyclesOverTime(accesses, misses, levels, memory)
	for i := range t.Cycles {
		t.Cycles[i] /= max(float64(accesses[i]), 1)
	}
	for _, p := range rank.Phases() {
		label := ""
		if p.Site >= 0 {
			site := &v.Profile.Sites.Code[p.Site]
			label = cmp.Or(v.Run.FunctionName(site.Function), answers.AddressOf(site))
		}
		t.Bands = append(t.Bands, Band{p.From, p.To, p.Number, label})
	}
	for i, lane := range line.Lanes {
		y := make([]float64, len(lane))
		for w, n := range lane {
			y[w] = float64(n)
		}
		t.Lanes = append(t.Lanes, Series{Label: "thread " + strconv.FormatUint(uint64(v.Profile.Totals.Threads[i]), 10), Y: y})
	}
	t.Functions = v.functionLanes(rank, levels)
	regions, others := v.regionBands()
	t.Regions = regions
	t.Summary = Plural(uint64(len(t.Bands)), "phase", "phases") + " in " + Plural(uint64(t.Windows), "window", "windows") + " of " + Count(float64(t.Window)) + " references."
	if len(t.Regions) > 0 {
		t.Summary += " " + Plural(uint64(len(t.Regions)), "marked region", "marked regions") + "."
	}
	if others > 0 {
		t.doubts = " Not drawn: " + Plural(uint64(others), "marked region", "marked regions") + " of other threads or nesting depths; the command “timeline” lists all regions."
	}
	for _, doubt := range answers.RegionDoubts(v.Profile) {
		t.doubts += " " + doubtOf(doubt)
	}
	t.Summary += t.doubts
	return t
}

// functionLanes returns the functions with the most misses in the first level. There are no lanes if
// only one function has misses.
func (v *View) functionLanes(rank *attribution.Ranker, levels []attribution.Attribution) (lanes []FunctionLane) {
	c, groups := NewCode(v.Run, rank, attribution.Function, levels), make([]int, len(v.Profile.Sites.Code))
	for site := range groups {
		groups[site] = -1
	}
	for i := range c.rows {
		if len(lanes) == mostFunctions || c.rows[i].Misses[0] == 0 {
			break
		}
		for _, site := range c.rows[i].Sites {
			groups[site] = len(lanes)
		}
		lanes = append(lanes, FunctionLane{Label: c.Place(i), ID: c.ID(i)})
	}
	if len(lanes) < 2 {
		return nil
	}
	for i, y := range rank.GroupsOverTime(&levels[0], groups, len(lanes)) {
		lanes[i].Y = y
	}
	return lanes
}

// regionBands returns the marked regions in the first rows, and the number of regions in all other
// rows. Rows are ordered by thread and then by depth.
func (v *View) regionBands() (list []RegionBand, others int) {
	all := v.Profile.Regions
	if all == nil {
		return nil, 0
	}
	type row struct{ thread, depth uint32 }
	var rows []row
	names := map[string]int{}
	for i := range all.List {
		r := &all.List[i]
		if at := (row{r.Thread, r.Depth}); !slices.Contains(rows, at) {
			rows = append(rows, at)
		}
		if names[r.Name] == 0 {
			names[r.Name] = len(names) + 1
		}
	}
	sort.Slice(rows, func(i, j int) bool {
		a, b := rows[i], rows[j]
		return a.thread < b.thread || a.thread == b.thread && a.depth < b.depth
	})
	line := v.Profile.Timeline
	window := func(reference uint64) float64 {
		return float64(reference)/float64(line.References) - float64(line.First)
	}
	for i := range all.List {
		r := &all.List[i]
		band := RegionBand{From: window(r.From), To: window(r.To), Number: names[r.Name], Label: cmp.Or(r.Name, "(no name)"), Row: slices.Index(rows, row{r.Thread, r.Depth})}
		if band.Row >= mostRegionRows {
			others++
			continue
		}
		band.Text = "Region " + band.Label + ": references " + Exact(r.From) + " to " + Exact(r.To) + ", " + Percent(Ratio(r.References(), v.Profile.Totals.AllReferences())) + " of the run"
		if len(v.Profile.Totals.Threads) > 1 {
			band.Text += ", thread " + strconv.FormatUint(uint64(r.Thread), 10)
		}
		if r.Times > 1 {
			band.Text += ", " + Exact(r.Times) + " joined regions with " + Exact(r.Between) + " references between them"
		}
		band.Text += "."
		list = append(list, band)
	}
	return list, others
}

// windowsOf returns the windows of a range. The range must begin and end at borders of windows.
func windowsOf(t *profile.Timeline, r Range) (from, to int, ok bool) {
	if t == nil || r.To <= r.From || len(t.Windows) == 0 {
		return 0, 0, false
	}
	n := uint64(len(t.Windows))
	first := min(max(r.From/t.References, t.First)-t.First, n-1)
	end := min(max((r.To+t.References-1)/t.References, t.First)-t.First, n)
	return int(first), int(max(end, first+1)), true
}

// RangeOf converts the windows [from, to) to a range of references.
func (v *View) RangeOf(from, to int) Range {
	if to <= from || v.Profile.Timeline == nil {
		return Range{}
	}
	first, end := v.Profile.Timeline.Bounds(from, to, v.Profile.Totals.AllReferences())
	return Range{first, end}
}

// Within returns the view of a part of the run. In this view, the curve, and the misses of source
// lines and caches, include only this part. Within returns nil for the whole run, or if the profile
// has no timeline.
func (v *View) Within(r Range) *View {
	from, to, ok := windowsOf(v.Profile.Timeline, r)
	if !ok {
		return nil
	}
	part, ok := v.Run.Part(from, to)
	if !ok {
		return nil
	}
	within := *v
	within.Answers = NewAnswers("", v.Profile)
	within.Answers.Run = v.Run
	within.Part, within.Range, within.Curve = part, v.RangeOf(from, to), part.Ranker().Curve()
	return &within
}

// Choose returns the timeline with the chosen range.
func (t *Timeline) Choose(v *View, r Range) *Timeline {
	chosen := *t
	var ok bool
	if chosen.From, chosen.To, ok = windowsOf(v.Profile.Timeline, r); !ok {
		chosen.From, chosen.To = 0, 0
		if chosen.Sentence = "Drag across the timeline, or click a phase, to see a part of the run."; len(t.Regions) > 0 {
			chosen.Sentence = "Drag across the timeline, or click a phase or a marked region, to see a part of the run."
		}
		if len(t.Lanes) > 1 {
			chosen.Sentence += " Threads that ran at the same time can be drawn one after the other."
		}
		chosen.Sentence += t.doubts
		return &chosen
	}
	r = v.RangeOf(chosen.From, chosen.To)
	chosen.Sentence = "References " + Exact(r.From) + " to " + Exact(r.To) + ": " + Percent(Ratio(r.To-r.From, t.References)) + " of the run."
	for i := range t.Regions {
		if from, to := t.Regions[i].windows(); from == chosen.From && to == chosen.To {
			chosen.Sentence += " Marked region " + t.Regions[i].Label + ", rounded to windows."
			break
		}
	}
	return &chosen
}

// Ranker returns the ranker of the misses in view: of the whole run, or of the chosen range.
func (v *View) Ranker() *attribution.Ranker {
	if v.Part != nil {
		return v.Part.Ranker()
	}
	return v.Run.Ranker()
}

// predict predicts the misses of the whole run, or of the chosen range.
func (v *View) predict(h hierarchy.Hierarchy) (hierarchy.ByCore, []hierarchy.Warning, error) {
	if v.Part == nil {
		return v.Run.Asker().Predict(h, nil)
	}
	levels, warnings, err := v.Part.Ranker().Attribute(h)
	if err != nil {
		return hierarchy.ByCore{}, nil, err
	}
	return hierarchy.ByCore{Prediction: attribution.Predicted(h, levels, v.Range.To-v.Range.From)}, warnings, nil
}

// inRange adds the chosen range to a question if the question's verb accepts a range.
func (v *View) inRange(q ask.Question) ask.Question {
	if v.Part == nil || q.Verb.Arg(ask.Range.Name) == nil {
		return q
	}
	return q.With(ask.Range.Name, v.Range.String())
}

// rangedTabs lists the tabs whose views can be limited to the chosen range.
var rangedTabs = []Tab{TabCode, TabCalls, TabCaches}

// Ranged reports whether the tab's view shows only the chosen range, and not the whole run.
func (t Tab) Ranged() bool { return slices.Contains(rangedTabs, t) }

// RangedCompletely reports whether everything in the tab's view can be limited to the chosen range.
func (t Tab) RangedCompletely() bool { return t.Ranged() && t != TabCode }

// RangeWords returns a sentence that states whether the tab's view shows only the chosen range.
func (t Tab) RangeWords() string {
	switch {
	case t == TabCode:
		return "This view shows only this range. Evictions, exchanges between threads, and executions of LLVM IR blocks are counted over the whole run."
	case t == TabLocality:
		return "The histogram shows only this range. The charts over time show the whole run."
	case t == TabData:
		return "The ranking shows only this range. The members, the map and the memory blocks show the whole run."
	case t.Ranged():
		return "This view shows only this range."
	}
	return "This view shows the whole run. The range filters Code, Calls, Caches, the histogram in Locality, and the ranking in Data."
}
