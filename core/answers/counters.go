package answers

import (
	"cmp"
	"sort"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// CountersBy is what counters are summed up by.
type CountersBy string

// The choices.
const (
	ByProgram  CountersBy = "program"
	ByFunction CountersBy = "function"
	ByBlock    CountersBy = "block"
)

// CountersOf returns the table of functions or blocks, sorted by the column with this key
// ("": bytes), numbers descending and words ascending.
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

// wideCounters lists the columns that [NarrowCounters] drops, each between blanks.
const wideCounters = " bytes last_line loads stores calls vector_ops instructions memmove_bytes memset_bytes "

// NarrowCounters drops the less important columns of a table of functions or blocks, except
// the one with the key keep, so that it fits a screen.
func NarrowCounters(t report.Table, keep string) report.Table {
	var columns []int
	for i := range t.Columns {
		if key := t.Columns[i].Key; key == keep || !strings.Contains(wideCounters, " "+key+" ") {
			columns = append(columns, i)
		}
	}
	return PickColumns(t, columns...)
}

// PickColumns returns a table with the columns of t at these indices.
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
		list = append(list, "the trace tells of no blocks: loads and stores are all that can be counted; for operations, branches and calls compile the program with stackglass cc")
	} else if !c.Ops {
		list = append(list, "the trace's blocks tell no instructions: operations, branches and calls are not counted; compile the program with stackglass cc")
	}
	if !p.Input.Header.Sizes {
		list = append(list, "the trace tells no sizes: bytes loaded and stored are not known, and unique bytes are distinct addresses")
	}
	if !c.Touched {
		list = append(list, "unique bytes and memory usage were not counted; “Count each byte's accesses” in the page's settings, or --analyses locality,counters, counts them")
	}
	return list
}

// CounterTables returns the tables of the whole program that have rows. The sums come first,
// for formats that contain only one table.
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

// builder fills a table. Its methods are no part of hot loops, and are kept from
// being copied to their many callers.
type builder struct {
	t   report.Table
	row []report.Value
}

// newCounterTable begins a table; columns are pairs of key and label.
//
//go:noinline
func newCounterTable(key, title string, columns ...string) *builder {
	b := &builder{t: report.Table{Key: key, Title: title}}
	for i := 0; i < len(columns); i += 2 {
		b.t.Columns = append(b.t.Columns, report.Column{Key: columns[i], Label: columns[i+1]})
	}
	return b
}

//go:noinline
func (b *builder) text(s string) { b.row = append(b.row, report.TextOf(s)) }

//go:noinline
func (b *builder) count(n uint64) { b.row = append(b.row, report.Count(n)) }

// known is a number that is 0 where it is not known.
//
//go:noinline
func (b *builder) known(n uint64) {
	if n == 0 {
		b.row = append(b.row, report.None())
	} else {
		b.count(n)
	}
}

//go:noinline
func (b *builder) share(part, whole float64) { b.row = append(b.row, report.Ratio(part/max(whole, 1))) }

//go:noinline
func (b *builder) decimal(x float64) { b.row = append(b.row, report.Decimal(x)) }

// end ends a row.
//
//go:noinline
func (b *builder) end() {
	b.t.Rows = append(b.t.Rows, b.row)
	b.row = nil
}

// sum is a row of Sums.
func (b *builder) sum(key string, n uint64, label string) {
	b.text(key)
	b.count(n)
	b.text(label)
	b.end()
}

// CounterSums returns the table of the program's totals, without those its trace lacks.
func CounterSums(c *profile.Counters) report.Table {
	b := newCounterTable("counters", "Counters of the program", "counter", "counter", "count", "count", "name", "what it is")
	sum := c.Program()
	for counter := range profile.NumCounters {
		if counter >= profile.RangesRead && counter <= profile.RangeBytesWritten || !c.Ops && counter > profile.Stores {
			continue
		}
		m := counter.Meaning()
		b.sum(m.Key, sum[counter], m.Label)
	}
	moves, moved := sum.Moves()
	sets, set := sum.Sets()
	if moves+sets > 0 || c.Ops {
		b.sum("memmove_calls", moves, "calls of memcpy and memmove")
		b.sum("memmove_bytes", moved, "bytes that they move")
		b.sum("memset_calls", sets, "calls of memset")
		b.sum("memset_bytes", set, "bytes that they set")
	}
	if c.UniqueBytes > 0 {
		b.sum("unique_bytes", c.UniqueBytes, "bytes touched at least once")
	}
	return b.t
}

// CounterRatios lists what follows from the sums, and how far reuse is.
func CounterRatios(p *profile.Profile) report.Table {
	b := newCounterTable("ratios", "What follows from them", "ratio", "ratio", "value", "value", "name", "what it is")
	sum := p.Counters.Program()
	for _, d := range sum.Derive(p.Counters.UniqueBytes) {
		b.text(d.Key)
		if d.Share {
			b.share(d.Value, 1)
		} else {
			b.decimal(d.Value)
		}
		b.text(d.Label)
		b.end()
	}
	if len(p.Locality) == 0 {
		return b.t
	}
	l := &p.Locality[0]
	of := ", in lines of " + strconv.FormatUint(uint64(l.LineBytes), 10) + " bytes"
	median, deviation, ok := l.MedianReuse()
	reuse := func(key string, distance uint64, label string) {
		b.text(key)
		if ok {
			b.count(distance)
		} else {
			b.known(0)
		}
		b.text(label + of)
		b.end()
	}
	reuse("median_reuse_distance", median, "median reuse distance")
	reuse("mad_reuse_distance", deviation, "median absolute deviation from it")
	return b.t
}

