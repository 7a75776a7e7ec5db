package sgt

import (
	"encoding/binary"
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

// execution is the current execution of a block of the trace. In traces such as PPT's the references of a
// block differ from execution to execution; in a container a block always makes the same rows. So a block
// becomes several, one for each list of sites of an execution. References behind MaxValues values, or
// behind those of another block, become a synthetic one: the block was not entered again.
type execution struct {
	begun  bool
	entry  bool   // it began with the entry of the block
	block  uint32 // of the trace
	sites  []uint32
	values []uint64
}

// knownBlocks are the blocks that executions became.
type knownBlocks struct {
	number    map[string]uint32 // by block and sites
	functions map[uint32]uint32 // from the trace's numbers to those of the new table
	name      []byte
	program   *trace.Program
}

// executions writes a batch of a trace with blocks.
func (m *Importer) executions(b *trace.Batch, p *trace.Program) error {
	m.known.program = p
	for i, kind := range b.Kind {
		thread := trace.At(b.Thread, i)
		block, entry := b.Site[i], kind == trace.BlockEntry
		if !entry && !kind.IsReference() {
			continue
		}
		if !entry {
			block = p.Sites[b.Site[i]].Block
		}
		turned := m.thread == nil || m.thread.number != thread
		if turned || entry || !m.running.goesOn(block) {
			if err := m.endExecution(); err != nil {
				return err
			}
			if turned {
				m.turnTo(thread)
			}
			m.running.begun, m.running.entry, m.running.block = true, entry, block
		}
		if !entry {
			m.running.sites = append(m.running.sites, b.Site[i])
			m.running.values = append(m.running.values, b.Addr[i])
			if p.Sites[b.Site[i]].Values() == 2 {
				m.running.values = append(m.running.values, uint64(b.Bytes[i]))
			}
		}
	}
	return nil
}

// goesOn reports whether a reference of a block belongs to the execution.
func (e *execution) goesOn(block uint32) bool {
	return e.begun && e.entry && e.block == block && len(e.values) <= MaxValues-2
}

// endExecution writes the step of the current execution.
func (m *Importer) endExecution() error {
	e := &m.running
	if !e.begun {
		return nil
	}
	number := m.blockOf(e)
	err := m.step(number, e.values)
	*e = execution{sites: e.sites[:0], values: e.values[:0]}
	return err
}

// blockOf returns the block for an execution.
func (m *Importer) blockOf(e *execution) uint32 {
	k := &m.known
	k.name = binary.AppendUvarint(k.name[:0], uint64(e.block)<<1)
	if e.entry {
		k.name[0] |= 1
	}
	for _, s := range e.sites {
		k.name = binary.AppendUvarint(k.name, uint64(s))
	}
	if n, ok := k.number[string(k.name)]; ok {
		return n
	}
	if k.number == nil {
		k.number, k.functions = map[string]uint32{}, map[uint32]uint32{}
	}
	b := k.program.Blocks[e.block]
	b.Function, b.Successors, b.Loop = m.functionOf(b.Function), nil, 0
	if !e.entry {
		b.Flags |= trace.Synthetic
	}
	var sites []trace.Site
	for _, s := range e.sites {
		sites = append(sites, k.program.Sites[s])
	}
	n := m.newBlock(b, siteGroup{kind: notAKind}, sites...)
	k.number[string(k.name)] = n
	return n
}

// notAKind is the kind of groups without rows.
const notAKind trace.Kind = 0xff

// functionOf adds a function of the trace to the new table.
func (m *Importer) functionOf(f uint32) uint32 {
	if f == trace.NoFunction {
		return f
	}
	n, ok := m.known.functions[f]
	if !ok {
		n = uint32(len(m.fresh.Functions))
		function := m.known.program.Functions[f]
		function.Module, function.First, function.Blocks = 0, 0, 0
		m.fresh.Functions = append(m.fresh.Functions, function)
		m.known.functions[f] = n
	}
	return n
}
