package state

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/attribution"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// InstructionsQuestion returns a question about the LLVM IR instructions of a source line.
func InstructionsQuestion(line string) answers.Question {
	return VerbQuestion("blocks", hierarchy.Hierarchy{}, "instructions="+line)
}

// Instructions lists the LLVM IR instructions of the blocks with a source line, and relates them to
// the sites of the profile.
type Instructions struct {
	reply *answers.Reply
	table *report.Table
	rows  []instruction
	order string // identifies the blocks
}

// instruction is a row of [CodeView.InstructionsGrid]: an instruction or the heading of a block.
type instruction struct {
	row     int    // in the table
	heading string // "": no heading
	sites   []int  // indices in Sites.Code of the memory accesses that the instruction makes
}

// NewInstructions reads the answer to an [InstructionsQuestion]. It returns nil if the answer
// contains no instructions.
func NewInstructions(p *profile.Profile, reply *answers.Reply) *Instructions {
	t := reply.Table("instructions")
	if t == nil {
		return nil
	}
	byNumber := map[uint32]int{}
	for i := range p.Sites.Code {
		if n := p.Sites.Code[i].Number; n != profile.NoSite {
			byNumber[n] = i
		}
	}
	x, last := &Instructions{reply: reply, table: t}, ""
	for i := range t.Rows {
		name := strings.TrimSpace(cellText(t, i, "function") + " " + cellText(t, i, "block"))
		if name != last {
			last, x.order = name, x.order+name+"\n"
			heading := name + ", executions: " + cell(t, i, "executions").Human()
			x.rows = append(x.rows, instruction{row: i, heading: heading})
		}
		in := instruction{row: i}
		for n := range int(numberIn(t, i, "sites")) {
			if at, known := byNumber[uint32(numberIn(t, i, "site"))+uint32(n)]; known {
				in.sites = append(in.sites, at)
			}
		}
		x.rows = append(x.rows, in)
	}
	return x
}

// Table returns the instructions as a table to export.
func (x *Instructions) Table() *Table {
	return show(x.table, words, nil, "block", "number", "line", "instruction", "operands", "variable", "executions").setReply(x.reply, x.table.Key)
}

// Site returns the index in Sites.Code of the first memory access of the instruction in a row of
// the grid, or -1 if the instruction accesses no memory.
func (x *Instructions) Site(row int) int {
	if row < 0 || row >= len(x.rows) || len(x.rows[row].sites) == 0 {
		return -1
	}
	return x.rows[row].sites[0]
}

// InstructionsGrid shows instructions in the same form as [CodeView.SourceGrid] shows a source
// file. The rows of the source line or instruction in the given row of the ranking are marked. The
// instruction with the site "picked" is selected if it belongs to this row. Otherwise, the marked
// instruction with the most misses is selected.
func (v *CodeView) InstructionsGrid(x *Instructions, place, picked int) *Grid {
	level, levels := v.Level(v.Sort), len(v.Levels)
	t := &Table{Caption: x.table.Title, Rows: len(x.rows)}
	for l := range v.Levels {
		t.Columns = append(t.Columns, Column{Name: v.levelName(l)})
	}
	t.Columns = append(t.Columns, Column{Name: "line"}, Column{Name: "LLVM IR", Words: true})
	rows := make([]attribution.Row, len(x.rows)) // the misses of the instructions
	marked, selected, longest := make([]bool, len(x.rows)), -1, 0
	for i := range x.rows {
		in := &x.rows[i]
		rows[i].Misses = make([]float64, levels)
		for _, site := range in.sites {
			for l := range v.Levels {
				rows[i].Misses[l] += v.Levels[l].Sites[site]
			}
			marked[i] = marked[i] || slices.Contains(v.rows[place].Sites, site)
		}
		switch {
		case !marked[i]:
		case selected >= 0 && slices.Contains(x.rows[selected].sites, picked):
		case selected < 0 || slices.Contains(in.sites, picked) || rows[i].Misses[level] > rows[selected].Misses[level]:
			selected = i
		}
		longest = max(longest, utf8.RuneCountInString(x.text(in))+3+len(cellText(x.table, in.row, "variable")))
	}
	t.Row = func(i int) []string {
		in, cells := &x.rows[i], make([]string, levels+2)
		cells[levels+1] = x.text(in)
		if in.heading == "" {
			for l, n := range rows[i].Misses {
				if n > 0 {
					cells[l] = SI(uint64(n + 0.5))
				}
			}
			if len(in.sites) > 0 {
				cells[levels] = strconv.FormatUint(uint64(v.Profile.Sites.Code[in.sites[0]].Line), 10)
			}
		}
		return cells
	}
	return &Grid{
		Table: t, ID: "instructions", Order: x.order, Selected: selected,
		Code: append(make([]bool, levels+1), true), Language: "c", Longest: longest,
		After: func(i int) string {
			if in := &x.rows[i]; in.heading == "" {
				return cellText(x.table, in.row, "variable")
			}
			return ""
		},
		Titles: func(i int) []string { return v.missTitles(&rows[i]) },
		Mark: func(i int) string {
			switch {
			case x.rows[i].heading != "":
				return "rest"
			case marked[i]:
				return "line"
			}
			return ""
		},
		Shares: func(i int) []float64 {
			if len(x.rows[i].sites) == 0 {
				return v.missShares(nil, level)
			}
			return v.missShares(&rows[i], level)
		},
	}
}

// text returns the text of a row: the heading of a block, or the number of an instruction, the
// instruction and its operands.
func (x *Instructions) text(in *instruction) string {
	if in.heading != "" {
		return in.heading
	}
	text := "#" + cellText(x.table, in.row, "number") + " = " + cellText(x.table, in.row, "instruction")
	if operands := cellText(x.table, in.row, "operands"); operands != "" {
		text += " " + operands
	}
	return text
}
