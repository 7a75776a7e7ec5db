package state

import (
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/report"
)

// everyThread names the row of their sum.
const everyThread = "all threads"

// threadsRows are the numbers of cores by name, below a row of their sums.
type threadsRows struct {
	table report.Table
	sum   []uint64
	rows  [][]report.Value
}

func newThreadsRows(key string, columns ...report.Column) *threadsRows {
	return &threadsRows{
		table: report.Table{Key: key, Columns: append([]report.Column{{Key: "thread", Label: "thread"}}, columns...)},
		sum:   make([]uint64, len(columns)),
	}
}

func (r *threadsRows) add(name string, numbers ...uint64) {
	row := []report.Value{report.TextOf(strings.ReplaceAll(name, nbsp, " "))}
	for i, n := range numbers {
		r.sum[i] += n
		row = append(row, report.Count(n))
	}
	r.rows = append(r.rows, row)
}

func (r *threadsRows) done() report.Table {
	all := []report.Value{report.TextOf(everyThread)}
	for _, n := range r.sum {
		all = append(all, report.Count(n))
	}
	r.table.Rows = append([][]report.Value{all}, r.rows...)
	return r.table
}

// ownReport is what private caches of a size miss, by thread.
func (t *Threads) ownReport(bytes uint64) report.Table {
	lines := bytes / t.view.LineBytes
	r := newThreadsRows("own", report.Column{Key: "misses", Label: "misses"}, report.Column{Key: "coherence", Label: "coherence"},
		report.Column{Key: "accesses", Label: "accesses"})
	for i := range t.cores {
		c := &t.cores[i]
		r.add(t.CoreName(i), c.coherent.Misses(lines), c.byStore(lines), c.private.Accesses)
	}
	return r.done()
}

// sharedReport is what a cache of a size misses that all threads share, by thread.
func (t *Threads) sharedReport(bytes uint64) report.Table {
	r := newThreadsRows("shared", report.Column{Key: "misses", Label: "misses"}, report.Column{Key: "alone", Label: "if it were alone"},
		report.Column{Key: "accesses", Label: "accesses"})
	for _, group := range t.Shared(OneGroup(len(t.Cores)), bytes) {
		for _, m := range group.Members {
			r.add(t.CoreName(m.Core), m.Misses, m.Alone, m.Accesses)
		}
	}
	return r.done()
}

// flowsReport is what goes from thread to thread, of words.
func (c *Communication) flowsReport() report.Table {
	t := report.Table{Key: "flows", Columns: []report.Column{{Key: "from", Label: "from thread"}, {Key: "to", Label: "to thread"},
		{Key: "transfers", Label: "transfers"}, {Key: "events", Label: "events"}}}
	thread := func(n uint32) report.Value { return report.TextOf(strconv.FormatUint(uint64(n), 10)) }
	for _, f := range c.Granules[0].Flows {
		t.Add(thread(f.From), thread(f.To), report.Count(f.Transfers), report.Count(f.Events))
	}
	return t
}

// pairsReport is which places write what others use.
func (c *Communication) pairsReport() report.Table {
	t := report.Table{Key: "pairs", Columns: []report.Column{{Key: "producer", Label: "written at"}, {Key: "consumer", Label: "used at"},
		{Key: "object", Label: "data"}, {Key: "transfers", Label: "transfers"}, {Key: "events", Label: "events"}}}
	for _, p := range c.pairs([2]int{-1, -1}) {
		t.Add(report.TextOf(c.view.SiteName(p.Producer)), report.TextOf(c.view.SiteName(p.Consumer)), report.TextOf(c.view.ObjectName(p.Object)),
			report.Count(p.Transfers), report.Count(p.Events))
	}
	return t
}

// joinThreads lays tables of both out, sorted by the difference of cell unless by
// says otherwise.
func joinThreads(a, b report.Table, title, cell, by string, names ...string) *Table {
	joined := report.Join(a, b, report.Key{Columns: names, Counts: true})
	joined.Title = title
	var shown []string
	for _, c := range joined.Cells {
		shown = append(shown, c.Key)
	}
	return sortedJoin(joined, a.Key, words, cell, by, shown...)
}

// Own compares private caches of a size by thread; nil where one run has no stacks
// of threads.
func (c *Comparison) Own(bytes uint64, by string) *Table {
	a, b := c.A.Threads(), c.B.Threads()
	if a == nil || b == nil {
		return nil
	}
	return joinThreads(a.ownReport(bytes), b.ownReport(bytes), "Misses in a cache of "+Bytes(bytes)+" for each thread, A and B", "misses", by, "thread")
}

// Shared compares a cache of a size that all threads share; nil as for Own.
func (c *Comparison) Shared(bytes uint64, by string) *Table {
	a, b := c.A.Threads(), c.B.Threads()
	if a == nil || b == nil {
		return nil
	}
	return joinThreads(a.sharedReport(bytes), b.sharedReport(bytes), "Misses in "+Bytes(bytes)+" shared by all threads, A and B", "misses", by, "thread")
}

// Flows compares what goes from thread to thread; nil where one run does not tell.
func (c *Comparison) Flows(by string) *Table {
	a, b := c.A.Communication(), c.B.Communication()
	if a == nil || b == nil {
		return nil
	}
	return joinThreads(a.flowsReport(), b.flowsReport(), "Words from thread to thread, A and B", "transfers", by, "from", "to")
}

// Pairs compares the places that write what others use; nil as for Flows.
func (c *Comparison) Pairs(by string) *Table {
	a, b := c.A.Communication(), c.B.Communication()
	if a == nil || b == nil {
		return nil
	}
	t := joinThreads(a.pairsReport(), b.pairsReport(), "Places that write what others use, A and B", "transfers", by, "producer", "consumer", "object")
	if len(t.Source().Rows) > 0 && !t.inBoth() {
		t.Doubt = "No pair of places of A is in B: places are compared by their source lines, and these sources differ."
	}
	return t
}

// sides says the same of both.
func (c *Comparison) sides(say func(v *View) string) string {
	return "A: " + say(c.A) + " B: " + say(c.B)
}

// OwnSentence is [Threads.OwnSentence] of both.
func (c *Comparison) OwnSentence(bytes uint64) string {
	return c.sides(func(v *View) string { return v.Threads().OwnSentence(bytes) })
}

// SharedSentence is [Threads.SharedSentence] of both, of all threads.
func (c *Comparison) SharedSentence(bytes uint64) string {
	return c.sides(func(v *View) string { return v.Threads().SharedSentence(OneGroup(len(v.Threads().Cores)), bytes) })
}

// FlowSentence is [Communication.Sentence] of both.
func (c *Comparison) FlowSentence() string {
	return c.sides(func(v *View) string { return v.Communication().Sentence() })
}

// FalseSentence is [Communication.FalseSentence] of both.
func (c *Comparison) FalseSentence() string {
	return c.sides(func(v *View) string { return v.Communication().FalseSentence() })
}

// threadFindings are the differences between threads, where both runs have several.
func (c *Comparison) threadFindings() (list []Finding) {
	if c.A.Threads() != nil && c.B.Threads() != nil {
		list = append(list, Finding{ID: "coherence", Title: "Private caches", Tab: TabThreads, Text: c.OwnSentence(commonOwnBytes)})
	}
	a, b := c.A.Profile.Communication, c.B.Profile.Communication
	if a != nil && b != nil && len(c.A.Communication().FalseFindings())+len(c.B.Communication().FalseFindings()) > 0 {
		list = append(list, Finding{ID: "false-sharing", Title: "False sharing", Tab: TabCommunication, Text: c.FalseSentence()})
	}
	return list
}
