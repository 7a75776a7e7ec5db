package state

import (
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/report"
)

// Blocks is the answer of the compute-node models in the form that the view “Blocks and runtime”
// shows.
type Blocks struct {
	*answers.Reply
	Function, Block uint32 // the selected function and block; 0: none

	Graph *Graph      // the function's graph; nil if it has too many blocks
	Rows  []BranchRow // the outcomes of the function's first branches

	document func() *report.Document
}

// NewBlocks prepares the models' reply about a run and a hierarchy for the page. The result can be
// rendered any number of times.
func NewBlocks(run *ask.Run, h hierarchy.Hierarchy, r *answers.Reply) *Blocks {
	b := &Blocks{Reply: r}
	q := ask.New(ask.Pipeline(map[*profile.Profile]*answers.Reply{run.Profile: r}))
	q.Machine = h
	b.document = documentOf(run, q)
	for _, row := range rowsOf(r.Table("chosen")) {
		b.Function, b.Block = uint32(number(row[0])), uint32(number(row[1]))
	}
	b.Graph, b.Rows = b.graph(), b.branchRows()
	return b
}

// mostDrawn is the maximum number of blocks in a drawn graph. Larger graphs are unreadable.
const mostDrawn = 150

// cell returns the cell at the given row, in the column with the given key. It returns None if
// there is no such column.
func cell(t *report.Table, row int, key string) report.Value {
	if t == nil || row < 0 || row >= len(t.Rows) {
		return report.None()
	}
	if at := t.Index(key); at >= 0 && at < len(t.Rows[row]) {
		return t.Rows[row][at]
	}
	return report.None()
}

// cellText returns the text of a cell; "" if there is no such column.
func cellText(t *report.Table, row int, key string) string { return cell(t, row, key).Plain() }

// numberIn returns the number in a cell; 0 if it contains no number.
func numberIn(t *report.Table, row int, key string) float64 { return number(cell(t, row, key)) }

// number returns a value as a number, or 0 for text.
func number(v report.Value) float64 {
	x, _ := v.Number()
	return x
}

// blockWords formats the models' numbers.
var blockWords = report.Words{Count: Exact, Real: formatEstimate, Share: Percent}

// formatEstimate formats a number that a model computed.
func formatEstimate(x float64) string {
	if x >= 1000 || x == float64(uint64(max(x, 0))) {
		return Count(x)
	}
	return significant(x)
}

// Shown returns the given columns of the table with the given key, or nil if the table has no rows.
func (b *Blocks) Shown(key, caption string, columns ...string) *Table {
	whole := b.Table(key)
	if whole == nil || len(whole.Rows) == 0 {
		return nil
	}
	t := show(whole, blockWords, nil, columns...).setDocument(b.document)
	t.Caption = caption
	return t
}

// row returns the index of the row of a function or block in the table with the given key. It
// returns -1 if the table has no row with this number.
func (b *Blocks) row(key string, of uint32) int {
	t := b.Table(key)
	for i := range rowsOf(t) {
		if of > 0 && numberIn(t, i, "number") == float64(of) {
			return i
		}
	}
	return -1
}

func rowsOf(t *report.Table) [][]report.Value {
	if t == nil {
		return nil
	}
	return t.Rows
}

// Functions returns the table of functions.
func (b *Blocks) Functions() *Grid {
	t := b.Shown("functions", "Functions", "function", "source", "calls", "instructions", "share", "cycles", "limit")
	if t == nil {
		return nil
	}
	return &Grid{Table: t, ID: "functions", Order: "functions", Selected: b.row("functions", b.Function)}
}

// OfFunction returns the table of the function's blocks.
func (b *Blocks) OfFunction() *Grid {
	t := b.Shown("blocks", "Blocks of "+b.FunctionName(), "block", "source", "count", "instructions", "share", "cycles_each", "cycles", "limit")
	if t == nil {
		return nil
	}
	hot := b.Table("blocks")
	most, at := 0.0, -1
	for i := range hot.Rows {
		if share := numberIn(hot, i, "share"); share > most {
			most, at = share, i
		}
	}
	return &Grid{Table: t, ID: "blocks", Order: "blocks of " + strconv.FormatUint(uint64(b.Function), 10), Selected: b.row("blocks", b.Block), Mark: func(i int) string {
		if i == at {
			return "most"
		}
		return ""
	}}
}

// Number returns the number of the function or block in a table's row, or 0 if there is none.
func (b *Blocks) Number(table string, row int) uint32 {
	return uint32(number(cell(b.Table(table), row, "number")))
}

// FunctionName returns the name of the function in view.
func (b *Blocks) FunctionName() string {
	return cell(b.Table("functions"), b.row("functions", b.Function), "function").Plain()
}

