package state

import (
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/blocks"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/trace"
)

// MostPredicted is the maximum number of cores among which work can be divided.
const MostPredicted = 64

// PredictedCores returns the numbers of cores for which the curves have points.
func PredictedCores() []int { return []int{1, 2, 4, 8, 16, 32, 64} }

// parallel stores whether the program of the last profile has parallel regions, because every
// render needs this information.
var parallel struct {
	sync.Mutex
	of  *profile.Profile
	yes bool
}

// Predictable reports whether a run on several cores can be predicted from the profile p. The
// profiled run must have one thread, and the program must have a parallel region.
func Predictable(p *profile.Profile) bool {
	if len(p.Totals.Threads) > 1 || len(p.Sharing) > 0 || len(p.Blocks) == 0 || p.Totals.AllReferences() == 0 {
		return false
	}
	parallel.Lock()
	defer parallel.Unlock()
	if parallel.of != p {
		run, err := blocks.DecodeRun(p.Blocks)
		parallel.of = p
		parallel.yes = err == nil && slices.ContainsFunc(run.Program.Sites, func(s trace.Site) bool { return s.Kind == trace.ParallelBegin })
	}
	return parallel.yes
}

// Schedules returns the loop schedules that can override the program's schedules.
func Schedules() []Choice {
	return []Choice{{Title: "as in the program"}, {Name: "static", Title: "static"}, {Name: "dynamic", Title: "dynamic"}, {Name: "guided", Title: "guided"}}
}

// Interleavings returns the ways to interleave the cores' references. If "timed" is set, the run
// times of blocks are known, so the references can also be interleaved by the clocks of the cores.
func Interleavings(timed bool) []Choice {
	list := []Choice{{Title: "in turn, one reference each"}, {Name: "uniform", Title: "at random"}, {Name: "block", Title: "in turn, one block each"}}
	if timed {
		list = append(list, Choice{Name: "time", Title: "by the cores' clocks"})
	}
	return list
}

// Models returns the inputs that the stack distance cache model can use.
func Models() []Choice {
	return []Choice{{Title: "a few lines"}, {Name: "windows", Title: "1 % of windows"}, {Name: "windows-10", Title: "10 % of windows"}, {Name: "all", Title: "all accesses"}, {Name: "none", Title: "nothing"}}
}

// ModelWords returns the arguments of the command for a choice from Models.
func ModelWords(name string) string {
	if percent, found := strings.CutPrefix(name, "windows-"); found {
		return "windows,rate=" + percent + "e-2"
	}
	return name
}

// CoresQuestion returns the question that the page asks to predict several cores. The caches are
// the caches of h. The caller adds the trace and the numbers of cores.
func (s Screen) CoresQuestion(h hierarchy.Hierarchy) answers.MulticoreQuestion {
	q := answers.MulticoreQuestion{Division: s.Division, Schedule: s.Schedule, Interleave: s.Interleave,
		Machine: h.Lines(), Processor: "default", SDCM: ModelWords(s.Model)}
	switch {
	case s.Division != "":
		// If block executions are divided among threads, the waiting times are unknown, so times cannot be predicted.
		q.Processor = ""
	case s.Processor != "":
		q.Processor = s.Processor
	}
	return q
}

// Divisions returns the ways to divide the work of a region.
func Divisions() []Choice {
	return []Choice{{Title: "iterations"}, {Name: "region", Title: "blocks, by region"}, {Name: "printed", Title: "blocks, as printed"}}
}

// Cores contains the predictions so far.
type Cores struct {
	answers.Reply // the answers so far, for all numbers of cores
	asked         answers.MulticoreQuestion
	known         []int
}

// Ask sets the question. Only the numbers of cores may differ from the previous question, because
// the existing answers must remain valid.
func (c *Cores) Ask(q answers.MulticoreQuestion) { c.asked = q }

// Take adds a reply, which answers the question for one or more numbers of cores.
func (c *Cores) Take(r *answers.Reply) {
	of := func(row []report.Value) int { x, _ := row[0].Number(); return int(x) }
	about := map[int]bool{}
	if t := r.Table("rates"); t != nil {
		for _, row := range t.Rows {
			about[of(row)] = true
		}
	}
	for n := range about {
		if !slices.Contains(c.known, n) {
			c.known = append(c.known, n)
		}
	}
	sort.Slice(c.known, func(i, j int) bool { return c.known[i] < c.known[j] })
	for _, t := range r.Tables {
		mine := c.Table(t.Key)
		switch {
		case mine == nil:
			c.Tables = append(c.Tables, t)
			continue
		case t.Index("cores") != 0:
			*mine = t
			continue
		}
		rows := slices.DeleteFunc(slices.Clone(mine.Rows), func(row []report.Value) bool { return about[of(row)] })
		rows = append(rows, t.Rows...)
		sort.SliceStable(rows, func(i, j int) bool { return of(rows[i]) < of(rows[j]) })
		*mine = t
		mine.Rows = rows
	}
	c.Notes = answers.CoresNotes(c.Table("notes"), len(c.known))
	c.Unmodelled, c.Problem = r.Unmodelled, r.Problem
}

