package state

import (
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
)

// Own compares the misses of each thread in private caches of the given size. Own returns nil if
// either run lacks per-thread stacks.
func (c *Comparison) Own(bytes uint64, by string) *Table {
	return c.threadsTable("core", bytes, "Misses of each thread in its own cache of "+Bytes(bytes)+", A and B", by, []string{"core"},
		"misses", "coherence", "accesses")
}

// Shared compares the misses in a cache of the given size that all threads share. Shared returns
// nil if either run lacks per-thread stacks.
func (c *Comparison) Shared(bytes uint64, by string) *Table {
	return c.threadsTable("domain", bytes, "Misses in a cache of "+Bytes(bytes)+" that all threads share, A and B", by, []string{"cores", "core"},
		"misses", "alone_misses", "accesses")
}

func (c *Comparison) threadsTable(of string, bytes uint64, title, by string, columns []string, numbers ...string) *Table {
	t := c.A.Threads()
	if t == nil || c.B.Threads() == nil {
		return nil
	}
	shared, key := uint32(0), "cores"
	if of == "domain" {
		shared, key = hierarchy.AllCores, "domains"
	}
	a := c.ask(t.levelQuestion(of, bytes, shared), key)
	return a.byRow(title, answerWords, by, columns, numbers...)
}

// Flows compares the flows between threads. Flows returns nil if either run has no data about
// communication.
func (c *Comparison) Flows(by string) *Table {
	return c.communicationTable("flow", "flows", "Words from thread to thread, A and B", by, "from", "to")
}

// Pairs compares the pairs of source locations that write and use values. Pairs returns nil if
// either run has no data about communication.
func (c *Comparison) Pairs(by string) *Table {
	t := c.communicationTable("site", "sites", "Source locations that write values for other threads, A and B", by,
		"producer_file,producer_line,producer", "consumer_file,consumer_line,consumer", "from", "to")
	if t != nil && t.Rows > 0 && !t.inBoth {
		t.Doubt = "A and B have no pair of source locations in common: locations are compared by source line, and the sources differ."
	}
	return t
}

func (c *Comparison) communicationTable(of, key, title, by string, columns ...string) *Table {
	if c.A.Communication() == nil || c.B.Communication() == nil {
		return nil
	}
	a := c.ask(ask.New(ask.VerbOf("communication")).With("by", of), key)
	return a.byRow(title, answerWords, by, columns, "transfers", "events")
}

// bothSentences returns a text with the sentences about A and about B.
func (c *Comparison) bothSentences(say func(v *View) string) string {
	return "A: " + say(c.A) + " B: " + say(c.B)
}

// OwnSentence returns [Threads.OwnSentence] for both runs.
func (c *Comparison) OwnSentence(bytes uint64) string {
	return c.bothSentences(func(v *View) string { return v.Threads().OwnSentence(bytes) })
}

// SharedSentence returns [Threads.SharedSentence] for all threads of both runs.
func (c *Comparison) SharedSentence(bytes uint64) string {
	return c.bothSentences(func(v *View) string { return v.Threads().SharedSentence(OneGroup(len(v.Threads().Cores)), bytes) })
}

// FlowSentence returns [Communication.Sentence] for both runs.
func (c *Comparison) FlowSentence() string {
	return c.bothSentences(func(v *View) string { return v.Communication().Sentence() })
}

// FalseSentence returns [Communication.FalseSentence] for both runs.
func (c *Comparison) FalseSentence() string {
	return c.bothSentences(func(v *View) string { return v.Communication().FalseSentence() })
}

// threadFindings returns the differences between threads if both runs have several threads.
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
