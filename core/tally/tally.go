// Package tally lays a profile's counters out in tables: of the program, by
// function, by basic block. The command and the page show and export the same
// ones.
package tally

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// By is what counters are summed up by.
type By string

// The choices.
const (
	Program  By = "program"
	Function By = "function"
	Block    By = "block"
)

// Of gives the table of functions or blocks, sorted by a column, "" for bytes;
// numbers fall, words rise.
func Of(c *profile.Counters, by By, column string) report.Table {
	t := blockTable(c)
	if by == Function {
		t = functionTable(c)
	}
	if column == "" {
		column = "bytes"
	}
	if at := t.Index(column); at >= 0 {
		slices.SortStableFunc(t.Rows, func(x, y []report.Value) int { return report.Compare(x[at], y[at]) })
	}
	return t
}

// wide are the columns that are left out where people read: programs get all.
var wide = []string{"bytes", "last_line", "loads", "stores", "calls", "vector_ops", "instructions", "memmove_bytes", "memset_bytes"}

// Narrow leaves columns out of a table of functions or blocks, but keep.
func Narrow(t report.Table, keep string) report.Table {
	narrow := report.Table{Key: t.Key, Title: t.Title, Rows: make([][]report.Value, len(t.Rows))}
	for i, c := range t.Columns {
		if c.Key != keep && slices.Contains(wide, c.Key) {
			continue
		}
		narrow.Columns = append(narrow.Columns, c)
		for row := range t.Rows {
			narrow.Rows[row] = append(narrow.Rows[row], t.Rows[row][i])
		}
	}
	return narrow
}

// Missing says what the numbers leave out, and why.
func Missing(p *profile.Profile) (list []string) {
	c := p.Counters
	if !c.Blocks {
		list = append(list, "the trace tells of no blocks: loads and stores are all that can be counted; for operations, branches and calls compile the program with stackglass cc")
	} else if !c.Ops {
		list = append(list, "the trace's blocks tell no instructions: operations, branches and calls are not counted; compile the program with stackglass cc")
	}
	if !p.Input.Header.Sizes {
		list = append(list, "the trace tells no sizes: bytes loaded and stored are not known, and unique bytes are distinct addresses")
	}
	if !c.Touched {
		list = append(list, "the profile was made without unique bytes and memory usage; analyze with --analyses locality,counters counts them")
	}
	return list
}

// Tables are those of the whole program; the first one, its sums, is for
// programs that take only one.
func Tables(p *profile.Profile) []report.Table {
	c := p.Counters
	tables := []report.Table{Sums(c)}
	for _, t := range []report.Table{Ratios(p), usageTable(c), typeTable(c), mixTable(c), vectorTable(c), callTable(c)} {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// shownCounters are the counters of a program that its trace tells.
func shownCounters(c *profile.Counters) (list []profile.Counter) {
	for counter := range profile.NumCounters {
		if counter < profile.RangesRead || counter > profile.RangeBytesWritten {
			if c.Ops || counter <= profile.Stores {
				list = append(list, counter)
			}
		}
	}
	return list
}

// Sums lists the sums of the program.
func Sums(c *profile.Counters) report.Table {
	sum := c.Program()
	t := report.Table{Key: "counters", Title: "Counters of the program", Columns: []report.Column{
		{Key: "counter", Label: "counter"},
		{Key: "count", Label: "count"},
		{Key: "name", Label: "what it is"},
	}}
	add := func(key string, n uint64, label string) {
		t.Add(report.TextOf(key), report.Count(n), report.TextOf(label))
	}
	for _, counter := range shownCounters(c) {
		m := counter.Meaning()
		add(m.Key, sum[counter], m.Label)
	}
	moves, moved := sum.Moves()
	sets, set := sum.Sets()
	if moves+sets > 0 || c.Ops {
		add("memmove_calls", moves, "calls of memcpy and memmove")
		add("memmove_bytes", moved, "bytes that they move")
		add("memset_calls", sets, "calls of memset")
		add("memset_bytes", set, "bytes that they set")
	}
	if c.UniqueBytes > 0 {
		add("unique_bytes", c.UniqueBytes, "bytes touched at least once")
	}
	return t
}

// Ratios lists what follows from the sums, and how far reuse is.
func Ratios(p *profile.Profile) report.Table {
	sum := p.Counters.Program()
	t := report.Table{Key: "ratios", Title: "What follows from them", Columns: []report.Column{
		{Key: "ratio", Label: "ratio"},
		{Key: "value", Label: "value"},
		{Key: "name", Label: "what it is"},
	}}
	for _, d := range sum.Derive(p.Counters.UniqueBytes) {
		value := report.Decimal(d.Value)
		if d.Share {
			value = report.Ratio(d.Value)
		}
		t.Add(report.TextOf(d.Key), value, report.TextOf(d.Label))
	}
	if len(p.Locality) == 0 {
		return t
	}
	l := &p.Locality[0]
	of := ", in lines of " + strconv.FormatUint(uint64(l.LineBytes), 10) + " bytes"
	median, deviation := report.None(), report.None()
	if m, d, ok := l.MedianReuse(); ok {
		median, deviation = report.Count(m), report.Count(d)
	}
	t.Add(report.TextOf("median_reuse_distance"), median, report.TextOf("median reuse distance"+of))
	t.Add(report.TextOf("mad_reuse_distance"), deviation, report.TextOf("median absolute deviation from it"+of))
	return t
}

// usageTable says how little memory holds how much.
func usageTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "memory", Title: "Memory usage: the least memory that holds a share of all bytes accessed", Columns: []report.Column{
		{Key: "share", Label: "share of accesses"},
		{Key: "bytes", Label: "bytes"},
	}}
	if !c.Touched {
		return t
	}
	for i, n := range c.Usage {
		t.Add(report.Ratio(float64(i+1)/profile.UsageSteps), report.Count(n))
	}
	return t
}

func typeTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "types", Title: "Loads and stores by datatype and size", Columns: []report.Column{
		{Key: "kind", Label: "kind"},
		{Key: "type", Label: "datatype"},
		{Key: "bytes", Label: "size", Unit: "bytes"},
		{Key: "count", Label: "count"},
		{Key: "total_bytes", Label: "bytes of all"},
	}}
	for i := range c.Types {
		u := &c.Types[i]
		kind, size := "load", report.Count(uint64(u.Bytes))
		if u.Store {
			kind = "store"
		}
		if u.Bytes == 0 {
			size = report.None()
		}
		t.Add(report.TextOf(kind), report.TextOf(cmp.Or(u.Type, "not known")), size, report.Count(u.Count), report.Count(u.TotalBytes))
	}
	return t
}

// mixTable is the instruction mix, the most frequent first.
func mixTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "instruction_mix", Title: "Instruction mix", Columns: []report.Column{
		{Key: "opcode", Label: "opcode"},
		{Key: "count", Label: "instructions"},
		{Key: "share", Label: "share"},
	}}
	mix, total := slices.Clone(c.Mix), uint64(0)
	for _, op := range mix {
		total += op.Count
	}
	slices.SortStableFunc(mix, func(x, y profile.OpcodeCounter) int { return cmp.Compare(y.Count, x.Count) })
	for _, op := range mix {
		t.Add(report.TextOf(op.Opcode), report.Count(op.Count), share(op.Count, total))
	}
	return t
}

func vectorTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "vectors", Title: "Vector instructions, but loads and stores", Columns: []report.Column{
		{Key: "lanes", Label: "elements"},
		{Key: "bits", Label: "bits of each"},
		{Key: "type", Label: "of"},
		{Key: "count", Label: "instructions"},
	}}
	for _, v := range c.Vectors {
		of := "integers"
		if v.Float {
			of = "floating point"
		}
		t.Add(report.Count(uint64(v.Lanes)), report.Count(uint64(v.Bits)), report.TextOf(of), report.Count(v.Count))
	}
	return t
}