// Known reports whether the answer for a number of cores is known.
func (c *Cores) Known(cores int) bool { return slices.Contains(c.known, cores) }

// The method Some reports whether there is an answer for any number of cores.
func (c *Cores) Some() bool { return len(c.known) > 0 }

// overCores draws series against the number of cores, with a point for each number of cores that
// has an answer.
func (c *Cores) overCores(chart *Chart, series []answers.Series, label func(answers.Series) string) *Chart {
	chart.How, chart.X = "predicted", Axis{Label: "cores", Unit: UnitCores, Log: true, Min: 1, Max: 2}
	for _, n := range c.known {
		chart.X.Max = max(chart.X.Max, float64(n))
		chart.At = append(chart.At, float64(n))
	}
	colors := map[string]int{}
	for _, s := range series {
		level, seen := colors[s.Name]
		if !seen {
			level = len(colors)
			colors[s.Name] = level
		}
		drawn := Series{Label: label(s), Color: LevelColor(level), Shape: ShapeLine, Dash: isModel(s.Method), Y: c.blank()}
		low, high, bounded := c.blank(), c.blank(), false
		for _, p := range s.Points {
			at := slices.Index(c.known, p.Cores)
			if at < 0 {
				continue
			}
			if drawn.Y[at] = p.Value; p.Bounded {
				bounded, low[at], high[at] = true, p.Low, p.High
			}
		}
		if bounded {
			chart.How, drawn.Low, drawn.High = "predicted, SDCM sampled", low, high
		}
		chart.Series = append(chart.Series, drawn)
	}
	return chart
}

// isModel reports whether a method is SDCM (for all accesses or for a sample) and not simulation.
func isModel(method string) bool { return strings.HasSuffix(method, "sdcm") }

func (c *Cores) blank() []float64 {
	y := make([]float64, len(c.known))
	for i := range y {
		y[i] = math.NaN()
	}
	return y
}

// RatesChart shows the hit ratio of each level against the number of cores. The parameter "chosen" is
// the selected number of cores.
func (c *Cores) RatesChart(chosen int) *Chart {
	chart := &Chart{ID: "rates", Title: "Hit ratios over cores", Y: Axis{Label: "share of accesses that hit in this level or a level above", Unit: UnitShare, Max: 1}}
	c.overCores(chart, c.Rates("global_rate"), func(s answers.Series) string {
		switch {
		case s.Method == string(hierarchy.WindowedSDCM):
			return s.Name + ", windows"
		case isModel(s.Method):
			return s.Name + ", SDCM"
		}
		return s.Name
	})
	chart.Y.Min = axisFloor(chart.Series)
	chart.Summary = c.RatesSentence(chosen)
	return chart
}

// axisFloor returns the lower end of an axis of shares. The lower end is chosen so that shares near
// 1 can be distinguished.
func axisFloor(series []Series) float64 {
	least := 1.0
	for _, s := range series {
		for _, list := range [][]float64{s.Y, s.Low} {
			for _, y := range list {
				if y < least {
					least = y
				}
			}
		}
	}
	for _, f := range []float64{0.99, 0.9, 0.5} {
		if least > f {
			return f
		}
	}
	return 0
}

// RatesSentence describes the predicted hit ratios for a number of cores.
func (c *Cores) RatesSentence(cores int) string {
	if !c.Known(cores) {
		return ""
	}
	text := ""
	for _, s := range c.Rates("global_rate") {
		if isModel(s.Method) {
			continue
		}
		for _, p := range s.Points {
			if p.Cores == cores {
				if text != "" {
					text += ", "
				}
				text += s.Name + " " + Percent(1-p.Value)
			}
		}
	}
	return "Misses with " + Plural(uint64(cores), "core", "cores") + ", as shares of all accesses: " + text + "."
}