// usageTable says how little memory holds how much.
func usageTable(c *profile.Counters) report.Table {
	b := newCounterTable("memory", "Memory usage: the least memory that holds a share of all bytes accessed", "share", "share of accesses", "bytes", "bytes")
	for i, n := range c.Usage {
		if c.Touched {
			b.share(float64(i+1), profile.UsageSteps)
			b.count(n)
			b.end()
		}
	}
	return b.t
}

func typeTable(c *profile.Counters) report.Table {
	b := newCounterTable("types", "Loads and stores by datatype and size",
		"kind", "kind", "type", "datatype", "bytes", "bytes of one", "count", "count", "total_bytes", "bytes of all")
	for i := range c.Tallies {
		t := &c.Tallies[i]
		switch t.Kind {
		case profile.LoadTypes:
			b.text("load")
		case profile.StoreTypes:
			b.text("store")
		default:
			continue
		}
		b.text(cmp.Or(t.Name, "not known"))
		b.known(uint64(t.Size))
		b.count(t.Count)
		b.count(t.Bytes)
		b.end()
	}
	return b.t
}

// mostFirst gives the tallies of a kind, and their sum.
func mostFirst(c *profile.Counters, kind profile.TallyKind) (list []profile.Tally, total uint64) {
	list = c.Tallied(kind)
	for i := range list {
		total += list[i].Count
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Count > list[j].Count })
	return list, total
}

// mixTable is the instruction mix.
func mixTable(c *profile.Counters) report.Table {
	b := newCounterTable("instruction_mix", "Instruction mix", "opcode", "opcode", "count", "instructions", "share", "share")
	list, total := mostFirst(c, profile.Opcodes)
	for i := range list {
		b.text(list[i].Name)
		b.count(list[i].Count)
		b.share(float64(list[i].Count), float64(total))
		b.end()
	}
	return b.t
}

func vectorTable(c *profile.Counters) report.Table {
	b := newCounterTable("vectors", "Vector instructions, but loads and stores",
		"lanes", "elements", "bits", "bits of each", "type", "of", "count", "instructions")
	for i := range c.Tallies {
		t := &c.Tallies[i]
		of := "integers"
		if t.Kind == profile.FloatVectors {
			of = "floating point"
		} else if t.Kind != profile.IntegerVectors {
			continue
		}
		b.count(uint64(t.Lanes))
		b.count(uint64(t.Size))
		b.text(of)
		b.count(t.Count)
		b.end()
	}
	return b.t
}

// callTable lists callees. One is traced if its code was entered.
func callTable(c *profile.Counters) report.Table {
	b := newCounterTable("calls", "Functions called", "function", "function", "calls", "calls", "traced", "its code is traced")
	traced := map[string]string{"*": "–"}
	for i := range c.Functions {
		traced[c.Functions[i].Name] = "yes"
	}
	list, _ := mostFirst(c, profile.Callees)
	for i := range list {
		name := list[i].Name
		if name == "*" {
			b.text("(through a pointer)")
		} else {
			b.text(name)
		}
		b.count(list[i].Count)
		b.text(cmp.Or(traced[name], "no"))
		b.end()
	}
	return b.t
}

// rowCounters are those of functions and blocks.
var rowCounters = [...]profile.Counter{profile.BytesLoaded, profile.BytesStored, profile.Loads, profile.Stores, profile.Flops,
	profile.IntegerOps, profile.ConditionalBranches, profile.CallOps, profile.VectorOps, profile.Instructions}

// newCounterRows begins a table of functions or blocks with these columns, and those of
// their counters.
func newCounterRows(key, title string, columns ...string) *builder {
	columns = append(columns, "bytes", "bytes")
	for _, counter := range rowCounters {
		m := counter.Meaning()
		columns = append(columns, m.Key, m.Label)
	}
	return newCounterTable(key, title, append(columns, "memmove_bytes", "bytes moved by memcpy and memmove",
		"memset_bytes", "bytes set by memset", "bytes_per_flop", "bytes per flop")...)
}

// counts are a row's counters, and its end.
func (b *builder) counts(counts *profile.Counts) {
	b.count(counts.Bytes())
	for _, counter := range rowCounters {
		b.count(counts[counter])
	}
	_, moved := counts.Moves()
	_, set := counts.Sets()
	b.count(moved)
	b.count(set)
	if counts[profile.Flops] == 0 {
		b.known(0)
	} else {
		b.decimal(float64(counts.Bytes()) / float64(counts[profile.Flops]))
	}
	b.end()
}

func functionTable(c *profile.Counters) report.Table {
	b := newCounterRows("functions", "Counters by function, each without those that it calls",
		"function", "function", "file", "file", "line", "line", "invocations", "invocations", "unique_bytes", "unique bytes")
	sums := c.ByFunction()
	for i := range c.Functions {
		f := &c.Functions[i]
		b.text(functionName(f))
		b.text(f.File)
		b.known(uint64(f.Line))
		b.count(f.Invocations)
		if c.Touched {
			b.count(f.UniqueBytes)
		} else {
			b.known(f.UniqueBytes)
		}
		b.counts(&sums[i])
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
		"function", "function", "block", "block", "file", "file", "line", "line", "last_line", "to", "executions", "executions")
	for i := range c.Code {
		k := &c.Code[i]
		name := ""
		if at := c.FunctionAt(k.Function); at >= 0 {
			name = functionName(&c.Functions[at])
		}
		b.text(name)
		b.text(k.Label)
		b.text(k.File)
		b.known(uint64(k.FirstLine))
		b.known(uint64(k.LastLine))
		b.count(k.Executions)
		b.counts(&k.Counts)
	}
	return b.t
}
