package state

import (
	"math"

	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/report"
)

// joinAnswers joins what both answer to a question about threads, row by row of the same
// thread, sorted by the difference of cell unless by says otherwise; nil where one run has no
// stacks of threads.
func (c *Comparison) joinAnswers(question func(t *Threads) ask.Question, title, cell, by string, shown ...string) *Table {
	var tables [2]report.Table
	var failed error
	c.both(func(side int, v *View) {
		t := v.Threads()
		if t == nil {
			return
		}
		d, err := v.Answer(question(t))
		if failed = err; err == nil {
			tables[side] = d.Tables[0]
		}
	})
	switch {
	case c.A.Threads() == nil || c.B.Threads() == nil:
		return nil
	case failed != nil:
		return &Table{Caption: upper(failed.Error())}
	}
	return joinThreads(tables[0], tables[1], title, cell, by, report.Key{Columns: []string{"threads"}, Without: []string{"level", "core", "cores"}}, shown...)
}

// joinThreads lays tables of both out, sorted by the difference of cell unless by says
// otherwise.
func joinThreads(a, b report.Table, title, cell, by string, names report.Key, shown ...string) *Table {
	names.Counts = true
	joined := report.Join(a, b, names)
	joined.Title = title
	return sortedJoin(joined, a.Key, answerWords, cell, by, shown...)
}

// Own compares private caches of a size by thread; nil where one run has no stacks
// of threads.
func (c *Comparison) Own(bytes uint64, by string) *Table {
	return c.joinAnswers(func(t *Threads) ask.Question { return t.about("core", bytes, 0) },
		"Misses in a cache of "+Bytes(bytes)+" for each thread, A and B", "misses", by, "misses", "coherence", "accesses")
}

// Shared compares a cache of a size that all threads share; nil as for Own.
func (c *Comparison) Shared(bytes uint64, by string) *Table {
	return c.joinAnswers(func(t *Threads) ask.Question { return t.about("domain", bytes, uint32(len(t.Cores))) },
		"Misses in "+Bytes(bytes)+" shared by all threads, A and B", "misses", by, "misses", "alone_misses", "accesses")
}

// Flows compares what goes from thread to thread; nil where one run does not tell.
func (c *Comparison) Flows(by string) *Table {
	a, b := c.A.Communication(), c.B.Communication()
	if a == nil || b == nil {
		return nil
	}
	return joinThreads(a.answer().Flows(&a.Granules[0]), b.answer().Flows(&b.Granules[0]), "Words from thread to thread, A and B", "transfers", by,
		report.Key{Columns: []string{"from", "to"}}, "transfers", "events")
}

// Pairs compares the places that write what others use; nil as for Flows.
func (c *Comparison) Pairs(by string) *Table {
	a, b := c.A.Communication(), c.B.Communication()
	if a == nil || b == nil {
		return nil
	}
	names := report.Key{Columns: []string{"producer", "producer_file", "producer_line", "consumer", "consumer_file", "consumer_line", "consumer_kind", "object"}}
	t := joinThreads(a.answer().Sites(math.MaxInt, false), b.answer().Sites(math.MaxInt, false), "Places that write what others use, A and B", "transfers", by,
		names, "transfers", "events")
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