// SampledSentence describes the sample from which the model's estimates for a number of cores were
// computed; "": there is no sample.
func (c *Cores) SampledSentence(cores int) string {
	t := c.Table("sampling")
	if t == nil {
		return ""
	}
	for i := range t.Rows {
		if int(numberIn(t, i, "cores")) != cores {
			continue
		}
		text := "For " + cellText(t, i, "level") + ", SDCM uses " + cell(t, i, "accesses").Shown(words) + " of " + cell(t, i, "of").Shown(words) + " accesses: all accesses "
		if lines := cell(t, i, "lines"); !report.Equal(lines, report.None()) {
			text += "to " + lines.Shown(words) + " lines"
		} else {
			text += "in " + cell(t, i, "windows").Shown(words) + " of " + cell(t, i, "executions").Shown(words) + " block executions"
		}
		return text + ". Bands and ± are 95 % confidence intervals."
	}
	return ""
}

// SpeedUpChart shows the speed-up against the number of cores, or returns nil if it is unknown.
func (c *Cores) SpeedUpChart(chosen int) *Chart {
	s := c.SpeedUps("speedup")
	if len(s.Points) == 0 {
		return nil
	}
	chart := &Chart{ID: "speedup", Title: "Speed-up over cores", Y: Axis{Label: "times as fast as one core", Unit: UnitTimes, Log: true, Min: 1}}
	c.overCores(chart, []answers.Series{s}, func(answers.Series) string { return "speed-up" })
	for _, y := range chart.Series[0].Y {
		for y > 0 && y < chart.Y.Min { // several cores may be slower than one core
			chart.Y.Min /= 2
		}
	}
	ideal := Series{Label: "ideal", Color: "dim", Shape: ShapeLine, Dash: true}
	for _, n := range c.known {
		ideal.Y = append(ideal.Y, float64(n))
		chart.Y.Max = max(chart.Y.Max, float64(n))
	}
	chart.Series = append(chart.Series, ideal)
	chart.Summary = c.SpeedUpSentence(chosen)
	return chart
}

// SpeedUpSentence describes the speed-up on a number of cores, and the largest loss of time on
// these cores.
func (c *Cores) SpeedUpSentence(cores int) string {
	t := c.Table("speedup")
	if t == nil {
		return ""
	}
	for i := range t.Rows {
		if int(numberIn(t, i, "cores")) != cores {
			continue
		}
		text := Plural(uint64(cores), "core is", "cores are") + " " + strconv.FormatFloat(numberIn(t, i, "speedup"), 'f', 2, 64) + " times as fast as one"
		switch limit := cellText(t, i, "limit"); {
		case cores == 1:
			return text + "."
		case limit == "none":
			return text + ": less than 5 % of their time is lost."
		default:
			return text + "; the largest loss is " + limit + "."
		}
	}
	return ""
}

// rateColumns lists the columns of the table of hit ratios. The columns "low" and "high" are shown
// only if the intervals are not symmetric.
var rateColumns = []string{"cores", "level", "method", "misses", "global_rate", "global_off", "local_rate", "mean_rate", "mean_off", "low", "high", "accesses", "hits", "coherence_misses", "caches"}

// PredictedTable returns a table of the prediction for a number of cores, or for all numbers if
// cores is 0. PredictedTable returns nil if there is no such table.
func (c *Cores) PredictedTable(key string, cores int, title string) *Table {
	whole := c.Table(key)
	if whole == nil {
		return nil
	}
	brief := answers.WithoutEmpty(*whole)
	var keys []string
	where := map[string]string{}
	for _, column := range brief.Columns {
		keys = append(keys, column.Key)
	}
	if key == "rates" {
		keys = slices.Clone(rateColumns)
		if brief.Index("global_off") >= 0 {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key == "low" || key == "high" })
		}
	}
	if cores > 0 {
		where["cores"], keys = strconv.Itoa(cores), slices.DeleteFunc(keys, func(key string) bool { return key == "cores" })
	}
	t := show(&brief, words, where, keys...)
	if t.Rows == 0 && cores > 0 {
		return nil
	}
	t.Caption = title
	return t.setDocument(c.document(key))
}

// document returns the document that the command prints for the table with the given key.
func (c *Cores) document(key string) func() *report.Document {
	return func() *report.Document {
		d, q, by := &report.Document{Schema: "stackglass.multicore", Version: 1}, c.asked, key
		if key == "rates" || key == "speedup" {
			by = ""
		}
		if q.Processor != "" {
			_, q.Processor = Options(c.Table("processors"))
		}
		(&ask.Run{Name: q.Name}).Predicted(q, by, &c.Reply, d)
		return d
	}
}

// Options lists the options in a table of an answer, such as processors, and also returns the chosen
// option.
func Options(t *report.Table) (list []Choice, chosen string) {
	if t == nil {
		return nil, ""
	}
	for i := range t.Rows {
		name := cellText(t, i, "name")
		list = append(list, Choice{Name: name, Title: cellText(t, i, "title")})
		if cellText(t, i, "chosen") == "true" {
			chosen = name
		}
	}
	return list, chosen
}
