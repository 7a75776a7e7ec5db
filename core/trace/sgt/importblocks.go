package sgt

import (
	"encoding/binary"

	"github.com/stackglass/stackglass/core/trace"
)

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
