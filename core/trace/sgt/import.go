package sgt

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Importer writes a trace without blocks: every row becomes a step of a synthetic block with one
// site. (For traces with blocks, but without their sites, see [execution].)
//
// If rows have the address of their instruction, a site is one (kind, bytes, instruction). Otherwise
// history distinguishes instructions: rows are of one group if kind, bytes, and the kinds and bytes
// of the historyRows rows before them are equal. A group has up to mostStreams sites, and a row gets
// the one that predicts its address, which separates equal references of a loop. Both together make
// a trace of lackey's a third smaller than either alone, with half as many tokens to decode.
type Importer struct {
	w *Writer
	namer
	fresh   trace.Program // what no table contains yet, as one module
	running execution     // of a block of the trace
	known   knownBlocks
	ticket  uint64       // of the last row
	values  [2]uint64    // of the last row
	told    trace.Header // as the facts in the file say
}

// NewImporter begins a container for a converted trace.
func NewImporter(w io.Writer, facts []trace.Fact) *Importer {
	facts = append(facts[:len(facts):len(facts)], trace.Fact{Name: "order", Value: "recorded"})
	m := &Importer{w: NewWriter(w, 0, facts), namer: newNamer()}
	m.add = m.newSite
	m.told = trace.Header{Threads: true, Sizes: true}
	m.w.beforeFlush = m.declare
	return m
}

// Write writes the references of a batch of a trace with that header.
func (m *Importer) Write(b *trace.Batch, h trace.Header) error {
	m.tell(h)
	if h.Program != nil && b.Site != nil {
		return m.executions(b, h.Program)
	}
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		group := groupOf(b, i, h.Sizes)
		group.pc = trace.At(b.PC, i)
		if thread := trace.At(b.Thread, i); !m.runs(thread) {
			m.turnTo(thread)
		}
		if err := m.row(group, b.Addr[i]); err != nil {
			return err
		}
	}
	return nil
}

// tell writes facts that differ from those in the file.
func (m *Importer) tell(h trace.Header) {
	change := func(name string, changed bool, value string) {
		if changed {
			m.w.Facts([]trace.Fact{{Name: name, Value: value}})
		}
	}
	change("threads", m.told.Threads != h.Threads, yesNo(h.Threads))
	change("sizes", m.told.Sizes != h.Sizes, yesNo(h.Sizes))
	change("format", m.told.Format != h.Format, h.Format)
	m.told = h
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func (m *Importer) turnTo(thread uint32) {
	m.namer.turnTo(thread)
	m.ticket++
}

func (m *Importer) row(group siteGroup, addr trace.Addr) error {
	block := m.name(group, addr)
	m.values[0] = addr
	return m.step(block, m.values[:group.values()])
}

// step writes a step of the running thread.
func (m *Importer) step(block uint32, values []uint64) error {
	if len(m.w.open) == 0 {
		m.ticket++ // chunks begin with a new one
	}
	return m.w.Step(m.thread.number, m.ticket, block, values)
}

// newSite adds a site to a group.
func (m *Importer) newSite(g siteGroup) uint32 {
	site := trace.Site{Kind: g.kind, Bytes: g.bytes, PC: g.pc, Flags: g.flags}
	return m.newBlock(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, g, site)
}

// newBlock adds a block with these sites to the tables and returns its number.
func (m *Importer) newBlock(b trace.Block, g siteGroup, sites ...trace.Site) uint32 {
	b.FirstSite, b.Sites = uint32(len(m.fresh.Sites)), uint32(len(sites))
	m.fresh.Blocks, m.fresh.Sites = append(m.fresh.Blocks, b), append(m.fresh.Sites, sites...)
	m.groups = append(m.groups, g)
	m.w.layouts = append(m.w.layouts, layoutOf(sites))
	return uint32(len(m.groups) - 1)
}

// declare writes the tables of what is new.
func (m *Importer) declare() {
	if len(m.fresh.Blocks) == 0 {
		return
	}
	m.fresh.Modules = make([]trace.Module, 1)
	m.w.put(tagModule, AppendModule(nil, &m.fresh))
	m.fresh = trace.Program{Blocks: m.fresh.Blocks[:0], Sites: m.fresh.Sites[:0]}
	clear(m.known.functions)
}

// Close ends the container.
func (m *Importer) Close(e End) error {
	if err := m.endExecution(); err != nil {
		return err
	}
	return m.w.Close(e)
}