// BlockName returns the name of the selected block, with its source location.
func (b *Blocks) BlockName() string {
	t, at := b.Table("blocks"), b.row("blocks", b.Block)
	return strings.TrimSuffix(cellText(t, at, "block")+", "+cellText(t, at, "source"), ", ")
}

// Place returns the source file of the selected block, and the numbers of its first and last line;
// a line is 0 if it is unknown.
func (b *Blocks) Place() (file string, first, last int) {
	source := cell(b.Table("blocks"), b.row("blocks", b.Block), "source").Plain()
	file, lines, _ := strings.Cut(source, ":")
	from, to, more := strings.Cut(lines, "–")
	first, _ = strconv.Atoi(from)
	if last = first; more {
		last, _ = strconv.Atoi(to)
	}
	return file, first, last
}

// Summary returns sentences about the program's run time.
func (b *Blocks) Summary() string {
	t := b.Table("program")
	of := map[string]string{}
	for i := range rowsOf(t) {
		of[cellText(t, i, "name")] = shown(cell(t, i, "value"), blockWords)
	}
	text := of["cycles"] + " cycles on " + of["processor"]
	if ms := of["milliseconds"]; ms != "" {
		text += ", " + ms + thin + "ms"
	}
	text += ", for " + of["instructions"] + " LLVM IR instructions"
	if each := of["cycles per instruction"]; each != "" {
		text += ": " + each + " cycles each"
	}
	return text + "."
}

// inCodeOrder returns the rows of the function's blocks in code order. The graph and the table of
// branches number blocks in this order.
func (b *Blocks) inCodeOrder() []int {
	t := b.Table("blocks")
	list := make([]int, len(rowsOf(t)))
	for i := range list {
		list[i] = i
	}
	sort.Slice(list, func(i, j int) bool { return b.Number("blocks", list[i]) < b.Number("blocks", list[j]) })
	return list
}

// RowOf returns the row in the table of blocks for a node of the graph, or -1 if there is none.
func (b *Blocks) RowOf(node int) int {
	if rows := b.inCodeOrder(); node >= 0 && node < len(rows) {
		return rows[node]
	}
	return -1
}

// graph returns the function's graph; nil if it has too many blocks.
func (b *Blocks) graph() *Graph {
	t, ways := b.Table("blocks"), b.Table("ways")
	if t == nil || len(t.Rows) == 0 || len(t.Rows) > mostDrawn {
		return nil
	}
	rows := b.inCodeOrder()
	g := &Graph{ID: "function", Title: "Blocks of " + b.FunctionName(), Selected: slices.Index(rows, b.row("blocks", b.Block))}
	g.Summary = Plural(uint64(len(t.Rows)), "block", "blocks") + ". The arrow keys follow the edges, and Enter selects a block."
	count := func(v report.Value) (text string, never bool) {
		if number(v) > 0 {
			return shown(v, blockWords) + thin + "×", false
		}
		return "never", true
	}
	for _, i := range rows {
		n := GraphNode{Share: numberIn(t, i, "share")}
		times, never := count(cell(t, i, "count"))
		n.Never = never
		for _, line := range []string{cellText(t, i, "block"), cellText(t, i, "source"), times} {
			if line != "" {
				n.Lines = append(n.Lines, Fit(line))
			}
		}
		n.About = strings.Join(n.Lines, ", ") + ", " + Percent(n.Share) + " of the function"
		g.Nodes = append(g.Nodes, n)
	}
	most := 0.0
	for i := range rowsOf(ways) {
		most = max(most, numberIn(ways, i, "count"))
	}
	for i := range rowsOf(ways) {
		e := GraphEdge{From: int(numberIn(ways, i, "from")), To: int(numberIn(ways, i, "to"))}
		if e.From >= len(g.Nodes) || e.To >= len(g.Nodes) || !cell(ways, i, "to").IsNumber() {
			continue
		}
		share := numberIn(ways, i, "share")
		if share < 1 {
			e.Text = Percent(share)
		}
		n := numberIn(ways, i, "count")
		e.Never = n == 0
		if most > 0 {
			e.Share = n / most
		}
		g.Edges = append(g.Edges, e)
	}
	return g
}

// BranchRow is one outcome of a branch, or of another instruction with several possible successors.
type BranchRow struct {
	Branch string // the branch's name in the branch-probability file
	Way    int    // number of the outcome, counted from 0
	Head   string // text before the first outcome: the block, the source line, and the origin of the numbers
	To     string // block at which the outcome continues
	Title  string // the title of the outcome, for screen readers
	Text   string // the counts of all outcomes, as in the branch-probability file
	Share  float64
	Shares []float64 // the shares of all outcomes of the branch
}

