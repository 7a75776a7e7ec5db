package sgt

import (
	"io"

	"github.com/stackglass/stackglass/core/trace"
)

// Importer writes a trace that knows no blocks: every row becomes a step of a
// synthetic block with one site. (Of one that does know blocks, but not their
// sites, see [execution].)
//
// Where rows have the address of their instruction, a site is one (kind, bytes,
// instruction). Where they have none, what came before tells instructions apart:
// rows are of one group if kind, bytes, and the kinds and bytes of the
// historyRows rows before them are the same. A group has up to mostStreams
// sites, of which a row takes the one that predicts its address, so that loops
// with several equal references part again. Both together give a trace of
// lackey's a third less bytes than either, and half as many tokens to decode.
type Importer struct {
	w *Writer
	namer
	fresh   trace.Program // what no table has yet, as of one module
	running execution     // of a block that the trace tells of
	known   knownBlocks
	ticket  uint64       // of the last row
	values  [2]uint64    // of the last row
	told    trace.Header // what the facts in the file tell
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

// Write adds the references of a batch of a trace that has that header.
func (m *Importer) Write(b *trace.Batch, h trace.Header) error {
	m.tell(h)
	if h.Program != nil && b.Site != nil {
		return m.executions(b, h.Program)
	}
	for i, kind := range b.Kind {
		if !kind.IsReference() {
			continue
		}
		thread, group := uint32(0), siteGroup{kind: kind, bytes: b.Bytes[i]}
		if b.Thread != nil {
			thread = b.Thread[i]
		}
		if b.PC != nil {
			group.pc = b.PC[i]
		}
		if !h.Sizes {
			group.bytes, group.flags = 0, trace.NoSize
		}
		if !m.runs(thread) {
			m.turnTo(thread)
		}
		if err := m.row(group, b.Addr[i]); err != nil {
			return err
		}
	}
	return nil
}

// tell writes facts that are not, or no longer, as the file tells them.
func (m *Importer) tell(h trace.Header) {
	for _, f := range [...]struct {
		name      string
		told, has bool
	}{{"threads", m.told.Threads, h.Threads}, {"sizes", m.told.Sizes, h.Sizes}} {
		if f.told != f.has {
			m.w.Facts([]trace.Fact{{Name: f.name, Value: yesNo(f.has)}})
		}
	}
	if m.told.Format != h.Format {
		m.w.Facts([]trace.Fact{{Name: "format", Value: h.Format}})
	}
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

// newSite gives a group one more site.
func (m *Importer) newSite(g siteGroup) uint32 {
	site := trace.Site{Kind: g.kind, Bytes: g.bytes, PC: g.pc, Flags: g.flags}
	return m.newBlock(trace.Block{Function: trace.NoFunction, Flags: trace.Synthetic}, g, site)
}

// newBlock adds a block with these sites to the tables and gives its number.
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
