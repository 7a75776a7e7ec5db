package state

import (
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// These values of Screen.Calls are the directions in which call paths are shown.
const (
	CallsDown     = ""         // from callers to callees
	CallsUp       = "callers"  // from callees to callers
	CallsFunction = "function" // the trees of one function's callers and of its callees
)

// CallDirections returns the directions in which call paths can be shown.
func CallDirections() []Choice {
	return []Choice{{Name: CallsDown, Title: "Top-down"}, {Name: CallsUp, Title: "Bottom-up"}, {Name: CallsFunction, Title: "One function"}}
}

// CallsQuestion returns a question about the call paths of a run. For [CallsFunction], the
// parameter "function" is the key of the function whose callers and callees are shown. Paths are
// weighted by the given event, or by the misses of the first level if event is "". If r is a part
// of the run, only the events in this part are counted. Events that are known only for the whole
// run are then replaced by misses.
func CallsQuestion(h hierarchy.Hierarchy, direction, function, event string, r Range) answers.Question {
	var args []string
	switch direction {
	case CallsUp:
		args = []string{"by=caller"}
	case CallsFunction:
		args = []string{"function=" + function}
	}
	if text := r.String(); text != "" {
		args = append(args, "range="+text)
		if event == "instructions" || event == "references" || event == "bytes" {
			event = ""
		}
	}
	if event != "" {
		args = append(args, "event="+event)
	}
	return VerbQuestion("calls", h, args...)
}

func missingCalls(p *profile.Profile) string {
	switch {
	case p.Calls != nil:
		return ""
	case p.Sites == nil:
		return missingSites(p)
	}
	return "This analysis does not record calls. Programs that are compiled with “stackglass cc” record calls. Calls are counted for whole traces, not for samples."
}

// Calls is the answer of "stackglass calls".
type Calls struct {
	Trees  []*CallTree // one tree, or the tree of a function's callers and the tree of its callees
	Events []Choice    // the events by which the trees can be weighted
	Event  string      // the key of the event by which the trees are weighted
	Label  string      // the event's name on the page
	Total  float64     // the event's count in the whole run

	reply  *answers.Reply
	paths  []profile.Path
	colors map[string]int // indices of the files' colours, counted from 1
}

// CallTree is a tree of calls, weighted by an event. Parents precede their children, and children
// of one parent are in descending order of their weight.
type CallTree struct {
	ID    string // "paths", "callers" or "callees"
	Title string
	Up    bool // whether the child rows of a function are its callers

	Names     []string
	Parents   []int // -1: none
	Depths    []int
	Self, All []float64 // counts of the event, without and with callees
	Weights   []float64 // either Self or All, so that the weight of a row includes the weights of its child rows

	calls *Calls
	table *report.Table
}

// NewCalls reads an answer about a profile. Colours are assigned to files in the order of the
// profile, so a file has the same colour in every tree.
func NewCalls(p *profile.Profile, reply *answers.Reply) *Calls {
	c := &Calls{reply: reply, paths: p.Calls.Paths, colors: map[string]int{}}
	for i := range c.paths {
		if file := c.paths[i].File; file != "" && c.colors[file] == 0 {
			c.colors[file] = len(c.colors) + 1
		}
	}
	one := reply.Table("callees") != nil
	for _, key := range []string{"paths", "callers", "callees"} {
		t := reply.Table(key)
		if t == nil {
			continue
		}
		for i := range t.Columns {
			if event, is := strings.CutSuffix(t.Columns[i].Key, "_share"); is {
				c.Event = event
			}
		}
		c.Trees = append(c.Trees, c.tree(t, !one && key == "callers"))
	}
	if totals := reply.Table("totals"); totals != nil {
		for i := range totals.Columns {
			of := &totals.Columns[i]
			if c.Events = append(c.Events, Choice{Name: of.Key, Title: upper(of.Label)}); of.Key == c.Event {
				c.Label, c.Total = of.Label, number(totals.Rows[0][i])
			}
		}
	}
	return c
}

// tree converts a table to a tree. If the parameter bySelf is set, rows are weighted by their
// counts without callees.
func (c *Calls) tree(table *report.Table, bySelf bool) *CallTree {
	t := &CallTree{ID: table.Key, Up: table.Key == "callers", calls: c, table: table}
	t.Title, _, _ = strings.Cut(table.Title, ", with ")
	name, depth, self, all := table.Index("function"), table.Index("depth"), table.Index(c.Event), table.Index(c.Event+"_inclusive")
	var open []int // for each depth: the latest row at this depth
	for i, row := range table.Rows {
		d := min(int(number(row[depth])), len(open))
		if open = append(open[:d], i); d == 0 {
			t.Parents = append(t.Parents, -1)
		} else {
			t.Parents = append(t.Parents, open[d-1])
		}
		t.Names = append(t.Names, strings.TrimLeft(row[name].Plain(), " "))
		t.Depths, t.Self, t.All = append(t.Depths, d), append(t.Self, number(row[self])), append(t.All, number(row[all]))
	}
	if t.Weights = t.All; bySelf {
		t.Weights = t.Self
	}
	return t
}

// path returns the first call path of a row's function; 0 if the row represents several functions.
func (t *CallTree) path(row int) int {
	at := int(numberIn(t.table, row, "number"))
	for n := t.Depths[row]; t.Up && n > 0; n-- {
		at = int(t.calls.paths[at].Parent)
	}
	if t.Names[row] == answers.FurtherCallers {
		return 0
	}
	return at
}

// Root returns the number of a call path that identifies a row's function in the URL, or 0.
func (t *CallTree) Root(row int) int {
	at := t.path(row)
	for i := range t.calls.paths[:at] {
		if key := CallKey(t.calls.paths, i); i > 0 && key == CallKey(t.calls.paths, at) {
			return i
		}
	}
	return at
}

// CallKey returns the name by which "stackglass calls --function" identifies the function of a
// path.
func CallKey(paths []profile.Path, at int) string {
	return answers.FunctionKey(paths[at].Function, paths[at].File, uint64(paths[at].Line))
}

// Site returns the first site of a row's function, which identifies the function in the Code view.
// Site returns -1 if the function makes no references.
func (t *CallTree) Site(p *profile.Profile, row int) int {
	of, site := &t.calls.paths[t.path(row)], -1
	for i := range p.Sites.Code {
		at := &p.Sites.Code[i]
		if at.Function == of.Function && (site < 0 || at.File == of.File && p.Sites.Code[site].File != of.File) {
			site = i
		}
	}
	return site
}

// Frame returns the name that identifies a row in the URL. The name depends on neither the
// hierarchy nor the event.
func (t *CallTree) Frame(row int) string {
	if row < 0 {
		return ""
	}
	text := cellText(t.table, row, "number") + "-" + strconv.Itoa(t.Depths[row])
	if t.Up && len(t.calls.Trees) > 1 {
		text = "up-" + text
	}
	return text
}

// Find returns the row that a name in the URL identifies, and the tree that contains this row. Find
// returns nil and -1 if there is no such row.
func (c *Calls) Find(frame string) (*CallTree, int) {
	for _, t := range c.Trees {
		for i := range t.Names {
			if frame != "" && t.Frame(i) == frame {
				return t, i
			}
		}
	}
	return nil, -1
}

// Tree returns the tree with an ID, or nil.
func (c *Calls) Tree(id string) *CallTree {
	for _, t := range c.Trees {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Stack returns a row and its ancestors, beginning with the root.
func (t *CallTree) Stack(row int) (rows []int) {
	for ; row >= 0; row = t.Parents[row] {
		rows = append(rows, row)
	}
	slices.Reverse(rows)
	return rows
}

// Hottest returns the row with the largest exclusive count; -1 if there are no rows.
func (t *CallTree) Hottest() (best int) {
	best = -1
	for i, n := range t.Self {
		if best < 0 || n > t.Self[best] {
			best = i
		}
	}
	return best
}

// matches reports for each row whether its function or file contains the search words; the list is
// nil if there are no search words. It also returns the number of matching rows, and their share of
// the tree's weight. A matching row below another matching row adds nothing to this share.
func (t *CallTree) matches(search string) (list []bool, rows uint64, share float64) {
	words := strings.Fields(strings.ToLower(search))
	if len(words) == 0 {
		return nil, 0, 0
	}
	list = make([]bool, len(t.Names))
	within, all := make([]bool, len(list)), 0.0
	for i, parent := range t.Parents {
		text := strings.ToLower(t.Names[i] + " " + cellText(t.table, i, "file"))
		list[i] = !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
		if parent < 0 {
			all += t.Weights[i]
		} else {
			within[i] = within[parent]
		}
		if list[i] {
			if rows++; !within[i] {
				share += t.Weights[i]
			}
			within[i] = true
		}
	}
	return list, rows, share / max(all, 1)
}

// Summary describes the trees, or the result of a search.
func (c *Calls) Summary(search string) string {
	if len(c.Trees) == 0 || c.Total == 0 {
		return "There are no " + c.Label + "."
	}
	t := c.Trees[len(c.Trees)-1]
	if list, n, share := t.matches(search); list != nil {
		return Plural(n, "frame matches", "frames match") + ": " + Percent(share) + " of the " + c.Label + "."
	}
	text := Count(c.Total) + " " + c.Label + ". "
	switch {
	case len(c.Trees) > 1:
		return text + t.Sentence(0)
	case t.Up:
		return text + "The width of a function shows its own count, without callees. The callers of a function are below it."
	}
	return text + "The width of a call path shows its count, with callees."
}

// Sentence describes a row: the counts of its function with and without callees.
func (t *CallTree) Sentence(row int) string {
	c := t.calls
	return t.Names[row] + ": " + t.text(row, c.Event+"_inclusive") + " " + c.Label + " with callees, " + c.share(t.All[row]) + "; own: " + t.text(row, c.Event) + ", " + c.share(t.Self[row]) + "."
}

func (c *Calls) share(n float64) string { return Percent(n / max(c.Total, 1)) }

func (t *CallTree) text(row int, key string) string {
	return cell(t.table, row, key).Shown(answerWords)
}

// source returns the source location of a row, for example "app.c:17".
func (t *CallTree) source(row int) string {
	if file := cellText(t.table, row, "file"); file != "" {
		return file + ":" + cellText(t.table, row, "line")
	}
	return ""
}

// about describes a row. The text contains the row's source location and the number of calls. Each
// line contains an event, its counts with and without callees, and the shares of these counts in
// the run.
func (t *CallTree) about(row int) (where string, lines [][]string) {
	where = t.source(row)
	if n := cell(t.table, row, "calls"); n.IsNumber() { // unknown if only a part of the run is in view
		where = strings.TrimPrefix(where+", "+Plural(uint64(number(n)), "call", "calls"), ", ")
	}
	for _, e := range t.calls.Events {
		line, total := []string{e.Title}, number(cell(t.calls.reply.Table("totals"), 0, e.Name))
		for _, key := range [...]string{e.Name + "_inclusive", e.Name} {
			v := cell(t.table, row, key)
			line = append(line, v.Shown(answerWords), Percent(number(v)/max(total, 1)))
		}
		lines = append(lines, line)
	}
	return where, lines
}

// Flame is a flame graph that flame.js draws. Each row of the tree is a frame whose width is the
// row's weight. The frames of child rows are side by side, above or below the frame of their
// parent.
type Flame struct {
	ID, Title, Summary string
	Event              string // the name of the event by which the tree is weighted, as in the lines of About
	Up                 bool   // child frames are drawn above their parent
	Names              []string
	Parents, Depths    []int
	Starts, Weights    []float64
	Total              float64   // the count of the whole run, which is 100 % on the axis
	Tints              []float64 // for each row, the numbers of its [Tint]
	Matches            []bool    // nil: no search
	Zoom               int       // row whose frame fills the width of the graph; -1: all roots
	About              func(row int) (where string, lines [][]string)
	Words              func(row int) string // the text about a row for screen readers
}

// Flame returns the flame graph of a tree. The parameter "zoom" is the row whose frame fills the
// width of the graph, or -1 if there is no such row.
func (t *CallTree) Flame(search string, zoom int) *Flame {
	f := &Flame{
		ID: t.ID, Title: t.Title + ", width: " + t.calls.Label, Summary: t.calls.Summary(""), Event: upper(t.calls.Label), Up: t.Up && len(t.calls.Trees) > 1,
		Names: t.Names, Parents: t.Parents, Depths: t.Depths, Weights: t.Weights, Total: t.calls.Total, Zoom: zoom, About: t.about, Words: t.Sentence,
	}
	f.Matches, _, _ = t.matches(search)
	// for each parent (at the parent's index + 1): the end of the latest frame with this parent
	ends := make([]float64, len(t.Names)+1)
	for i, parent := range t.Parents {
		start := ends[parent+1]
		ends[parent+1], ends[i+1] = start+t.Weights[i], start
		f.Starts, f.Tints = append(f.Starts, start), append(f.Tints, t.tint(i)...)
	}
	return f
}

// hues are the hues of source files, in degrees.
var hues = []float64{250, 60, 155, 330, 25, 200, 100, 290}

// Tint is the colour of a function. It consists of the hue in degrees, the difference from the
// theme's lightness, and a factor for the theme's chroma.
type Tint = []float64

// tint returns the colour of a row's function. Functions of one source file have similar hues. If
// the program has only one source file, the hue depends on the name. Functions without a source file
// are grey.
func (t *CallTree) tint(row int) Tint {
	h := fnv.New32a()
	h.Write([]byte(t.Names[row]))
	n := h.Sum32()
	part, hue, chroma := float64((n^n>>13)%1000)/999, 250., .15
	if color := t.calls.colors[cellText(t.table, row, "file")]; color > 0 {
		hue, chroma = part*360, 1
		if len(t.calls.colors) > 1 {
			_, of := math.Modf(part * 7)
			hue = hues[(color-1)%len(hues)] + (of-.5)*34
		}
	}
	return Tint{hue, (part - .5) * .07, chroma}
}

// Grid returns the tree as a table. Rows with at least a tenth of the run's count are unfolded.
func (t *CallTree) Grid(selected int) *Grid {
	c := t.calls
	table := (&Table{Caption: t.Title, Rows: len(t.Names)}).setReply(c.reply, t.ID)
	table.Columns = []Column{{Name: "function", Key: "function", Words: true}, {Name: c.Label + " with callees", Key: c.Event + "_inclusive"}, {Name: "share", Key: "share"},
		{Name: "own " + c.Label, Key: c.Event}, {Name: "share of own", Key: "own_share"}, {Name: "source", Key: "source", Words: true}}
	counted := t.table.Index("calls") >= 0 // false if only a part of the run is in view
	if counted {
		table.Columns = append(table.Columns, Column{Name: "calls", Key: "calls"})
	}
	table.Row = func(i int) []string {
		cells := []string{t.Names[i], t.text(i, c.Event+"_inclusive"), c.share(t.All[i]), t.text(i, c.Event), c.share(t.Self[i]), t.source(i)}
		if counted {
			cells = append(cells, t.text(i, "calls"))
		}
		return cells
	}
	table.values = func(i, column int) []report.Value {
		switch key := table.Columns[column].Key; key {
		case "function":
			return []report.Value{report.TextOf(t.Names[i])}
		case "share":
			return []report.Value{report.Real(t.All[i])}
		case "own_share":
			return []report.Value{report.Real(t.Self[i])}
		case "source":
			return []report.Value{cell(t.table, i, "file"), cell(t.table, i, "line")}
		default:
			return []report.Value{cell(t.table, i, key)}
		}
	}
	g := &Grid{Table: table, ID: "calls-" + t.ID, Order: t.Title + c.Event, Selected: selected, Tint: t.tint}
	for i, depth := range t.Depths {
		g.Depths, g.Folded = append(g.Depths, depth+1), append(g.Folded, t.Weights[i] < c.Total/10 || t.Up && len(c.Trees) == 1)
	}
	g.Shares = func(i int) []float64 {
		return []float64{-1, -1, t.All[i] / max(c.Total, 1), -1, t.Self[i] / max(c.Total, 1)}
	}
	return g
}

// Notes returns the warnings of the answer, as sentences.
func (c *Calls) Notes() (list []string) {
	for _, note := range c.reply.Notes {
		list = append(list, Sentence(note))
	}
	return list
}