// The method With returns a line for the branch-probability file. The line describes the branch
// with the given share for this outcome. The shares of the other outcomes keep their proportions.
func (r *BranchRow) With(share float64) string {
	left, last := 0.0, -1
	for i, of := range r.Shares {
		if i != r.Way {
			left += of
			last = i
		}
	}
	parts := make([]string, len(r.Shares))
	for i, of := range r.Shares {
		switch {
		case i == r.Way:
			parts[i] = decimal(share)
		case i == last:
			parts[i] = "rest"
		case left > 0:
			parts[i] = decimal((1 - share) * of / left)
		default:
			parts[i] = decimal((1 - share) / float64(len(r.Shares)-1))
		}
	}
	return strings.Join(parts, ", ")
}

// decimal writes a share without an exponent, to nine digits.
func decimal(x float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(x, 'f', 9, 64), "0"), ".")
}

// mostBranches is the maximum number of branch outcomes on the page.
const mostBranches = 60

// branchRows returns one row for each outcome of the function's branches, up to mostBranches rows.
func (b *Blocks) branchRows() (list []BranchRow) {
	t, blocks, rows := b.Table("branches"), b.Table("blocks"), b.inCodeOrder()
	var shares []float64 // the shares of all outcomes of the row's branch
	first := 0
	for i := range min(len(rowsOf(t)), mostBranches) {
		text := func(key string) string { return cellText(t, i, key) }
		label := ""
		if n := int(numberIn(t, i, "block")); n < len(rows) {
			label = cellText(blocks, rows[n], "block")
		}
		r := BranchRow{Branch: text("branch"), To: text("to"), Title: label + " to " + text("to"), Text: text("text"), Share: numberIn(t, i, "share")}
		if i == 0 || list[i-1].Branch != r.Branch {
			first, shares = i, nil
			r.Head = strings.TrimSuffix(label+" · "+text("source"), " · ") + ", " + text("origin")
			for k := i; k < len(t.Rows) && cellText(t, k, "branch") == r.Branch; k++ {
				shares = append(shares, numberIn(t, k, "share"))
			}
		}
		r.Way, r.Shares = i-first, shares
		list = append(list, r)
	}
	return list
}

// MoreBranches returns a sentence with the number of branch outcomes that are not listed.
func (b *Blocks) MoreBranches() string {
	if n := len(rowsOf(b.Table("branches"))); n > mostBranches {
		return Plural(uint64(n-mostBranches), "more outcome is", "more outcomes are") + " in the branch-probability file."
	}
	return ""
}

// CaveatsWord returns the heading for n caveats.
func CaveatsWord(n int) string {
	return Plural(uint64(n), "caveat", "caveats") + " about these numbers"
}

// Unmodelled returns a sentence that lists the effects that are not modelled.
func Unmodelled(list []string) string {
	return "Not modelled: " + strings.Join(list, "; ") + "."
}

// linesAround is the number of source lines that are shown before and after a block.
const linesAround = 3

// BlockSource returns the source lines of a block and the lines around them.
func BlockSource(f *Source, first, last int) *Grid {
	from, to := max(first-linesAround, 1), min(last+linesAround, len(f.Lines))
	if from > to {
		return nil
	}
	t := &Table{Caption: f.Name, Columns: []Column{{Name: "line"}, {Name: f.Name, Words: true}}, Rows: to - from + 1, Row: func(i int) []string {
		return []string{strconv.Itoa(from + i), f.Lines[from+i-1]}
	}}
	return &Grid{Table: t, ID: "block-source", Order: f.Name + strconv.Itoa(from), Selected: -1, Code: []bool{false, true}, Language: Language(f.Name), Mark: func(i int) string {
		if from+i >= first && from+i <= last {
			return "most"
		}
		return ""
	}}
}

// Choice is one option of a list.
type Choice struct {
	_           incomparable
	Name, Title string
}

// Choices converts a table of names and titles to the options of a list.
func (b *Blocks) Choices(table string) (list []Choice) {
	t := b.Table(table)
	for i := range rowsOf(t) {
		list = append(list, Choice{Name: cellText(t, i, "name"), Title: cellText(t, i, "title")})
	}
	return list
}

// Parameters returns the named numbers that determine the probabilities.
func (b *Blocks) Parameters() (list []Choice) {
	t := b.Table("parameters")
	for i := range rowsOf(t) {
		list = append(list, Choice{Name: cellText(t, i, "name"), Title: cellText(t, i, "value")})
	}
	return list
}

// missingBlocks returns the reason why a profile has no block counts.
func missingBlocks(p *profile.Profile) string {
	if len(p.Blocks) > 0 {
		return ""
	}
	return "This analysis did not count how often each block of the program ran: the trace contains no blocks, or “blocks” was not among the requested analyses. Compile a program with “stackglass cc”, run it, and drop its .sgt trace here. " +
		"Or drop a module of LLVM IR (.ll, from “clang -S -emit-llvm”) and set its branch probabilities by hand."
}