// callTable lists callees, the most called first.
func callTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "calls", Title: "Functions called", Columns: []report.Column{
		{Key: "function", Label: "function"},
		{Key: "calls", Label: "calls"},
		{Key: "traced", Label: "its code is traced"},
	}}
	calls := slices.Clone(c.Calls)
	slices.SortStableFunc(calls, func(x, y profile.CallCounter) int { return cmp.Compare(y.Count, x.Count) })
	for _, call := range calls {
		name, traced := call.Name, report.YesNo(call.Traced)
		if name == "*" {
			name, traced = "(through a pointer)", report.None()
		}
		t.Add(report.TextOf(name), report.Count(call.Count), traced)
	}
	return t
}

// countColumns are the columns of a row's counters.
func countColumns() []report.Column {
	columns := []report.Column{{Key: "bytes", Label: "bytes"}}
	for _, counter := range rowCounters {
		m := counter.Meaning()
		columns = append(columns, report.Column{Key: m.Key, Label: m.Label})
	}
	return append(columns,
		report.Column{Key: "memmove_bytes", Label: "bytes moved by memcpy and memmove"},
		report.Column{Key: "memset_bytes", Label: "bytes set by memset"},
		report.Column{Key: "bytes_per_flop", Label: "bytes per flop"})
}

// rowCounters are those of functions and blocks.
var rowCounters = []profile.Counter{profile.BytesLoaded, profile.BytesStored, profile.Loads, profile.Stores, profile.Flops,
	profile.IntegerOps, profile.ConditionalBranches, profile.CallOps, profile.VectorOps, profile.Instructions}

func countCells(counts *profile.Counts) []report.Value {
	cells := []report.Value{report.Count(counts.Bytes())}
	for _, counter := range rowCounters {
		cells = append(cells, report.Count(counts[counter]))
	}
	_, moved := counts.Moves()
	_, set := counts.Sets()
	cells = append(cells, report.Count(moved), report.Count(set))
	if counts[profile.Flops] == 0 {
		return append(cells, report.None())
	}
	return append(cells, report.Decimal(float64(counts.Bytes())/float64(counts[profile.Flops])))
}

func functionTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "functions", Title: "Counters by function, each without those that it calls", Columns: []report.Column{
		{Key: "function", Label: "function"},
		{Key: "file", Label: "file"},
		{Key: "line", Label: "line"},
		{Key: "invocations", Label: "invocations"},
		{Key: "unique_bytes", Label: "unique bytes"},
	}}
	t.Columns = append(t.Columns, countColumns()...)
	sums := c.ByFunction()
	for i := range c.Functions {
		f := &c.Functions[i]
		unique := report.None()
		if c.Touched || f.UniqueBytes > 0 {
			unique = report.Count(f.UniqueBytes)
		}
		row := []report.Value{report.TextOf(functionName(f)), report.TextOf(f.File), known(uint64(f.Line)), report.Count(f.Invocations), unique}
		t.Add(append(row, countCells(&sums[i])...)...)
	}
	return t
}

func functionName(f *profile.FunctionCounters) string {
	if f.Number == profile.NoFunction {
		return "(no function)"
	}
	return f.Name
}

func blockTable(c *profile.Counters) report.Table {
	t := report.Table{Key: "blocks", Title: "Counters by basic block", Columns: []report.Column{
		{Key: "function", Label: "function"},
		{Key: "block", Label: "block"},
		{Key: "file", Label: "file"},
		{Key: "line", Label: "line"},
		{Key: "last_line", Label: "to"},
		{Key: "executions", Label: "executions"},
	}}
	t.Columns = append(t.Columns, countColumns()...)
	for i := range c.Code {
		b := &c.Code[i]
		name := ""
		if at := c.FunctionAt(b.Function); at >= 0 {
			name = functionName(&c.Functions[at])
		}
		row := []report.Value{report.TextOf(name), report.TextOf(b.Label), report.TextOf(b.File),
			known(uint64(b.FirstLine)), known(uint64(b.LastLine)), report.Count(b.Executions)}
		t.Add(append(row, countCells(&b.Counts)...)...)
	}
	return t
}

// known is a number that is 0 where it is not known.
func known(n uint64) report.Value {
	if n == 0 {
		return report.None()
	}
	return report.Count(n)
}

func share(n, total uint64) report.Value {
	if total == 0 {
		return report.Ratio(0)
	}
	return report.Ratio(float64(n) / float64(total))
}
