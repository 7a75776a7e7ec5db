package answers

import (
	"cmp"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// CountersBy is a grouping of counters.
type CountersBy string

// The possible groupings of counters.
const (
	ByProgram  CountersBy = "program"
	ByFunction CountersBy = "function"
	ByBlock    CountersBy = "block"
)

// CountersOf returns the table of functions or blocks, sorted by the column with this key. The
// default is the number of bytes. Numbers are sorted in descending order, and words in ascending
// order.
func CountersOf(c *profile.Counters, by CountersBy, column string) report.Table {
	t := blockTable(c)
	if by == ByFunction {
		t = functionTable(c)
	}
	if column == "" {
		column = "bytes"
	}
	if at := t.Index(column); at >= 0 {
		sort.SliceStable(t.Rows, func(i, j int) bool { return report.Compare(t.Rows[i][at], t.Rows[j][at]) < 0 })
	}
	return t
}

// wideCounters lists the columns that [NarrowCounters] drops, separated by blanks.
const wideCounters = " bytes last_line loads stores calls vector_ops instructions memmove_bytes memset_bytes "

// NarrowCounters drops the less important columns of a table of functions or blocks, so that the
// table fits on a screen. NarrowCounters never drops the column whose key is the parameter keep.
func NarrowCounters(t report.Table, keep string) report.Table {
	var columns []int
	for i := range t.Columns {
		if key := t.Columns[i].Key; key == keep || !strings.Contains(wideCounters, " "+key+" ") {
			columns = append(columns, i)
		}
	}
	return PickColumns(t, columns...)
}

// PickColumns returns a table that contains the columns of t at these indices.
func PickColumns(t report.Table, columns ...int) report.Table {
	picked := report.Table{Key: t.Key, Title: t.Title, Rows: make([][]report.Value, len(t.Rows))}
	for _, i := range columns {
		picked.Columns = append(picked.Columns, t.Columns[i])
		for row := range t.Rows {
			picked.Rows[row] = append(picked.Rows[row], t.Rows[row][i])
		}
	}
	return picked
}

// NotCounted returns a sentence for each kind of counter that the profile lacks, with the reason.
func NotCounted(p *profile.Profile) (list []string) {
	c := p.Counters
	if !c.Blocks {
		list = append(list, "the trace contains no blocks, so only loads and stores can be counted; for operations, branches and calls, compile the program with stackglass cc")
	} else if !c.Ops {
		list = append(list, "the trace's blocks do not list their instructions, so operations, branches and calls are not counted; compile the program with stackglass cc")
	}
	if !p.Input.Header.Sizes {
		list = append(list, "the trace contains no access sizes, so bytes loaded and stored are unknown, and each distinct address counts as one unique byte")
	}
	if !c.Touched {
		list = append(list, "unique bytes and memory usage were not counted; to count them, choose “Count each byte's accesses” in the page's settings, or add --analyses locality,counters")
	}
	return list
}

// CounterTables returns the nonempty tables about the whole program. The sums come first, because
// some formats contain only the first table.
func CounterTables(p *profile.Profile) []report.Table {
	c := p.Counters
	tables := []report.Table{CounterSums(c)}
	for _, t := range [...]report.Table{CounterRatios(p), usageTable(c), typeTable(c), mixTable(c), vectorTable(c), callTable(c)} {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// builder builds a table cell by cell. Its methods are not inlined, to keep the program small: they
// have many callers, but no caller is a hot loop.
type builder struct {
	t   report.Table
	row []report.Value
}

// newCounterTable starts a table with columns in the form of [report.Columns].
func newCounterTable(key, title string, columns ...string) *builder {
	return &builder{t: report.Table{Key: key, Title: title, Columns: report.Columns(columns...)}}
}

//go:noinline
func (b *builder) cell(v report.Value) *builder {
	b.row = append(b.row, v)
	return b
}

//go:noinline
func (b *builder) text(s string) *builder { return b.cell(report.TextOf(s)) }

//go:noinline
func (b *builder) count(n uint64) *builder { return b.cell(report.Count(n)) }

//go:noinline
func (b *builder) known(n uint64) *builder { return b.cell(report.Known(n)) }

//go:noinline
func (b *builder) share(part, whole float64) *builder {
	return b.cell(report.Ratio(part / max(whole, 1)))
}

// endRow completes the current row.
//
//go:noinline
func (b *builder) endRow() {
	b.t.Rows = append(b.t.Rows, b.row)
	b.row = nil
}

// addTotal adds a row to the table of CounterSums.
func (b *builder) addTotal(key string, n uint64, label string) {
	b.text(key).count(n).text(label).endRow()
}

// CounterSums returns the table of the program's totals. CounterSums omits totals that the trace
// does not provide.
func CounterSums(c *profile.Counters) report.Table {
	b := newCounterTable("counters", "Counters of the program", "counter", "count", "name=description")
	sum := c.Program()
	for counter := range profile.NumCounters {
		if counter >= profile.RangesRead && counter <= profile.RangeBytesWritten || !c.Ops && counter > profile.Stores {
			continue
		}
		m := counter.Meaning()
		b.addTotal(m.Key, sum[counter], m.Label)
	}
	moves, moved := sum.Moves()
	sets, set := sum.Sets()
	if moves+sets > 0 || c.Ops {
		b.addTotal("memmove_calls", moves, "calls to memcpy and memmove")
		b.addTotal("memmove_bytes", moved, "bytes moved by memcpy and memmove")
		b.addTotal("memset_calls", sets, "calls to memset")
		b.addTotal("memset_bytes", set, "bytes set by memset")
	}
	if c.UniqueBytes > 0 {
		b.addTotal("unique_bytes", c.UniqueBytes, "bytes touched at least once")
	}
	return b.t
}

// CounterRatios returns a table with ratios of the program's totals, and with the median reuse
// distance.
func CounterRatios(p *profile.Profile) report.Table {
	b := newCounterTable("ratios", "Derived numbers", "ratio", "value", "name=description")
	sum := p.Counters.Program()
	for _, d := range sum.Derive(p.Counters.UniqueBytes) {
		value := report.Decimal(d.Value)
		if d.Share {
			value = report.Ratio(d.Value)
		}
		b.text(d.Key).cell(value).text(d.Label).endRow()
	}
	if len(p.Locality) == 0 {
		return b.t
	}
	l := &p.Locality[0]
	of := ", in lines of " + strconv.FormatUint(uint64(l.LineBytes), 10) + " bytes"
	median, deviation, ok := l.MedianReuse()
	reuse := func(key string, distance uint64, label string) {
		value := report.None()
		if ok {
			value = report.Count(distance)
		}
		b.text(key).cell(value).text(label + of).endRow()
	}
	reuse("median_reuse_distance", median, "median reuse distance")
	reuse("mad_reuse_distance", deviation, "median absolute deviation of the reuse distance")
	return b.t
}

// usageTable returns a table of memory usage. For each share of all accessed bytes, it contains the
// smallest number of memory bytes that receives this share.
func usageTable(c *profile.Counters) report.Table {
	b := newCounterTable("memory", "Memory usage: the smallest number of bytes that together receive each share of the accesses", "share=share of accesses", "bytes")
	for i, n := range c.Usage {
		if c.Touched {
			b.share(float64(i+1), profile.UsageSteps).count(n).endRow()
		}
	}
	return b.t
}

func typeTable(c *profile.Counters) report.Table {
	b := newCounterTable("types", "Loads and stores by data type and size",
		"kind", "type=datatype", "bytes=bytes of one", "count", "total_bytes=bytes of all")
	kinds := map[profile.TallyKind]string{profile.LoadTypes: "load", profile.StoreTypes: "store"}
	for i := range c.Tallies {
		t := &c.Tallies[i]
		if kind := kinds[t.Kind]; kind != "" {
			b.text(kind).text(cmp.Or(t.Name, "unknown")).known(uint64(t.Size)).count(t.Count).count(t.Bytes).endRow()
		}
	}
	return b.t
}

// mostFirst returns the tallies of one kind in descending order, and their sum.
func mostFirst(c *profile.Counters, kind profile.TallyKind) (list []profile.Tally, total uint64) {
	list = c.Tallied(kind)
	for i := range list {
		total += list[i].Count
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Count > list[j].Count })
	return list, total
}

func mixTable(c *profile.Counters) report.Table {
	b := newCounterTable("instruction_mix", "Instruction mix", "opcode", "count=instructions", "share")
	list, total := mostFirst(c, profile.Opcodes)
	for i := range list {
		b.text(list[i].Name).count(list[i].Count).share(float64(list[i].Count), float64(total)).endRow()
	}
	return b.t
}

func vectorTable(c *profile.Counters) report.Table {
	b := newCounterTable("vectors", "Vector instructions, except loads and stores",
		"lanes=elements", "bits=bits of each", "type=of", "count=instructions")
	kinds := map[profile.TallyKind]string{profile.IntegerVectors: "integers", profile.FloatVectors: "floating point"}
	for i := range c.Tallies {
		t := &c.Tallies[i]
		if kind := kinds[t.Kind]; kind != "" {
			b.count(uint64(t.Lanes)).count(uint64(t.Size)).text(kind).count(t.Count).endRow()
		}
	}
	return b.t
}

// callTable returns a table of callees. A callee counts as traced if the trace entered its code.
func callTable(c *profile.Counters) report.Table {
	b := newCounterTable("calls", "Functions called", "function", "calls", "traced=code is traced")
	traced := map[string]string{"*": "–"}
	for i := range c.Functions {
		traced[c.Functions[i].Name] = "yes"
	}
	list, _ := mostFirst(c, profile.Callees)
	for i := range list {
		name := list[i].Name
		if name == "*" {
			name = "(through a pointer)"
		}
		b.text(name).count(list[i].Count).text(cmp.Or(traced[list[i].Name], "no")).endRow()
	}
	return b.t
}

// rowCounters lists the counters shown for functions and blocks.
var rowCounters = [...]profile.Counter{profile.BytesLoaded, profile.BytesStored, profile.Loads, profile.Stores, profile.Flops,
	profile.IntegerOps, profile.ConditionalBranches, profile.CallOps, profile.VectorOps, profile.Instructions}

// newCounterRows starts a table of functions or blocks. Its columns are the given columns, followed
// by a column for each counter.
func newCounterRows(key, title string, columns ...string) *builder {
	columns = append(columns, "bytes")
	for _, counter := range rowCounters {
		m := counter.Meaning()
		columns = append(columns, m.Key+"="+m.Label)
	}
	return newCounterTable(key, title, append(columns, "memmove_bytes=bytes moved by memcpy and memmove",
		"memset_bytes=bytes set by memset", "bytes_per_flop=bytes per flop")...)
}

// endCounters adds the counters to the current row, and completes the row.
func (b *builder) endCounters(counts *profile.Counts) {
	b.count(counts.Bytes())
	for _, counter := range rowCounters {
		b.count(counts[counter])
	}
	_, moved := counts.Moves()
	_, set := counts.Sets()
	flops := float64(counts[profile.Flops])
	b.count(moved).count(set).cell(cellIfKnown(float64(counts.Bytes())/flops, flops > 0)).endRow()
}

func functionTable(c *profile.Counters) report.Table {
	b := newCounterRows("functions", "Counters by function, excluding callees",
		"function", "file", "line", "invocations", "unique_bytes=unique bytes")
	sums := c.ByFunction()
	for i := range c.Functions {
		f := &c.Functions[i]
		unique := report.Known(f.UniqueBytes)
		if c.Touched {
			unique = report.Count(f.UniqueBytes)
		}
		b.text(functionName(f)).text(f.File).known(uint64(f.Line)).count(f.Invocations).cell(unique).endCounters(&sums[i])
	}
	return b.t
}

func functionName(f *profile.FunctionCounters) string {
	if f.Number == profile.NoFunction {
		return "(no function)"
	}
	return f.Name
}

func blockTable(c *profile.Counters) report.Table {
	b := newCounterRows("blocks", "Counters by basic block",
		"function", "block", "file", "line", "last_line=to", "executions")
	for i := range c.Code {
		k := &c.Code[i]
		name := ""
		if at := c.FunctionAt(k.Function); at >= 0 {
			name = functionName(&c.Functions[at])
		}
		b.text(name).text(k.Label).text(k.File).known(uint64(k.FirstLine)).known(uint64(k.LastLine))
		b.count(k.Executions).endCounters(&k.Counts)
	}
	return b.t
}
